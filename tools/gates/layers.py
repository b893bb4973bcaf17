# SPDX-License-Identifier: Apache-2.0
"""Includes run downhill: a room, or a folder inside one, sees only the rooms, folders and libraries
that its row in LAYERS names."""
import re

import tree

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')

STANDARD = set("""
algorithm any array atomic barrier bit bitset charconv chrono codecvt compare complex concepts
condition_variable coroutine deque exception execution filesystem forward_list fstream functional
future initializer_list iomanip ios iosfwd iostream istream iterator latch limits list locale map
memory memory_resource mutex new numbers numeric optional ostream queue random ranges ratio regex
scoped_allocator semaphore set shared_mutex source_location span sstream stack stdexcept stop_token
streambuf string string_view strstream syncstream system_error thread tuple type_traits typeindex
typeinfo unordered_map unordered_set utility valarray variant vector version
cassert cctype cerrno cfenv cfloat cinttypes climits clocale cmath csetjmp csignal cstdarg cstddef
cstdint cstdio cstdlib cstring ctime cuchar cwchar cwctype
""".split())

# Linux, glibc and the compiler: what <...> may name without a row.
SYSTEM = re.compile(
    r"(?:sys|linux|asm|netinet|arpa|net)/[a-z0-9_/]+\.h$"
    r"|(?:unistd|fcntl|sched|pthread|signal|errno|poll|netdb|termios|dirent|dlfcn|time|stdint|stddef"
    r"|stdio|stdlib|string|limits|math|float|inttypes|malloc|execinfo|link|elf|getopt|grp|pwd"
    r"|immintrin|x86intrin|cpuid|cxxabi|spawn|langinfo|semaphore)\.h$")

# Only in x_test.cc and x_bench.cc.
FOR_TESTS = ("gtest/", "gmock/", "benchmark/")


def room_of(place):
    return place.split("/")[0]


def may_name(place, other, rows):
    """Whether the row of `place` may name `other` at all; every row names only rows above it, so
    cycles cannot be written down."""
    if other not in rows:
        return "which does not stand above it"
    room = room_of(place)
    if place == room:
        return "which is a folder; rooms see whole rooms" if "/" in other else None
    if other == room:
        return "the room itself, whose own files stand above its folders"
    if "/" in other:
        return None if room_of(other) == room else "which is a folder of another room"
    return None if other in rows[room] else f"which {room} may not include"


def read_rules(text, bad):
    """Returns {room or folder: what it may see} and {third-party prefix: who may include it}."""
    rows, libraries = {}, {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        name, allowed = words[0], set(words[1:])
        if name.startswith("@"):
            libraries[name[1:]] = allowed
            for place in sorted(allowed - set(rows) - {"*"}):
                bad.append(f"LAYERS:{number}: {place} has no row of its own above")
            continue
        if room_of(name) != name and room_of(name) not in rows:
            bad.append(f"LAYERS:{number}: {name} stands above its room")
            continue
        for other in sorted(allowed if "/" in name else allowed - {"*"}):
            why = may_name(name, other, rows)
            if why:
                bad.append(f"LAYERS:{number}: {name} names {other}, {why}")
        rows[name] = set(rows) | {name} if "*" in allowed else allowed | {name}
    return rows, libraries


def check_quoted(target, place, rows, is_test):
    if "/" not in target:
        return f'write includes of ours as "room/{target}"'
    other = target.rsplit("/", 1)[0]
    if is_test:
        # The tests of a room are one program, above all of its folders.
        place = room_of(place)
    if room_of(other) != room_of(place) or place == room_of(place):
        other = room_of(other)
    if other in rows[place] or (is_test and other == "testing"):
        return None
    return f"{place}/ may not include {other}/"


def check_angle(target, place, libraries, is_test):
    if target in STANDARD or SYSTEM.match(target):
        return None
    if is_test and target.startswith(FOR_TESTS):
        return None
    prefixes = [prefix for prefix in libraries if target.startswith(prefix)]
    if not prefixes:
        return f"<{target}> is neither the C++ library nor the OS, and LAYERS has no row for it"
    allowed = libraries[max(prefixes, key=len)]
    if allowed & {place, room_of(place), "*"}:
        return None
    return f"{place}/ may not include <{target}>: LAYERS grants it to {' '.join(sorted(allowed))}"


def main():
    root = tree.root_argument()
    bad = []
    rows, libraries = read_rules(tree.read(root, "LAYERS"), bad)
    sources = [path for path in tree.cpp_files(root, ("src",)) if len(path.parts) > 1]
    for path in sources:
        place = "/".join(path.parts[1:-1]) or path.name
        if place not in rows:
            kind = "folder" if "/" in place else "room"
            bad.append(f"{path}:1: {kind} {place}/ has no row in LAYERS")
            continue
        is_test = path.stem.endswith(("_test", "_bench"))
        for number, line in enumerate(tree.read(root, path).splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            kind, target = match.groups()
            why = (check_quoted(target, place, rows, is_test) if kind == '"'
                   else check_angle(target, place, libraries, is_test))
            if why:
                bad.append(f"{path}:{number}: {why}")
    rooms = [name for name in rows if "/" not in name]
    tree.report(bad, f"{len(sources)} files, {len(rooms)} rooms, {len(rows) - len(rooms)} folders, "
                f"{len(libraries)} library rows")


if __name__ == "__main__":
    main()

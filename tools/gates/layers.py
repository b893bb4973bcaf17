# SPDX-License-Identifier: Apache-2.0
"""Includes run downhill: a room sees only the rooms and libraries that its row in LAYERS names."""
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
    r"|(?:unistd|fcntl|sched|pthread|signal|errno|poll|termios|dirent|dlfcn|time|stdint|stddef"
    r"|stdio|stdlib|string|limits|math|float|inttypes|malloc|execinfo|link|elf|getopt|grp|pwd"
    r"|immintrin|x86intrin|cpuid|cxxabi|spawn|langinfo|semaphore)\.h$")

# Only in x_test.cc and x_bench.cc.
FOR_TESTS = ("gtest/", "gmock/", "benchmark/")


def read_rules(text, bad):
    """Returns {room: rooms it may see} and {third-party prefix: rooms that may include it}."""
    rooms, libraries = {}, {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        name, allowed = words[0], set(words[1:])
        if name.startswith("@"):
            libraries[name[1:]] = allowed
            for room in sorted(allowed - set(rooms) - {"*"}):
                bad.append(f"LAYERS:{number}: {room} has no row of its own above")
            continue
        # A row may name only rooms above it, so cycles cannot be written down at all.
        for room in sorted(allowed - set(rooms) - {"*"}):
            bad.append(f"LAYERS:{number}: {name} names {room}, which does not stand above it")
        rooms[name] = set(rooms) | {name} if "*" in allowed else allowed | {name}
    return rooms, libraries


def check_quoted(target, room, allowed, is_test):
    other = target.split("/")[0] if "/" in target else None
    if other is None:
        return f'write includes of ours as "room/{target}"'
    if other in allowed or (is_test and other == "testing"):
        return None
    return f"{room}/ may not include {other}/"


def check_angle(target, room, libraries, is_test):
    if target in STANDARD or SYSTEM.match(target):
        return None
    if is_test and target.startswith(FOR_TESTS):
        return None
    rows = [prefix for prefix in libraries if target.startswith(prefix)]
    if not rows:
        return f"<{target}> is neither the C++ library nor the OS, and LAYERS has no row for it"
    allowed = libraries[max(rows, key=len)]
    if room in allowed or "*" in allowed:
        return None
    return f"{room}/ may not include <{target}>: LAYERS grants it to {' '.join(sorted(allowed))}"


def main():
    root = tree.root_argument()
    bad = []
    rooms, libraries = read_rules(tree.read(root, "LAYERS"), bad)
    sources = [path for path in tree.cpp_files(root, ("src",)) if len(path.parts) > 1]
    for path in sources:
        room = path.parts[1]
        if room not in rooms:
            bad.append(f"{path}:1: room {room}/ has no row in LAYERS")
            continue
        is_test = path.stem.endswith(("_test", "_bench"))
        for number, line in enumerate(tree.read(root, path).splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            kind, target = match.groups()
            why = (check_quoted(target, room, rooms[room], is_test) if kind == '"'
                   else check_angle(target, room, libraries, is_test))
            if why:
                bad.append(f"{path}:{number}: {why}")
    tree.report(bad, f"{len(sources)} files, {len(rooms)} rooms, {len(libraries)} library rows")


if __name__ == "__main__":
    main()

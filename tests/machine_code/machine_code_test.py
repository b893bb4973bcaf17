# SPDX-License-Identifier: Apache-2.0
"""What the compiler made of the tiles (docs/decisions/0160): their innermost loops, as they are in the library.

A loop of products alone stores nothing on the stack: a sum that lost its register shows there first. And every
family's best loop keeps as many products a cycle, counted by llvm-mca, as it had when it was measured, less a little.
"""
import re
import shutil
import subprocess
import sys

PRODUCTS = ("vpdpbusd", "vpdpwssd", "vpmaddwd", "vpmaddubsw")
MCA = "llvm-mca-19"
ITERATIONS = 20
SLACK = 0.97  # what a compiler may lose without being asked

# Level, and its functions (`8` of SuperTiles<8, 1> is the format, `1` the planes): the processor that is modelled,
# products a cycle when they were measured, and whether the loop has nothing but products.
EXPECTED = [
    ("avx512", r"Mxfp4Tiles|BlocksTiles<\d+>|BytesTiles<\d+>|SuperTiles<(9|10|12), [12]>", "cascadelake", 1.79, True),
    ("avx512", r"SuperTiles<(7|8|11), [12]>", "cascadelake", 1.05, False),  # a scale every 16 columns
    ("avxvnni", r"Mxfp4Tiles|BlocksTiles<\d+>|BytesTiles<\d+>|SuperTiles<(9|10|12), [12]>", "alderlake", 1.88, True),
    ("avxvnni", r"SuperTiles<(7|8|11), [12]>", "alderlake", 1.18, False),
    ("avx2", r"BlocksTiles<\d+>|BytesTiles<[16]>", "haswell", 0.97, True),
    ("avx2", r"Mxfp4Tiles", "haswell", 0.96, False),  # six tokens' factors wait on the stack
    ("avx2", r"BytesTiles<[02345]>", "haswell", 0.80, False),  # sums of 16 bits beside those of 32
    ("avx2", r"SuperTiles<\d+, [12]>", "haswell", 0.96, False),
]
NUM_TILES = {"avx512": 26, "avxvnni": 26, "avx2": 26}  # functions that each level has


def members(archive):
    """(object, demangled function, [(address, instruction)]) of everything in an archive."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "-C", archive], capture_output=True, text=True,
                          check=True).stdout
    member, name, rows = None, None, []
    for line in text.splitlines():
        if found := re.match(r"(\S+):\s+file format", line):
            if name:
                yield member, name, rows
            member, name, rows = found[1], None, []
        elif found := re.match(r"[0-9a-f]+ <(.*)>:$", line):
            if name:
                yield member, name, rows
            name, rows = found[1], []
        elif name and (found := re.match(r"\s+([0-9a-f]+):\s+(.*?)\s*(?:[#<].*)?$", line)):
            rows.append((int(found[1], 16), found[2]))
    if name:
        yield member, name, rows


def innermost(rows):
    """Bodies of loops that no other loop lies in."""
    at = {address: index for index, (address, _) in enumerate(rows)}
    loops = set()
    for index, (_, code) in enumerate(rows):
        if found := re.match(r"(?:notrack )?j[a-z]+\s+([0-9a-f]+)$", code):
            begin = at.get(int(found[1], 16))
            if begin is not None and begin <= index:
                loops.add((begin, index))
    for begin, end in loops:
        if not any(other != (begin, end) and begin <= other[0] and other[1] <= end for other in loops):
            yield [code for _, code in rows[begin:end + 1]]


def products_of(body):
    return sum(1 for code in body if any(product in code for product in PRODUCTS))


def spills_of(body):
    return sum(1 for code in body if re.match(r"vmov\w+\s+%[xyz]mm\d+,(-?0x[0-9a-f]+)?\(%r[sb]p\)$", code))


def cycles_of(body, processor):
    """Of one turn of the loop, with what a jump may leave out; None where it calls."""
    if any(re.match(r"call|ret", code) for code in body):
        return None
    lines = [code for code in body if not re.match(r"(notrack )?j", code)]
    done = subprocess.run([MCA, "-mtriple=x86_64", f"-mcpu={processor}", f"-iterations={ITERATIONS}"],
                          input="\n".join(lines), capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{MCA} does not understand the loop:\n{done.stderr}")
    return float(re.search(r"Total Cycles:\s+(\d+)", done.stdout)[1]) / ITERATIONS


def tiles(archive):
    """(level, function): the loops of products that this function has."""
    found = {}
    for member, name, rows in members(archive):
        short = re.search(r"(\w+Tiles)(<\(hearth::PackKind\)(\d+)(, \d+)?>)?\(", name)
        if "_tiles" not in member or short is None:
            continue
        function = short[1] + (f"<{short[3]}{short[4] or ''}>" if short[2] else "")
        for body in innermost(rows):
            if products_of(body) < 12:
                continue
            text = " ".join(body)
            level = "avx512" if "%zmm" in text else "avxvnni" if "vpdp" in text else "avx2"
            found.setdefault((level, function), []).append(body)
    return found


def check(archive):
    wrong, seen = [], dict.fromkeys(NUM_TILES, 0)
    for (level, function), loops in sorted(tiles(archive).items()):
        rule = next((rule for rule in EXPECTED if rule[0] == level and re.fullmatch(rule[1], function)), None)
        if rule is None:
            wrong.append(f"{level} {function}: no figure is expected of it; add one")
            continue
        _, _, processor, least, is_bare = rule
        rates = [(products_of(body) / cycles, body) for body in loops if (cycles := cycles_of(body, processor))]
        rate, body = max(rates, key=lambda each: each[0], default=(0.0, []))
        seen[level] += 1
        if rate < SLACK * least:
            wrong.append(f"{level} {function}: {rate:.2f} products a cycle on {processor}, {least} when it was measured")
        if is_bare and spills_of(body) > 0:
            wrong.append(f"{level} {function}: its loop of products stores {spills_of(body)} vectors on the stack")
        print(f"{level:8} {function:20} {rate:.2f} products a cycle on {processor}, {len(loops)} loops")
    for level, expected in NUM_TILES.items():
        if seen[level] != expected:
            wrong.append(f"{level}: {seen[level]} functions with tiles were found, not {expected}")
    return wrong


if __name__ == "__main__":
    if not shutil.which(MCA):
        print(f"SKIPPED LOUDLY: {MCA} is missing; ./dev setup installs it")
        sys.exit(77)
    problems = check(sys.argv[1])
    sys.exit("\n".join(problems) or 0)

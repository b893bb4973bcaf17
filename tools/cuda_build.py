# SPDX-License-Identifier: Apache-2.0
"""Compiles src/cuda/kernels.cu for every architecture into one fatbin, and refuses machine code that
the numerics do not allow or that is slow by construction. Used by cmake/cuda.cmake.

Refused, with the kernel's name and the line: approximate functions, flushing to zero, arithmetic whose
rounding or fusing is left to the assembler, local memory, more registers than src/cuda/budget.txt
grants, shared memory beyond what every architecture has.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

ARCHS = ("75", "80", "86", "89", "90", "100", "120")
# For cards newer than the last of ARCHS.
PTX = "120"
OLDEST_PTX = "75"
FLAGS = ["-std=c++20", "-O3", "-fmad=false", "-ftz=false", "-prec-div=true", "-prec-sqrt=true",
         "--expt-relaxed-constexpr", "-Werror", "all-warnings"]

# Of PTX: what a float operation may look like. Only with .rn does the assembler neither fuse nor flush.
FLOAT_OP = re.compile(r"^(?:@!?%p\d+\s+)?((add|sub|mul|mad|fma|div|rcp|sqrt|rsqrt|ex2|lg2|sin|cos|tanh|cvt)"
                      r"\.[\w.:]*f(?:16|32|64)[\w.]*)")
EXACT = re.compile(r"(?:(?:add|sub|mul|fma|div|rcp|sqrt)\.rn\.f32"
                   r"|cvt\.rn\.f32\.[su](?:8|16|32|64)|cvt\.rzi\.[su]32\.f32|cvt\.f32\.f16|cvt\.rn\.f16\.f32)$")
# Of machine code: an instruction's name, behind its address and predicate.
MNEMONIC = re.compile(r"/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)")
# Approximations that are never part of an exact division or root, and local memory.
UNWANTED = re.compile(r"MUFU\.(?:EX2|LG2|SIN|COS|TANH)|FFMA.*\.FTZ|LDL|STL")
# What ptxas makes of the exact div, rcp, sqrt and of integer division flushes where it cannot matter.
MAY_FLUSH = re.compile(r"F2I\.|FADD\.FTZ$|FMUL\.FTZ$|FSETP\.")
ENTRY = re.compile(r"\.entry (\w+)\(")


def read_budget(path):
    """{kernel: most registers of a thread}"""
    rows = (line.split("#")[0].split() for line in path.read_text().splitlines())
    return {row[0]: int(row[1]) for row in rows if row}


def bad_ptx(text):
    kernel = "?"
    for line in text.splitlines():
        line = line.strip()
        if match := ENTRY.search(line):
            kernel = match.group(1)
        match = FLOAT_OP.match(line)
        if match and not EXACT.match(match.group(1)):
            yield f"{kernel}: {line}"
        elif re.match(r"\S*\.(?:ftz|approx)\b", line) or "\tcall" in line or line.startswith(".local"):
            yield f"{kernel}: {line}"


def bad_sass(text):
    kernel = "?"
    for line in text.splitlines():
        if line.startswith(".text."):
            kernel = line.strip(": ").removeprefix(".text.")
        match = MNEMONIC.search(line)
        if not match:
            continue
        name = match.group(1)
        if UNWANTED.match(name) or (".FTZ" in name and not MAY_FLUSH.match(name)):
            yield f"{kernel}: {name}"


def bad_resources(log, budget):
    """From what `ptxas -v` prints."""
    seen = set()
    for name, body in re.findall(r"Compiling entry function '(\w+)'.*?\n(.*?Used \d+ registers[^\n]*)", log,
                                 re.DOTALL):
        seen.add(name)
        registers = int(re.search(r"Used (\d+) registers", body).group(1))
        if name not in budget:
            yield f"{name}: no row in src/cuda/budget.txt"
        elif registers > budget[name]:
            yield f"{name}: {registers} registers, src/cuda/budget.txt grants {budget[name]}"
        if re.search(r"[1-9]\d* bytes (?:stack frame|spill)", body):
            yield f"{name}: local memory: {body.strip().splitlines()[0].strip()}"
    for name in sorted(set(budget) - seen):
        yield f"{name}: in src/cuda/budget.txt, but not compiled"


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def build_arch(arch, tools, source, out, budget):
    """Returns what is wrong with the code for one architecture."""
    ptx, cubin = out / f"sm_{arch}.ptx", out / f"sm_{arch}.cubin"
    run(tools / "nvcc", *FLAGS, f"-arch=compute_{arch}", "-ptx", "-I", source / "src", "-o", ptx,
        source / "src/cuda/kernels.cu")
    log = run(tools / "ptxas", "-v", "-O3", f"-arch=sm_{arch}", "-o", cubin, ptx)
    sass = run(tools / "nvdisasm", "-c", cubin)
    bad = [*bad_ptx(ptx.read_text()), *bad_sass(sass), *bad_resources(log, budget)]
    return [f"sm_{arch}: {line}" for line in bad]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nvcc", type=pathlib.Path, required=True)
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="a folder for everything")
    options = parser.parse_args()
    tools, out = options.nvcc.parent, options.out
    out.mkdir(parents=True, exist_ok=True)
    budget = read_budget(options.source / "src/cuda/budget.txt")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda arch: build_arch(arch, tools, options.source, out, budget), ARCHS)
        bad = [line for lines in found for line in lines]
    if bad:
        sys.exit("\n".join(bad[:20]) + f"\n{len(bad)} thing(s) that CUDA kernels must not have")
    images = [f"--image3=kind=elf,sm={arch},file={out}/sm_{arch}.cubin" for arch in ARCHS]
    images += [f"--image3=kind=ptx,sm={arch},file={out}/sm_{arch}.ptx" for arch in (OLDEST_PTX, PTX)]
    run(tools / "fatbinary", "-64", f"--create={out}/kernels.fatbin", *images)
    print(f"kernels.fatbin: {(out / 'kernels.fatbin').stat().st_size} bytes for sm {' '.join(ARCHS)}")


if __name__ == "__main__":
    main()

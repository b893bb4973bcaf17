# SPDX-License-Identifier: Apache-2.0
"""Proves that a gate can fail: `planted.py GATE` builds a clean tiny tree, on which the gate must
pass, and then plants one violation at a time, which it must report by file and line."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import cases

GATES = pathlib.Path(__file__).resolve().parents[2] / "tools" / "gates"


def write(root, files):
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def compile_kernels(root):
    """Objects where CMake would put them; only the symbols gate looks."""
    for source in sorted((root / "src" / "cpu").glob("kernels_*.cc")):
        target = root / "build/release/CMakeFiles/hearth_cpu.dir/src/cpu" / f"{source.name}.o"
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["g++", "-std=c++20", "-O0", "-c", str(source), "-o", str(target)],
                       check=True)


def link_program(root):
    """A program where CMake would put it, with the flags that the tree's `flags` lists; only the
    hardening gate looks."""
    compiling, linking = (line.split() for line in (root / "flags").read_text().splitlines())
    build, source = root / "build/release", root / "src/app/main.cc"
    target = build / "CMakeFiles/hearth.dir/src/app/main.cc.o"
    target.parent.mkdir(parents=True)
    (build / "bin").mkdir()
    command = ["g++", "-O2", *compiling, "-c", str(source), "-o", str(target)]
    subprocess.run(command, check=True)
    subprocess.run(["g++", *linking, str(target), "-o", str(build / "bin/hearth")], check=True)
    (build / "compile_commands.json").write_text(
        json.dumps([{"file": str(source), "command": " ".join(command)}]))


def run(gate, files):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        write(root, files)
        if gate == "symbols":
            compile_kernels(root)
        if gate == "hardening":
            link_program(root)
        done = subprocess.run([sys.executable, str(GATES / f"{gate}.py"), folder],
                              capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def main():
    gate = sys.argv[1]
    clean, plants = cases.CASES[gate]
    code, output = run(gate, clean)
    if code != 0:
        sys.exit(f"{gate} refuses the clean tree:\n{output}")
    failures = 0
    for name, (files, expected) in plants.items():
        code, output = run(gate, {**clean, **files})
        if code == 1 and re.search("^" + expected, output, re.MULTILINE):
            print(f"ok: {name}")
            continue
        failures += 1
        print(f"FAILED: {name}: exit {code}, expected 1 and /^{expected}/ in:\n{output}")
    # The clean tree must be rich enough that what passed was really looked at.
    if not plants:
        sys.exit("no violation planted")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()

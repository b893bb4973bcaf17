# SPDX-License-Identifier: Apache-2.0
"""The program that users run is built as cmake/hardening.cmake says, read from the program itself:
position-independent, its tables read-only, no executable stack, canaries, checked copies; and from
its objects and their commands what the program does not show."""
import json
import re
import subprocess
import sys

import tree

BUILD = "build/release"
PROGRAM = f"{BUILD}/bin/hearth"
# Seen in the commands alone: the code looks like other code.
COMPILED_WITH = ("-fstack-protector-strong", "-fstack-clash-protection", "-fcf-protection=full",
                 "-D_FORTIFY_SOURCE=3")


def readelf(*arguments):
    return subprocess.run(["readelf", "-W", *arguments], check=True, capture_output=True,
                          text=True).stdout


def program_complaints(program):
    head, dynamic = readelf("-h", program), readelf("-d", program)
    segments, symbols = readelf("-l", program), readelf("--dyn-syms", program)
    if not re.search(r"Type:\s+DYN", head) or not re.search(r"FLAGS_1.*\bPIE\b", dynamic):
        yield "is not position-independent (PIE)"
    if "GNU_RELRO" not in segments:
        yield "has no read-only tables (relro)"
    if not re.search(r"BIND_NOW|FLAGS_1.*\bNOW\b", dynamic):
        yield "binds its imports late (no -z now)"
    if not re.search(r"GNU_STACK.*\bRW\s", segments):
        yield "has an executable stack"
    if re.search(r"LOAD.*\bRWE\b", segments):
        yield "has memory that can be written and executed"
    if "TEXTREL" in dynamic:
        yield "changes its code when it is loaded"
    if re.search(r"\((RPATH|RUNPATH)\)", dynamic):
        yield "looks for libraries in a folder of its own"
    if "__stack_chk_fail" not in symbols:
        yield "has no stack protector"
    if not re.search(r"\b__(memcpy|memmove|memset|read|snprintf|vsnprintf|fprintf)_chk\b", symbols):
        yield "has no checked copies (_FORTIFY_SOURCE)"


def object_complaints(root):
    """Objects of our own rooms that are not marked for control-flow protection."""
    objects = sorted((root / BUILD).glob("CMakeFiles/hearth*.dir/src/**/*.cc.o"))
    for path in objects:
        if (root / "src" / str(path).split("/src/", 1)[1].removesuffix(".o")).is_file():
            notes = readelf("-n", str(path))
            if "IBT" not in notes or "SHSTK" not in notes:
                yield f"{path.relative_to(root)}:1: is not marked for control-flow protection"


def command_complaints(root):
    commands = root / BUILD / "compile_commands.json"
    if not commands.is_file():
        return
    for entry in json.loads(commands.read_text()):
        name = entry["file"].removeprefix(str(root)).lstrip("/")
        if name.startswith("src/") and not name.endswith("_test.cc"):
            for flag in COMPILED_WITH:
                if flag not in entry["command"].split():
                    yield f"{name}:1: is compiled without {flag}"


def main():
    root = tree.root_argument()
    program = root / PROGRAM
    if not program.is_file():
        tree.report([], "NOTHING CHECKED: the release is not built")
    bad = [f"{PROGRAM}:1: {text}" for text in program_complaints(str(program))]
    bad += object_complaints(root)
    bad += command_complaints(root)
    tree.report(bad, "the program, its objects and their commands")


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""No macro soup: #define only in src/base, tests/support, as ISA switches in src/cpu/*.inl and
src/cuda/isa.h, and where tests/emulated puts functions in place of instructions."""
import re

import tree

DEFINE = re.compile(r"\s*#\s*define\s+(\w+)")


def is_allowed(path):
    return (path.match("src/cpu/*.inl") or path.match("src/cuda/isa.h") or path.parts[:2] == ("src", "base")
            or path.parts[:2] in {("tests", "support"), ("tests", "emulated")})


def main():
    root = tree.root_argument()
    bad, count = [], 0
    for path in tree.cpp_files(root):
        count += 1
        if is_allowed(path):
            continue
        for number, line in enumerate(tree.code_only(tree.read(root, path)).splitlines(), 1):
            if match := DEFINE.match(line):
                bad.append(f"{path}:{number}: macro {match.group(1)}: write a function or constant")
    tree.report(bad, f"{count} files")


if __name__ == "__main__":
    main()

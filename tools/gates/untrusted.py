# SPDX-License-Identifier: Apache-2.0
"""Outside bytes go through base/byte_reader.h, base/json.h or from_chars: the C functions that
ignore overflow, locale or bounds are not called in src/ (tests may use them as oracles)."""
import re

import tree

CALL = re.compile(
    r"\b(?:std::)?(ato(?:i|l|ll|f)|strto(?:l|ll|ul|ull|f|d|ld|k|k_r)|sto(?:i|l|ll|ul|ull|f|d|ld)"
    r"|v?sscanf|v?fscanf|scanf|v?sprintf|strcpy|strcat|gets|alloca|setjmp|longjmp)\s*\(")


def main():
    root = tree.root_argument()
    bad, count = [], 0
    for path in tree.cpp_files(root, ("src",)):
        if path.stem.endswith(("_test", "_bench")):
            continue
        count += 1
        for number, line in enumerate(tree.code_only(tree.read(root, path)).splitlines(), 1):
            for match in CALL.finditer(line):
                bad.append(f"{path}:{number}: {match.group(1)}() is not for outside bytes")
    tree.report(bad, f"{count} files")


if __name__ == "__main__":
    main()

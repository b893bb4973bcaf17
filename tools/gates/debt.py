# SPDX-License-Identifier: Apache-2.0
"""Debt has a number: a note for later must name its issue, as in `LATER(#12)` with the usual word."""
import re

import tree

# Spelled in two halves so that this file does not find itself.
WORDS = "|".join(["TO" "DO", "FIX" "ME", "HA" "CK", "X" "XX"])
NOTE = re.compile(rf"\b(?:{WORDS})\b(\(#\d+\))?")
SUFFIXES = tree.CPP | {".py", ".rs", ".sh", ".cmake", ".txt", ".js", ".mjs", ".ts"}


def main():
    root = tree.root_argument()
    bad, count, owed = [], 0, 0
    for path in tree.files(root):
        is_code = path.parts[0] in tree.CODE_FOLDERS and path.suffix in SUFFIXES
        if not is_code and path.name != "CMakeLists.txt" and not tree.is_script(root, path):
            continue
        if "corpus" in path.parts or "golden" in path.parts or "data" in path.parts:
            continue
        count += 1
        for number, line in enumerate(tree.read(root, path).splitlines(), 1):
            for match in NOTE.finditer(line):
                owed += 1
                if not match.group(1):
                    bad.append(f"{path}:{number}: {match.group(0)} without an issue number (#N)")
    tree.report(bad, f"{count} files, {owed} notes with an issue number")


if __name__ == "__main__":
    main()

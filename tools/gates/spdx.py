# SPDX-License-Identifier: Apache-2.0
"""Every source file opens with its licence line and one to four lines that say what lives in it.
A .cc may leave the saying to its own header."""
import re

import tree

LICENCE = "SPDX-License-Identifier: Apache-2.0"
MARK = {".py": "#", ".sh": "#", "": "#"}
SUFFIXES = tree.CPP | {".py", ".rs", ".sh", ".js", ".mjs", ".ts"}
MAX_LINES = 4


def has_header_twin(root, path):
    stem = re.sub(r"_(test|bench)$", "", path.stem)
    return path.suffix in (".cc", ".cu") and (root / path.parent / f"{stem}.h").is_file()


def complaint(root, path):
    lines = tree.read(root, path).splitlines()
    at = 1 if lines and lines[0].startswith("#!") else 0
    mark = MARK.get(path.suffix, "//")
    if len(lines) <= at or lines[at].strip() != f"{mark} {LICENCE}":
        return f"{path}:{at + 1}: expected `{mark} {LICENCE}`"
    rest = lines[at + 1:]
    if path.suffix == ".py" and rest and re.match(r'[rR]?"""\S', rest[0]):
        return None
    said = 0
    while said < len(rest) and rest[said].startswith(mark):
        said += 1
    if said == 0 and not has_header_twin(root, path):
        return f"{path}:{at + 2}: say in one to four lines what lives in this file"
    if said > MAX_LINES:
        return f"{path}:{at + 2 + MAX_LINES}: the opening comment has {said} lines, four are allowed"
    return None


def main():
    root = tree.root_argument()
    paths = [path for path in tree.files(root)
             if (path.parts[0] in tree.CODE_FOLDERS and path.suffix in SUFFIXES
                 and not {"golden", "data", "corpus"} & set(path.parts))
             or tree.is_script(root, path)]
    bad = [why for why in (complaint(root, path) for path in paths) if why]
    tree.report(bad, f"{len(paths)} files")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Writes src/text/unicode_tables.cc from Debian's `unicode-data` and the additions of later Unicode.

The two oracles Hearth is compared with classify by Unicode 16.0, Debian 12 ships 15.0. Between the
two no assigned code point changed its class, so tools/unicode_additions.txt lists only new ones
(`first..last category`). `--additions FILE` writes that list anew from the PyPI package
`unicodedata2` 16.0.0. `--check` says whether the committed table is what this script writes.
"""

import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "src/text/unicode_tables.cc"
ADDITIONS = ROOT / "tools/unicode_additions.txt"
NUM_CODE_POINTS = 0x110000
PAGE = 128

# One bit each, as in unicode_tables.h.
UPPER, LOWER, CASELESS, MARK, NUMBER, SPACE, NEWLINE, OTHER = (1 << i for i in range(8))
CLASS_OF_CATEGORY = {"Lu": UPPER, "Lt": UPPER, "Ll": LOWER, "Lm": CASELESS, "Lo": CASELESS,
                     "Mn": MARK, "Mc": MARK, "Me": MARK, "Nd": NUMBER, "Nl": NUMBER, "No": NUMBER}


def read_categories(folder):
    categories = ["Cn"] * NUM_CODE_POINTS
    first = None
    for line in (folder / "UnicodeData.txt").read_text().splitlines():
        fields = line.split(";")
        code = int(fields[0], 16)
        if fields[1].endswith(", First>"):
            first = code
            continue
        for c in range(code if first is None else first, code + 1):
            categories[c] = fields[2]
        first = None
    return categories


def read_white_space(folder):
    spaces = set()
    for line in (folder / "PropList.txt").read_text().splitlines():
        parts = line.split("#")[0].split(";")
        if len(parts) == 2 and parts[1].strip() == "White_Space":
            first, _, last = parts[0].strip().partition("..")
            spaces.update(range(int(first, 16), int(last or first, 16) + 1))
    return spaces


def apply_additions(categories, path):
    for line in path.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        codes, category = line.split()
        first, _, last = codes.partition("..")
        for c in range(int(first, 16), int(last or first, 16) + 1):
            if categories[c] not in ("Cn", category):
                sys.exit(f"{path}: U+{c:04X} is {categories[c]} already")
            categories[c] = category


def write_additions(categories, path):
    import unicodedata2
    if unicodedata2.unidata_version != "16.0.0":
        sys.exit(f"unicodedata2 has Unicode {unicodedata2.unidata_version}, 16.0.0 is wanted")
    rows = []
    for c in range(NUM_CODE_POINTS):
        category = unicodedata2.category(chr(c))
        if CLASS_OF_CATEGORY.get(category) == CLASS_OF_CATEGORY.get(categories[c]):
            continue
        if categories[c] != "Cn":
            sys.exit(f"U+{c:04X} changed from {categories[c]} to {category}: additions cannot say so")
        if rows and rows[-1][1] == c - 1 and rows[-1][2] == category:
            rows[-1][1] = c
        else:
            rows.append([c, c, category])
    lines = ["# SPDX-License-Identifier: Apache-2.0",
             "# Code points assigned by Unicode 15.1 and 16.0, after Debian's 15.0: first..last category.",
             "# Written by tools/make_unicode_tables.py --additions; do not edit."]
    lines += [f"{a:04X}..{b:04X} {category}" for a, b, category in rows]
    path.write_text("\n".join(lines) + "\n")


def class_of(code, category, spaces):
    if code in (0x0A, 0x0D):
        return NEWLINE
    if code in spaces:
        return SPACE
    return CLASS_OF_CATEGORY.get(category, OTHER)


def two_stage(values):
    pages, index = {}, []
    for start in range(0, len(values), PAGE):
        page = tuple(values[start:start + PAGE])
        index.append(pages.setdefault(page, len(pages)))
    return index, [value for page in pages for value in page]


def c_array(declaration, values):
    lines, line = [], "   "
    for value in values:
        if len(line) + len(f" {value},") > 100:
            lines.append(line)
            line = "   "
        line += f" {value},"
    return f"{declaration} = {{\n" + "\n".join(lines + [line]) + "};\n"


def render(categories, spaces):
    classes = [class_of(c, categories[c], spaces) for c in range(NUM_CODE_POINTS)]
    index, pages = two_stage(classes)
    return ("// SPDX-License-Identifier: Apache-2.0\n"
            "// Written by tools/make_unicode_tables.py; do not edit.\n"
            "// clang-format off\n"
            '#include "text/unicode_tables.h"\n\n'
            "namespace hearth {\n\n"
            + c_array(f"const uint16_t kUnicodePage[{len(index)}]", index) + "\n"
            + c_array(f"const uint8_t kUnicodeClass[{len(pages)}]", pages)
            + "\n}  // namespace hearth\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--unicode-data", type=pathlib.Path, default="/usr/share/unicode")
    parser.add_argument("--additions", action="store_true", help="write the list of additions anew")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    args = parser.parse_args()
    categories = read_categories(args.unicode_data)
    if args.additions:
        write_additions(categories, ADDITIONS)
    apply_additions(categories, ADDITIONS)
    text = render(categories, read_white_space(args.unicode_data))
    if not args.check:
        TABLE.write_text(text)
    elif TABLE.read_text() != text:
        sys.exit(f"{TABLE.relative_to(ROOT)} is not what this script writes")


if __name__ == "__main__":
    main()

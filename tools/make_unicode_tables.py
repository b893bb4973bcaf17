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


def read_ranges(path, wanted):
    """The code points of a property file whose second field is `wanted`."""
    codes = set()
    for line in path.read_text().splitlines():
        parts = [part.strip() for part in line.split("#")[0].split(";")]
        if len(parts) >= 2 and ";".join(parts[1:]) in wanted:
            first, _, last = parts[0].partition("..")
            codes.update(range(int(first, 16), int(last or first, 16) + 1))
    return codes


class Normalization:
    """What NFC needs: canonical decompositions in full, combining classes, compositions.

    NFC is stable, so a newer Unicode only adds rows. The tokenizer that the models with NFC were
    trained with knows Unicode 9.0, so later code points are left out: exact means like it.
    """

    MAX_AGE = 9.0

    def __init__(self, folder):
        ages = [line.split(";")[1].split("#")[0].strip()
                for line in (folder / "DerivedAge.txt").read_text().splitlines()
                if ";" in line and not line.startswith("#")]
        known = read_ranges(folder / "DerivedAge.txt",
                            {age for age in ages if float(age) <= self.MAX_AGE})
        self.combining, pairs = {}, {}
        for line in (folder / "UnicodeData.txt").read_text().splitlines():
            fields = line.split(";")
            code = int(fields[0], 16)
            if code not in known:
                continue
            if fields[3] != "0":
                self.combining[code] = int(fields[3])
            if fields[5] and not fields[5].startswith("<"):
                pairs[code] = [int(part, 16) for part in fields[5].split()]
        excluded = read_ranges(folder / "DerivedNormalizationProps.txt", {"Full_Composition_Exclusion"})
        not_sure = read_ranges(folder / "DerivedNormalizationProps.txt", {"NFC_QC;N", "NFC_QC;M"})
        self.decompositions = {code: self._expand(code, pairs) for code in pairs}
        self.compositions = sorted((pair[0], pair[1], code) for code, pair in pairs.items()
                                   if code not in excluded)
        self.attention = (not_sure & known) | set(self.combining)

    def _expand(self, code, pairs):
        if code not in pairs:
            return [code]
        return [c for part in pairs[code] for c in self._expand(part, pairs)]

    def render(self):
        index, pages = two_stage([int(c in self.attention) for c in range(NUM_CODE_POINTS)])
        pool, rows = [], []
        for code in sorted(self.decompositions):
            rows.append(f"{{{code}, {len(pool)}, {len(self.decompositions[code])}}}")
            pool += self.decompositions[code]
        combining = []
        for code in sorted(self.combining):
            if combining and combining[-1][1] == code - 1 and combining[-1][2] == self.combining[code]:
                combining[-1][1] = code
            else:
                combining.append([code, code, self.combining[code]])
        arrays = [
            (f"const uint16_t kNfcPage[{len(index)}]", index),
            (f"const uint8_t kNfcAttention[{len(pages)}]", pages),
            (f"const uint32_t kNfcDecomposed[{len(pool)}]", pool),
            (f"const NfcDecomposition kNfcDecompositions[{len(rows)}]", rows),
            (f"const NfcCombining kNfcCombining[{len(combining)}]",
             ["{%d, %d, %d}" % tuple(row) for row in combining]),
            (f"const NfcComposition kNfcCompositions[{len(self.compositions)}]",
             ["{%d, %d, %d}" % row for row in self.compositions])]
        sizes = "".join(f"const int kNum{name} = {len(values)};\n" for name, values in (
            ("NfcDecompositions", rows), ("NfcCombining", combining),
            ("NfcCompositions", self.compositions)))
        return "\n".join(c_array(*array) for array in arrays) + "\n" + sizes


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


def render(categories, spaces, normalization):
    classes = [class_of(c, categories[c], spaces) for c in range(NUM_CODE_POINTS)]
    index, pages = two_stage(classes)
    return ("// SPDX-License-Identifier: Apache-2.0\n"
            "// Generated by tools/make_unicode_tables.py; do not edit.\n"
            "// clang-format off\n"
            '#include "text/unicode_tables.h"\n\n'
            "namespace hearth {\n\n"
            + c_array(f"const uint16_t kUnicodePage[{len(index)}]", index) + "\n"
            + c_array(f"const uint8_t kUnicodeClass[{len(pages)}]", pages) + "\n"
            + normalization.render()
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
    text = render(categories, read_ranges(args.unicode_data / "PropList.txt", {"White_Space"}),
                  Normalization(args.unicode_data))
    if not args.check:
        TABLE.write_text(text)
    elif TABLE.read_text() != text:
        sys.exit(f"{TABLE.relative_to(ROOT)} is not what this script writes")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Kernels are poor: an object of kernels_*.cc exports one symbol and no weak ones. A weak copy of a
library function built for a newer CPU could be the one the linker keeps for the whole program."""
import subprocess
import sys

import tree

# What users run; sanitizers add symbols of their own, and without optimising nothing is inlined.
BUILD = "release"


def objects(root):
    """Yields (object file, its source relative to root); objects of deleted sources are skipped."""
    for path in sorted((root / "build" / BUILD).rglob("hearth_cpu*.dir/**/kernels_*.cc.o")):
        parts = path.relative_to(root).with_suffix("").parts
        if "src" in parts:
            source = "/".join(parts[parts.index("src"):])
            if (root / source).is_file() and not source.endswith("_test.cc"):
                yield path, source


def complaints(source, listing):
    exported = []
    for line in listing.splitlines():
        kind, name = line.split()[-2:]
        if kind in "WwVvu":
            yield f"{source}:1: weak symbol {name} ({kind})"
        elif kind in "TRDBC":
            exported.append(name)
    if len(exported) != 1:
        yield f"{source}:1: exports {len(exported)} symbols, one is allowed: {' '.join(exported)}"


def main():
    root = tree.root_argument()
    bad, count = [], 0
    for path, source in objects(root):
        listing = subprocess.run(["nm", "--defined-only", str(path)],
                                 check=True, capture_output=True, text=True).stdout
        bad += complaints(source, listing)
        count += 1
    sources = [path for path in tree.files(root) if path.match("src/cpu/kernels_*.cc")]
    if count == 0:
        tree.report(bad, f"NOTHING CHECKED: no object of the {len(sources)} kernel files is built")
    tree.report(bad, f"{count} kernel objects")


if __name__ == "__main__":
    sys.exit(main())

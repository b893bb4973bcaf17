# SPDX-License-Identifier: Apache-2.0
"""The repository knows no machine: no home or work folders of somebody's computer, no registry host
names (clients know their registries themselves). Lock files and binary data are not read."""
import re

import tree

# Spelled in pieces so that this file does not find itself.
FOLDERS = "|".join(["wo" "rk", "ro" "ot", "ho" "me"])
HOSTS = "|".join(re.escape(name) for name in (
    "py" "pi.org", "python" "hosted.org", "registry.npm" "js.org", "crates" ".io", "deb.deb" "ian.org"))
PLACE = re.compile(rf"(?<![\w.}}~-])/(?:{FOLDERS})/|{HOSTS}")
LOCKS = {"Cargo.lock", "package-lock.json"}
DATA = {"golden", "data", "corpus"}


def main():
    root = tree.root_argument()
    bad, count = [], 0
    for path in tree.files(root):
        if path.name in LOCKS or (DATA & set(path.parts[:-1])):
            continue
        raw = (root / path).read_bytes()
        if b"\0" in raw[:4096]:
            continue
        count += 1
        for number, line in enumerate(raw.decode("utf-8", "replace").splitlines(), 1):
            if match := PLACE.search(line):
                bad.append(f"{path}:{number}: names a place of one machine: {match.group(0)}")
    tree.report(bad, f"{count} files")


if __name__ == "__main__":
    main()

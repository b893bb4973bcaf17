# SPDX-License-Identifier: Apache-2.0
"""Makes packages of a built program: `./dev package deb|tarball|wheel|container`.

Two packagings of the same program give the same bits: files are sorted, have fixed modes and owners,
and the time of $SOURCE_DATE_EPOCH or else of the last commit.
"""
import argparse
import pathlib

import deb
import portable
import tree

KINDS = {"deb": deb.build_deb, "tarball": portable.build_tarball, "wheel": portable.build_wheel,
         "container": portable.build_container}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=sorted(KINDS))
    parser.add_argument("--build", type=pathlib.Path, default=tree.ROOT / "build/release",
                        help="the build folder (default: build/release)")
    parser.add_argument("--out", type=pathlib.Path, default=tree.ROOT / "build/packages",
                        help="folder for the package (default: build/packages)")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = KINDS[arguments.kind](arguments.build.resolve(), arguments.out.resolve())
    data = path.read_bytes()
    print(f"{path}: {len(data) / 1e6:.1f} MB, sha256 {tree.sha256(data)}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""./dev model NAME: puts a published model (or vocabulary) into the working directory."""
import argparse

import catalogue
import converted
from work import sha256_of


def main():
    parser = argparse.ArgumentParser(prog="./dev model", description=__doc__)
    parser.add_argument("name", choices=sorted({*catalogue.FILES, *converted.MODELS}))
    parser.add_argument("--force", action="store_true", help="fetch again what is already there")
    arguments = parser.parse_args()
    source = catalogue if arguments.name in catalogue.FILES else converted
    path = source.get(arguments.name, arguments.force)
    print(f"{path}: {path.stat().st_size:,} bytes, sha256 {sha256_of(path)}")


if __name__ == "__main__":
    main()

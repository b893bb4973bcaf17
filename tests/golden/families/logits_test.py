# SPDX-License-Identifier: Apache-2.0
"""One fixture in one layout against its stored logits. Usage: logits_test.py HEARTH FIXTURE FORM"""
import pathlib
import sys

from runner import difference

# Demanded is 1e-6. Both sides are good to about 1e-13, so anything above 1e-11 is a mistake.
MAX_NMSE = 1e-11


def main():
    hearth, fixture, form = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    found = difference(hearth, fixture / form, fixture)
    print(f"{fixture.name}/{form}: {found}")
    if problem := found.problem(MAX_NMSE, min_argmax=1.0):
        sys.exit(problem)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""One fixture in one layout against its stored logits. Usage: logits_test.py HEARTH FIXTURE FORM"""
import pathlib
import sys

from runner import nmse_of

# Demanded is 1e-6. Both sides are good to about 1e-13, so anything above 1e-11 is a mistake.
MAX_NMSE = 1e-11


def main():
    hearth, fixture, form = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    nmse = nmse_of(hearth, fixture / form, fixture)
    print(f"{fixture.name}/{form}: NMSE {nmse:.2e}")
    if not nmse <= MAX_NMSE:
        sys.exit(f"NMSE {nmse:.2e} is above {MAX_NMSE:.0e}")


if __name__ == "__main__":
    main()

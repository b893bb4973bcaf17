# SPDX-License-Identifier: Apache-2.0
"""Where model files lie: `golden:FILE` is tests/golden/FILE, `work:FILE` is $HEARTH_WORK/FILE and
must be fetched first."""
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def find(where):
    kind, _, name = where.partition(":")
    if kind == "golden":
        return str(ROOT / "tests" / "golden" / name)
    if kind == "work":
        work = os.environ.get("HEARTH_WORK") or pathlib.Path.home() / ".cache" / "hearth"
        path = pathlib.Path(work) / name
        if not path.exists():
            sys.exit(f"{path} is missing; fetch it with: ./dev model {path.stem}")
        return str(path)
    return where

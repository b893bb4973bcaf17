# SPDX-License-Identifier: Apache-2.0
"""Where model files lie: `shared:PATH` is ../shared/data/PATH beside the repository and may be
absent, which skips a test; `work:FILE` is $HEARTH_WORK/FILE and must be fetched first."""
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77  # what ctest is told means "skipped"


def find(where):
    kind, _, name = where.partition(":")
    if kind == "shared":
        path = ROOT.parent / "shared" / "data" / name
        if not path.exists():
            print(f"SKIPPED LOUDLY: test data is absent: {path}")
            sys.exit(SKIPPED)
        return str(path)
    if kind == "work":
        work = os.environ.get("HEARTH_WORK") or pathlib.Path.home() / ".cache" / "hearth"
        path = pathlib.Path(work) / name
        if not path.exists():
            sys.exit(f"{path} is missing; fetch it with: ./dev model {path.stem}")
        return str(path)
    return where

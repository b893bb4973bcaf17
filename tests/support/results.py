# SPDX-License-Identifier: Apache-2.0
"""Figures of a suite for docs/reliability.md. They are written to the folder that HEARTH_RESULTS names, and
nowhere without one; tools/reliability.py collects them. testing/results.h is the same for C++."""
import datetime
import json
import os
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]


def version():
    """Of the tree that is tested."""
    return re.search(r"project\(hearth\s+VERSION\s+(\S+)", (ROOT / "CMakeLists.txt").read_text("utf-8")).group(1)


def record(suite, size, note="", **figures):
    """`size`: how much was done. A smaller run of the same version does not replace a larger one. `note`: what a
    reader of the page must know of this run, such as that it was cut short."""
    folder = os.environ.get("HEARTH_RESULTS")
    if not folder:
        return
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    text = json.dumps({"suite": suite, "date": today, "version": version(), "size": size, "figures": figures,
                       **({"note": note} if note else {})}, indent=1, sort_keys=True)
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    pathlib.Path(folder, f"{suite}.json").write_text(text + "\n", encoding="utf-8")

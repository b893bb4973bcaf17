# SPDX-License-Identifier: Apache-2.0
"""Where the command tests find their models, and how they run the program."""
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from checking import expect, work_model  # for those who import from here as well


def hearth(*args, stdin="", timeout=600):
    """Runs the program given on the command line; returns (exit code, stdout, stderr)."""
    done = subprocess.run(
        [sys.argv[1], *args], input=stdin.encode(), capture_output=True, timeout=timeout,
        check=False)
    return done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8")

# SPDX-License-Identifier: Apache-2.0
"""Where the command tests find their models, and how they run the program."""
import os
import pathlib
import subprocess
import sys


def work_model(name):
    """A model that `./dev model` or `./dev synth` makes; absent is a failure, not a skip."""
    work = pathlib.Path(os.environ.get("HEARTH_WORK", pathlib.Path.home() / ".cache/hearth"))
    path = work / name
    if not path.exists():
        sys.exit(f"{path} is missing; get it with: ./dev model {name.removesuffix('.gguf')}")
    return str(path)


def hearth(*args, stdin="", timeout=600):
    """Runs the program given on the command line; returns (exit code, stdout, stderr)."""
    done = subprocess.run(
        [sys.argv[1], *args], input=stdin.encode(), capture_output=True, timeout=timeout,
        check=False)
    return done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8")


def expect(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")

# SPDX-License-Identifier: Apache-2.0
"""How the tests of packages make them and run what is inside."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
sys.path.insert(0, str(ROOT / "packaging"))
from checking import expect  # for those who import from here as well
import tree

BUILD = pathlib.Path(sys.argv[1])
WHEN = "1700000000"


def package(kind, out, umask=0o022):
    """Makes a package in `out` with a fixed time; returns its path and what was said."""
    done = subprocess.run(
        [sys.executable, ROOT / "packaging/package.py", kind, "--build", BUILD, "--out", out],
        capture_output=True, text=True, check=False, umask=umask,
        env={**os.environ, "SOURCE_DATE_EPOCH": WHEN})
    expect(done.returncode == 0, f"./dev package {kind}: {done.stderr or done.stdout}")
    return pathlib.Path(done.stdout.splitlines()[-1].split(": ")[0]), done.stdout


def run(*command, **options):
    """(exit code, stdout, stderr) of a program."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          check=False, **options)
    return done.returncode, done.stdout, done.stderr


def version():
    """The first line that `hearth --version` prints; how it was built follows."""
    return f"hearth {tree.version()}\n"

# SPDX-License-Identifier: Apache-2.0
"""What Python tests of several folders share: where models are, and how a test fails."""
import os
import pathlib
import sys

# Published models; all others are noise in a real shape, which `./dev synth` makes.
FETCHED = ("smollm2.gguf", "tinyllama.gguf", "stories15M-q8_0.gguf", "stories15M-mxfp4.gguf",
           "minimind2-small-q8_0.gguf")


def work_dir():
    return pathlib.Path(os.environ.get("HEARTH_WORK", pathlib.Path.home() / ".cache/hearth"))


def work_model(name):
    """A model of $HEARTH_WORK; absent is a failure, not a skip."""
    path = work_dir() / name
    if not path.exists():
        verb = "model" if name in FETCHED else "synth"
        sys.exit(f"{path} is missing; get it with: ./dev {verb} {name.removesuffix('.gguf')}")
    return str(path)


def expect(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def same(found, wanted, what):
    if found != wanted:
        sys.exit(f"FAILED: {what}: found {found!r}, wanted {wanted!r}")

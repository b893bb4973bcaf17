# SPDX-License-Identifier: Apache-2.0
"""Runs `hearth eval logits` for the tests of this folder."""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools" / "fixtures"))  # the code that wrote the fixtures


def logits_bytes(hearth, model, tokens):
    """What hearth writes for the model: little-endian float64, a row per position."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "logits.f64"
        subprocess.run([hearth, "eval", "logits", "--model", model, "--tokens", tokens,
                        "--out", out], check=True, stdout=subprocess.DEVNULL)
        return out.read_bytes()


def nmse_of(hearth, model, fixture):
    """Normalised mean square error against the logits stored with the fixture."""
    found = np.frombuffer(logits_bytes(hearth, model, fixture / "tokens.i32"), "<f8")
    expected = np.fromfile(fixture / "logits.f32", "<f4").astype(np.float64)
    if found.shape != expected.shape:
        sys.exit(f"{model}: {found.size} logits, expected {expected.size}")
    return float(((found - expected) ** 2).sum() / (expected ** 2).sum())

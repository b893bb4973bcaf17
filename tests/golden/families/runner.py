# SPDX-License-Identifier: Apache-2.0
"""Runs `hearth eval logits` for the tests of this folder."""
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools" / "fixtures"))  # the code that wrote the fixtures
sys.path.insert(0, str(ROOT / "tools" / "oracle"))
import compare  # noqa: E402


def evaluate(hearth, model, tokens, out):
    subprocess.run([hearth, "eval", "logits", "--model", model, "--tokens", tokens, "--out", out],
                   check=True, stdout=subprocess.DEVNULL)


def logits_bytes(hearth, model, tokens):
    """What hearth writes for the model: little-endian float64, a row per position."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "logits.f64"
        evaluate(hearth, model, tokens, out)
        return out.read_bytes()


def difference(hearth, model, fixture):
    """How far hearth's logits are from those stored with the fixture (compare.Difference)."""
    vocab = json.loads((fixture / "hf" / "config.json").read_text())["vocab_size"]
    expected = compare.read(fixture / "logits.f32", vocab)
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "logits.f64"
        evaluate(hearth, model, fixture / "tokens.i32", out)
        return compare.whole(compare.read(out, vocab), expected)

# SPDX-License-Identifier: Apache-2.0
"""Runs `hearth eval logits` (or, as `oracle`, reference.py) and compares with a golden.

MODEL, TOKENS and GOLDEN may be written golden:FILE or work:FILE (see locate.py).
Usage: check_logits.py HEARTH|oracle MODEL TOKENS GOLDEN --max-nmse X [--vocab N] [-- EVAL_ARGS]
"""
import argparse
import hashlib
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import compare
import locate


def check_same_file(model, golden):
    found = hashlib.sha256(pathlib.Path(model).read_bytes()).hexdigest()
    if found != str(golden["sha256"]):
        sys.exit(f"{model} is not the file the golden was made from: sha256 {found}, "
                 f"wanted {golden['sha256']}")


def main():
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    parser = argparse.ArgumentParser()
    for name in ("hearth", "model", "tokens", "golden"):
        parser.add_argument(name)
    parser.add_argument("--max-nmse", type=float, required=True)
    parser.add_argument("--vocab", type=int, default=0)
    args = parser.parse_args(sys.argv[1:split])
    model, tokens, reference = (locate.find(p) for p in (args.model, args.tokens, args.golden))
    golden = np.load(reference) if reference.endswith(".npz") else None
    if golden is not None:
        check_same_file(model, golden)
    with tempfile.TemporaryDirectory() as folder:
        out = str(pathlib.Path(folder) / "logits.f64")
        if args.hearth == "oracle":
            script = str(pathlib.Path(__file__).with_name("reference.py"))
            command = [sys.executable, script, model, tokens, out]
        else:
            command = [args.hearth, "eval", "logits", "--model", model, "--tokens", tokens,
                       "--out", out]
        done = subprocess.run(command + sys.argv[split + 1:], check=False)
        if done.returncode != 0:
            sys.exit(f"{command[0]} ended with {done.returncode}")
        if golden is not None:
            difference = compare.with_golden(compare.read(out, int(golden["vocab"])), golden)
        else:
            difference = compare.whole(compare.read(out, args.vocab),
                                       compare.read(reference, args.vocab))
    print(difference)
    problem = difference.problem(args.max_nmse, min_argmax=1.0)
    if problem:
        sys.exit(problem)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Compares raw logits (.f64 or .f32, one row per position) with a reference of the same kind, or
with a compact golden (.npz of make_real_goldens.py).

Prints NMSE, the largest difference and how often the argmax agrees; exits 1 beyond --max-nmse.
Usage: compare.py GOT REFERENCE [--vocab N] [--max-nmse X] [--min-argmax SHARE]
"""
import argparse
import pathlib
import sys

import numpy as np

import quant_blocks as qb

PROJECTIONS = 4


def read(path, vocab):
    path = pathlib.Path(path)
    kind = {".f64": "<f8", ".f32": "<f4"}.get(path.suffix)
    if kind is None:
        sys.exit(f"{path}: the name must end in .f64 or .f32")
    values = np.fromfile(path, kind).astype(np.float64)
    if vocab <= 0 or values.size == 0 or values.size % vocab:
        sys.exit(f"{path}: {values.size} values are no whole number of rows of {vocab}")
    return values.reshape(-1, vocab)


def signs(vocab):
    """Fixed rows of +1 and -1. An error anywhere in a row shows up in its signed sums, so columns
    that no golden stores are still watched. The first row is all ones: the plain sum."""
    count = (PROJECTIONS - 1) * vocab
    bits = np.unpackbits(qb.splitmix_bytes(vocab, (count + 7) // 8), bitorder="little")[:count]
    random = bits.reshape(PROJECTIONS - 1, vocab).astype(np.float64) * 2 - 1
    return np.concatenate([np.ones((1, vocab)), random])


class Difference:
    def __init__(self, got, want, argmax_got, argmax_want):
        self.finite = bool(np.isfinite(got).all() and np.isfinite(want).all())
        delta = got - want
        self.nmse = float((delta * delta).sum() / (want * want).sum())
        self.max_abs = float(np.abs(delta).max())
        self.argmax = float((argmax_got == argmax_want).mean())
        self.positions = len(got)

    def __str__(self):
        return (f"NMSE {self.nmse:.3g}, max abs {self.max_abs:.3g}, argmax agrees at "
                f"{self.argmax:.2%} of {self.positions} positions")

    def problem(self, max_nmse, min_argmax):
        if not self.finite:
            return "a logit is NaN or infinite"
        if not self.nmse <= max_nmse:
            return f"NMSE {self.nmse:.3g} is more than {max_nmse:g}"
        if self.argmax < min_argmax:
            return f"argmax agrees at {self.argmax:.2%} only, wanted {min_argmax:.2%}"
        return None


def whole(got, want):
    if got.shape != want.shape:
        sys.exit(f"shapes differ: {got.shape} and {want.shape}")
    return Difference(got, want, got.argmax(axis=1), want.argmax(axis=1))


def with_golden(got, golden):
    """Stored columns, and signed sums for all others: an error e in every column adds about
    e * sqrt(vocab) to a sum. The worse of the two is the NMSE."""
    vocab = int(golden["vocab"])
    if got.shape != (len(golden["logits"]), vocab):
        sys.exit(f"shapes differ: {got.shape} and {(len(golden['logits']), vocab)}")
    want = golden["logits"]
    difference = Difference(got[:, golden["columns"]], want, got.argmax(axis=1), golden["argmax"])
    delta = (got @ signs(vocab).T - golden["sums"]) / np.sqrt(vocab)
    unstored = float((delta * delta).mean() / (want * want).mean())
    difference.nmse = float(np.fmax(difference.nmse, unstored))
    difference.finite = difference.finite and bool(np.isfinite(got).all())
    return difference


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("got")
    parser.add_argument("reference")
    parser.add_argument("--vocab", type=int, default=0)
    parser.add_argument("--max-nmse", type=float, default=float("inf"))
    parser.add_argument("--min-argmax", type=float, default=0.0)
    args = parser.parse_args()
    if args.reference.endswith(".npz"):
        golden = np.load(args.reference)
        difference = with_golden(read(args.got, int(golden["vocab"])), golden)
    else:
        difference = whole(read(args.got, args.vocab), read(args.reference, args.vocab))
    print(difference)
    problem = difference.problem(args.max_nmse, args.min_argmax)
    if problem:
        sys.exit(problem)


if __name__ == "__main__":
    main()

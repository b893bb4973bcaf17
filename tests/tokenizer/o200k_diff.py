# SPDX-License-Identifier: Apache-2.0
"""Compares `hearth tokenize` with the official tiktoken on the ranks of gpt-oss: 0 differences."""

import argparse
import base64
import pathlib
import random
import sys
import time

import tiktoken
from hearth_tokenize import HearthTokenize, compare
from strings import test_strings

PATTERN = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])


def load_tiktoken(path):
    ranks = {}
    for line in path.read_bytes().splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    return tiktoken.Encoding("o200k", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})


def assigned_code_points():
    """What the oracle itself holds for assigned: its Unicode is newer than Python's."""
    bytes_only = {bytes([i]): i for i in range(256)}
    finder = tiktoken.Encoding("assigned", pat_str=r"\P{Cn}+", mergeable_ranks=bytes_only,
                               special_tokens={})
    everything = "".join(chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000)
    return {ord(c) for c in finder.decode(finder.encode_ordinary(everything))}


def long_strings(rng):
    """Pieces far beyond the length at which merging changes its method."""
    for alphabet in ("a", "ab", "A", "aA", " ", "\n", " \n", "!", "=-", "'", "\u0928\u092e\u0938\u094d",
                     "\u4e2d\u6587", "\u0301", "abcdeinorst", "ETAOIN", "\U0001f600", "_", ".", "-=",
                     "0123456789abcdef", "xyzXYZ"):
        for length in (15, 16, 17, 31, 32, 33, 255, 256, 257, 400, 511, 512, 513, 700, 3000, 9000):
            yield "".join(rng.choice(alphabet) for _ in range(length))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hearth", required=True)
    parser.add_argument("--ranks", required=True, type=pathlib.Path)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    start = time.monotonic()
    oracle = load_tiktoken(args.ranks)
    assigned = assigned_code_points()
    strings = test_strings(args.count, args.seed, assigned) + list(long_strings(random.Random(2)))
    hearth = HearthTokenize(args.hearth, args.ranks)
    mismatches = compare(hearth, lambda part: [oracle.encode_ordinary(s) for s in part], strings)
    hearth.close()
    print(f"o200k: {len(strings)} strings, {len(assigned)} code points assigned, "
          f"{mismatches} mismatches, {time.monotonic() - start:.0f} s")
    sys.exit(1 if mismatches or len(strings) < args.count else 0)


if __name__ == "__main__":
    main()

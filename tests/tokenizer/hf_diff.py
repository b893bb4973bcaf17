# SPDX-License-Identifier: Apache-2.0
"""Compares `hearth tokenize` with Hugging Face tokenizers or SentencePiece: 0 differences."""

import argparse
import pathlib
import random
import sys
import tempfile
import time

import oracles
from hearth_tokenize import HearthTokenize, compare
from strings import mixed_string, test_strings


def make_oracle(family, path, folder):
    """The oracle, and the file that Hearth reads."""
    if family == "json":
        return oracles.FromJson(path), path
    if family == "gpt2":
        return oracles.ByteLevelGguf(path, oracles.gpt2_split()), path
    if family == "smollm":
        return oracles.ByteLevelGguf(path, oracles.smollm_split()), path
    if family == "spm":
        return oracles.SentencePieceGguf(path), path
    written = oracles.llama_json(path, pathlib.Path(folder) / "tokenizer.json")
    return oracles.FromJson(written), written


def special_strings(names, rng, count):
    """Text that spells special tokens, whole and damaged, alone and among other text."""
    for _ in range(count):
        name = rng.choice(names)
        cut = rng.randrange(len(name) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            yield name
        elif kind == 1:
            yield mixed_string(rng) + name + mixed_string(rng)
        elif kind == 2:
            yield name[:cut] + rng.choice(names) + name[cut:]
        else:
            yield name[:cut] + mixed_string(rng)


def round_trips(args, path, strings, normalizes):
    """Counts strings that do not come back from their tokens."""
    encoder = HearthTokenize(args.hearth, path)
    decoder = HearthTokenize(args.hearth, path, "--decode")
    sample = [s for s in strings if not normalizes(s)][:: max(1, len(strings) // 5000)]
    back = decoder.ask(encoder.ask(sample))
    encoder.close()
    decoder.close()
    return sum(a != b for a, b in zip(sample, back, strict=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hearth", required=True)
    parser.add_argument("--family", required=True,
                        choices=("json", "gpt2", "smollm", "spm", "spm-json"))
    parser.add_argument("--vocab", required=True, type=pathlib.Path)
    parser.add_argument("--count", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lossy", action="store_true", help="text need not come back from tokens")
    args = parser.parse_args()
    start = time.monotonic()
    rng = random.Random(args.seed)
    strings = test_strings(args.count, args.seed)
    with tempfile.TemporaryDirectory() as folder:
        oracle, path = make_oracle(args.family, args.vocab, folder)
        strings += special_strings(oracle.names, rng, 2000)
        hearth = HearthTokenize(args.hearth, path)
        mismatches = compare(hearth, oracle, strings)
        hearth.close()
        lost = 0
        if not args.lossy:
            lost = round_trips(args, path, strings, lambda s: oracles.SPACE in s)
    print(f"{args.family} {args.vocab.name}: {len(strings)} strings, {mismatches} mismatches, "
          f"{lost} not restored, {time.monotonic() - start:.0f} s")
    sys.exit(1 if mismatches or lost or len(strings) < args.count else 0)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/real: for each real model the tokens of a text (NAME.i32) and what the oracle
computes on them (NAME.npz): COLUMNS columns of the logits, signed sums of whole rows, argmax.

Usage: make_real_goldens.py [NAME...]   (default: all; the model files must be there)
"""
import hashlib
import pathlib
import sys

import gguf
import numpy as np

import compare
import locate
import quant_blocks as qb
import reference

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "real"
COLUMNS = 512

# Name: (where, tokens).
MODELS = {
    "smollm2": ("work:smollm2.gguf", 32),
    "minimind2-small-q8_0": ("work:minimind2-small-q8_0.gguf", 32),
    "stories15M-q8_0": ("work:stories15M-q8_0.gguf", 32),
    "stories15M-mxfp4": ("work:stories15M-mxfp4.gguf", 32),
    "tinyllama": ("work:tinyllama.gguf", 16),
}
TEXT = ("Once upon a time there was a little dog named Max. Every morning he ran to the river and "
        "looked for 12 stones. One day he found a box, and inside the box there was a letter.")


def byte_letters():
    """The letters that byte-level vocabularies write bytes with: printable ones as they are, the
    others from U+0100 on."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {b: chr(b) for b in plain}
    letters.update({b: chr(256 + i) for i, b in enumerate(b for b in range(256) if b not in plain)})
    return letters


def tokens_of(path, count):
    """`count` tokens: BOS, then the text by longest match. No tokenizer is tested here, the ids
    need only be such as the model knows from its training."""
    reader = gguf.GGUFReader(path)
    vocabulary = {text: i for i, text in
                  reversed(list(enumerate(reader.get_field("tokenizer.ggml.tokens").contents())))}
    if reader.get_field("tokenizer.ggml.model").contents() == "gpt2":
        letters = byte_letters()
        text = "".join(letters[b] for b in TEXT.encode())
    else:
        text = "\u2581" + TEXT.replace(" ", "\u2581")
    ids = [reader.get_field("tokenizer.ggml.bos_token_id").contents()]
    while text and len(ids) < count:
        size = max(n for n in range(1, len(text) + 1) if text[:n] in vocabulary)
        ids.append(vocabulary[text[:size]])
        text = text[size:]
    if len(ids) < count:
        sys.exit(f"{path}: the text gives only {len(ids)} tokens")
    return np.array(ids, "<i4")


def columns_of(vocab):
    """COLUMNS distinct columns, first and last among them."""
    draws = qb.splitmix_bytes(vocab + 1, 8 * 4 * COLUMNS).view("<u8") % np.uint64(vocab)
    picked = dict.fromkeys([0, vocab - 1, *(int(d) for d in draws)])
    return np.array(sorted(list(picked)[:COLUMNS]), "<i4")


def make(name):
    where, count = MODELS[name]
    path = locate.find(where)
    tokens = tokens_of(path, count)
    rows = reference.logits(path, tokens)
    vocab = rows.shape[1]
    columns = columns_of(vocab)
    tokens.tofile(GOLDEN / f"{name}.i32")
    np.savez_compressed(GOLDEN / f"{name}.npz", vocab=vocab, columns=columns,
                        logits=rows[:, columns], sums=rows @ compare.signs(vocab).T,
                        argmax=rows.argmax(axis=1).astype("<i4"),
                        sha256=hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest())
    print(f"{name}: {count} positions, {len(columns)} of {vocab} columns, tokens {tokens.tolist()}")


if __name__ == "__main__":
    for wanted in sys.argv[1:] or MODELS:
        make(wanted)

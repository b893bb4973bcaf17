# SPDX-License-Identifier: Apache-2.0
"""Vocabularies in the form GGUF stores them: token strings, token types and merges."""
import base64
import dataclasses
import json

from gguf import GGUFReader, TokenType


@dataclasses.dataclass
class Vocabulary:
    pre: str  # GGUF's name of the rule that splits text before merging
    tokens: list
    types: list
    merges: list  # "a b", the earlier the stronger
    bos: int
    eos: int
    padding: int = None


def byte_letters():
    """The printable letter that stands for each byte in a byte-level token string.

    Printable Latin-1 bytes stand for themselves, the others for code points from 256 up.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(256) if byte not in printable]
    return [chr(byte if byte in printable else 256 + hidden.index(byte)) for byte in range(256)]


def read_ranks(text):
    """A .tiktoken file: lines of 'base64 rank'. Returns the token bytes in rank order."""
    pairs = [line.split() for line in text.splitlines() if line]
    ranks = {int(rank): base64.b64decode(token) for token, rank in pairs}
    return [ranks[rank] for rank in range(len(ranks))]  # KeyError: the ranks have a gap


def merges_of_ranks(tokens):
    """Every split of every token into two tokens, in rank order; within a token by its parts.

    A rank file names no merges; a list that holds all splits leads to the same tokens, because
    the pair with the lowest joint rank still comes first.
    """
    rank_of = {token: rank for rank, token in enumerate(tokens)}
    letters = byte_letters()
    spelled = ["".join(letters[byte] for byte in token) for token in tokens]
    merges = []
    for token in tokens:
        splits = [(rank_of.get(token[:cut]), rank_of.get(token[cut:]))
                  for cut in range(1, len(token))]
        splits = sorted(split for split in splits if None not in split)
        merges += [f"{spelled[left]} {spelled[right]}" for left, right in splits]
    return spelled, merges


def o200k_harmony(ranks, size=201088):
    """The vocabulary of gpt-oss: the ranks, 21 named control tokens, unused ids up to `size`.

    With the real ranks the control tokens are 199998..200018. A shorter list of ranks gives the
    same vocabulary in small, for tests.
    """
    spelled, merges = merges_of_ranks(ranks)
    first = len(ranks)
    names = {0: "startoftext", 1: "endoftext", 4: "return", 5: "constrain", 7: "channel",
             8: "start", 9: "end", 10: "message", 14: "call", 20: "endofprompt"}
    control = [f"<|{names.get(i, f'reserved_{first + i}')}|>" for i in range(21)]
    unused = [f"[PAD{i}]" for i in range(first + len(control), size)]
    types = ([TokenType.NORMAL] * first + [TokenType.CONTROL] * len(control)
             + [TokenType.UNUSED] * len(unused))
    return Vocabulary("gpt-4o", spelled + control + unused, types, merges,
                      bos=first, eos=first + 4, padding=first + 1)


def _of_json(tokenizer_json, pre, bos, eos, size=0):
    """From a tokenizer.json; `bos` and `eos` are token strings. Unused ids fill it up to `size`."""
    document = json.loads(tokenizer_json)
    model, added = document["model"], document["added_tokens"]
    ids = dict(model["vocab"])
    ids.update((token["content"], token["id"]) for token in added)
    tokens = sorted(ids, key=ids.get)
    control = {token["id"] for token in added}
    types = [TokenType.CONTROL if i in control else TokenType.NORMAL for i in range(len(tokens))]
    unused = [f"[PAD{i}]" for i in range(len(tokens), size)]
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]]
    return Vocabulary(pre, tokens + unused, types + [TokenType.UNUSED] * len(unused), merges,
                      bos=ids[bos], eos=ids[eos])


def llama3(tokenizer_json):
    """The vocabulary of Llama 3 from its tokenizer.json."""
    return _of_json(tokenizer_json, "llama-bpe", "<|begin_of_text|>", "<|eot_id|>")


def qwen3(tokenizer_json, size=151936):
    """The vocabulary of Qwen3 from its tokenizer.json."""
    return _of_json(tokenizer_json, "qwen2", "<|endoftext|>", "<|im_end|>", size)


def of_gguf(path):
    """A GGUF file's own byte-level vocabulary, and its chat template."""
    fields = GGUFReader(path).fields

    def value(key):
        return fields[f"tokenizer.{key}"].contents()

    words = Vocabulary(value("ggml.pre"), value("ggml.tokens"), value("ggml.token_type"),
                       value("ggml.merges"), bos=value("ggml.bos_token_id"),
                       eos=value("ggml.eos_token_id"), padding=value("ggml.padding_token_id"))
    return words, value("chat_template")

# SPDX-License-Identifier: Apache-2.0
"""Hugging Face tokenizers and SentencePiece, set up from the same vocabulary files Hearth reads.

None of them knows special tokens here, so that text which spells one is compared as well.
"""

import json

import gguf
from sentencepiece import SentencePieceProcessor, sentencepiece_model_pb2
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6
SPACE = "\u2581"


class FromJson:
    """A tokenizer.json, its added tokens and post-processor taken out."""

    def __init__(self, path):
        description = json.loads(path.read_text())
        self.names = [token["content"] for token in description["added_tokens"]]
        description["added_tokens"] = []
        description["post_processor"] = None
        self.tokenizer = Tokenizer.from_str(json.dumps(description))

    def __call__(self, strings):
        return [encoding.ids for encoding in self.tokenizer.encode_batch_fast(strings)]


def read_gguf(path):
    fields = gguf.GGUFReader(path).fields
    wanted = ("tokens", "token_type", "merges", "scores")
    return {name: fields[f"tokenizer.ggml.{name}"].contents()
            for name in wanted if f"tokenizer.ggml.{name}" in fields}


class ByteLevelGguf(FromJson):
    """A byte-level BPE whose vocabulary lies in a GGUF file."""

    def __init__(self, path, pre_tokenizer):
        data = read_gguf(path)
        kinds = data["token_type"]
        self.names = [t for t, kind in zip(data["tokens"], kinds) if kind != NORMAL]
        vocab = {token: i for i, token in enumerate(data["tokens"])}
        merges = [tuple(merge.split(" ")) for merge in data["merges"]]
        self.tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges))
        self.tokenizer.pre_tokenizer = pre_tokenizer


def gpt2_split():
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)


def smollm_split():
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), gpt2_split()])


class SentencePieceGguf:
    """SentencePiece itself, its model file made from a GGUF file's vocabulary."""

    def __init__(self, path):
        data = read_gguf(path)
        self.names = [t for t, kind in zip(data["tokens"], data["token_type"])
                      if kind in (UNKNOWN, CONTROL)]
        model = sentencepiece_model_pb2.ModelProto()
        for token, score, kind in zip(data["tokens"], data["scores"], data["token_type"]):
            model.pieces.add(piece=token, score=score, type=kind)
        model.trainer_spec.model_type = sentencepiece_model_pb2.TrainerSpec.BPE
        model.trainer_spec.vocab_size = len(data["tokens"])
        model.trainer_spec.byte_fallback = True
        model.normalizer_spec.name = "identity"
        model.normalizer_spec.add_dummy_prefix = True
        model.normalizer_spec.remove_extra_whitespaces = False
        model.normalizer_spec.escape_whitespaces = True
        self.processor = SentencePieceProcessor(model_proto=model.SerializeToString())

    def __call__(self, strings):
        return self.processor.encode(strings)


def llama_json(path, out):
    """Writes the tokenizer.json that a SentencePiece model becomes at Hugging Face."""
    data = read_gguf(path)
    vocab = {token: i for i, token in enumerate(data["tokens"])}
    normal = [t for t, kind in zip(data["tokens"], data["token_type"]) if kind == NORMAL]
    merges = []
    for token in sorted(normal, key=lambda t: -data["scores"][vocab[t]]):
        cuts = [(token[:i], token[i:]) for i in range(1, len(token))
                if token[:i] in vocab and token[i:] in vocab]
        merges += sorted(cuts, key=lambda cut: (vocab[cut[0]], vocab[cut[1]]))
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True,
                                     byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(),
         decoders.Strip(" ", 1, 0)])
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.save(str(out))
    return out

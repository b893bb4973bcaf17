# SPDX-License-Identifier: Apache-2.0
"""The writer of synthetic models: well-formed, deterministic to the bit, sane in its statistics."""
import collections
import hashlib
import json
import os
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

import gguf
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "synth"))
import blocks  # noqa: E402
import gguf_file  # noqa: E402
import quantise  # noqa: E402
import recipes  # noqa: E402
import vocabulary  # noqa: E402
import work  # noqa: E402

RANKS = [bytes([byte]) for byte in range(256)] + [b"th", b"he", b"the", b" the"]
VOCAB_SIZE = 320
# The bytes of the two files below. They may change only together with the recipes or the seed:
# another numpy or another machine must not change them.
GPT_OSS_SHA256 = "620594dfbd0788b6a98a6e954726041cd4306caa2d380c39a70bb22e8538bcd4"
LLAMA_SHA256 = "4415fb0b5cd0e22bc9eff74e33fd184cefa3571aa0666775c4bdf6d92f59b81d"


def small_gpt_oss():
    # As many layers as the real one, so that its counts can be checked; everything else tiny.
    shape = recipes.Shape(24, 64, 4, 2, 32, 96, VOCAB_SIZE, n_experts=4, window=16)
    return recipes.gpt_oss(shape, vocabulary.o200k_harmony(RANKS, VOCAB_SIZE), "small", "1M")


def small_llama(mix, is_tied=True):
    letters = vocabulary.byte_letters()
    document = {
        "model": {"vocab": {letter: i for i, letter in enumerate(letters)}, "merges": [["a", "b"]]},
        "added_tokens": [{"content": "<|begin_of_text|>", "id": 256},
                         {"content": "<|eot_id|>", "id": 257}]}
    words = vocabulary.llama3(json.dumps(document))
    shape = recipes.Shape(8, 256, 4, 2, 64, 512, 258, is_tied=is_tied)
    return recipes.llama(shape, words, "small", mix)


def small_qwen3_moe():
    letters = vocabulary.byte_letters()
    document = {
        "model": {"vocab": {letter: i for i, letter in enumerate(letters)}, "merges": ["a b"]},
        "added_tokens": [{"content": "<|endoftext|>", "id": 256},
                         {"content": "<|im_end|>", "id": 257}]}
    words = vocabulary.qwen3(json.dumps(document), VOCAB_SIZE)
    shape = recipes.Shape(8, 256, 4, 2, 64, 256, VOCAB_SIZE, n_experts=4, n_active=2)
    return recipes.qwen3_moe(shape, words, "small", recipes.Q4KM(), "1M")


class SynthTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, recipe, name="model.gguf"):
        path = self.folder / name
        gguf_file.write(recipe, path, "test")
        return path

    def values(self, tensor):
        return gguf.dequantize(tensor.data, tensor.tensor_type)

    def test_gpt_oss_has_the_keys_and_tensors_of_the_published_file(self):
        path = self.write(small_gpt_oss())
        reader = gguf.GGUFReader(path)
        keys = [key for key in reader.fields if not key.startswith("GGUF.")]
        self.assertEqual(len(keys), 35)
        kinds = collections.Counter(tensor.tensor_type.name for tensor in reader.tensors)
        self.assertEqual(kinds, {"F32": 289, "Q8_0": 98, "MXFP4": 72})
        last = reader.tensors[-1]
        self.assertEqual(last.data_offset + last.n_bytes, path.stat().st_size)
        shapes = {tensor.name: tensor.shape.tolist() for tensor in reader.tensors}
        self.assertEqual(shapes["blk.23.ffn_gate_exps.weight"], [64, 96, 4])
        self.assertEqual(shapes["blk.23.ffn_down_exps.weight"], [96, 64, 4])
        self.assertEqual(shapes["blk.0.attn_output.weight"], [128, 64])
        self.assertEqual(shapes["output.weight"], [64, VOCAB_SIZE])

    def test_the_bytes_never_change(self):
        for recipe, expected in ((small_gpt_oss, GPT_OSS_SHA256),
                                 (lambda: small_llama(recipes.Q4KM()), LLAMA_SHA256)):
            first = self.write(recipe(), "first").read_bytes()
            self.assertEqual(first, self.write(recipe(), "second").read_bytes())
            self.assertEqual(hashlib.sha256(first).hexdigest(), expected)

    def test_pieces_join_to_the_whole_tensor(self):
        columns, rows = 32, blocks.PIECE_BLOCKS + 3  # one full piece and a short one
        tensor = recipes.Tensor("t", (rows, columns), gguf.GGMLQuantizationType.MXFP4, 0.1)
        sizes = [len(bytes(piece)) for piece in blocks.pieces(tensor, "test")]
        self.assertEqual(sizes, [blocks.PIECE_BLOCKS * 17, 3 * 17])

    def test_weights_have_the_spread_the_recipe_asks_for(self):
        types = gguf.GGMLQuantizationType
        pure = [recipes.Pure(kind) for kind in (types.Q8_0, types.F16, types.BF16)]
        for recipe in (small_gpt_oss(), small_qwen3_moe(), small_llama(recipes.Q4KM(), False),
                       *map(small_llama, pure)):
            wanted = {tensor.name: tensor for tensor in recipe.tensors}
            for tensor in gguf.GGUFReader(self.write(recipe)).tensors:
                want = wanted[tensor.name]
                if want.values is not None or want.elements < 4096:
                    continue
                values = self.values(tensor)
                self.assertTrue(np.isfinite(values).all(), tensor.name)
                # MXFP4 can follow a deviation only to the next power of two.
                loose = 1.5 if want.type == types.MXFP4 else 1.1
                self.assertLess(values.std(), want.deviation * loose, tensor.name)
                self.assertGreater(values.std(), want.deviation / loose, tensor.name)
                self.assertLess(abs(values.mean() - want.mean), 0.1 * want.deviation, tensor.name)

    def test_mxfp4_scales_vary_and_are_numbers(self):
        tensors = gguf.GGUFReader(self.write(small_gpt_oss())).tensors
        (tensor,) = [t for t in tensors if t.name == "blk.0.ffn_up_exps.weight"]
        scales = np.unique(tensor.data.reshape(-1, 17)[:, 0])
        self.assertEqual(len(scales), 4)
        self.assertEqual(int(scales[-1]) - int(scales[0]), 3)
        self.assertLess(scales[-1], 255)

    def test_a_vocabulary_is_read_back_as_it_was_written(self):
        recipe = small_llama(recipes.Pure(gguf.GGMLQuantizationType.Q8_0))
        recipe.metadata["tokenizer.ggml.padding_token_id"] = ("uint32", 3)
        recipe.metadata["tokenizer.chat_template"] = ("string", "{{ messages }}")
        words, template = vocabulary.of_gguf(self.write(recipe))
        self.assertEqual(template, "{{ messages }}")
        self.assertEqual((words.pre, words.bos, words.eos, words.padding),
                         ("llama-bpe", 256, 257, 3))
        self.assertEqual(words.tokens, recipe.metadata["tokenizer.ggml.tokens"][1])
        self.assertEqual(words.types, recipe.metadata["tokenizer.ggml.token_type"][1])
        self.assertEqual(words.merges, ["a b"])

    def test_harmony_vocabulary(self):
        words = vocabulary.o200k_harmony(RANKS, VOCAB_SIZE)
        self.assertEqual(len(words.tokens), VOCAB_SIZE)
        self.assertEqual(len(set(words.tokens)), VOCAB_SIZE)
        self.assertEqual(words.tokens[ord("A")], "A")
        self.assertEqual(words.tokens[259], "\u0120the")  # the letter for a space is U+0120
        self.assertEqual(words.merges, ["t h", "h e", "t he", "th e", "\u0120 the"])
        self.assertEqual((words.tokens[words.bos], words.tokens[words.eos],
                          words.tokens[words.padding]),
                         ("<|startoftext|>", "<|return|>", "<|endoftext|>"))
        self.assertEqual(words.tokens[260 + 14], "<|call|>")
        self.assertEqual(words.tokens[260 + 21], "[PAD281]")
        types = gguf.TokenType
        self.assertEqual([words.types[i] for i in (259, 260, 280, 281)],
                         [types.NORMAL, types.CONTROL, types.CONTROL, types.UNUSED])

    def read(self, recipe):
        return {tensor.name: tensor for tensor in gguf.GGUFReader(self.write(recipe)).tensors}

    def test_llama_divisors_and_tied_embedding(self):
        types = gguf.GGMLQuantizationType
        tensors = self.read(small_llama(recipes.Q4KM()))
        divisors = tensors["rope_freqs.weight"].data
        self.assertEqual((divisors[0], divisors[-1], len(divisors)), (1.0, 32.0, 32))
        self.assertTrue((np.diff(divisors) >= 0).all())
        self.assertGreater(((divisors > 1) & (divisors < 32)).sum(), 0)
        self.assertEqual(tensors["token_embd.weight"].tensor_type, types.Q6_K)
        self.assertNotIn("output.weight", tensors)
        untied = self.read(small_llama(recipes.Q4KM(), is_tied=False))
        self.assertEqual(untied["token_embd.weight"].tensor_type, types.Q4_K)
        self.assertEqual(untied["output.weight"].tensor_type, types.Q6_K)

    def test_q4_k_m_has_the_mix_of_published_files(self):
        # Of eight layers the first, the last, and every third of those between.
        for recipe, down in ((small_llama(recipes.Q4KM()), "ffn_down"),
                             (small_qwen3_moe(), "ffn_down_exps")):
            tensors = self.read(recipe)
            for name in ("attn_v", down):
                more = [layer for layer in range(8)
                        if tensors[f"blk.{layer}.{name}.weight"].tensor_type.name == "Q6_K"]
                self.assertEqual(more, [0, 3, 6, 7], name)
            self.assertEqual(tensors["blk.0.attn_q.weight"].tensor_type.name, "Q4_K")

    def test_a_quantised_file_needs_llama_quantize(self):
        with unittest.mock.patch.dict(os.environ, HEARTH_WORK=str(self.folder)):
            with self.assertRaisesRegex(SystemExit, "llama-quantize: ./dev bench peers --setup"):
                quantise.write("llama-1b-q5_k", None, self.folder / "out")

    def test_a_file_appears_whole_or_not_at_all(self):
        path = self.folder / "model.gguf"
        with self.assertRaises(RuntimeError):
            with work.replacing(path) as temporary:
                temporary.write_bytes(b"half")
                raise RuntimeError("disk full")
        self.assertEqual(list(self.folder.iterdir()), [])
        with work.replacing(path) as temporary:
            temporary.write_bytes(b"whole")
        self.assertEqual(path.read_bytes(), b"whole")
        with self.assertRaises(SystemExit):
            work.require_sha256(path, "0" * 64)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""`hearth tokenize` as a user meets it: lines, errors by line number, GGUF vocabularies good and bad."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import gguf

HEARTH = sys.argv.pop(1)


def spelled(byte):
    """The character that byte-level vocabularies write for a byte."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    if byte in printable:
        return chr(byte)
    return chr(256 + [b for b in range(256) if b not in printable].index(byte))


BYTES = [spelled(byte) for byte in range(256)]
MERGES = ["h e", "l l", "he ll", "hell o"]
BYTE_LEVEL = {"model": "gpt2", "pre": "gpt-2", "tokens": [*BYTES, "he", "ll", "hell", "hello", "<|end|>"],
              "types": [1] * 260 + [3], "merges": MERGES}
PIECES = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581", "h", "i", "hi", "\u2581hi"]
SENTENCE = {"model": "llama", "tokens": PIECES, "types": [2] + [6] * 256 + [1] * 5,
            "scores": [0.0] * 257 + [-5.0, -4.0, -3.0, -1.0, -2.0]}


class Tokenize(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "vocab"

    def write_gguf(self, description, **changes):
        data = {**description, **changes}
        writer = gguf.GGUFWriter(self.path, "llama")
        writer.add_tokenizer_model(data["model"])
        writer.add_token_list(data["tokens"])
        for name, add in (("pre", writer.add_tokenizer_pre), ("types", writer.add_token_types),
                          ("merges", writer.add_token_merges), ("scores", writer.add_token_scores),
                          ("bos", writer.add_bos_token_id),
                          ("space", writer.add_add_space_prefix)):
            if data.get(name) is not None:
                add(data[name])
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

    def run_hearth(self, text, *flags):
        done = subprocess.run([HEARTH, "tokenize", "--tokenizer", self.path, *flags], text=True,
                              input=text, capture_output=True)
        return done.returncode, done.stdout, done.stderr

    def refused(self, *parts):
        code, out, err = self.run_hearth('"x"\n')
        self.assertEqual((code, out), (1, ""))
        for part in (str(self.path), *parts):
            self.assertIn(part, err)

    def test_a_line_for_a_line(self):
        self.write_gguf(BYTE_LEVEL)
        self.assertEqual(self.run_hearth('"hello"\n"hell"\n""\n"<|end|>"'),
                         (0, "[259]\n[258]\n[]\n[60,124,101,110,100,124,62]\n", ""))
        self.assertEqual(self.run_hearth("[259,260]\n[]\n[240,159,104]\n", "--decode"),
                         (0, '"hello<|end|>"\n""\n"\ufffdh"\n', ""))

    def test_names_the_line_at_fault_and_keeps_the_answers_before_it(self):
        self.write_gguf(BYTE_LEVEL)
        for line in ('nonsense', '["a"]', '"a" "b"', '', '"\\ud800"', '7'):
            code, out, err = self.run_hearth(f'"hello"\n{line}\n"hello"\n')
            self.assertEqual((code, out), (1, "[259]\n"), line)
            self.assertIn("line 2: ", err)
        for line in ('"hello"', '[261]', '[-1]', '[1.5]', '["a"]', '{}'):
            code, out, err = self.run_hearth(f'[259]\n{line}\n', "--decode")
            self.assertEqual((code, out), (1, '"hello"\n'), line)
            self.assertIn("line 2: ", err)

    def test_wants_exactly_one_source(self):
        for flags in ([], ["--model", "a", "--tokenizer", "b"]):
            done = subprocess.run([HEARTH, "tokenize", *flags], capture_output=True, input=b"")
            self.assertEqual(done.returncode, 2)
        self.refused("vocab")

    def test_sentence_piece_with_and_without_the_space_in_front(self):
        self.write_gguf(SENTENCE)
        self.assertEqual(self.run_hearth('"hi"\n"hi hi"\n"A"\n')[1], "[261]\n[261,261]\n[257,66]\n")
        self.assertEqual(self.run_hearth("[261,261]\n", "--decode")[1], '"hi hi"\n')
        self.write_gguf(SENTENCE, space=False)
        self.assertEqual(self.run_hearth('"hi"\n" hi"\n')[1], "[260]\n[261]\n")

    def test_refuses_what_it_does_not_know(self):
        self.write_gguf(BYTE_LEVEL, pre="tekken")
        self.refused("tokenizer.ggml.pre", "tekken")
        self.write_gguf(BYTE_LEVEL, pre=None)
        self.refused("tokenizer.ggml.pre", "default")
        self.write_gguf(BYTE_LEVEL, model="bert")
        self.refused("tokenizer.ggml.model", "bert")

    def test_refuses_vocabularies_that_contradict_themselves(self):
        for changes, message in (({"merges": ["h q x"]}, "q x"), ({"merges": ["hello"]}, "a pair of tokens"),
                                 ({"merges": ["h e", "h e"]}, "twice"),
                                 ({"merges": ["o o"]}, "oo"), ({"merges": None}, "merges"),
                                 ({"types": [1] * 260}, "token_type"),
                                 ({"types": [9] * 261}, "type 9"), ({"bos": 261}, "261")):
            self.write_gguf(BYTE_LEVEL, **changes)
            self.refused(message)
        for changes, message in (({"scores": None}, "scores"), ({"scores": [0.0] * 5}, "5 scores"),
                                 ({"tokens": ["<unk>", "<0x-1>", *PIECES[2:]]}, "<0x-1>"),
                                 ({"scores": [float("nan")] * 262}, "not finite"),
                                 ({"types": [2] + [1] * 261}, "<0x00>")):
            self.write_gguf(SENTENCE, **changes)
            self.refused(message)
        self.path.write_bytes(b"GGUF")
        self.refused()


if __name__ == "__main__":
    unittest.main()

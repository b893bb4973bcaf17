# SPDX-License-Identifier: Apache-2.0
"""./dev synth NAME: writes a model file of full size with random weights, always the same bytes.

For measuring speed and memory, and for end-to-end tests, where no real weights can be had.
"""
import argparse
import time

from gguf import GGMLQuantizationType as Type

import catalogue
import gguf_file
import recipes
import vocabulary
from work import replacing, sha256_of, work_dir

SEED = "hearth-1"
HEAD_BYTES = 64 << 20


def _o200k():
    return vocabulary.o200k_harmony(vocabulary.read_ranks(catalogue.get("o200k").read_bytes()))


def _llama(kind, label):
    words = vocabulary.llama3(catalogue.get("llama3-tokenizer").read_bytes())
    return recipes.llama(recipes.LLAMA_1B, words, f"Synthetic Llama 1B {label}", kind)


def _tiny_chatml():
    """SmolLM2's words and manners on weights that run a hundred times as fast."""
    words, template = vocabulary.of_gguf(catalogue.get("smollm2"))
    recipe = recipes.llama(recipes.TINY_LLAMA, words, "Tiny ChatML", Type.Q8_0)
    recipe.metadata["general.size_label"] = ("string", "3M")
    recipe.metadata["tokenizer.ggml.add_bos_token"] = ("bool", False)
    recipe.metadata["tokenizer.chat_template"] = ("string", template)
    return recipe


RECIPES = {
    "gpt-oss-20b": lambda: recipes.gpt_oss(
        recipes.GPT_OSS_20B, _o200k(), "Synthetic Gpt Oss 20b", "20B"),
    "tiny-oss-o200k": lambda: recipes.gpt_oss(
        recipes.TINY_OSS, _o200k(), "Tiny Oss o200k", "26M"),
    "tiny-chatml": _tiny_chatml,
    "llama-1b-q8_0": lambda: _llama(Type.Q8_0, "Q8_0"),
    "llama-1b-q4_0": lambda: _llama(Type.Q4_0, "Q4_0"),
}


def main():
    parser = argparse.ArgumentParser(prog="./dev synth", description=__doc__)
    parser.add_argument("name", choices=sorted(RECIPES))
    parser.add_argument("--force", action="store_true", help="write again what is already there")
    arguments = parser.parse_args()
    path = work_dir() / f"{arguments.name}.gguf"
    if path.exists() and not arguments.force:
        print(f"{path}: already there")
        return
    start = time.monotonic()
    recipe = RECIPES[arguments.name]()
    with replacing(path) as temporary:
        gguf_file.write(recipe, temporary, SEED)
    print(f"{path}: {path.stat().st_size:,} bytes, {len(recipe.tensors)} tensors, "
          f"{time.monotonic() - start:.0f} s, sha256 of the first 64 MiB "
          f"{sha256_of(path, HEAD_BYTES)}")


if __name__ == "__main__":
    main()

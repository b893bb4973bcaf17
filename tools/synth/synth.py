# SPDX-License-Identifier: Apache-2.0
"""./dev synth NAME: writes a model file of full size with random weights, always the same bytes.

For measuring speed and memory, and for end-to-end tests, where no real weights can be had. Names
like llama-1b-q5_k or smollm2-q5_0 are other files in other formats; those need the llama-quantize
that `./dev bench peers --setup` installs.
"""
import argparse
import time

from gguf import GGMLQuantizationType as Type

import catalogue
import gguf_file
import quantise
import recipes
import vocabulary
from work import replacing, sha256_of, work_dir

SEED = "hearth-1"
HEAD_BYTES = 64 << 20


def _o200k():
    return vocabulary.o200k_harmony(vocabulary.read_ranks(catalogue.get("o200k").read_bytes()))


# Llama 3's tokens around a message; without any template a file cannot be served.
LLAMA_TEMPLATE = (
    "{% for m in messages %}<|start_header_id|>{{ m['role'] }}<|end_header_id|>\n\n{{ m['content'] }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}")


def _llama(kind):
    words = vocabulary.llama3(catalogue.get("llama3-tokenizer").read_bytes())
    recipe = recipes.llama(recipes.LLAMA_1B, words, f"Synthetic Llama 1B {kind.name}", recipes.Pure(kind))
    recipe.metadata["tokenizer.chat_template"] = ("string", LLAMA_TEMPLATE)
    return recipe


def _llama_8b():
    words = vocabulary.llama3(catalogue.get("llama3-tokenizer").read_bytes())
    return recipes.llama(recipes.LLAMA_8B, words, "Synthetic Llama 8B Q4_K_M", recipes.Q4KM(), "8B")


def _qwen3_moe():
    words = vocabulary.qwen3(catalogue.get("qwen3-tokenizer").read_bytes())
    return recipes.qwen3_moe(recipes.QWEN3_MOE, words,
                             "Synthetic Qwen3 30B A3B, 24 layers, Q4_K_M", recipes.Q4KM(), "15B-A2B")


def _tiny_chatml():
    """SmolLM2's words and manners on weights that run a hundred times as fast."""
    words, template = vocabulary.of_gguf(catalogue.get("smollm2"))
    recipe = recipes.llama(recipes.TINY_LLAMA, words, "Tiny ChatML",
                           recipes.Pure(Type.Q8_0))
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
    "llama-1b-q8_0": lambda: _llama(Type.Q8_0),
    "llama-1b-f16": lambda: _llama(Type.F16),
    "llama-1b-bf16": lambda: _llama(Type.BF16),
    "llama-8b-q4_k_m": _llama_8b,
    "qwen3moe-30b-24-layers-q4_k_m": _qwen3_moe,
}


def make(name, force=False):
    """The path of a synthetic or requantised model, written if need be."""
    path = work_dir() / f"{name}.gguf"
    if path.exists() and not force:
        print(f"{path}: already there")
        return path
    start = time.monotonic()
    with replacing(path) as temporary:
        if name in RECIPES:
            gguf_file.write(RECIPES[name](), temporary, SEED)
        else:
            quantise.write(name, make, temporary)
    print(f"{path}: {path.stat().st_size:,} bytes, {time.monotonic() - start:.0f} s, "
          f"sha256 of the first 64 MiB {sha256_of(path, HEAD_BYTES)}")
    return path


def main():
    parser = argparse.ArgumentParser(prog="./dev synth", description=__doc__)
    names = [*sorted(RECIPES), *sorted(quantise.NAMES)]
    parser.add_argument("name", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--force", action="store_true", help="write again what is already there")
    arguments = parser.parse_args()
    make(arguments.name, arguments.force)


if __name__ == "__main__":
    main()

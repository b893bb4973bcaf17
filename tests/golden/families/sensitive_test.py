# SPDX-License-Identifier: Apache-2.0
"""Every feature a fixture is there for must matter: with it changed, the logits must be wrong.

Without this a fixture could agree because it never reaches the code it is meant to test.
Usage: sensitive_test.py HEARTH FIXTURES
"""
import json
import pathlib
import sys
import tempfile

import numpy as np
from runner import difference  # first: it also finds the folder of the next import

import safetensors_file

MIN_NMSE = 1e-6  # what the fixtures are compared to; the smallest seen here is far above


def scaling(**keys):
    return lambda config: config["rope_scaling"].update(keys)


def setting(**keys):
    return lambda config: config.update(keys)


def rope_parameters(**keys):
    return lambda config: config["rope_parameters"].update(keys)


CONFIG_CHANGES = [
    ("llama3", "no scaling", setting(rope_scaling=None)),
    ("llama3", "another original context", scaling(original_max_position_embeddings=128)),
    ("llama3", "another high bound", scaling(high_freq_factor=2.0)),
    ("llama3", "another low bound", scaling(low_freq_factor=0.5)),
    ("llama-tied", "another theta", rope_parameters(rope_theta=20000.0)),
    ("llama-linear", "no scaling", setting(rope_scaling=None)),
    ("qwen2", "another epsilon", setting(rms_norm_eps=1e-2)),
    ("qwen2-yarn", "no scaling", setting(rope_scaling=None)),
    ("qwen2-yarn", "bounds not rounded", scaling(truncate=False)),
    ("qwen3", "another theta", setting(rope_theta=20000.0)),
    ("qwen3moe", "weights not renormalised", setting(norm_topk_prob=False)),
    ("qwen3moe", "fewer experts chosen", setting(num_experts_per_tok=2)),
    ("qwen3moe-raw", "weights renormalised", setting(norm_topk_prob=True)),
    ("gpt-oss", "no scaling", setting(rope_scaling=None)),
    ("gpt-oss", "bounds rounded", scaling(truncate=True)),
    ("gpt-oss", "a wider window", setting(sliding_window=9)),
    ("gpt-oss", "window on other layers", setting(layer_types=[
        "full_attention", "sliding_attention", "full_attention"])),
    ("gpt-oss", "more experts chosen", setting(num_experts_per_tok=3)),
    ("gpt-oss", "no clamp", setting(swiglu_limit=1000.0)),
]
# Tensors whose name ends so are set to a value that switches them off.
TENSOR_CHANGES = [
    ("qwen2", "q_proj.bias", 0), ("qwen2", "k_proj.bias", 0), ("qwen2", "v_proj.bias", 0),
    ("qwen3", "q_norm.weight", 1), ("qwen3", "k_norm.weight", 1),
    ("qwen3moe", "mlp.gate.weight", 0),
    ("gpt-oss", "self_attn.sinks", 0), ("gpt-oss", "o_proj.bias", 0),
    ("gpt-oss", "router.bias", 0), ("gpt-oss", "gate_up_proj_bias", 0),
    ("gpt-oss", "down_proj_bias", 0),
]
BITS = {0: 0x0000, 1: 0x3F80}  # bfloat16


def with_config(source, change, folder):
    config = json.loads((source / "config.json").read_text())
    change(config)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes((source / "model.safetensors").read_bytes())


def with_tensors(source, ending, value, folder):
    tensors = safetensors_file.read(source / "model.safetensors")
    found = [tensor for name, tensor in tensors.items() if name.endswith(ending)]
    if not found:
        sys.exit(f"{source}: no tensor ends in {ending}")
    for tensor in found:
        tensor.array = np.full_like(tensor.array, BITS[value])
    safetensors_file.write(folder / "model.safetensors", tensors)
    (folder / "config.json").write_bytes((source / "config.json").read_bytes())


def main():
    hearth, fixtures = sys.argv[1], pathlib.Path(sys.argv[2])
    cases = [(name, what, lambda source, folder, change=change: with_config(source, change, folder))
             for name, what, change in CONFIG_CHANGES]
    cases += [(name, f"{ending} = {value}", lambda source, folder, ending=ending, value=value:
               with_tensors(source, ending, value, folder))
              for name, ending, value in TENSOR_CHANGES]
    blind = []
    for name, what, write in cases:
        with tempfile.TemporaryDirectory() as folder:
            write(fixtures / name / "hf", pathlib.Path(folder))
            nmse = difference(hearth, folder, fixtures / name).nmse
        print(f"{name}: {what}: NMSE {nmse:.2e}")
        if not nmse > MIN_NMSE:
            blind.append(f"{name}: {what}")
    if blind:
        sys.exit(f"these changes go unnoticed: {'; '.join(blind)}")


if __name__ == "__main__":
    main()

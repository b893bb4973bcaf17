# SPDX-License-Identifier: Apache-2.0
"""Writes the first inputs of the gguf fuzz target: whole models that fit in 4 KB, one per family,
so that the fuzzer starts from files that pass every check. Run: python fuzz/make_seeds.py DIR"""

import sys
from pathlib import Path

import gguf
import numpy

D_MODEL, D_FF, VOCAB, HEADS, KV_HEADS, EXPERTS = 8, 4, 4, 2, 1, 2
D_HEAD = D_MODEL // HEADS


def zeros(*shape, dtype=numpy.float16):
    return numpy.zeros(shape, dtype=dtype)


def describe(writer, family):
    writer.add_block_count(1)
    writer.add_context_length(64)
    writer.add_embedding_length(D_MODEL)
    writer.add_feed_forward_length(D_FF)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    if family in ("gpt-oss", "gptoss", "qwen3moe"):
        writer.add_expert_count(EXPERTS)
        writer.add_expert_used_count(1)
        writer.add_expert_feed_forward_length(D_FF)
    if family in ("gpt-oss", "gptoss"):
        writer.add_sliding_window(8)
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(32.0)
        writer.add_rope_scaling_orig_ctx_len(16)


def attention(family):
    biased = family in ("gpt-oss", "gptoss", "qwen2")
    for name, rows in (("q", HEADS * D_HEAD), ("k", KV_HEADS * D_HEAD), ("v", KV_HEADS * D_HEAD)):
        yield f"attn_{name}.weight", zeros(rows, D_MODEL)
        if biased:
            yield f"attn_{name}.bias", zeros(rows)
    yield "attn_norm.weight", zeros(D_MODEL)
    yield "attn_output.weight", zeros(D_MODEL, HEADS * D_HEAD)
    if family in ("qwen3", "qwen3moe"):
        yield "attn_q_norm.weight", zeros(D_HEAD)
        yield "attn_k_norm.weight", zeros(D_HEAD)
    if family in ("gpt-oss", "gptoss"):
        yield "attn_output.bias", zeros(D_MODEL)
        yield "attn_sinks.weight", zeros(HEADS)


def feed_forward(family):
    if family not in ("gpt-oss", "gptoss", "qwen3moe"):
        yield "ffn_norm.weight", zeros(D_MODEL)
        yield "ffn_gate.weight", zeros(D_FF, D_MODEL)
        yield "ffn_up.weight", zeros(D_FF, D_MODEL)
        yield "ffn_down.weight", zeros(D_MODEL, D_FF)
        return
    gpt_oss = family != "qwen3moe"
    yield ("post_attention_norm.weight" if gpt_oss else "ffn_norm.weight"), zeros(D_MODEL)
    yield "ffn_gate_inp.weight", zeros(EXPERTS, D_MODEL)
    if gpt_oss:
        yield "ffn_gate_inp.bias", zeros(EXPERTS)
    shapes = {"gate": (D_FF, D_MODEL), "up": (D_FF, D_MODEL), "down": (D_MODEL, D_FF)}
    if family == "gptoss":
        yield "ffn_gate_up_exps.weight", zeros(EXPERTS, 2 * D_FF, D_MODEL)
        yield "ffn_gate_up_exps.bias", zeros(EXPERTS, 2 * D_FF)
        del shapes["gate"], shapes["up"]
    for name, shape in shapes.items():
        yield f"ffn_{name}_exps.weight", zeros(EXPERTS, *shape)
        if gpt_oss:
            yield f"ffn_{name}_exps.bias", zeros(EXPERTS, shape[0])


def write_model(folder, family):
    writer = gguf.GGUFWriter(folder / f"{family}.gguf", family)
    writer.add_custom_alignment(8)  # the default would pad a third of these files away
    describe(writer, family)
    writer.add_token_list(["<s>", "a", "b", "c"])
    writer.add_tensor("token_embd.weight", zeros(VOCAB, D_MODEL))
    writer.add_tensor("output_norm.weight", zeros(D_MODEL))
    for name, values in (*attention(family), *feed_forward(family)):
        writer.add_tensor("blk.0." + name, values)
    finish(writer)


def write_types(folder):
    """Every block format and every kind of metadata value, but no model."""
    writer = gguf.GGUFWriter(folder / "types.gguf", "none")
    kinds = gguf.GGUFValueType
    for kind in kinds:
        value = {kinds.STRING: "text", kinds.BOOL: True, kinds.ARRAY: [1, 2]}.get(kind, 7)
        writer.add_key_value(kind.name.lower(), value, kind)
    writer.add_array("strings", ["", "a", "bc"])
    writer.add_array("flags", [True, False])
    writer.add_array("reals", [0.5, -1.0])
    skipped = {"Q8_1", "Q8_K", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ3_S", "IQ2_S", "IQ1_M", "TQ1_0",
               "TQ2_0", "NVFP4", "Q1_0"}
    for kind in gguf.GGMLQuantizationType:
        if kind.name in skipped:
            continue
        size = gguf.GGML_QUANT_SIZES[kind][1]
        writer.add_tensor(kind.name, numpy.zeros((1, size), dtype=numpy.uint8), raw_dtype=kind)
    finish(writer)


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for family in ("gpt-oss", "gptoss", "llama", "qwen2", "qwen3", "qwen3moe"):
        write_model(folder, family)
    write_types(folder)


if __name__ == "__main__":
    main()

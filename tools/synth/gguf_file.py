# SPDX-License-Identifier: Apache-2.0
"""Writes a recipe as a GGUF file, the tensor data in pieces of a few MiB."""
import sys
import time

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as Type, GGUFWriter

import blocks

ALIGNMENT = 32


class _Progress:
    """One line on stderr: redrawn on a terminal, every tenth of the way elsewhere."""

    def __init__(self, label, total):
        self._label, self._total, self._done = label, max(total, 1), 0
        self._step = 0.01 if sys.stderr.isatty() else 0.1
        self._next, self._start = self._step, time.monotonic()

    def add(self, count):
        self._done += count
        share = self._done / self._total
        if share < self._next and self._done < self._total:
            return
        self._next = share + self._step
        seconds = time.monotonic() - self._start
        end = "\r" if sys.stderr.isatty() and self._done < self._total else "\n"
        print(f"{self._label}: {share:4.0%}  {self._done / 1e9:6.2f} GB  {seconds:4.0f} s",
              end=end, file=sys.stderr, flush=True)


def byte_size(tensor):
    block, size = GGML_QUANT_SIZES[tensor.type]
    if tensor.shape[-1] % block:
        raise ValueError(f"{tensor.name}: {tensor.shape[-1]} columns, not a multiple of {block}")
    return tensor.elements // block * size


def _declare(writer, tensor):
    size = byte_size(tensor)
    if tensor.type == Type.F32:
        writer.add_tensor_info(tensor.name, tensor.shape, np.dtype(np.float32), size)
        return
    block, bytes_per_block = GGML_QUANT_SIZES[tensor.type]
    row = tensor.shape[-1] // block * bytes_per_block  # the writer wants rows measured in bytes
    writer.add_tensor_info(tensor.name, (*tensor.shape[:-1], row), np.dtype(np.uint8), size,
                           raw_dtype=tensor.type)


def write(recipe, path, seed):
    """Writes the file. The same recipe and seed give the same bytes."""
    writer = GGUFWriter(path, recipe.architecture)
    for key, (kind, value) in recipe.metadata.items():
        getattr(writer, f"add_{kind}")(key, value)
    for tensor in recipe.tensors:
        _declare(writer, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    (out,) = writer.fout
    out.write(bytes(-out.tell() % ALIGNMENT))
    progress = _Progress(path.name.lstrip(".").split(".")[0], sum(map(byte_size, recipe.tensors)))
    for tensor in recipe.tensors:
        written = 0
        for piece in blocks.pieces(tensor, seed):
            written += out.write(piece)
        if written != byte_size(tensor):
            raise AssertionError(f"{tensor.name}: {written} bytes, not {byte_size(tensor)}")
        out.write(bytes(-written % ALIGNMENT))
        progress.add(written)
    writer.close()

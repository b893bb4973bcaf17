# SPDX-License-Identifier: Apache-2.0
"""Random tensor bytes, the same on every machine and with every numpy.

Only `random_raw` of a bit generator is used: numpy promises its stream for ever, while its
normal and integer distributions may change. Everything after it is integer arithmetic and
single correctly rounded float operations.
"""
import hashlib

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as Type

# Blocks made at a time: a few MiB of output, so the memory needed does not grow with the tensor.
# Part of the definition of the bytes: each piece starts on a fresh 64-bit word.
PIECE_BLOCKS = 1 << 18


class Source:
    """A stream of random bytes that depends on the tensor's name only, not on its neighbours."""

    def __init__(self, seed, name):
        digest = hashlib.sha256(f"{seed}:{name}".encode()).digest()
        self._bits = np.random.SFC64(np.random.SeedSequence(int.from_bytes(digest[:16], "little")))

    def words(self, count):
        return self._bits.random_raw(count).astype("<u8", copy=False)

    def bytes(self, rows, columns):
        count = rows * columns
        return self.words(-(-count // 8)).view(np.uint8)[:count].reshape(rows, columns)


def bell(source, count, deviation, mean):
    """float32, a sum of four 16-bit uniforms: bell-shaped, bounded at 3.46 deviations."""
    parts = source.words(count).view(np.uint16).reshape(count, 4)
    centred = parts.sum(axis=1, dtype=np.int32) - 2 * 65535
    # The sum of four uniforms over 0..65535 has the variance 4 * 65536^2 / 12.
    scale = np.float32(deviation / (65536 / 3**0.5))
    return centred.astype(np.float32) * scale + np.float32(mean)


def half_scales(source, count, middle):
    """float16 [count, 2 bytes]: eight steps between 0.75 and 1.19 times `middle`."""
    table = (middle * (0.75 + np.arange(8) / 16)).astype("<f2").view(np.uint8).reshape(8, 2)
    return table[source.bytes(count, 1)[:, 0] & 7]


def q8_0(source, count, deviation):
    blocks = np.empty((count, 34), np.uint8)
    # A quantiser never writes -128; uniform over the rest has an RMS of 73.6.
    blocks[:, 2:] = np.maximum(source.bytes(count, 32).view(np.int8), -127).view(np.uint8)
    blocks[:, :2] = half_scales(source, count, deviation / 73.6)
    return blocks


def q4_k(source, count, deviation):
    """Eight groups of 32 codes, value = d * scale * code - dmin * min. Each min is its scale and dmin
    7.5 times d, so that the mean is 0; uniform codes have an RMS of 4.61, scales 32..63 one of 48.4.
    """
    scales = 32 + (source.bytes(count, 8) & 31)
    blocks = np.empty((count, 144), np.uint8)
    blocks[:, :2] = half_scales(source, count, deviation / (4.61 * 48.4))
    d = blocks[:, :2].copy().view("<f2")
    blocks[:, 2:4] = (d.astype(np.float32) * np.float32(7.5)).astype("<f2").view(np.uint8)
    # The first four scales and mins in six bits each; of the last four the low four bits together,
    # and the high two above the first four.
    low, high = scales[:, :4], scales[:, 4:]
    blocks[:, 4:8] = blocks[:, 8:12] = low | high >> 4 << 6
    blocks[:, 12:16] = high & 15 | high << 4
    blocks[:, 16:] = source.bytes(count, 128)
    return blocks


def q6_k(source, count, deviation):
    blocks = np.empty((count, 210), np.uint8)
    blocks[:, :192] = source.bytes(count, 192)  # low and high bits: uniform -32..31, RMS 18.5
    blocks[:, 192:208] = 64 + (source.bytes(count, 16) & 63)  # scales 64..127, RMS 97
    blocks[:, 208:] = half_scales(source, count, deviation / (18.5 * 97))
    return blocks


def mxfp4(source, count, deviation):
    """Codes uniform, exponents uniform over four neighbours.

    Uniform codes have an RMS of 2.93; four scales 1, 2, 4, 8 of equal weight one of 4.61.
    """
    lowest = 127 + int(np.floor(np.log2(deviation / (2.93 * 4.61)) + 0.5))
    blocks = np.empty((count, 17), np.uint8)
    blocks[:, 1:] = source.bytes(count, 16)
    blocks[:, 0] = lowest + (source.bytes(count, 1)[:, 0] & 3)
    return blocks


def bf16(values):
    """Rounded to the nearest, ties to even."""
    bits = values.astype("<f4", copy=False).view("<u4")
    return (bits + 0x7fff + (bits >> 16 & 1) >> 16).astype("<u2")


BLOCKS = {Type.Q8_0: q8_0, Type.Q4_K: q4_k, Type.Q6_K: q6_k, Type.MXFP4: mxfp4}
FLOATS = {Type.F32: lambda values: values.astype("<f4"), Type.BF16: bf16,
          Type.F16: lambda values: values.astype("<f2")}


def pieces(tensor, seed):
    """The bytes of a tensor, piece by piece."""
    if tensor.values is not None:
        yield np.asarray(tensor.values, "<f4").tobytes()
        return
    source = Source(seed, tensor.name)
    left = tensor.elements // GGML_QUANT_SIZES[tensor.type][0]
    while left > 0:
        count = min(left, PIECE_BLOCKS)
        if tensor.type in FLOATS:
            values = bell(source, count, tensor.deviation, tensor.mean)
            yield FLOATS[tensor.type](values).tobytes()
        else:
            yield BLOCKS[tensor.type](source, count, tensor.deviation).data
        left -= count

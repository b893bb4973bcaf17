# SPDX-License-Identifier: Apache-2.0
"""Test blocks of every weight format, and what PyPI gguf makes of them.

src/tensor/quant_test.cc builds the same blocks from the same rules, so only hashes are committed.
"""
import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type

# Name: (gguf type, values per block, bytes per block, offsets of the f16 factors).
# Formats of single values are tested in runs of 32.
FORMATS = {
    "F32": (Type.F32, 32, 128, ()),
    "F16": (Type.F16, 32, 64, ()),
    "BF16": (Type.BF16, 32, 64, ()),
    "Q4_0": (Type.Q4_0, 32, 18, (0,)),
    "Q4_1": (Type.Q4_1, 32, 20, (0, 2)),
    "Q5_0": (Type.Q5_0, 32, 22, (0,)),
    "Q5_1": (Type.Q5_1, 32, 24, (0, 2)),
    "Q8_0": (Type.Q8_0, 32, 34, (0,)),
    "Q2_K": (Type.Q2_K, 256, 84, (80, 82)),
    "Q3_K": (Type.Q3_K, 256, 110, (108,)),
    "Q4_K": (Type.Q4_K, 256, 144, (0, 2)),
    "Q5_K": (Type.Q5_K, 256, 176, (0, 2)),
    "Q6_K": (Type.Q6_K, 256, 210, (208,)),
    "IQ4_NL": (Type.IQ4_NL, 32, 18, (0,)),
    "IQ4_XS": (Type.IQ4_XS, 256, 136, (0,)),
    "IQ2_XXS": (Type.IQ2_XXS, 256, 66, (0,)),
    "MXFP4": (Type.MXFP4, 32, 17, ()),
}

RANDOM_BLOCKS = 1024
BLOCKS_PER_HASH = 2
# Zeros, smallest and largest subnormals, smallest normal, one, largest, infinities, a NaN.
SPECIAL_F16 = (0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x83FF, 0x0400, 0x3C00, 0xBC00, 0x7BFF,
               0xFBFF, 0x7C00, 0xFC00, 0x7E00)
FNV_START = 0xCBF29CE484222325
FNV_PRIME = 0x100000001B3


def splitmix_bytes(seed, count):
    """`count` bytes of the splitmix64 stream that starts at `seed`, eight per draw."""
    draws = (count + 7) // 8
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, draws + 1, dtype=np.uint64) * np.uint64(
            0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return z.astype("<u8").view(np.uint8)[:count]


def fnv(rows):
    """FNV-1a of each row of bytes."""
    h = np.full(rows.shape[0], FNV_START, np.uint64)
    with np.errstate(over="ignore"):
        for column in rows.T:
            h = (h ^ column.astype(np.uint64)) * np.uint64(FNV_PRIME)
    return h


def name_seed(name):
    return int(fnv(np.frombuffer(name.encode(), np.uint8).reshape(1, -1))[0])


def blocks_of(name, seed=None):
    """The test blocks of a format, one per row: random, uniform bytes, special factors, and where
    a format is small enough all there is."""
    _, _, size, factors = FORMATS[name]
    seed = name_seed(name) if seed is None else seed
    parts = [splitmix_bytes(seed, RANDOM_BLOCKS * size).reshape(-1, size),
             np.repeat(np.arange(256, dtype=np.uint8)[:, None], size, axis=1)]
    if factors:
        combos = [(a, b) for a in SPECIAL_F16 for b in (SPECIAL_F16 if len(factors) > 1 else (0,))]
        special = splitmix_bytes(seed ^ 1, len(combos) * size).reshape(-1, size).copy()
        for row, values in zip(special, combos):
            for offset, value in zip(factors, values):
                row[offset], row[offset + 1] = value & 255, value >> 8
        parts.append(special)
    if name in ("F16", "BF16"):
        parts.append(np.arange(65536, dtype="<u2").view(np.uint8).reshape(-1, size))
    if name == "MXFP4":
        every = np.empty((256, 16, 17), np.uint8)  # all bytes under all scales
        every[:, :, 0] = np.arange(256, dtype=np.uint8)[:, None]
        every[:, :, 1:] = np.arange(256, dtype=np.uint8).reshape(1, 16, 16)
        parts.append(every.reshape(-1, 17))
    return np.concatenate(parts)


def canonical_bits(floats):
    """Float32 bits with every NaN written alike: which NaN an operation yields is the CPU's."""
    bits = np.ascontiguousarray(floats, np.float32).view(np.uint32).copy()
    bits[np.isnan(floats)] = 0x7FC00000
    return bits


def expected_bits(name, blocks):
    """What gguf decodes, one row of canonical bits per block."""
    kind, values, _, _ = FORMATS[name]
    with np.errstate(all="ignore"):
        floats = gguf.quants.dequantize(np.ascontiguousarray(blocks), kind)
    floats = floats.reshape(-1, values).copy()
    if name == "MXFP4":
        # The OCP standard calls a scale of 255 NaN and Hearth refuses to load it; gguf computes on.
        floats[blocks[:, 0] == 255] = np.nan
    return canonical_bits(floats)

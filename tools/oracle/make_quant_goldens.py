# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/quant/<format>.u64: hashes of what PyPI gguf decodes from the test blocks.

One little-endian FNV-1a per BLOCKS_PER_HASH blocks, over the float32 bits.
Usage: make_quant_goldens.py [--check]   (--check only compares with what is committed)
"""
import pathlib
import sys

import numpy as np

import quant_blocks as qb

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "quant"


def hashes(name):
    bits = qb.expected_bits(name, qb.blocks_of(name))
    pad = -len(bits) % qb.BLOCKS_PER_HASH
    assert pad == 0, f"{name}: {len(bits)} blocks are no multiple of {qb.BLOCKS_PER_HASH}"
    return qb.fnv(bits.astype("<u4").view(np.uint8).reshape(len(bits) // qb.BLOCKS_PER_HASH, -1))


def main():
    check = "--check" in sys.argv[1:]
    stale = []
    for name in qb.FORMATS:
        found = hashes(name).astype("<u8")
        path = GOLDEN / f"{name}.u64"
        if not check:
            path.write_bytes(found.tobytes())
        elif path.read_bytes() != found.tobytes():
            stale.append(name)
        print(f"{name}: {len(found) * qb.BLOCKS_PER_HASH} blocks, {len(found)} hashes")
    if stale:
        sys.exit(f"goldens differ from what gguf decodes now: {', '.join(stale)}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Compares Hearth's decoders with PyPI gguf, bit for bit, on blocks nobody has seen before.

Usage: check_quant_live.py DECODE_BLOCKS_PROGRAM [SEED]
"""
import pathlib
import secrets
import subprocess
import sys
import tempfile

import numpy as np

import quant_blocks as qb


def decode(program, name, blocks, folder):
    source, target = folder / "blocks", folder / "floats"
    source.write_bytes(np.ascontiguousarray(blocks).tobytes())
    subprocess.run([program, name, source, target], check=True)
    return np.fromfile(target, "<f4").reshape(len(blocks), -1)


def planes_from_blocks(blocks):
    """The Hugging Face order of the same codes: nibbles of all blocks, then all scales."""
    low, high = blocks[:, 1:] & 15, blocks[:, 1:] >> 4
    codes = np.concatenate([low, high], axis=1)
    nibbles = codes[:, 0::2] | (codes[:, 1::2] << 4)
    return np.concatenate([nibbles.reshape(-1), blocks[:, 0]])


def main():
    program = sys.argv[1]
    seed = int(sys.argv[2], 0) if len(sys.argv) > 2 else secrets.randbits(64)
    print(f"seed {seed:#018x}", flush=True)
    failed = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for index, kind in enumerate(qb.FORMATS):
            blocks = qb.blocks_of(kind, (seed + index) % 2**64)
            want = qb.expected_bits(kind, blocks)
            got = {kind: decode(program, kind, blocks, folder)}
            if kind == "MXFP4":
                (folder / "blocks").write_bytes(planes_from_blocks(blocks).tobytes())
                subprocess.run([program, "MXFP4_PLANES", folder / "blocks", folder / "floats"],
                               check=True)
                got["MXFP4_PLANES"] = np.fromfile(folder / "floats", "<f4").reshape(want.shape)
            for label, floats in got.items():
                bad = np.flatnonzero((qb.canonical_bits(floats) != want).any(axis=1))
                print(f"{label}: {len(blocks)} blocks, {len(bad)} differ", flush=True)
                if len(bad):
                    failed.append(f"{label} block {bad[0]}")
    if failed:
        sys.exit(f"seed {seed:#018x}: decoders disagree with gguf: {'; '.join(failed)}")


if __name__ == "__main__":
    main()

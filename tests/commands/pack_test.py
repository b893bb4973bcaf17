# SPDX-License-Identifier: Apache-2.0
"""hearth pack: every command takes the packed file, with the bits of its original; a damaged file and
a full disk are refused."""
import os
import pathlib
import resource
import struct
import subprocess
import sys
import tempfile

from models import expect, hearth, work_model

ROOT = pathlib.Path(__file__).resolve().parents[2]
FAMILIES = ROOT / "tests/fixtures/families"


def models():
    names = ("smollm2", "tiny-oss-o200k", "stories15M-mxfp4", "stories15M-q8_0")
    found = [work_model(f"{name}.gguf") for name in names]
    found += sorted(map(str, FAMILIES.glob("*/hf*"))) + sorted(map(str, FAMILIES.glob("*/*.gguf")))
    return found


def works(*args):
    code, out, err = hearth(*args)
    expect(code == 0, f"{args}: exit {code}: {err}")
    return out


def refused(*args):
    code, _, err = hearth(*args)
    expect(code == 1, f"{args}: exit {code}: {err}")
    return err


def same_bits(folder):
    tokens = folder / "tokens"
    tokens.write_bytes(struct.pack("<24i", *range(3, 27)))
    packed, checked = str(folder / "packed"), 0
    for model in models():
        works("pack", model, packed)
        outs = [folder / "original.f32", folder / "packed.f32"]
        for path, out in zip((model, packed), outs):
            works("eval", "logits", "--model", path, "--tokens", str(tokens), "--out", str(out),
                  "--backend", "cpu")
        expect(outs[0].read_bytes() == outs[1].read_bytes(), f"{model}: other bits when packed")
        checked += 1
    return checked


def commands(folder):
    model, packed = work_model("smollm2.gguf"), str(folder / "smollm2.packed")
    works("pack", model, packed)
    expect(not os.path.exists(packed + ".tmp"), "no draft is left")
    ask = ("--prompt", "What is the capital of France?", "--temperature", "0", "--max-tokens", "24")
    expect(works("run", "--model", packed, *ask) == works("run", "--model", model, *ask),
           "the same reply")
    told, original = works("inspect", packed).splitlines(), works("inspect", model).splitlines()
    expect(told[2:] == original[2:], f"inspect: {told}")
    err = refused("pack", packed, packed + "2")
    expect("already a packed file" in err, err)
    err = refused("eval", "logits", "--model", packed, "--tokens", str(folder / "tokens"), "--out",
                  str(folder / "x.f32"), "--backend", "reference")
    expect("original" in err and "x.f32" not in err, err)
    return packed


def damage(packed, folder):
    size = os.path.getsize(packed)
    for place, what in ((9, "format"), (50, "header"), (5000, "chunk 0"), (size // 2, "chunk"),
                        (size - 3, "hashes")):
        with open(packed, "r+b") as file:
            file.seek(place)
            byte = file.read(1)
            file.seek(place)
            file.write(bytes([byte[0] ^ 4]))
        err = refused("run", "--model", packed, "--prompt", "x")
        expect(what in err and packed in err, f"byte {place}: {err}")
        expect("chunk" not in what or ("expected hash" in err and "found" in err), err)
        with open(packed, "r+b") as file:
            file.seek(place)
            file.write(byte)
    os.truncate(packed, size - 1)
    expect(packed in refused("run", "--model", packed, "--prompt", "x"), "a torn file")


def full_disk(folder):
    """A limit on file sizes stands for a full disk: the same error path, and no root needed."""
    target = folder / "never"
    done = subprocess.run(
        [sys.argv[1], "pack", work_model("smollm2.gguf"), str(target)], capture_output=True,
        check=False, restore_signals=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)))
    err = done.stderr.decode()
    expect(done.returncode == 1 and str(target) in err and "bytes" in err, f"a full disk: {err!r}")
    expect(not list(folder.glob("never*")), "a full disk leaves nothing behind")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        count = same_bits(folder)
        damage(commands(folder), folder)
        full_disk(folder)
    expect(count >= 15, f"only {count} models compared")
    print(f"{count} models with the same bits when packed")


main()

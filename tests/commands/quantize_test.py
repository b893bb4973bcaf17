# SPDX-License-Identifier: Apache-2.0
"""hearth quantize: what it writes is what PyPI's gguf reads, the model still speaks, and the report is true."""
import pathlib
import re
import tempfile

import gguf
import numpy

from models import expect, hearth, work_model

MODEL = work_model("stories15M-q8_0.gguf")
TEXT = ("Once upon a time there was a little girl named Lily. She liked to play outside in the park. One day "
        "she found a big red ball, and she was very happy. She took it home to show it to her mother. ") * 4
# Format and the largest loss of perplexity that is believed, in percent.
TARGETS = {"int8": 0.0, "q5_1": 8, "q4_0": 40}


def values_of(path):
    return {tensor.name: gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            for tensor in gguf.GGUFReader(path).tensors}


def check_values(source, path, out):
    """The errors that were printed are those that another reader finds."""
    before, after = values_of(source), values_of(path)
    expect(before.keys() == after.keys(), "the same tensors")
    listed = dict(re.findall(r"^(\S+) +\S+ +to \S+ +error (\S+)", out, re.M))
    expect(len(listed) == len(before), f"{len(listed)} of {len(before)} tensors are listed")
    for name, want in before.items():
        lost = numpy.sqrt(numpy.mean((want - after[name]) ** 2, dtype=numpy.float64))
        error = lost / numpy.sqrt(numpy.mean(want ** 2, dtype=numpy.float64))
        expect(abs(error - float(listed[name])) < 2e-4, f"{name}: error {error} found, {listed[name]} told")


def main():
    with tempfile.TemporaryDirectory() as folder:
        text = pathlib.Path(folder, "text")
        text.write_text(TEXT, encoding="utf-8")
        sizes = {}
        for to, most in TARGETS.items():
            path = f"{folder}/{to}.gguf"
            code, out, err = hearth("quantize", MODEL, path, "--to", to, "--text", str(text), "--tokens", "120",
                                    "--tensors")
            expect(code == 0, f"{to}: exit {code}: {err}")
            check_values(MODEL, path, out)
            worse = float(re.search(r"perplexity .*\(([-+][\d.]+) %\)", out).group(1))
            expect(-most - 5 <= worse <= most, f"{to}: perplexity {worse:+} %, at most {most}")
            sizes[to] = pathlib.Path(path).stat().st_size
        # What is 8 bits already stays as it is.
        expect(sizes["q4_0"] < sizes["q5_1"] < sizes["int8"], f"sizes {sizes}")
        for arguments, word in (((MODEL, MODEL, "--to", "int8"), "is the model itself"),
                                ((MODEL, folder, "--to", "int8"), "is a directory"),
                                ((MODEL, f"{folder}/x.gguf", "--to", "int3"), "expected one of"),
                                ((MODEL, f"{folder}/x.gguf"), "--to is missing")):
            code, _, err = hearth("quantize", *arguments)
            expect(code == 1 and word in err, f"{arguments}: {code} {err!r}")
        expect(not pathlib.Path(f"{folder}/x.gguf").exists(), "nothing is left of what failed")
    print("quantize:", sizes)


main()

# SPDX-License-Identifier: Apache-2.0
"""--numerics fast: replies of its own, close to those of exact, and the same at every level."""
import pathlib
import tempfile

from models import expect, hearth, work_model

MODEL = work_model("smollm2.gguf")


def perplexity(text, *flags):
    code, out, err = hearth("eval", "perplexity", "--model", MODEL, "--text", str(text), *flags)
    expect(code == 0, f"exit {code}: {err}")
    return out


def main():
    with tempfile.TemporaryDirectory() as folder:
        text = pathlib.Path(folder) / "text"
        text.write_text("The sun rose over the hills, and the birds began to sing. " * 4, encoding="utf-8")
        usual = perplexity(text)
        expect(perplexity(text, "--numerics", "exact") == usual, "exact is the default")
        fast = perplexity(text, "--numerics", "fast")
        expect(fast != usual, f"fast has other bits: {fast}")
        for isa in ("scalar", "avx2"):
            expect(perplexity(text, "--numerics", "fast", "--isa", isa) == fast, f"the same on {isa}")
        code, out, err = hearth("eval", "compare", "--model", MODEL, "--text", str(text), "--tokens", "64", "--numerics", "fast",
                                "--max-kl", "0.02")
        expect(code == 0, f"exit {code}: {err}{out}")
        code, _, err = hearth("eval", "perplexity", "--model", MODEL, "--text", str(text), "--numerics", "faster")
        expect(code != 0 and "exact,fast" in err, f"unknown numerics: {err}")
    print(out.strip().replace("\n", ", "))


main()

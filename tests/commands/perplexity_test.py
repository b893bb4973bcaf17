# SPDX-License-Identifier: Apache-2.0
"""hearth eval perplexity: both backends agree, and English beats noise."""
import pathlib
import tempfile

from models import expect, hearth, work_model

MODEL = work_model("smollm2.gguf")
ENGLISH = ("The sun rose over the hills, and the birds began to sing. A small boat left the "
           "harbour and sailed slowly towards the open sea.")
NOISE = "qz vv xkcd 7%$ lorem zzyzx grmpf ]]{{ 0x3f blorp wug fnord ;;~~ qwop"


def perplexity(text, *flags):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "text"
        path.write_text(text, encoding="utf-8")
        code, out, err = hearth("eval", "perplexity", "--model", MODEL, "--text", str(path), *flags)
    expect(code == 0, f"exit {code}: {err}")
    fields = dict(line.rsplit(" ", 1) for line in out.splitlines())
    return float(fields["perplexity"]), int(fields["tokens"])


def main():
    exact, count = perplexity(ENGLISH, "--backend", "reference")
    fast, same = perplexity(ENGLISH)
    expect(count == same and count > 20, f"tokens {count} and {same}")
    expect(abs(fast / exact - 1) < 1e-3, f"cpu {fast} against the reference's {exact}")
    expect(exact < 40, f"English is predictable: {exact}")
    expect(perplexity(NOISE)[0] > 5 * exact, "noise is not")
    short, _ = perplexity(ENGLISH, "--context", "8")
    expect(short > exact, f"less context, worse prediction: {short} against {exact}")
    code, _, err = hearth("eval", "perplexity", "--model", MODEL, "--text", "/nonexistent")
    expect(code == 1 and "/nonexistent" in err, f"a missing file is named: {err!r}")
    print(f"perplexity: reference {exact}, cpu {fast}")


main()

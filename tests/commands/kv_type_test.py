# SPDX-License-Identifier: Apache-2.0
"""--kv-type int8: half the memory, replies close to the usual ones, a name of its own."""
import json
import pathlib
import tempfile

from models import expect, hearth, work_model

MODEL = work_model("smollm2.gguf")
TEXT = pathlib.Path(__file__).parents[2] / "docs/engine.md"


def plan(*flags):
    code, out, err = hearth("plan", MODEL, "--json", "--context", "2048", *flags)
    expect(code == 0, f"exit {code}: {err}")
    return json.loads(out)


def main():
    code, out, err = hearth("eval", "kv", "--model", MODEL, "--text", str(TEXT), "--tokens", "300")
    expect(code == 0, f"exit {code}: {err}")
    fields = {line.rsplit(" ", 1)[0]: line.rsplit(" ", 1)[1] for line in out.splitlines() if "KL" in line}
    kl = float(fields["mean KL"])
    # Nothing at all would mean that the flag did nothing.
    expect(0 < kl < 0.01, f"mean KL {kl}")
    wide, narrow = (plan("--kv-type", kind)["model"]["kv_bytes_per_token"] for kind in ("int16", "int8"))
    expect(0.5 < narrow / wide < 0.54, f"{narrow} bytes a token instead of {wide}")
    with tempfile.TemporaryDirectory() as folder:
        text = pathlib.Path(folder) / "text"
        text.write_text("The sun rose over the hills, and the birds began to sing. " * 4, encoding="utf-8")
        found = []
        for kind in ("int16", "int8", "int16"):
            code, out, err = hearth("eval", "perplexity", "--model", MODEL, "--text", str(text), "--kv-type", kind)
            expect(code == 0, f"exit {code}: {err}")
            found.append(out)
    expect(found[0] == found[2] != found[1], f"int16 as always, int8 otherwise: {found}")
    code, _, err = hearth("eval", "perplexity", "--model", MODEL, "--text", "x", "--kv-type", "int4")
    expect(code != 0 and "int16,int8" in err, f"an unknown type: {err}")
    print(f"KL {kl:.1e} against int16; {narrow} bytes of K and V a token instead of {wide}")


main()

# SPDX-License-Identifier: Apache-2.0
"""What a model's files recommend for sampling: shown by `hearth inspect`, kept by `hearth pack`, and a
value that makes no sense is refused with file and key. usage: sampling_defaults_test.py HEARTH"""
import json
import pathlib
import shutil
import tempfile

from models import expect, hearth

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "tests/fixtures/families/qwen2/hf"
GIVEN = {"do_sample": True, "temperature": 0.6, "top_k": 20, "top_p": 0.95, "min_p": 0.01,
         "repetition_penalty": 1.05, "eos_token_id": [1, 2]}
SHOWN = "temperature 0.6 top_k 20 top_p 0.95 min_p 0.01 repetition_penalty 1.05"


def inspect(path, *flags):
    code, out, err = hearth("inspect", str(path), *flags)
    expect(code == 0, f"inspect {path}: exit {code}: {err}")
    return out


def main():
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "model"
        shutil.copytree(MODEL, model)
        expect("sampling" not in inspect(model), "nothing where the files say nothing")
        config = model / "generation_config.json"
        config.write_text(json.dumps(GIVEN), encoding="utf-8")
        expect(f"{SHOWN} (generation_config.json)" in inspect(model), f"{SHOWN} in {inspect(model)}")
        wanted = {name: value for name, value in GIVEN.items()
                  if name not in ("do_sample", "eos_token_id")}
        told = json.loads(inspect(model, "--json"))["sampling"]
        wanted["source"] = "generation_config.json"
        expect(told == wanted, f"{wanted} as JSON, not {told}")
        packed = pathlib.Path(folder) / "packed"
        code, _, err = hearth("pack", str(model), str(packed))
        expect(code == 0, f"pack: {err}")
        expect(SHOWN in inspect(packed), "a packed file to keep it")
        config.write_text('{"temperature": -1}', encoding="utf-8")
        code, _, err = hearth("inspect", str(model))
        expect(code == 1 and "generation_config.json: temperature: expected a number from 0 to 2"
               in err, f"file and key in {code} {err}")
    print("sampling defaults are shown, kept and checked")


if __name__ == "__main__":
    main()

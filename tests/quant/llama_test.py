# SPDX-License-Identifier: Apache-2.0
"""What `hearth quantize` writes opens in llama.cpp too, and says the same: a model in each format, greedy text of
both, compared until they part. Arithmetic differs (llama.cpp rounds activations to 8 bits), so they may part where
two tokens are nearly as likely; how far they go together is printed and held to a least. Prints a table, with what
each format costs by `hearth quantize --text`.

llama_test.py HEARTH [--model SOURCE] [--text FILE --tokens N] [--prompts N]
              [--folder F: a Debian sid with llama.cpp, made when absent: minutes, as root]"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
for place in ("tests/support", "bench/peers", "tests/server"):
    sys.path.insert(0, str(ROOT / place))

import debian  # noqa: E402
from checking import expect, work_dir, work_model  # noqa: E402
from serving import serving  # noqa: E402

TARGETS = ("int8", "q6_k", "q5_k", "q5_1", "q5_0", "int4", "q4_1", "q4_0", "mxfp4", "f16", "bf16", "f32", "keep")
PROMPTS = ("The capital of France is", "Once upon a time", "Water boils at", "The first president of the United")
TOKENS = 16
COLUMNS = "| `--to` | weights, MiB | perplexity | same first choice | mean KL | equal replies | text before they part |"


def said_by_hearth(program, model, prompts):
    said = []
    with serving(program, model, "--context", "512") as server:
        for prompt in prompts:
            body = {"prompt": prompt, "max_tokens": TOKENS, "temperature": 0, "ignore_eos": True}
            status, _, reply = server.request("POST", "/v1/completions", body)
            expect(status == 200, f"{model}: {reply}")
            said.append(json.loads(reply)["choices"][0]["text"])
    return said


def said_by_llama(sid, model, prompts):
    said = []
    inside = sid.model(model)
    for prompt in prompts:
        command = sid.command("llama-completion", "-m", inside, "-p", prompt, "-n", str(TOKENS), "--temp", "0",
                              "-no-cnv", "--no-warmup", "--ignore-eos", "-c", "512", "--no-display-prompt", "-t", "1")
        ran = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False,
                             stdin=subprocess.DEVNULL, timeout=600)
        expect(ran.returncode == 0, f"llama.cpp does not open {model.name}: {ran.stderr[-500:]}")
        said.append(ran.stdout)
    return said


def together(ours, theirs):
    """Characters until they part, and all."""
    ours, theirs = ours.strip(), theirs.strip()
    most = min(len(ours), len(theirs))
    same = next((i for i in range(most) if ours[i] != theirs[i]), most)
    return same, max(most, 1)


def quantized(given, source, path, target):
    """Writes the file; what the report says of it."""
    command = [given.program, "quantize", source, path, "--to", target, "--text", given.text, "--tokens",
               str(given.tokens)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.search(r"perplexity \S+ to (\S+) \((\S+) %\)\ntop-1 agreement (\S+) %\nmean KL (\S+)", out)
    expect(found, f"{target}: no report in {out[-500:]}")
    return found.groups()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--model", default="smollm2-f16.gguf")
    parser.add_argument("--text", default=str(ROOT / "docs/streams.md"))
    parser.add_argument("--tokens", type=int, default=1000)
    parser.add_argument("--prompts", type=int, default=len(PROMPTS))
    parser.add_argument("--least", type=float, default=0.5, help="share of the text in which both agree, per format")
    parser.add_argument("--folder", type=pathlib.Path, default=work_dir() / "peers" / "sid")
    given = parser.parse_args()
    sid = debian.Sid(given.folder)
    sid.install()
    source = work_model(given.model)
    prompts = PROMPTS[:given.prompts]
    print(COLUMNS, "|---|---|---|---|---|---|---|", sep="\n", flush=True)
    with tempfile.TemporaryDirectory(dir=given.folder / "tmp") as folder:
        for target in TARGETS:
            path = pathlib.Path(folder, f"{pathlib.Path(source).stem}-{target}.gguf")
            perplexity, change, top1, divergence = quantized(given, source, path, target)
            pairs = list(zip(said_by_hearth(given.program, str(path), prompts), said_by_llama(sid, path, prompts)))
            counts = [together(*pair) for pair in pairs]
            share = sum(same for same, _ in counts) / sum(most for _, most in counts)
            whole = sum(same == most for same, most in counts)
            print(f"| `{target}` | {path.stat().st_size / 2**20:.0f} | {float(perplexity):.2f} ({change} %) | {top1} % "
                  f"| {divergence} | {whole} of {len(prompts)} | {100 * share:.0f} % |", flush=True)
            expect(share >= given.least, f"{target}: {pairs}")
            path.unlink()
            (given.folder / "models" / path.name).unlink(missing_ok=True)
    print(f"{len(TARGETS)} formats of {pathlib.Path(source).name} open in llama.cpp {sid.version()} and in Hearth")


main()

# SPDX-License-Identifier: Apache-2.0
"""What `hearth quantize` writes opens in llama.cpp too, and says the same: a model in each format, greedy text of
both, compared until they part. Arithmetic differs (llama.cpp rounds activations to 8 bits), so they may part, but only
where two tokens are nearly as likely: what llama.cpp chose there must be one of Hearth's first twenty and hardly less
likely than the first. Prints a table, with what each format costs by `hearth quantize --text`.

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
COLUMNS = "| `--to` | weights, MiB | perplexity | same first choice | mean KL | equal replies | largest gap where they part |"
MOST_GAP = 0.7  # nats between Hearth's first choice and llama.cpp's


def said_by_hearth(program, model, prompts):
    said = []
    with serving(program, model, "--context", "512") as server:
        for prompt in prompts:
            body = {"prompt": prompt, "max_tokens": TOKENS, "temperature": 0, "logprobs": 20}
            status, _, reply = server.request("POST", "/v1/completions", body)
            expect(status == 200, f"{model}: {reply}")
            said.append(json.loads(reply)["choices"][0])
    return said


def said_by_llama(sid, model, prompts):
    said = []
    inside = sid.model(model)
    for prompt in prompts:
        command = sid.command("llama-completion", "-m", inside, "-p", prompt, "-n", str(TOKENS), "--temp", "0",
                              "-no-cnv", "--no-warmup", "-c", "512", "--no-display-prompt", "-t", "1")
        ran = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False,
                             stdin=subprocess.DEVNULL, timeout=600)
        expect(ran.returncode == 0, f"llama.cpp does not open {model.name}: {ran.stderr[-500:]}")
        said.append(ran.stdout.replace("[end of text]", "").rstrip())
    return said


def gap_of(ours, theirs):
    """None when the replies are equal, as far as both go; else by how much Hearth prefers its token where they part."""
    text = ours["text"]
    most = min(len(text), len(theirs))
    parting = next((i for i in range(most) if text[i] != theirs[i]), None)
    if parting is None:
        return None
    tokens, listed = ours["logprobs"]["tokens"], ours["logprobs"]["top_logprobs"]
    starts = [sum(map(len, tokens[:i])) for i in range(len(tokens))]
    last = max(i for i, start in enumerate(starts) if start <= parting)
    # The token before as well: " a" and " assembled" part after the end of " a".
    for i in range(last, max(last - 2, -1), -1):
        fitting = [choice for choice in listed[i]
                   if starts[i] + len(choice) > parting and theirs.startswith(choice, starts[i])]
        if fitting:
            return max(listed[i].values()) - max(listed[i][choice] for choice in fitting)
    sys.exit(f"FAILED: {text!r} and {theirs!r}: llama.cpp chose none of {listed[last]}")


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
    parser.add_argument("--only", help="targets, separated by commas", default=",".join(TARGETS))
    parser.add_argument("--folder", type=pathlib.Path, default=work_dir() / "peers" / "sid")
    given = parser.parse_args()
    sid = debian.Sid(given.folder)
    sid.install()
    source = work_model(given.model)
    prompts = PROMPTS[:given.prompts]
    print(COLUMNS, "|---|---|---|---|---|---|---|", sep="\n", flush=True)
    with tempfile.TemporaryDirectory(dir=given.folder / "tmp") as folder:
        targets = given.only.split(",")
        for target in targets:
            path = pathlib.Path(folder, f"{pathlib.Path(source).stem}-{target}.gguf")
            perplexity, change, top1, divergence = quantized(given, source, path, target)
            pairs = list(zip(said_by_hearth(given.program, str(path), prompts), said_by_llama(sid, path, prompts)))
            gaps = [gap for pair in pairs if (gap := gap_of(*pair)) is not None]
            print(f"| `{target}` | {path.stat().st_size / 2**20:.0f} | {float(perplexity):.2f} ({change} %) | {top1} % "
                  f"| {divergence} | {len(prompts) - len(gaps)} of {len(prompts)} | {f'{max(gaps):.2f}' if gaps else '-'} |",
                  flush=True)
            expect(max(gaps, default=0) <= MOST_GAP,
                   f"{target}: {[(ours['text'], theirs) for ours, theirs in pairs]}")
            path.unlink()
            (given.folder / "models" / path.name).unlink(missing_ok=True)
    print(f"{len(targets)} formats of {pathlib.Path(source).name} open in llama.cpp {sid.version()} and in Hearth")


main()

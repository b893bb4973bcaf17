# SPDX-License-Identifier: Apache-2.0
"""./dev bench plan: what `hearth plan` predicts beside what `hearth bench` measures, in turns.

The machine's speed changes by the minute, so each round runs both one after the other; a row shows the ratio of every
round and judges their median.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[1]
HEARTH = ROOT / "build/release/bin/hearth"
USUAL = ("smollm2.gguf", "llama-1b-q8_0.gguf", "llama-8b-q4_k_m.gguf", "gpt-oss-20b.gguf", "gpt-oss-20b-hf")
WITHIN = 0.15
DEPTH = 2048
# Users without a pause between their requests, and how many requests in all: the engine learns from the first few how
# long its steps are. Prompts and replies in tokens.
LOADS, PROMPT, REPLY = {1: 16, 4: 40, 16: 128}, 300, 64
LARGE = 1 << 30  # bytes; with such a model the same would take an hour
LARGE_LOADS, LARGE_PROMPT, LARGE_REPLY = {1: 14, 2: 20, 4: 32}, 100, 32


def work_dir():
    return pathlib.Path(os.environ.get("HEARTH_WORK", pathlib.Path.home() / ".cache/hearth"))


def make(name):
    """What is missing of the usual models: fetched, or written with random weights."""
    path = work_dir() / name
    if path.exists():
        return
    stem = name.removesuffix(".gguf")
    if name == "smollm2.gguf":
        command = [ROOT / "dev", "model", stem]
    elif name.endswith("-hf"):
        gguf = f"{name.removesuffix('-hf')}.gguf"
        make(gguf)
        command = [sys.executable, ROOT / "bench/peers/hf_model.py", work_dir() / gguf, path]
    else:
        command = [ROOT / "dev", "synth", stem]
    subprocess.run(command, check=True)


def plan(hearth, model, *flags):
    done = subprocess.run([hearth, "plan", model, "--json", *flags], check=True, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return json.loads(done.stdout)


def measured(hearth, command, folder):
    path = pathlib.Path(folder) / "out.json"
    subprocess.run([hearth, *command, "--json", path], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    return json.loads(path.read_text())


def predicted_rates(found):
    rates = {}
    for case in found["cases"]:
        if case["prompt"] == 512:
            rates["prefill 512"] = case["tokens_per_second"]
        elif case["prompt"] == 0 and case["depth"] in (0, DEPTH):
            depth = f" at {DEPTH}" if case["depth"] else ""
            rates[f"decode {case['users']}{depth}"] = case["tokens_per_second"]
    return rates


def bench_round(hearth, model, folder, repeat):
    """(row, predicted, measured) of one round; a machine that slows down meanwhile hits both."""
    predicted = predicted_rates(plan(hearth, model))
    # Not every model has room for the deep case.
    deep = ["--depth", str(DEPTH)] if f"decode 1 at {DEPTH}" in predicted else []
    found = measured(hearth, ["bench", "--model", model, "--repeat", str(repeat), *deep], folder)
    for row in found["measurements"]:
        if row["name"] in predicted:
            yield row["name"], predicted[row["name"]], row["tokens_per_second"]


def size_of(model):
    path = pathlib.Path(model)
    return sum(part.stat().st_size for part in path.iterdir()) if path.is_dir() else path.stat().st_size


def whole_turns(found, users):
    """(tokens per second, median wait) from when everybody has had a reply until somebody has nothing more to ask, by
    the replies that ended meanwhile: as much of prompts as of replies."""
    replies = sorted(found["replies"], key=lambda reply: reply["ended_s"])
    begin, end = replies[users - 1]["ended_s"], replies[-users]["ended_s"]
    counted = replies[users:len(replies) - users + 1]
    return (sum(len(reply["heard_s"]) for reply in counted) / (end - begin),
            statistics.median(reply["heard_s"][0] - reply["sent_s"] for reply in counted))


def load_round(hearth, model, folder):
    is_large = size_of(model) > LARGE
    prompt, reply, loads = (LARGE_PROMPT, LARGE_REPLY, LARGE_LOADS) if is_large else (PROMPT, REPLY, LOADS)
    for users, chats in loads.items():
        found = plan(hearth, model, "--users", str(users), "--prompt", str(prompt), "--reply", str(reply),
                     "--think", "0")["load"]["one_server"]
        rate, wait = whole_turns(measured(hearth, [
            "bench", "load", "--model", model, "--clients", str(users), "--chats", str(chats), "--turns", "1",
            "--apps", "1", "--preamble-tokens", "2", "--user-tokens", str(prompt), "--answer-tokens", str(reply)],
            folder), users)
        yield f"{users} users, tokens/s", found["tokens_per_second"], rate
        yield f"{users} users, median time to first token, s", found["first_token_seconds"]["p50"], wait


def table(model, rows):
    lines = [f"## {model}", "", "| | predicted | measured | predicted to measured | rounds | |",
             "|---|---|---|---|---|---|"]
    misses = 0
    for name, pairs in rows.items():
        ratios = [predicted / real for predicted, real in pairs]
        middle = statistics.median(ratios)
        is_met = abs(middle - 1) <= WITHIN
        misses += not is_met
        lines.append(f"| {name} | {statistics.median(p for p, _ in pairs):.4g} "
                     f"| {statistics.median(m for _, m in pairs):.4g} | {middle:.2f} "
                     f"| {', '.join(f'{ratio:.2f}' for ratio in ratios)} "
                     f"| {'' if is_met else '**missed**'} |")
    return "\n".join(lines) + "\n", misses


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", action="append", help="model file; default: the usual ones that are there")
    parser.add_argument("--hearth", type=pathlib.Path, default=HEARTH, help="the program; default: the one built here")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=1, help="rounds of `hearth bench` in each of ours")
    parser.add_argument("--load", action="store_true", help="three loads as well")
    parser.add_argument("--whole", action="store_true",
                        help="every usual model, made if it is missing (40 GB in all), and the loads")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "bench/results/plan.md")
    return parser.parse_args()


def main():
    args = arguments()
    if args.whole:
        for name in USUAL:
            make(name)
    models = args.model or [str(work_dir() / name) for name in USUAL if (work_dir() / name).exists()]
    text = ["# Prediction against measurement", "",
            f"`./dev bench plan`, rounds: {args.rounds}, `hearth plan` and `hearth bench` in turns; asked: the "
            f"median within {WITHIN:.0%}. Users ask without pauses; prompts of {PROMPT} tokens and replies of {REPLY} on "
            f"average, of models above {LARGE >> 30} GiB {LARGE_PROMPT} and {LARGE_REPLY}.", ""]
    misses = 0
    with tempfile.TemporaryDirectory() as folder:
        for model in models:
            rows = {}
            for _ in range(args.rounds):
                found = list(bench_round(args.hearth, model, folder, args.repeat))
                found += list(load_round(args.hearth, model, folder)) if args.load or args.whole else []
                for name, predicted, real in found:
                    rows.setdefault(name, []).append((predicted, real))
            part, missed = table(pathlib.Path(model).name, rows)
            print(part, flush=True)
            text.append(part)
            misses += missed
            args.out.write_text("\n".join(text))  # after each: a run of hours may be stopped
    print(f"{misses} rows missed; written to {args.out}")


if __name__ == "__main__":
    main()

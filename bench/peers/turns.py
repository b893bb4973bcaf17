# SPDX-License-Identifier: Apache-2.0
"""Two builds of Hearth in turns under the same load: streams decode, then prompts arrive at once.

For each: the prompts' median time to the first token, and the time between the streams' tokens
until the last of them has spoken. `hearth bench load --prompts` of either build makes the record.
"""
import json
import statistics
import subprocess

from gaps import rounded, seconds_text


def load(binary, words, out):
    done = subprocess.run([str(binary), *words, "--json", str(out)], check=False)
    if done.returncode != 0:
        raise SystemExit(f"latency: {binary} stopped with {done.returncode}")
    return json.loads(out.read_text(encoding="utf-8"))


def run(binaries, words, rounds, folder):
    """`binaries` maps a name to a program. Every other round goes backwards, so that a machine that
    gets slower or faster meanwhile favours nobody."""
    folder.mkdir(parents=True, exist_ok=True)
    records = {name: [] for name in binaries}
    for number in range(rounds):
        order = list(binaries) if number % 2 == 0 else list(reversed(binaries))
        for name in order:
            print(f"latency: round {number + 1} of {rounds}: {name}", flush=True)
            record = load(binaries[name], words, folder / f"turns-{name}-{number}.json")
            records[name].append(record)
    return records


def figures(record):
    prompts = record["long_prompt"]
    said = sum(bool(reply["heard_s"]) for reply in prompts["replies"])
    return {"first_token_s": prompts["first_token_s"]["p50"],
            "said": said, "prompts": len(prompts["replies"]),
            "before_s": prompts["between_tokens_before_s"]["p50"],
            "p50_s": prompts["between_tokens_s"]["p50"],
            "p99_s": prompts["between_tokens_s"]["p99"],
            "most_s": prompts["between_tokens_s"]["most"],
            "chunk": prompts["chunk_tokens"]["mean"], "others": record["others"],
            "computed": prompts["computed"], "read_s": prompts["to_s"] - prompts["from_s"]}


ROWS = (("first token of the prompts, median", lambda f: f"{f['first_token_s']:.1f} s"),
        ("prompts that spoke within the time limit", lambda f: f"{f['said']} of {f['prompts']}"),
        ("prompt tokens read a second", lambda f: f"{f['computed'] / f['read_s']:.1f}"),
        ("prompt tokens in a step beside streams, mean", lambda f: f"{f['chunk']:.1f}"),
        ("between tokens before them, median", lambda f: seconds_text(f["before_s"])),
        ("beside them, median", lambda f: seconds_text(f["p50_s"])),
        ("beside them, 99th percentile", lambda f: seconds_text(f["p99_s"])),
        ("beside them, longest pause", lambda f: seconds_text(f["most_s"])))


def table(model, machine, records, options):
    names = list(records)
    runs = {name: [figures(record) for record in records[name]] for name in names}
    columns = [(name, number) for number in range(len(runs[names[0]])) for name in names]
    lines = [f"# {model}: {options.prompts} prompts of {options.prompt} tokens arrive at once beside "
             f"{options.streams} streams", "",
             f"{machine}; bound (`--itl-target`) {options.itl_target:.0f} ms. Two builds in turns, in "
             "one run; only the ratio of one round's figures means something elsewhere.", "",
             "| | " + " | ".join(f"{name}, round {n + 1}" for name, n in columns) + " |",
             "|---" * (1 + len(columns)) + "|"]
    for title, cell in ROWS:
        lines.append(f"| {title} | " + " | ".join(cell(runs[name][n]) for name, n in columns) + " |")
    old, new = (statistics.median(f["first_token_s"] for f in runs[name]) for name in names)
    worst = max(f["p99_s"] for f in runs[names[1]])
    lines += ["", f"Median time to the first token, {names[1]} to {names[0]}: **{new / old:.2f}**. "
              f"Largest 99th percentile of {names[1]}: {worst * 1e3 / options.itl_target:.2f} of the "
              "bound.", ""]
    return "\n".join(lines)


def write(folder, name, words, records):
    folder.mkdir(parents=True, exist_ok=True)
    kept = {build: [figures(record) for record in runs] for build, runs in records.items()}
    text = json.dumps({"schema": "hearth.bench.turns", "version": 1, "records": rounded(kept)},
                      indent=1)
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    (folder / f"{name}.md").write_text(words, encoding="utf-8")
    print(words)
    print(f"latency: wrote {folder / name}.json and .md")

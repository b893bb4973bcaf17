# SPDX-License-Identifier: Apache-2.0
"""What `./dev bench victims` found, as tables and as JSON: bench/results/victims-MODEL.*"""
import json
import math
import pathlib
import statistics

# A newcomer beside an attack may wait so many times as long as on a quiet server, and a layer. Where a step of a long
# prompt takes seconds, less of them, and so many seconds.
SMALL, LARGE = (2.0, None), (1.5, 0.3)
LEAST_ALONE = 0.97


def percentile(values, percent):
    values = sorted(values)
    return values[min(len(values) - 1, int(percent / 100 * len(values)))]


def high_ms(before, after):
    """The 99th percentile of what was counted in between, in ms: from two readings of a histogram, {bound in seconds:
    how many up to it}, taken to be even within a bucket."""
    counts = sorted((bound, after[bound] - before.get(bound, 0)) for bound in after)
    rank, lower, below = 0.99 * counts[-1][1], 0.0, 0.0
    for bound, count in counts:
        if count >= rank and count > below:
            upper = bound if math.isfinite(bound) else 2 * lower
            return 1000 * (lower + (upper - lower) * (rank - below) / (count - below))
        lower, below = bound, count
    return 0.0


def allowed_ms(model, quiet_ms, layer_ms):
    times, seconds = LARGE if model.startswith("gpt-oss") else SMALL
    return times * quiet_ms + (layer_ms if seconds is None else 1000 * seconds)


def pooled(kept):
    """One row for each attack and build, of all its rounds."""
    groups = {}
    for run in kept["runs"]:
        if "attack" in run:
            groups.setdefault((run["attack"], run["build"]), []).append(run)
    for (attack, build), runs in sorted(groups.items()):
        row = {"attack": attack, "build": build, "rounds": len(runs), "outcomes": {}}
        for what in ("quiet", "beside"):
            values = [value for run in runs for value in run[f"{what}_ms"]]
            row[what] = {"count": len(values), **{f"p{p}": percentile(values, p) for p in (50, 99)}}
        row["layer_ms"] = round(max(run["layer_ms"] for run in runs), 2)
        row["client_share"] = max(run["client_share"] for run in runs)
        row["others"] = max(run["others"] for run in runs)
        row["a_second"] = {name: round(statistics.mean(run["a_second"][name] for run in runs), 2)
                           for name in runs[0]["a_second"]}
        for run in runs:
            for outcome, count in run["outcomes"].items():
                row["outcomes"][outcome] = row["outcomes"].get(outcome, 0) + count
        row["allowed_ms"] = round(allowed_ms(kept["model"], row["quiet"]["p99"], row["layer_ms"]), 2)
        row["is_held"] = row["beside"]["p99"] <= row["allowed_ms"]
        row["is_attacked"] = is_attacked(attack, row)
        yield row


def is_attacked(attack, row):
    """Whether the attack did its work: computed, loaded, and was not refused instead."""
    done, work = row["outcomes"], row["a_second"]
    good = done.get("200", 0) + done.get("left", 0)
    refused = sum(done.values()) - good
    if attack == "model_storm":
        return work["loads"] > 0 and refused <= good
    is_computed = work["reply tokens" if attack in ("endless_streams", "cancel_storm") else "prompt tokens"] > 1
    return is_computed and refused <= 0.02 * sum(done.values())


def alone(kept):
    """Tokens a second of each build's rounds, and the ratio of the best ones, as in `./dev bench turns`; beside it the
    processor time of the server for a token, which neighbours disturb less."""
    groups = {}
    for run in kept["runs"]:
        if "alone" in run:
            groups.setdefault(run["alone"], {}).setdefault(run["build"], []).append(run)
    for what, builds in sorted(groups.items()):
        row = {"alone": what}
        for build, runs in builds.items():
            row[build] = {"tokens_a_second": [round(run["tokens_a_second"], 2) for run in runs],
                          "processor_us": round(min(run["processor_us"] for run in runs), 2)}
        if len(builds) == 2:
            now, before = row["now"]["tokens_a_second"], row["before"]["tokens_a_second"]
            row["ratio"] = round(max(now) / max(before), 3)
            row["ratio_of_medians"] = round(statistics.median(now) / statistics.median(before), 3)
            row["ratio_of_processor_time"] = round(row["before"]["processor_us"] / row["now"]["processor_us"], 3)
            row["is_held"] = row["ratio"] >= LEAST_ALONE
        yield row


def ms(value):
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def attack_lines(rows):
    lines = ["| beside | build | quiet, ms: p50 / p99 | beside, ms: p50 / p99 | times | one layer, ms | allowed p99, ms | "
             "| requests timed | a second, of the attack | replies to it | its client |", "|---" * 12 + "|"]
    for row in rows:
        quiet, beside = row["quiet"], row["beside"]
        verdict = "held" if row["is_held"] else "**not held**"
        if not row["is_attacked"]:
            verdict = "**no attack**"
        work = ", ".join(f"{value:,.4g} {name}" for name, value in row["a_second"].items() if value)
        said = ", ".join(f"{count:,} × {outcome}" for outcome, count in sorted(row["outcomes"].items())) or "none ended"
        lines.append(
            f"| {row['attack']} | {row['build']} | {ms(quiet['p50'])} / {ms(quiet['p99'])} | "
            f"{ms(beside['p50'])} / {ms(beside['p99'])} | {beside['p50'] / quiet['p50']:.1f} / "
            f"{beside['p99'] / quiet['p99']:.1f} | {row['layer_ms']:.1f} | {ms(row['allowed_ms'])} | {verdict} | "
            f"{quiet['count']}, {beside['count']} | {work} | {said} | {row['client_share']:.0%} |")
    return lines


def alone_lines(rows):
    lines = ["| alone | before, tokens/s: best, median | now | processor time a token, µs: before | now | "
             "ratio of the best | of the medians | of processor time | |", "|---" * 9 + "|"]
    for row in rows:
        sides = [row.get(build) for build in ("before", "now")]
        rates = ["–" if side is None else f"{max(side['tokens_a_second']):,.4g}, "
                 f"{statistics.median(side['tokens_a_second']):,.4g}" for side in sides]
        used = ["–" if side is None else f"{side['processor_us']:,.4g}" for side in sides]
        ratios = [str(row.get(name, "–")) for name in ("ratio", "ratio_of_medians", "ratio_of_processor_time")]
        verdict = "" if "ratio" not in row else "held" if row["is_held"] else "**not held**"
        lines.append(f"| {' | '.join([row['alone'], *rates, *used, *ratios, verdict])} |")
    return lines


def words(kept):
    is_large = kept["model"].startswith("gpt-oss")
    rule = ("1.5 times the quiet value and 0.3 s" if is_large else
            "twice the quiet value and one layer's time (the 99th percentile of the steps over the layers)")
    others = max((run["others"] for run in kept["runs"]), default=0)
    return (f"{kept['date']}, {kept['model']}, `--threads {kept['threads']}`. One key's requests for one token, whole "
            "request, quiet and beside another key's attack in turns, with "
            f"{1000 * kept['pause_s']:.0f} ms of rest between two; allowed is {rule}. *its client*: of a processor that the "
            " attackers' own process took, on the same machine. Others used at most "
            f"{others:.0%} of it.")


def write(kept, folder):
    """Prints the tables, and writes them where `folder` says; whether all of `now` is held and was attacked."""
    rows, works = list(pooled(kept)), list(alone(kept))
    text = "\n".join([f"# One key beside another: {pathlib.Path(kept['model']).stem}", "", words(kept), "",
                      *attack_lines(rows), "", *alone_lines(works), ""])
    print(text)
    if folder is not None:
        place = pathlib.Path(folder) / f"victims-{pathlib.Path(kept['model']).stem}"
        place.with_suffix(".md").write_text(text, encoding="utf-8")
        record = {"schema": "hearth.bench.victims", "version": 1, "model": kept["model"], "date": kept["date"],
                  "threads": kept["threads"], "attacks": rows, "alone": works}
        place.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        print(f"written to {place}.md and .json")
    now = [row for row in rows if row["build"] == "now"]
    return all(row["is_held"] and row["is_attacked"] for row in now) and all(row.get("is_held", True) for row in works)

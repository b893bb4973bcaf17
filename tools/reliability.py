#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/reliability.md from docs/evidence/reliability.json: what the suites of faults, attacks, fuzzing and
simulation found when they last ran.
  reliability.py                 writes the page
  reliability.py --collect DIR   first takes the results that suites wrote to DIR (tests/support/results.py)
  reliability.py --check         fails when the page is not what would be written"""
import argparse
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).parents[1]
KEPT, PAGE = "docs/evidence/reliability.json", "docs/reliability.md"


def load(root):
    return json.loads((root / KEPT).read_text(encoding="utf-8"))


def collect(kept, folder):
    """Newer results in place of older ones. A smaller run of the same version does not replace a larger."""
    for path in sorted(pathlib.Path(folder).glob("*.json")):
        new = json.loads(path.read_text(encoding="utf-8"))
        old = kept["suites"].get(new["suite"])
        if old and old["version"] == new["version"] and old["size"] > new["size"]:
            continue
        kept["suites"][new["suite"]] = {key: new[key] for key in ("date", "version", "size", "figures", "note")
                                        if key in new}
    return kept


def run_of(suite):
    """With what a reader must know of the run: that it was cut short, or is the sum of several."""
    return f"{suite['date']}, {suite['version']}" + (f"; {suite['note']}" if suite.get("note") else "")


def table(heads, rows):
    return ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads),
            *("| " + " | ".join(map(str, row)) + " |" for row in rows), ""]


def n(number):
    return f"{number:,}"


def fuzzing(suites):
    found = {name[5:]: suite for name, suite in suites.items() if name.startswith("fuzz_")}
    if not found:
        return []
    total = sum(suite["figures"]["executions"] for suite in found.values())
    rows = [(f"`{name}`", n(suite["figures"]["executions"]), n(suite["figures"]["per_second"]),
             n(suite["figures"]["peak_mb"]), suite["figures"]["findings"], run_of(suite))
            for name, suite in sorted(found.items())]
    return ["## Fuzzing", "", f"{len(found)} targets, {n(total)} executions together.", "",
            *table(("target", "executions", "a second", "peak, MB", "findings", "run"), rows)]


def simulation(suites):
    rows = []
    halves = [suites[name] for name in sorted(suites) if name.startswith("server_seeds_")]
    if halves:
        seeds, asked, switches = (sum(half["figures"][key] for half in halves)
                                  for key in ("seeds", "requests", "switches"))
        rows.append(("the whole server, one seed after the other", f"{n(seeds)} seeds, {n(asked)} requests, "
                     f"{n(switches)} switches between threads", "0 broken promises", run_of(halves[-1])))
    if "server_mutants" in suites:
        suite = suites["server_mutants"]
        rows.append(("bugs planted in it", n(suite["figures"]["planted"]), f"{n(suite['figures']['caught'])} noticed",
                     run_of(suite)))
    return ["## Simulation", "", *table(("what", "how much", "outcome", "run"), rows)] if rows else []


def outcomes(figures):
    return (f"{n(figures['right'])} right replies, {n(figures['error'])} errors in the asker's dialect, "
            f"{n(figures['cut'])} connections cut; no crash, hang, leak or wrong reply")


def faults(suites):
    rows = []
    if "allocation_failures" in suites:
        suite = suites["allocation_failures"]
        rows.append((f"allocations, {suite['figures']['scenarios']} requests", n(suite["figures"]["injected"]),
                     outcomes(suite["figures"]), run_of(suite)))
    if "system_call_faults" in suites:
        suite = suites["system_call_faults"]
        rows.append((f"system calls, {suite['figures']['scenarios']} requests and reloads",
                     n(suite["figures"]["injected"]), outcomes(suite["figures"]), run_of(suite)))
    if "power" in suites:
        suite = suites["power"]
        rows.append(("losses of power and kills, store of responses", n(suite["figures"]["ends"]),
                     f"{n(suite['figures']['writes_lost'])} writes lost or torn; no synced response lost", run_of(suite)))
    if "supervisor" in suites:
        suite, got = suites["supervisor"], suites["supervisor"]["figures"]
        rows.append(("worker killed, crashed, aborted or stopped under load", n(got["deaths"]),
                     f"0 connections refused, no stored response lost; {n(got['answered'])} replies in between, "
                     f"{n(got['cut'])} cut by a death; ready again after {got['median_s']} s (median) and "
                     f"{got['most_s']} s (most), a start takes {got['start_s']} s", run_of(suite)))
    lines = ["## Faults on purpose", "", *table(("what failed", "how often", "outcome", "run"), rows)] if rows else []
    kinds = suites.get("system_call_faults", {}).get("figures", {}).get("kinds", {})
    if kinds:
        calls = sorted({kind.split()[0] for kind in kinds})
        errors = sorted({kind.split()[1] for kind in kinds})
        lines += ["System calls by kind:", "", *table(
            ("call", *errors), [(f"`{call}`", *(n(kinds.get(f"{call} {error}", 0)) for error in errors))
                                for call in calls])]
    return lines


def attacks(suites):
    strict, loose = suites.get("attacks_strict"), suites.get("attacks")
    lines = ["## Attacks", ""] if strict or loose else []
    if loose:
        got = loose["figures"]
        held = got["beside"] - len({each.split(":")[0] for each in got["broken"]})
        lines += [f"{got['attacks']} attacks, {got['beside']} of them beside a victim, for {got['seconds']:g} s each with "
                  f"loose bounds: {held} held ({run_of(loose)}).", ""]
    if strict:
        got = strict["figures"]
        lines += [f"With strict bounds, {got['seconds']:g} s each, {len(got['rows'])} attacks: the victim's 99th percentile "
                  "in ms, quiet and beside the attack; at most twice the quiet value or 20 ms more "
                  f"({run_of(strict)}).", "", *table(
                      ("attack", "first token", "gap", "`/livez`", "resident, MiB", "held"),
                      [(f"`{row['name']}`", *(f"{row['quiet'][i]} → {row['loud'][i]}" for i in range(3)),
                        n(row["resident_mib"]), "yes" if row["is_held"] else "**no**") for row in got["rows"]])]
    return lines


def limits(suites):
    rows = []
    if "memory" in suites:
        suite, got = suites["memory"], suites["memory"]["figures"]
        answers = ", ".join(f"{n(count)} × {status}" for status, count in sorted(got["answers"].items()))
        rows.append((f"hostile requests within plan + 512 MiB ({got['limit']})", n(got["requests"]),
                     f"not killed; peak {n(got['peak_mib'])} of {n(got['allowed_mib'])} MiB; {answers}", run_of(suite)))
    if "connections" in suites:
        suite, got = suites["connections"], suites["connections"]["figures"]
        rows.append(("connections at once", n(got["connections"]), f"resident {n(got['resident_mib'])} MiB, planned "
                     f"{n(got['planned_mib'])}; {got['answered']} of {got['asked']} idle ones served", run_of(suite)))
    if "complexity" in suites:
        suite, got = suites["complexity"], suites["complexity"]["figures"]
        rows.append((f"bodies of n and 2n elements, {n(got['bytes'])} bytes", n(got["shapes"]),
                     f"{got['above']} above {got['most']} times the processor time", run_of(suite)))
    if "everything" in suites:
        suite, got = suites["everything"], suites["everything"]["figures"]
        done = ", ".join(f"{n(count)} {what}" for what, count in got["faults"].items())
        rows.append((f"two keys, every dialect and {done} in {got['minutes']:g} minutes", f"{n(got['done'])} done",
                     f"{got['wrong']} wrong, {got['crossed']} seen by the other key, resident memory "
                     f"{got['growth_percent']:+} %", run_of(suite)))
    if "soak" in suites:
        suite, got = suites["soak"], suites["soak"]["figures"]
        rows.append((f"soak of {got['minutes']:g} minutes", f"{n(got['requests'])} requests",
                     f"resident memory {got['growth_percent']:+} %, descriptors {got['descriptors'][0]:.0f} to "
                     f"{got['descriptors'][1]:.0f}, {got['server_errors']} replies of 5xx", run_of(suite)))
    if "proxies" in suites:
        suite, got = suites["proxies"], suites["proxies"]["figures"]
        names = " and ".join(f"{name} {version}" for name, version in sorted(got["versions"].items()))
        rows.append((f"malformed HTTP behind and beside {names}", f"{got['cases']} cases",
                     f"never two requests for one; stricter {got['stricter']} times, laxer {got['laxer']} "
                     "([list](evidence/proxies.md))", run_of(suite)))
    if "threads" in suites:
        suite, got = suites["threads"], suites["threads"]["figures"]
        rows.append(("thread sanitizer over the units of " + ", ".join(got["rooms"]), f"{got['programs']} programs",
                     f"{got['races']} races", run_of(suite)))
    return ["## Limits, memory, framing", "", *table(("what", "how much", "outcome", "run"), rows)] if rows else []


def findings(kept):
    rows = [(each["since"], each["what"], each["meanwhile"]) for each in sorted(kept["findings"], key=lambda f: f["since"])]
    lines = ["## Open findings", ""]
    if not rows:
        return [*lines, "None.", ""]
    return [*lines, f"{len(rows)}; the oldest is of {rows[0][0]}.", "", *table(("since", "what", "meanwhile"), rows)]


def page(kept):
    suites = kept["suites"]
    lines = ["# Reliability", "",
             "<!-- Written by tools/reliability.py from docs/evidence/reliability.json; do not edit. -->", "",
             "What was done to the server on purpose, and what became of it. `./dev nightly` runs all of it and renews",
             "this page; every figure names the day and the version of its run. How the suites work is in",
             "[evidence/faults.md](evidence/faults.md), [simulation.md](simulation.md) and",
             "[threat-model.md](threat-model.md).", "",
             *fuzzing(suites), *simulation(suites), *faults(suites), *attacks(suites), *limits(suites),
             *findings(kept)]
    return "\n".join(lines + kept["notes"]).rstrip() + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collect", metavar="DIR")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    given = parser.parse_args()
    kept = load(given.root)
    if given.collect:
        kept = collect(kept, given.collect)
        text = json.dumps(kept, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
        (given.root / KEPT).write_text(text, encoding="utf-8")
    if given.check:
        if (given.root / PAGE).read_text(encoding="utf-8") != page(kept):
            sys.exit(f"{PAGE} is not what {KEPT} says: run ./dev reliability")
        print(f"{PAGE}: {len(kept['suites'])} suites, {len(kept['findings'])} open findings")
        return
    (given.root / PAGE).write_text(page(kept), encoding="utf-8")


if __name__ == "__main__":
    main()

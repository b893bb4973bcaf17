# SPDX-License-Identifier: Apache-2.0
"""What one client can do to another: every attack of attacks/, with the victim's first token and gaps
quiet and beside it, and the memory of the process that serves. An attack of which the server's counters do not show
that it did its work fails, too. In CI the counts are strict and the times loose; `--seconds 30 --strict` holds the times
to twice their quiet values or 20 ms more (docs/limits.md), and `--write` puts the figures into docs/evidence/attacks.md
(`--same`: only the attacks that are listed there)."""
import argparse
import pathlib
import re
import sys
import time

from attack_rig import arena
from attacks import bodies, holes, service, sockets
from serving import expect, record, same

ATTACKS = [*holes.ATTACKS, *bodies.ATTACKS, *sockets.ATTACKS, *service.ATTACKS]
EVIDENCE = pathlib.Path(__file__).parents[2] / "docs/evidence/attacks.md"


def as_markdown(rows, seconds):
    held = sum(not row["wrong"] for row in rows)
    lines = ["# Attacks and their victim", "",
             f"Written by `attacks_test.py --strict --write`: {len(rows)} attacks of {seconds:g} s each, {held} of them held.",
             "The 99th percentiles of another key's first token and gaps between tokens, without and beside the attack, of",
             "`/livez` beside it, the largest resident memory of the process that serves, of which so much was planned, and",
             "what the server's counters say that the attack made it do.", "",
             "| attack | first token, ms | gap, ms | `/livez`, ms | resident, MiB | planned, MiB | what it did | held |",
             "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        quiet, loud = row["quiet"], row["loud"]
        lines.append(f"| `{row['name']}` | {quiet[0]:.1f} → {loud[0]:.1f} | {quiet[1]:.1f} → {loud[1]:.1f} | "
                     f"{loud[2]:.1f} | {row['resident']:.0f} | {row['planned']:.0f} | {'; '.join(row['shown'])} | "
                     f"{'yes' if not row['wrong'] else 'no'} |")
    return "\n".join(lines) + "\n"


def names_before():
    """Of the attacks in the evidence."""
    text = EVIDENCE.read_text(encoding="utf-8") if EVIDENCE.exists() else ""
    return re.findall(r"^\| `(\w+)` \|", text, re.M)


def say_held(rows, before):
    def held(some):
        return f"{sum(not row['wrong'] for row in some)} of {len(some)}"

    print(f"held: {held(rows)}; of those in the evidence: {held([row for row in rows if row['name'] in before])}")


def figures_of(row):
    """What docs/reliability.md shows of an attack: 99th percentiles in ms, without and beside it."""
    return {"name": row["name"], "quiet": [round(v, 1) for v in row["quiet"]],
            "loud": [round(v, 1) for v in row["loud"]], "resident_mib": round(row["resident"]),
            "is_held": not row["wrong"]}


def run(attack, a):
    began = time.monotonic()
    a.begin(attack.__name__)
    attack(a)
    if not (a.is_strict and a.was_watched):  # else the row has it
        a.check_shown()
    a.check_memory()
    same(a.server.worker_pid(), a.pid, f"{a.name}: the worker, which lives")
    print(f"{a.name}: done, {time.monotonic() - began:.1f} s", flush=True)
    # The next one is not refused for what this one still holds.
    until = time.monotonic() + 60
    while a.metric("hearth_account_bytes") > 0 and time.monotonic() < until:
        time.sleep(0.05)


def run_strictly(attack, a):
    """One that ends early is not held, and the others are tried all the same."""
    try:
        run(attack, a)
    except SystemExit as failure:
        print(f"{a.name}: {failure}", flush=True)
        mine = [row for row in a.rows if row["name"] == a.name]
        if mine:
            mine[0]["wrong"].append(f"{a.name}: {failure}")
        elif a.was_watched:
            a.rows.append({"name": a.name, "quiet": a.quiet or [0] * 3, "loud": [0] * 3, "wrong": [f"{a.name}: {failure}"],
                           "resident": 0, "planned": a.planned_mib, "shown": ["ended early"]})
        else:
            a.failures.append(f"{a.name}: {failure}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("only", nargs="*", help="names of attacks")
    parser.add_argument("--seconds", type=float, default=0.4)
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--same", action="store_true", help="only attacks that are in the evidence")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    before = names_before()
    only = [*args.only, *(before if args.same else [])]
    chosen = [each for each in ATTACKS if not only or each.__name__ in only]
    unknown = set(only) - {each.__name__ for each in ATTACKS}
    expect(not unknown, f"attacks of these names: {sorted(unknown)}")
    if args.list:
        print("\n".join(each.__name__ for each in chosen))
        return 0
    # A start takes longer than an attack. Measured to the millisecond, each has a server of its own;
    # so has what needs other flags.
    plain = [each for each in chosen if not hasattr(each, "flags")]
    groups = [[each] for each in chosen if args.strict or each not in plain]
    if not args.strict and plain:
        groups.insert(0, plain)
    rows, failures = [], []
    for group in groups:
        with arena(args.program, flags=getattr(group[0], "flags", None), seconds=args.seconds,
                   is_strict=args.strict) as a:
            for attack in group:
                (run_strictly if args.strict else run)(attack, a)
            rows += a.rows
            failures += a.failures
        if args.write:  # each time: an hour's run that is ended early is not lost
            EVIDENCE.parent.mkdir(exist_ok=True)
            EVIDENCE.write_text(as_markdown(rows, args.seconds), encoding="utf-8")
    wrong = [*failures, *(each for row in rows for each in row["wrong"])]
    print(f"{len(chosen)} attacks, {len(rows)} of them beside a victim, {len(wrong)} bounds broken")
    for each in wrong:
        print("FAILED:", each)
    say_held(rows, before)
    # Times are worth keeping when they were measured strictly; counts always are.
    record("attacks_strict" if args.strict else "attacks", len(rows), attacks=len(chosen), beside=len(rows),
           seconds=args.seconds, broken=wrong, rows=[figures_of(row) for row in rows] if args.strict else [])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""What one client can do to another: every attack of attacks/, with the victim's first token and gaps
quiet and beside it, and the server's memory. In CI the counts are strict and the times loose;
`--seconds 30 --strict` holds the times to twice their quiet values or 20 ms more (docs/limits.md), and
`--write` puts the figures into docs/evidence/attacks.md."""
import argparse
import pathlib
import sys
import time

from attack_rig import arena
from attacks import bodies, holes, service, sockets
from serving import record

ATTACKS = [*holes.ATTACKS, *bodies.ATTACKS, *sockets.ATTACKS, *service.ATTACKS]
EVIDENCE = pathlib.Path(__file__).parents[2] / "docs/evidence/attacks.md"


def as_markdown(rows, seconds):
    lines = ["# Attacks and their victim", "",
             f"Written by `attacks_test.py --strict --write`: {len(rows)} attacks of {seconds:g} s each. The 99th",
             "percentiles of another key's first token and gaps between tokens, without and beside the attack, of",
             "`/livez` beside it, and the server's largest resident memory, of which so much was planned.", "",
             "| attack | first token, ms | gap, ms | `/livez`, ms | resident, MiB | planned, MiB | held |",
             "|---|---|---|---|---|---|---|"]
    for row in rows:
        quiet, loud = row["quiet"], row["loud"]
        lines.append(f"| `{row['name']}` | {quiet[0]:.1f} → {loud[0]:.1f} | {quiet[1]:.1f} → {loud[1]:.1f} | "
                     f"{loud[2]:.1f} | {row['resident']:.0f} | {row['planned']:.0f} | "
                     f"{'yes' if not row['wrong'] else 'no'} |")
    return "\n".join(lines) + "\n"


def figures_of(row):
    """What docs/reliability.md shows of an attack: 99th percentiles in ms, without and beside it."""
    return {"name": row["name"], "quiet": [round(v, 1) for v in row["quiet"]],
            "loud": [round(v, 1) for v in row["loud"]], "resident_mib": round(row["resident"]),
            "is_held": not row["wrong"]}


def run(attack, a):
    began = time.monotonic()
    a.name = attack.__name__
    attack(a)
    a.check_memory()
    print(f"{a.name}: done, {time.monotonic() - began:.1f} s", flush=True)
    # The next one is not refused for what this one still holds.
    until = time.monotonic() + 60
    while a.metric("hearth_account_bytes") > 0 and time.monotonic() < until:
        time.sleep(0.05)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("only", nargs="*", help="names of attacks")
    parser.add_argument("--seconds", type=float, default=0.4)
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    chosen = [each for each in ATTACKS if not args.only or each.__name__ in args.only]
    if args.list:
        print("\n".join(each.__name__ for each in chosen))
        return 0
    # A start takes longer than an attack. Measured to the millisecond, each has a server of its own;
    # so has what needs other flags.
    plain = [each for each in chosen if not hasattr(each, "flags")]
    groups = [[each] for each in chosen if args.strict or each not in plain]
    if not args.strict and plain:
        groups.insert(0, plain)
    rows = []
    for group in groups:
        with arena(args.program, flags=getattr(group[0], "flags", None), seconds=args.seconds,
                   is_strict=args.strict) as a:
            for attack in group:
                run(attack, a)
            rows += a.rows
    if args.write:
        EVIDENCE.parent.mkdir(exist_ok=True)
        EVIDENCE.write_text(as_markdown(rows, args.seconds), encoding="utf-8")
    wrong = [each for row in rows for each in row["wrong"]]
    print(f"{len(chosen)} attacks, {len(rows)} of them beside a victim, {len(wrong)} bounds broken")
    for each in wrong:
        print("FAILED:", each)
    # Times are worth keeping when they were measured strictly; counts always are.
    record("attacks_strict" if args.strict else "attacks", len(rows), attacks=len(chosen), beside=len(rows),
           seconds=args.seconds, broken=wrong, rows=[figures_of(row) for row in rows] if args.strict else [])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

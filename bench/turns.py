# SPDX-License-Identifier: Apache-2.0
"""./dev bench turns: `hearth bench` of two builds in turns, row by row.

A change that must not cost speed is measured against the build before it. The two run one after the
other, round after round, and the order changes every round, so that a slow minute of the machine hits
both; the best round of each counts.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]


def run(hearth, arguments):
    """{row: tokens per second} of one round."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [str(hearth), "bench", "--repeat", "1", "--json", out.name, *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
        record = json.loads(pathlib.Path(out.name).read_text(encoding="utf-8"))
    return {row["name"]: row["tokens_per_second"] for row in record["measurements"]}


def compare(before, after, arguments, rounds):
    best = {"before": {}, "after": {}}
    for number in range(rounds):
        order = [("before", before), ("after", after)]
        for which, hearth in order if number % 2 == 0 else reversed(order):
            for row, rate in run(hearth, arguments).items():
                best[which][row] = max(rate, best[which].get(row, 0))
        print(f"round {number + 1} of {rounds} done", file=sys.stderr, flush=True)
    return best


def main():
    parser = argparse.ArgumentParser(prog="./dev bench turns", description=__doc__)
    parser.add_argument("--before", type=pathlib.Path, required=True, help="the other build's hearth")
    parser.add_argument("--hearth", type=pathlib.Path, default=ROOT / "build/release/bin/hearth")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--least", type=float, default=0.98, help="fails below this ratio")
    parser.add_argument("rest", nargs="+", help="after --: arguments of hearth bench")
    arguments = parser.parse_args()
    best = compare(arguments.before, arguments.hearth, arguments.rest, arguments.rounds)
    lost = 0
    print("| row | before, tok/s | after, tok/s | ratio |\n|---|---|---|---|")
    for row, rate in best["before"].items():
        ratio = best["after"][row] / rate
        lost += ratio < arguments.least
        print(f"| {row} | {rate:.2f} | {best['after'][row]:.2f} | {ratio:.3f} |")
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""What `hearth plan fleet` predicts of a fleet beside what that fleet does: replicas of a real model on this
machine, each with a share of the processors that the others cannot take, behind HAProxy with session hashing.
The plan gets `hearth bench` of one replica under its share while the others compute too, since they share the
memory's bandwidth, and the same chats. Each round measures anew: the machine's speed changes by the minute.
usage: fleet_plan.py HEARTH [--rounds N] [--json FILE]"""
import argparse
import json
import pathlib
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests/fleet"))
# pylint: disable=wrong-import-position
from chat_load import ChatSpec
from routed import RoutedFleet
from serving import work_model

FIGURES = {"tokens_per_second": "tokens/s", "p50": "first token p50, s", "p95": "first token p95, s",
           "hit_share": "share cached"}


def predicted(planned):
    first = planned["first_token_seconds"]
    return {"tokens_per_second": planned["tokens_per_second"], "p50": first["p50"], "p95": first["p95"],
            "hit_share": planned["hit_share"]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--share", type=float, default=0.8, help="processors of each replica")
    parser.add_argument("--requests", type=int, default=150)
    parser.add_argument("--rate", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kv-memory", default="256MiB")
    parser.add_argument("--json")
    options = parser.parse_args()
    options.model, options.context, options.max_sequences = work_model(f"{options.model}.gguf"), 4096, 32
    options.first_token, options.last_token = 1000, 9000
    spec = ChatSpec(rate=options.rate, requests=options.requests, turns=4, message=60, reply=40, system=200,
                    apps=4, think=4)
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        fleet = RoutedFleet(options, folder)
        for number in range(options.rounds):
            bench = fleet.bench()
            found = fleet.measure("session", spec)
            rounds.append((predicted(fleet.plan(bench, spec)["session hash"]), found))
            print(f"round {number + 1} of {options.rounds} done: {rounds[-1]}", file=sys.stderr, flush=True)
    print("| | predicted | measured | predicted / measured, median | all rounds |\n|---|---|---|---|---|")
    out = {}
    for key, name in FIGURES.items():
        ratios = [plan[key] / found[key] for plan, found in rounds]
        plan, found = (statistics.median(each[i][key] for each in rounds) for i in range(2))
        out[key] = {"predicted": plan, "measured": found, "ratios": ratios}
        print(f"| {name} | {plan:.3g} | {found:.3g} | {statistics.median(ratios):.2f} | "
              f"{', '.join(f'{ratio:.2f}' for ratio in ratios)} |")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(out, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""./dev bench scaling: a step with one thread and with two, phase by phase, and what of it would not shrink on more.

With two threads, code that only one of them runs leaves the other waiting: half of the workers' time while it lasts. So
twice the waiting share is the serial share, waits at loop ends included. On 16 cores the rest takes an eighth of its
time with two; memory is taken to keep up, which makes the serial part look larger than it would be.
"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).parents[1]
CORES = 16


def measured(args, threads, folder):
    path = pathlib.Path(folder) / "out.json"
    subprocess.run([args.hearth, "bench", "--model", args.model, "--phases", "--batch", "1,8", "--prefill", "512",
                    "--repeat", "1", "--threads", str(threads), "--json", path], check=True,
                   stdout=subprocess.DEVNULL)
    return json.loads(path.read_text())


def profiles(found):
    """case -> phase -> (seconds a step, seconds that a worker waited)"""
    cases = {}
    for case in found["measurements"]:
        profile = case["profile"]
        parts = [*profile["phases"], {**profile, "name": "step"}]
        cases[case["name"]] = {part["name"]: (part["seconds"] / profile["steps"],
                                              part["waiting_seconds"] / profile["steps"]) for part in parts}
    return cases


def best(rounds):
    """Of each case the round with the shortest step: its phases belong together."""
    return {case: min((each[case] for each in rounds), key=lambda found: found["step"][0]) for case in rounds[0]}


def serial_share(seconds, waiting):
    """(with two threads, with CORES)"""
    serial = min(seconds, 2 * waiting)
    return serial / seconds, serial / (serial + (seconds - serial) / (CORES / 2))


def table(case, one, two):
    lines = [f"## {case}", "", f"| phase | 1 thread, ms | 2 threads, ms | times as fast | serial with 2 | "
             f"serial with {CORES} |", "|---|---|---|---|---|---|"]
    for phase, (seconds, waiting) in two.items():
        here, there = serial_share(seconds, waiting)
        lines.append(f"| {phase} | {1000 * one[phase][0]:.3g} | {1000 * seconds:.3g} | {one[phase][0] / seconds:.2f} "
                     f"| {100 * here:.1f} % | {100 * there:.1f} % |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    work = pathlib.Path(os.environ.get("HEARTH_WORK", pathlib.Path.home() / ".cache/hearth"))
    parser.add_argument("--model", default=work / "gpt-oss-20b.gguf")
    parser.add_argument("--hearth", default=ROOT / "build/release/bin/hearth")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    rounds = {1: [], 2: []}
    others = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(args.rounds):
            for threads, found in rounds.items():
                result = measured(args, threads, folder)
                others.append(result["others"])
                found.append((profiles(result), result["yardsticks"]))
    one, two = (best([profile for profile, _ in rounds[threads]]) for threads in (1, 2))
    for case, phases in two.items():
        print(table(case, one[case], phases))
    print(f"rounds: {args.rounds}, in turns; of the processors others used at most {100 * max(others):.0f} %")
    for number, yardstick in enumerate(rounds[2][0][1]):
        rates = [max(found[number]["best"] for _, found in rounds[threads]) for threads in (1, 2)]
        print(f"{yardstick['name']}: {rates[1] / rates[0]:.2f} times as fast with two threads")


if __name__ == "__main__":
    main()

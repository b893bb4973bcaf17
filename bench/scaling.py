# SPDX-License-Identifier: Apache-2.0
"""./dev bench scaling: a step with one thread and with two, phase by phase, and what of it would not shrink on more.

*Alone* is the time in which the calling thread works and the others have nothing to do: it stays the same on more cores.
At the end of a loop threads wait for the last one, here also for a processor that somebody else uses: that stands apart.
On 16 cores the work that is shared takes an eighth of its time with two, loop ends what `hearth plan` computes for them
from one look of the caller for each further thread; memory is taken to keep up, which makes the share of the rest larger than it would be.
"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).parents[1]
CORES = 16
MACHINE = "2x8 cores, 2x8ch DDR5-4800, avx512"


def measured(args, threads, folder):
    path = pathlib.Path(folder) / "out.json"
    subprocess.run([args.hearth, "bench", "--model", args.model, "--phases", "--batch", "1,8", "--prefill", "512",
                    "--repeat", "1", "--threads", str(threads), "--json", path], check=True,
                   stdout=subprocess.DEVNULL)
    return json.loads(path.read_text())


def split(part, steps):
    seconds, waiting, alone = (part[name] / steps for name in ("seconds", "waiting_seconds", "alone_seconds"))
    # With two threads one of them waits while the other works alone.
    return seconds, alone, max(0, waiting - alone / 2)


def profiles(found):
    """case -> phase -> (seconds a step, seconds alone, seconds of both that one waited for the other's end)"""
    cases = {}
    for case in found["measurements"]:
        profile = case["profile"]
        parts = [*profile["phases"], {**profile, "name": "step"}]
        cases[case["name"]] = {part["name"]: split(part, profile["steps"]) for part in parts}
    return cases


def best(rounds):
    """Of each case the round with the shortest step: its phases belong together."""
    return {case: min((each[case] for each in rounds), key=lambda found: found["step"][0]) for case in rounds[0]}


def share_on_many(seconds, alone, ends, loops):
    fixed = alone + loops
    return fixed / (fixed + (seconds - alone - ends) / (CORES / 2))


def table(case, one, two, loops):
    lines = [f"## {case}", "", f"| phase | 1 thread, ms | 2 threads, ms | times as fast | alone, ms | waits at loop ends | "
             f"alone and loop ends with {CORES} |", "|---|---|---|---|---|---|---|"]
    for phase, (seconds, alone, ends) in two.items():
        there = share_on_many(seconds, alone, ends, loops if phase == "step" else 0)
        note = "" if phase == "step" else " (alone)"
        lines.append(f"| {phase} | {1000 * one[phase][0]:.3g} | {1000 * seconds:.3g} | {one[phase][0] / seconds:.2f} "
                     f"| {1000 * alone:.3g} | {100 * ends / seconds:.1f} % | {100 * there:.1f} %{note} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    work = pathlib.Path(os.environ.get("HEARTH_WORK", pathlib.Path.home() / ".cache/hearth"))
    parser.add_argument("--model", default=work / "gpt-oss-20b.gguf")
    parser.add_argument("--hearth", default=ROOT / "build/release/bin/hearth")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    machine = subprocess.run([args.hearth, "plan", args.model, "--machine", MACHINE, "--json"], check=True,
                             stdout=subprocess.PIPE, text=True)
    loops = json.loads(machine.stdout)["headline"]["loop_end_seconds"]
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
        print(table(case, one[case], phases, loops))
    print(f"rounds: {args.rounds}, in turns; of the processors others used at most {100 * max(others):.0f} %")
    for number, yardstick in enumerate(rounds[2][0][1]):
        if "absent" in yardstick:
            continue
        rates = [max(found[number]["best"] for _, found in rounds[threads]) for threads in (1, 2)]
        print(f"{yardstick['name']}: {rates[1] / rates[0]:.2f} times as fast with two threads")


if __name__ == "__main__":
    main()

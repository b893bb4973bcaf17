# SPDX-License-Identifier: Apache-2.0
"""./dev bench neighbours: decode beside busy neighbours and under CPU quotas.

Neighbours: one busy process pinned to every processor, at the same priority. Each program's fair
share is half of what it does alone; the table says how much of that it keeps. Quotas: a cgroup (as
root) that pays for so many processors' time, beside what the same cgroup gives without a limit.
Programs take turns, round after round; the median of each column counts.
"""
import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench/peers"))

sys.path.insert(0, str(ROOT / "tests/support"))

import debian  # noqa: E402
from checking import work_dir  # noqa: E402
from cpu_group import CpuGroup  # noqa: E402

SPIN = "import os\nos.sched_setaffinity(0, {%d})\nwhile True: pass\n"


@contextlib.contextmanager
def spinners():
    """A busy process on every processor that we may use."""
    busy = [subprocess.Popen([sys.executable, "-c", SPIN % cpu])
            for cpu in sorted(os.sched_getaffinity(0))]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def hearth_rate(binary, model, arguments, join=None):
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [str(binary), "bench", "--model", str(model), "--decode", str(arguments.steps),
                   "--batch", "1", "--prefill", "0", "--repeat", "1", "--json", out.name]
        done = subprocess.run(command, capture_output=True, text=True, preexec_fn=join)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
        record = json.loads(pathlib.Path(out.name).read_text(encoding="utf-8"))
    return record["measurements"][0]["tokens_per_second"]


def llama_rate(sid, model, arguments, join=None):
    command = sid.command("llama-bench", "-m", sid.model(model), "-p", "0", "-n",
                          str(arguments.steps), "-r", "1", "-t", str(os.cpu_count()), "-o", "json")
    done = subprocess.run(command, capture_output=True, text=True, check=True, preexec_fn=join)
    return json.loads(done.stdout)[0]["avg_ts"]


def programs_of(arguments):
    programs = {"Hearth": lambda **how: hearth_rate(arguments.hearth, arguments.model, arguments, **how)}
    if arguments.before:
        programs["before"] = lambda **how: hearth_rate(arguments.before, arguments.model, arguments, **how)
    if arguments.llama:
        sid = debian.Sid(arguments.llama)
        sid.install()
        programs["llama.cpp"] = lambda **how: llama_rate(sid, arguments.model, arguments, **how)
    return programs


def neighbours(programs, rounds):
    """{program: (alone, beside, share of the fair share)}."""
    found = {name: ([], []) for name in programs}
    for number in range(rounds):
        for name in sorted(programs, reverse=number % 2 == 1):
            found[name][0].append(programs[name]())
            with spinners():
                found[name][1].append(programs[name]())
        print(f"neighbours: round {number + 1} of {rounds} done", file=sys.stderr, flush=True)
    return {name: (statistics.median(alone), statistics.median(beside),
                   2 * statistics.median(beside) / statistics.median(alone))
            for name, (alone, beside) in found.items()}


def quotas(programs, rounds, limits):
    """{program: {limit: tokens/s}}; None is no limit."""
    found = {name: {limit: [] for limit in [None, *limits]} for name in programs}
    with CpuGroup() as group:
        group.prefer()
        for number in range(rounds):
            for limit in [None, *limits]:
                group.limit(limit)
                for name, rate in programs.items():
                    found[name][limit].append(rate(join=group.join))
            print(f"quotas: round {number + 1} of {rounds} done", file=sys.stderr, flush=True)
    return {name: {limit: statistics.median(rates) for limit, rates in row.items()}
            for name, row in found.items()}


def proportional(row, limit, cpus):
    """What whole processors give, between them in proportion: more of them share one memory."""
    known = {0: 0.0, **{int(q): rate for q, rate in row.items() if q and q == int(q)}, cpus: row[None]}
    low = max(q for q in known if q <= limit)
    high = min((q for q in known if q >= limit), default=cpus)
    return known[low] + (known[high] - known[low]) * (limit - low) / max(1, high - low)


def show_quotas(found, limits):
    cpus = len(os.sched_getaffinity(0))
    print("\n| program | quota, CPUs | tok/s | of proportional |\n|---|---|---|---|")
    least = 1e9
    for name, row in found.items():
        print(f"| {name} | none ({cpus}) | {row[None]:.1f} | |")
        for limit in limits:
            share = row[limit] / proportional(row, limit, cpus)
            print(f"| {name} | {limit:g} | {row[limit]:.1f} | {100 * share:.0f} % |")
            least = min(least, share) if name == "Hearth" else least
    return least


def main():
    parser = argparse.ArgumentParser(prog="./dev bench neighbours", description=__doc__)
    parser.add_argument("--hearth", type=pathlib.Path, default=ROOT / "build/release/bin/hearth")
    parser.add_argument("--before", type=pathlib.Path, help="another build's hearth, in turns")
    parser.add_argument("--llama", type=pathlib.Path, help="folder for llama.cpp of Debian, in turns")
    parser.add_argument("--model", type=pathlib.Path, default=work_dir() / "smollm2.gguf")
    parser.add_argument("--steps", type=int, default=64, help="tokens per measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--least", type=float, default=0.0, help="fails below this share")
    parser.add_argument("--quotas", default="", help="for example 0.5,1,1.5; needs root")
    parser.add_argument("--only-quotas", action="store_true")
    arguments = parser.parse_args()
    programs = programs_of(arguments)
    least = 1e9
    if not arguments.only_quotas:
        shares = neighbours(programs, arguments.rounds)
        print("| program | alone, tok/s | beside, tok/s | of its fair share |\n|---|---|---|---|")
        for name, (alone, beside, share) in shares.items():
            print(f"| {name} | {alone:.1f} | {beside:.1f} | {100 * share:.0f} % |")
        least = shares["Hearth"][2]
    if arguments.quotas:
        limits = [float(text) for text in arguments.quotas.split(",")]
        least = min(least, show_quotas(quotas(programs, arguments.rounds, limits), limits))
    sys.exit(1 if least < arguments.least else 0)


if __name__ == "__main__":
    main()

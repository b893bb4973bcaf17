# SPDX-License-Identifier: Apache-2.0
"""./dev bench traces: what traces cost. The same load on a server without traces and on one that sends a trace of
every request to a collector on this machine, in turns; the best round of each counts.

Requests are short and many, so that a trace is a large part of them: a bound from above."""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "server"))
from span_receiver import SpanReceiver  # noqa: E402


def measure(arguments, collector, seed):
    """Tokens per second of one load on a server of its own, without traces if there is no collector."""
    flags = ["--trace-endpoint", collector.url()] if collector else []
    process = subprocess.Popen([arguments.hearth, "serve", "--model", arguments.model, "--port", "0", *flags],
                               stderr=subprocess.PIPE, text=True)
    try:
        port = next(found.group(1) for line in process.stderr
                    if (found := re.search(r" at http://[^ ]*:(\d+)/v1", line)))
        threading.Thread(target=process.stderr.read, daemon=True).start()
        with tempfile.NamedTemporaryFile(suffix=".json") as out:
            command = [arguments.hearth, "bench", "load", "--url", f"http://127.0.0.1:{port}", "--clients",
                       arguments.clients, "--chats", arguments.chats, "--turns", 1, "--preamble-tokens", 2,
                       "--user-tokens", 16, "--answer-tokens", arguments.reply, "--seed", seed, "--json", out.name]
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise SystemExit(f"bench load failed: {done.stdout}{done.stderr}")
            figures = json.loads(pathlib.Path(out.name).read_text(encoding="utf-8"))
    finally:
        process.terminate()
        process.wait(60)
    replies = [reply for reply in figures["replies"] if not reply["problem"]]
    if figures["refused"] or len(replies) != len(figures["replies"]):
        raise SystemExit("bench load: refusals or replies with problems")
    seconds = max(reply["ended_s"] for reply in replies) - min(reply["sent_s"] for reply in replies)
    return sum(len(reply["heard_s"]) for reply in replies) / seconds, len(replies) / seconds


def main():
    parser = argparse.ArgumentParser(prog="./dev bench traces", description=__doc__)
    parser.add_argument("--model", default=str(pathlib.Path.home() / ".cache/hearth/smollm2.gguf"))
    parser.add_argument("--hearth", default=str(ROOT / "build/release/bin/hearth"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--chats", type=int, default=120, help="requests of a round")
    parser.add_argument("--reply", type=int, default=32, help="mean tokens of a reply")
    arguments = parser.parse_args()
    collector, rates = SpanReceiver(reads=False), {False: [], True: []}
    for number in range(arguments.rounds):
        for traced in (False, True) if number % 2 == 0 else (True, False):
            rates[traced].append(measure(arguments, collector if traced else None, number + 1))
        print(f"round {number + 1} of {arguments.rounds} done", file=sys.stderr, flush=True)
    print("| traces | tokens/s, best | requests/s | all rounds |\n|---|---|---|---|")
    for traced, name in ((False, "none"), (True, "of every request")):
        best = max(rates[traced])
        print(f"| {name} | {best[0]:.1f} | {best[1]:.1f} | {', '.join(f'{rate:.1f}' for rate, _ in rates[traced])} |")
    cost = 1 - max(rates[True])[0] / max(rates[False])[0]
    print(f"\ncost: {100 * cost:.2f} % of throughput (best against best; lower is better); "
          f"{collector.batches} batches, {collector.bytes / 1e6:.2f} MB to the collector")


if __name__ == "__main__":
    main()

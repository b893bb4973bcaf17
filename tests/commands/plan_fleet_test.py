#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hearth plan fleet with the real program: text, JSON and page of one plan, loads of every kind, and what is told
of mistakes. How right a replica's model is: unit tests compare it with the engine."""
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from checking import expect, same, work_model

PROGRAM = sys.argv[1]
RATES = ("--prefill-rate", "2000", "--decode-rate", "400", "--kv-tokens", "60000")
CHATS = ("--rate", "6", "--requests", "600", "--system", "400", "--reply", "60", "--message", "80", "--think", "5")


def run(*flags):
    return subprocess.run([PROGRAM, "plan", "fleet", *flags], capture_output=True, text=True, timeout=300, check=False)


def plan(*flags):
    done = run("--json", *flags)
    same(done.returncode, 0, f"plan fleet {flags}: {done.stderr}")
    return json.loads(done.stdout)


def check_policies():
    found = plan(*RATES, *CHATS, "--replicas", "4")
    same((found["schema"], found["version"]), ("hearth.plan.fleet", 1), "the schema")
    hits = {each["policy"]: each["hit_share"] for each in found["policies"]}
    same(list(hits), ["round robin", "least loaded", "session hash", "precise"], "policies")
    expect(hits["session hash"] > hits["round robin"] + 0.05, f"session hashing pays: {hits}")
    for each in found["policies"]:
        same((each["requests"], each["is_modelled"]), (600, False), "the engine's own scheduler")
        first = each["first_token_seconds"]
        expect(0 < first["p50"] <= first["p95"] <= first["p99"], f"percentiles: {first}")
    expect(found["peak_bytes"] > 1 << 20, "memory is stated")
    same(plan(*RATES, *CHATS, "--replicas", "4", "--policy", "session")["policies"][0]["hit_share"],
         hits["session hash"], "the same again")


def check_search(folder):
    page = folder / "fleet.html"
    found = plan(*RATES, *CHATS, "--first-token", "0.5", "--policy", "session", "--fail", "1", "--html", str(page))
    enough = found["replicas"]
    expect(enough > 1, f"replicas: {enough}")
    for each in found["tried"]:
        meets = each["first_token_seconds"]["p95"] <= 0.5 and each["gap_seconds"]["p95"] <= 0.2
        same(meets, each["replicas"] >= enough, f"{each['replicas']} replicas")
    incident = found["incidents"][0]
    same(min(each["least_up"] for each in incident["moments"]), enough - 1, "one has failed")
    text = page.read_text("utf-8")
    same(text.count("<svg"), 6, "pictures: replicas, hits, waits, and three of the incident")
    same(text.count("http"), text.count("http://www.w3.org/2000/svg"), "nothing is loaded")


def check_recorded(folder):
    trace = folder / "trace.jsonl"
    lines = [{"timestamp": 500 * i, "input_length": 512 * 3, "output_length": 20,
              "hash_ids": [0, 1 + i % 5, 100 + i % 5]} for i in range(50)]
    trace.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    found = plan(*RATES, "--trace", str(trace), "--replicas", "2", "--policy", "session")["policies"][0]
    same(found["requests"], 50, "recorded requests")
    expect(found["hit_share"] > 0.9, f"five prompts again and again: {found['hit_share']}")
    log = folder / "requests.log"
    log.write_text("".join(json.dumps(
        {"time": f"2026-11-17T12:00:{i:02d}.000Z", "event": "request", "key": "a", "seconds": 0.5, "choices": [
            {"prompt_tokens": 300 + 100 * i, "cached_tokens": 290 + 100 * (i - 1) if i else 0, "generated_tokens": 50}]})
        + "\n" for i in range(30)), encoding="utf-8")
    found = plan(*RATES, "--log", str(log), "--replicas", "2", "--policy", "session")["policies"][0]
    same(found["requests"], 30, "logged requests")
    expect(found["hit_share"] > 0.8, f"one chat that goes on: {found['hit_share']}")
    trace.write_text("{}\n", encoding="utf-8")
    done = run(*RATES, "--trace", str(trace))
    expect(done.returncode == 1 and f"{trace}: line 1:" in done.stderr, done.stderr)


def check_large():
    found = plan(*RATES, "--rate", "300", "--requests", "5000", "--system", "400", "--replicas", "200", "--deploy", "10",
                 "--restart", "2", "--policy", "precise", "--price", "2")
    same(found["policies"][0]["is_modelled"], True, "200 replicas")
    same(min(each["least_up"] for each in found["incidents"][0]["moments"]), 180, "a tenth at a time")
    done = run(*RATES, *CHATS, "--replicas", "40", "--policy", "least", "--price", "2")
    expect("cost: 80.00 an hour" in done.stdout and "least loaded" in done.stdout, done.stdout + done.stderr)
    tiers = plan(*RATES, *CHATS, "--replicas", "4", "--policy", "least", "--tier-tokens", "10000000", "--tier-shared",
                 "--tier-rate", "1000")
    expect(tiers["policies"][0]["fetched_share"] > 0.05, "what a shared cache brought")


def check_model():
    found = plan(work_model("tiny-oss-o200k.gguf"), "--replicas", "2", "--requests", "50", "--system", "100", "--reply",
                 "20", "--policy", "session", "--context", "4096")
    expect("a part of" in found["assumptions"][0], f"what ran: {found['assumptions']}")


def check_mistakes():
    for flags, word in (((), "--prefill-rate"), (("--prefill-rate", "5"), "--kv-tokens"),
                        ((*RATES, "--trace", "a", "--log", "b"), "one of them"),
                        ((*RATES, "--tier-tokens", "5000"), "--tier-rate"),
                        ((*RATES, "--replicas", "2", "--fast-replicas", "3"), "--fast-replicas"),
                        ((*RATES, "--trace", "/nowhere"), "/nowhere"),
                        ((*RATES, "--system", "70000", "--replicas", "1"), "context")):
        done = run(*flags)
        expect(done.returncode == 1 and word in done.stderr, f"{flags}: {done.stderr}")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check_policies()
        check_search(folder)
        check_recorded(folder)
        check_large()
        check_model()
        check_mistakes()
    print("hearth plan fleet simulates, finds and tells")


if __name__ == "__main__":
    main()

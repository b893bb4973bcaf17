#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hearth plan with the real program: its JSON is whole and agrees with itself, a better machine is faster, more users
wait longer, what does not fit is said, and mistakes are told. How right it is: `./dev bench plan`."""
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from checking import expect, same, work_model

PROGRAM = sys.argv[1]
MODEL = work_model("tiny-oss-o200k.gguf")


def run(*flags):
    return subprocess.run([PROGRAM, "plan", *flags], capture_output=True, text=True, timeout=300, check=False)


def plan(*flags):
    done = run(MODEL, "--json", *flags)
    same(done.returncode, 0, f"plan {flags}: {done.stderr}")
    return json.loads(done.stdout)


def rates(found):
    return {case["name"]: case["tokens_per_second"] for case in found["cases"]}


def plan_with_page():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "plan.html"
        found = plan("--users", "20", "--prompt", "200", "--reply", "20", "--think", "1", "--html", str(path))
        return found, path.read_text()


def check_here(found):
    same((found["schema"], found["version"]), ("hearth.plan", 1), "the schema")
    expect(found["fit"]["fits"] and found["fit"]["problem"] == "", f"it fits: {found['fit']}")
    same(found["model"]["experts"] > 0, True, "the experts")
    expect(0 < found["model"]["sampled_layers"] <= found["model"]["layers"], "layers that ran")
    expect(found["machine"]["rates"] == found["machine"]["measured_here"], "here is what was measured")
    for case in found["cases"]:
        tokens = case["prompt"] or case["users"]
        expect(abs(case["tokens_per_second"] * case["seconds"] - tokens) < 1e-6 * tokens, f"a rate and its time: {case}")
        expect(case["bound"] in ("memory", "arithmetic"), f"what bounds it: {case}")
    expect({"decode, 1 user", "decode, 8 users", "decode, 32 users", "prompt of 512 tokens"} <= set(rates(found)),
           f"the usual cases: {rates(found)}")
    flags = {each["flag"] for each in found["settings"]}
    serve = subprocess.run([PROGRAM, "serve", "--help"], capture_output=True, text=True, check=True).stdout
    for flag in flags:
        expect(flag in serve, f"{flag} is a flag of serve")
    load = found["load"]
    for figures in (load["one_server"], load["replica"]):
        for name in ("first_token_seconds", "gap_seconds", "reply_seconds"):
            expect(0 < figures[name]["p50"] <= figures[name]["p95"] <= figures[name]["p99"], f"{name}: {figures}")
    expect(load["replicas"] >= 0 and load["users_per_replica"] >= 1, f"replicas: {load}")
    expect(len(found["assumptions"]) >= 3, "what is assumed")


def check_page(found, page):
    """The curves agree with the cases, and the page has its pictures."""
    curves, known = found["curves"], rates(found)
    by_users = {point["users"]: point["tokens_per_second"] for point in curves["users"]}
    for users, name in ((1, "decode, 1 user"), (8, "decode, 8 users"), (32, "decode, 32 users")):
        same(by_users[users], known[name], f"the curve at {users} users")
    by_depth = {point["depth"]: point["tokens_per_second"] for point in curves["depth"]}
    same(by_depth[2048], known["decode, 1 user at 2048 tokens"], "the curve at 2048 tokens")
    same(curves["depth"][-1]["depth"], found["fit"]["context"], "it ends where the context ends")
    by_prompt = {point["prompt"]: point["tokens_per_second"] for point in curves["prompt"]}
    same(by_prompt[512], known["prompt of 512 tokens"], "the curve of prompts")
    same(page.count("<svg"), 6, "pictures: users, context, prompts, memory, help, load")
    same(page.count("http"), page.count("http://www.w3.org/2000/svg"), "nothing is loaded")
    expect("Time to the first token with 20 users" in page and found["machine"]["name"] in page, "what it is of")
    done = run("--html", "plan.html")
    same(done.returncode, 1, "a page of no model")
    expect("--html need a MODEL" in done.stderr, done.stderr)


def check_machines():
    # One sample each: what is compared is the arithmetic, with leeway for a busy machine.
    base = plan("--machine", "2 cores, 20 GB/s, avx2, 64 GB")
    better = plan("--machine", "64 cores, 2000 GB/s, avx2, 64 GB")
    same(base["machine"]["is_here"], False, "another machine")
    same(better["machine"]["rates"]["threads"], 64, "its cores")
    same(better["machine"]["isa"], "avx2", "its instruction set")
    same(better["fit"]["usable_bytes"], 64 << 30, "its memory")
    expect(better["machine"]["rates"]["stream_bytes_per_second"] > base["machine"]["rates"]["stream_bytes_per_second"],
           "faster memory")
    expect(rates(better)["prompt of 512 tokens"] > 3 * rates(base)["prompt of 512 tokens"],
           f"32 times the cores: {rates(base)} {rates(better)}")


def check_text_and_mistakes():
    done = run(MODEL, "--machine", "4 cores, 40 GB/s, 0.01 GB")
    same(done.returncode, 0, f"a plan that says no: {done.stderr}")
    expect("fits      NO:" in done.stdout and "SPEED" not in done.stdout, done.stdout)
    for flags, says in (((MODEL, "--machine", "fast"), '"fast" is not understood'),
                        ((MODEL, "--machine", "8 cores"), "memory is missing"),
                        ((MODEL, "--users", "3", "--prompt", "50", "--shared", "60"), "--shared 60"),
                        (("--users", "3"), "need a MODEL"),
                        (("no-such-model",), "no-such-model")):
        done = run(*flags)
        same(done.returncode, 1, f"{flags} fail")
        expect(says in done.stderr, f"{flags}: {done.stderr}")


here, its_page = plan_with_page()
check_here(here)
check_page(here, its_page)
check_machines()
check_text_and_mistakes()
print("plan: ok")

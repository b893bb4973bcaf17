# SPDX-License-Identifier: Apache-2.0
"""Experts that come from disk, through a server: the same replies as with all in memory, never more memory than
was allowed, and a damaged file ends requests, not the server.

paging_test.py HEARTH                                 in small, on tiny-oss-o200k
paging_test.py HEARTH --large [--model M] [--memory 8GiB] [--requests 200]
    M (GGUF or packed; gpt-oss-20b of $HEARTH_WORK) in a cgroup with so much memory, one request after the other:
    replies are compared with those of a server that holds everything, it is not killed, and tokens/s are held
    against what the disk's rate and the share of experts in memory allow (steps that do nothing but read; what
    keeps them from it: docs/evidence/machines.md). A GGUF file is packed beside itself, for as long as this runs."""
import argparse
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from memory_test import own_group
from serving import expect, same, serving, work_model
from checking import work_dir  # after serving, which knows where it is

UNITS = {"MiB": 1 << 20, "GiB": 1 << 30}
PROMPTS = ["Tell me about rivers.", "7 8 9 10", "What is the capital of France? Answer in one word.",
           "def parse(line):", "Write a short letter to a friend who moved away last year."]


def size_of(text):
    number, unit = re.fullmatch(r"(\d+)(MiB|GiB)", text).groups()
    return int(number) * UNITS[unit]


def body_of(number, tokens):
    return {"prompt": f"{number}: {PROMPTS[number % len(PROMPTS)]}", "max_tokens": tokens, "temperature": 0,
            "logprobs": 1, "ignore_eos": True}


def ask(server, number, tokens):
    """(what was said with its log-probabilities, seconds)"""
    began = time.monotonic()
    status, _, reply = server.request("POST", "/v1/completions", body_of(number, tokens), timeout=3600)
    same(status, 200, f"request {number}: {reply[:300]}")
    choice = json.loads(reply)["choices"][0]
    return (choice["text"], choice["logprobs"]["token_logprobs"]), time.monotonic() - began


def paging(server):
    return json.loads(server.request("GET", "/status")[2])["paging"]


def pack(program, model, out):
    subprocess.run([program, "pack", model, out], check=True, stdout=subprocess.DEVNULL)
    return out


def frame_of(program, packed):
    """Bytes that one expert takes, and layers, from the message about too little memory."""
    tried = subprocess.run([program, "serve", "--model", packed, "--port", "0", "--allow-paging",
                            "--expert-memory", "4096"], capture_output=True, text=True, check=False)
    same(tried.returncode, 1, "too little memory for experts")
    layers, frame = re.search(r"each of (\d+) layers needs room for one of (\d+) bytes", tried.stderr).groups()
    return int(frame), int(layers)


def refusals(program, model, packed):
    for flags, path, words in (
            (["--expert-memory", "1GiB"], packed, "--expert-memory needs --allow-paging"),
            (["--allow-paging", "--expert-memory", "1GiB"], model, "run `hearth pack`")):
        tried = subprocess.run([program, "serve", "--model", path, "--port", "0", *flags], capture_output=True,
                               text=True, check=False, timeout=60)
        same(tried.returncode, 1, words)
        expect(words in tried.stderr, f"{words}: {tried.stderr}")


def in_small(program):
    with tempfile.TemporaryDirectory() as folder:
        model = work_model("tiny-oss-o200k.gguf")
        packed = pack(program, model, f"{folder}/model.hearth")
        refusals(program, model, packed)
        with serving(program, packed, "--threads", "2") as server:
            wanted = [ask(server, i, 12)[0] for i in range(4)]
            same(paging(server), None, "paging, with all in memory")
        frame, layers = frame_of(program, packed)
        for each in (1, 3):
            bound = each * layers * frame
            with serving(program, packed, "--allow-paging", "--expert-memory", str(bound)) as server:
                expect(any("experts fit in memory" in line for line in server.log), f"{server.log}")
                same([ask(server, i, 12)[0] for i in range(4)], wanted, "replies with experts on disk")
                state = paging(server)
                expect(0 < state["resident_bytes"] <= state["capacity_bytes"] <= bound, f"{state}")
                expect(state["needed"] > state["hits"] and state["bytes_read"] > 0 and state["errors"] == 0,
                       f"{state}")
                text = server.request("GET", "/metrics")[2].decode()
                expect('hearth_experts_needed_total{from="disk"}' in text, "no counts of experts in metrics")
            expect(any(line.startswith("paging: ") and "GB/s" in line for line in server.log), f"{server.log}")
        damaged(program, packed, layers * frame, wanted)
    print("same replies with 1 and 3 experts a layer in memory; a truncated file ended requests alone")


def damaged(program, packed, bound, wanted):
    whole = pathlib.Path(packed).read_bytes()
    with serving(program, packed, "--allow-paging", "--expert-memory", str(bound)) as server:
        same(ask(server, 0, 12)[0], wanted[0], "before the damage")
        os.truncate(packed, 1 << 20)
        status, _, reply = server.request("POST", "/v1/completions", body_of(1, 12))
        expect(status >= 500, f"a truncated file: {status} {reply[:200]}")
        same(server.request("GET", "/livez")[0], 200, "health after a read failed")
        expect(paging(server)["errors"] > 0, "no errors counted")
        with open(packed, "r+b") as file:
            file.write(whole)
        same(ask(server, 2, 12)[0], wanted[2], "after the file is whole again")


@contextlib.contextmanager
def caged(program, limit):
    """A program that starts in a cgroup of `limit` bytes, and how often that killed."""
    group = own_group()
    if group is None:
        sys.exit("FAILED: no cgroup with a memory controller that this process may use")
    version, parent = group
    folder = parent / f"hearth-paging-{os.getpid()}"
    folder.mkdir()
    (folder / ("memory.max" if version == 2 else "memory.limit_in_bytes")).write_text(str(limit), encoding="utf-8")
    with tempfile.NamedTemporaryFile("w", suffix=".sh", delete=False, encoding="utf-8") as script:
        script.write(f'#!/bin/sh\necho $$ > {folder}/cgroup.procs\nexec {os.path.abspath(program)} "$@"\n')
    os.chmod(script.name, 0o700)

    def kills():
        events = folder / ("memory.events" if version == 2 else "memory.oom_control")
        return int(dict(line.split() for line in events.read_text(encoding="utf-8").splitlines())["oom_kill"])
    try:
        yield script.name, kills
    finally:
        os.unlink(script.name)
        for _ in range(50):
            with contextlib.suppress(OSError):
                folder.rmdir()
                break
            time.sleep(0.1)


def refused_first(program, packed):
    tried = subprocess.run([program, "serve", "--model", packed, "--port", "0"], capture_output=True, text=True,
                           check=False)
    same(tried.returncode, 1, "a model that does not fit, without --allow-paging")
    expect("tokens/s" in tried.stderr and "--allow-paging" in tried.stderr, tried.stderr)
    print(tried.stderr.strip())


def in_cgroup(program, arguments):
    model = pathlib.Path(arguments.model)
    if not model.exists():
        print(f"SKIPPED LOUDLY: {model} is missing; ./dev synth makes gpt-oss-20b")
        return
    with open(model, "rb") as file:
        is_packed = file.read(8) == b"HRTHPACK"
    with tempfile.TemporaryDirectory(dir=model.parent) as folder:
        run_packed(program, arguments, str(model) if is_packed else pack(program, str(model), f"{folder}/packed"))


def run_packed(program, arguments, packed):
    with serving(program, packed) as server:
        whole = [ask(server, i, arguments.tokens) for i in range(arguments.compare)]
    with caged(program, size_of(arguments.memory)) as (inside, kills):
        refused_first(inside, packed)
        with serving(inside, packed, "--allow-paging", "--context", "4096") as server:
            print("".join(server.log).strip())
            seconds = 0
            for number in range(arguments.requests):
                said, took = ask(server, number, arguments.tokens)
                seconds += took
                if number < len(whole):
                    same(said, whole[number][0], f"reply {number}")
            state = paging(server)
        same(kills(), 0, "kills by the system for want of memory")
    report(arguments, state, seconds, sum(took for _, took in whole))


def report(arguments, state, seconds, seconds_in_memory):
    tokens = arguments.requests * arguments.tokens
    read = (state["needed"] - state["hits"]) * state["expert_bytes"]
    allowed = tokens / (read / state["read_bytes_per_s"])
    share = tokens / seconds / allowed
    in_memory = arguments.compare * arguments.tokens / seconds_in_memory
    print(f"{arguments.requests} requests of {arguments.tokens} tokens in {arguments.memory}, {arguments.compare} "
          f"replies compared, 0 differ, 0 kills")
    print(f"disk {state['read_bytes_per_s'] / 1e9:.2f} GB/s, {100 * state['hit_share']:.1f} % of experts in memory, "
          f"{100 * state['ahead_hits'] / state['needed']:.1f} % read ahead, {state['errors']} errors")
    print(f"{tokens / seconds:.2f} tokens/s (prompts included), {100 * share:.0f} % of the {allowed:.2f} that disk "
          f"and memory allow; {in_memory:.2f} with everything in memory; steps waited for experts for "
          f"{100 * state['waited_s'] / seconds:.0f} % of the time")
    expect(share >= arguments.least, f"{100 * share:.0f} % of what disk and memory allow")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--model", default=str(work_dir() / "gpt-oss-20b.gguf"))
    parser.add_argument("--memory", default="8GiB")
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--compare", type=int, default=5, help="replies to compare with those of a server without limit")
    parser.add_argument("--least", type=float, default=0.6, help="share of what disk and memory allow")
    given = parser.parse_args()
    if given.compare < 1:
        parser.error("--compare: at least one reply")
    if given.large:
        in_cgroup(given.program, given)
    else:
        in_small(given.program)

# SPDX-License-Identifier: Apache-2.0
"""A server under limits of memory from far too small to ample, of its address space (RLIMIT_AS) and of its cgroup: the
start is refused with the numbers, or every request is answered, or refused for want of memory; the worker never dies.

memory_limits_test.py HEARTH [--sizes 4: of each kind, evenly by ratio] [--kinds address,cgroup] [--models NAME,...]
    [--prompt 3000: tokens of the longest prompt, at most what fits; 0: what fits]"""
import argparse
import collections
import contextlib
import json
import os
import re
import subprocess
import sys
import threading
import time

from memory_test import own_group
from serving import Server, expect, record, same, work_model

MIB = 1 << 20
# From where the program's libraries are mapped to where everything fits.
SMALLEST, LARGEST = {"address": 300 * MIB, "cgroup": 40 * MIB}, 2600 * MIB
# What the start says that it refuses with: how much there is, and, but where not even the flags were read, how
# much is needed.
NUMBER = r"\d+(\.\d+)? ?(MiB|GiB|bytes)|\d+\.\d\d "
SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 12},
                                           "kind": {"enum": ["a", "b"]}, "count": {"type": "integer"}},
          "required": ["name", "kind", "count"], "additionalProperties": False}
FORMAT = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}}


class Group:
    """A cgroup with so much memory; its kills are counted."""

    def __init__(self, size, name):
        found = own_group()
        if found is None:
            sys.exit("FAILED: no cgroup with a memory controller that this process may use")
        self.version, parent = found
        self.folder = parent / f"hearth-limit-{os.getpid()}-{name}"
        self.folder.mkdir()
        limit = "memory.max" if self.version == 2 else "memory.limit_in_bytes"
        (self.folder / limit).write_text(str(size), encoding="utf-8")

    def wrapped(self, command):
        return ["sh", "-c", f'echo $$ > {self.folder}/cgroup.procs; exec "$@"', "sh", *command]

    def kills(self):
        events = self.folder / ("memory.events" if self.version == 2 else "memory.oom_control")
        return int(dict(line.split() for line in events.read_text(encoding="utf-8").splitlines())["oom_kill"])

    def peak(self):
        name = "memory.peak" if self.version == 2 else "memory.max_usage_in_bytes"
        with contextlib.suppress(OSError):
            return int((self.folder / name).read_text(encoding="utf-8"))
        return 0

    def remove(self):
        for _ in range(100):
            with contextlib.suppress(OSError):
                self.folder.rmdir()
                return
            time.sleep(0.05)


class Limited(Server):
    """A server under one limit, and what became of what it was asked."""

    def __init__(self, program, model, kind, size, *flags):
        self.group = Group(size, "server") if kind == "cgroup" else None
        command = [program, "serve", "--model", model, "--port", "0", *flags]
        wrapped = self.group.wrapped(command) if self.group else ["prlimit", f"--as={size}", *command]
        super().__init__(wrapped[0], model, command=wrapped)
        self.counts, self.wrong = collections.Counter(), []

    def context(self):
        return int(re.search(r"(\d+) tokens of context", "".join(self.log)).group(1))

    def ask(self, path, body, what):
        try:
            status, _, data = self.request("POST", path, body, timeout=300)
        except OSError as error:
            self.wrong.append(f"{what}: {error!r}")
            return
        self.counts[status] += 1
        if status not in (200, 503):
            self.wrong.append(f"{what}: {status} {data[:300]}")
        elif status == 503 and b"out_of_memory" not in data and b"overloaded" not in data:
            self.wrong.append(f"{what}: 503 {data[:300]}")

    def exercise(self, most):
        chat = {"messages": [{"role": "user", "content": "hello there"}], "max_tokens": 4, "ignore_eos": True}
        longest = self.context() - 8
        longest = min(longest, most) if most else longest
        prompt = [300 + i % 400 for i in range(longest)]
        self.ask("/v1/chat/completions", chat, "a chat")
        self.ask("/v1/completions", {"prompt": prompt, "max_tokens": 2, "ignore_eos": True}, "the longest prompt")
        each = max(1, min(900, longest // 8))
        threads = [threading.Thread(target=self.ask, args=(
            "/v1/completions", {"prompt": [500 + i, *prompt[:each]], "max_tokens": 8, "ignore_eos": True},
            "one of eight")) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.ask("/v1/embeddings", {"input": [prompt[:each], [1, 2, 3]]}, "embeddings")
        self.ask("/v1/completions", {"prompt": prompt[:min(each, 400)], "max_tokens": 2, "echo": True, "logprobs": 5,
                                     "ignore_eos": True}, "log-probabilities of a prompt")
        self.ask("/v1/chat/completions", {**chat, "ignore_eos": False, "max_tokens": 40, "response_format": FORMAT},
                 "a schema")
        self.ask("/v1/chat/completions", {**chat, "n": 4, "logprobs": True, "top_logprobs": 20}, "four choices")
        self.ask("/v1/chat/completions", chat, "the last chat")


def run(program, model, kind, size, flags, most):
    """What came of one limit, in words."""
    what = f"{kind} {size / MIB:5.0f} MiB {' '.join(flags)}"
    server = Limited(program, model, kind, size, *flags)
    try:
        if server.port is None:
            return refused(server, what)
        worker = server.worker_pid()
        server.exercise(most)
        state = json.loads(server.request("GET", "/status")[2])
        peak = server.group.peak() if server.group else 0
        same(server.worker_pid(), worker, f"{what}: the worker's pid")
        same(state["worker"]["restarts"], 0, f"{what}: restarts")
        code, _ = server.stop()
        text = "".join(server.log)
        expect(not server.wrong, f"{what}: {server.wrong}\n{text[-3000:]}")
        same(code, 0, f"{what}: the end\n{text[-3000:]}")
        if server.group:
            same(server.group.kills(), 0, f"{what}: kills")
        answers = ", ".join(f"{count} x {status}" for status, count in sorted(server.counts.items()))
        print(f"{what}: served: {answers}{f'; peak {peak / MIB:.0f} MiB' if peak else ''}", flush=True)
        return "served"
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()
        if server.group:
            server.group.remove()


def refused(server, what):
    text = "".join(server.log)
    same(server.process.returncode, 1, f"{what}: a refused start\n{text[-3000:]}")
    said = [line for line in server.log if line.startswith("hearth: ")]
    expect(said and re.search(NUMBER, said[-1]), f"{what}: no numbers: {text[-3000:]}")
    expect("stopped by" not in text and "bug at" not in text, f"{what}: {text[-3000:]}")
    if server.group:
        same(server.group.kills(), 0, f"{what}: kills")
    print(f"{what}: refused: {said[-1].strip()[8:190]}", flush=True)
    return "refused"


def sizes_of(kind, count, only):
    if only:
        return [int(each) * MIB for each in only.split(",")]
    low, high = SMALLEST[kind], LARGEST
    return [int(low * (high / low) ** (i / max(1, count - 1))) // MIB * MIB for i in range(count)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--sizes", type=int, default=4)
    parser.add_argument("--kinds", default="address,cgroup")
    parser.add_argument("--models", default="tiny-oss-o200k")
    parser.add_argument("--prompt", type=int, default=3000)
    parser.add_argument("--only", default="", help="these many MiB alone, with commas")
    given = parser.parse_args()
    counts, failures = collections.Counter(), []
    for model in given.models.split(","):
        for kind in given.kinds.split(","):
            for turn, size in enumerate(sizes_of(kind, given.sizes, given.only)):
                # What an operator may have asked for, and what the start chooses by itself.
                flags = [[], ["--kv-memory", "64MiB"], ["--kv-memory", "64MiB", "--reserve-kv"]][turn % 3]
                try:
                    counts[run(given.program, work_model(model + ".gguf"), kind, size, flags, given.prompt)] += 1
                except (SystemExit, OSError) as failure:  # the other sizes say how far it reaches
                    failures.append(f"{kind} {size / MIB:.0f} MiB {flags}: {failure}")
                    print(failures[-1], flush=True)
    total = sum(counts.values())
    print(f"{total} limits: {dict(counts)}, {len(failures)} failures")
    expect(not failures, failures)
    expect(given.only or (counts["served"] > 0 and counts["refused"] > 0), f"both: {counts}")
    record("memory_limits", total, served=counts["served"], refused=counts["refused"], deaths=0)


if __name__ == "__main__":
    main()

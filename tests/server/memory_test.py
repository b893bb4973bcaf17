# SPDX-License-Identifier: Apache-2.0
"""Hostile requests of every kind against a server that may have its plan and 512 MiB: it is not killed, and
answers afterwards. In a cgroup of its own (v2 or v1, whose memory controller this process may use); where there is none, with
the same number as a limit of its data (RLIMIT_DATA), and the largest resident memory is held to it. Which
of the two it was is said: a limit of data makes allocations fail where a cgroup kills.

Half of them (`--dear`) are dear bodies at their full size, a third of whose senders leave unheard; the others
are malformed heads, bodies that never end, and streams that nobody reads. Clients do not wait for each other: what
is refused for that is refused rightly, and counted.

memory_test.py HEARTH [--count N] [--dear SHARE] [--minutes M: at most so long; what was reached is what is recorded]"""
import argparse
import collections
import contextlib
import http.client
import itertools
import json
import multiprocessing
import os
import pathlib
import queue
import random
import resource
import socket
import sys
import threading
import time

from attack_rig import arena, head_of
from attacks import bodies
from http_corpus_test import REFUSED
from serving import expect, record, same

MIB = 1 << 20
PROCESSES, THREADS = 4, 12
# Seconds of computing prompts each, and little memory: as often as the others they would be all that is done.
COMPUTED, SELDOM = [name for name, body in bodies.BODIES.items() if body.brief], 50
STREAM = json.dumps({"prompt": "x", "max_tokens": 500, "stream": True, "ignore_eos": True}).encode()


def writable(folder):
    return folder if folder.is_dir() and os.access(folder, os.W_OK) else None


def own_group():
    """(version, folder) of this process's cgroup, where it may make others with a memory limit; else None."""
    for line in pathlib.Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        with contextlib.suppress(OSError):
            if controllers == "memory" and (folder := writable(pathlib.Path("/sys/fs/cgroup/memory" + path))):
                return 1, folder
            two = pathlib.Path("/sys/fs/cgroup" + path)
            if not controllers and "memory" in (two / "cgroup.subtree_control").read_text(
                    encoding="utf-8").split() and writable(two):
                return 2, two
    return None


class Cage:
    """What holds the server to its memory."""

    def __init__(self, pid, most_bytes):
        self.pid, self.most_bytes, self.folder, self.version = pid, most_bytes, None, 0
        group = own_group()
        if group is None:
            print("NOTICE: no cgroup with a memory controller here: RLIMIT_DATA and the peak stand in for it")
            resource.prlimit(pid, resource.RLIMIT_DATA, (most_bytes, most_bytes))
            return
        self.version, parent = group
        self.folder = parent / f"hearth-memory-{os.getpid()}"
        self.folder.mkdir()
        limit = "memory.max" if self.version == 2 else "memory.limit_in_bytes"
        # What was touched before stays with the group it was touched in, so it is taken from this one's.
        (self.folder / limit).write_text(str(most_bytes - self.status_bytes("VmRSS")), encoding="utf-8")
        (self.folder / "cgroup.procs").write_text(str(pid), encoding="utf-8")

    @property
    def kind(self):
        return f"cgroup v{self.version}" if self.folder else "RLIMIT_DATA"

    def status_bytes(self, name):
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith(name))

    def kills(self):
        events = "memory.events" if self.version == 2 else "memory.oom_control"
        lines = (self.folder / events).read_text(encoding="utf-8").splitlines()
        return int(dict(line.split() for line in lines)["oom_kill"])

    def check(self):
        if self.folder:
            same(self.kills(), 0, "kills")
        most = self.status_bytes("VmHWM")
        expect(most <= self.most_bytes, f"{most / MIB:.0f} MiB resident, {self.most_bytes / MIB:.0f} allowed")
        return most


class Mallory(threading.Thread):
    """One client that asks for one hostile thing after the other, on one connection while that lasts."""

    def __init__(self, port, key, kinds, dear, seed, go_on):
        super().__init__(daemon=True)
        self.dear, self.port, self.key, self.kinds, self.rng = dear, port, key, kinds, random.Random(seed)
        self.go_on, self.counts, self.wrong = go_on, collections.Counter(), []
        self.line = None
        self.unfinished = collections.deque()

    def connect(self):
        line = socket.create_connection(("127.0.0.1", self.port), timeout=300)
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return line

    def body(self, leaves):
        weights = [1 / SELDOM if name in COMPUTED else 1 for name, _, _ in self.kinds]
        name, path, body = self.rng.choices(self.kinds, weights)[0]
        if leaves:
            with self.connect() as line:
                line.sendall(head_of("POST", path, self.key, len(body)) + body)
            return "left"
        if self.line is None:
            self.line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        try:
            self.line.request("POST", path, body, {"authorization": "Bearer " + self.key,
                                                   "content-type": "application/json"})
            reply = self.line.getresponse()
            reply.read()
        except BaseException:
            self.line.close()
            self.line = None
            raise
        if reply.status not in bodies.FINE:
            self.wrong.append(f"{name}: {reply.status}")
        return f"body {reply.status}"

    def frame(self):
        name = self.rng.choice(list(REFUSED))
        data, wanted = REFUSED[name]
        with self.connect() as line:
            line.settimeout(60)
            with contextlib.suppress(OSError):
                line.sendall(data)
                line.shutdown(socket.SHUT_WR)
            reply = line.recv(64)
        status = int(reply.split()[1]) if reply.startswith(b"HTTP/1.1 ") else 0
        if status not in {0, 401, *wanted}:  # those of bodies come after the key
            self.wrong.append(f"{name}: {reply}")
        return str(status or "cut")

    def half_body(self):
        """Kept open; the oldest goes when there are many."""
        line = self.connect()
        path, length = self.rng.choice([("/v1/chat/completions", 4_000_000), ("/tokenize", 3_000_000)])
        line.sendall(head_of("POST", path, self.key, length) + b'{"prompt":"' + b"y" * self.rng.randrange(600_000))
        self.unfinished.append(line)
        if len(self.unfinished) > 4:
            self.unfinished.popleft().close()
        return "unfinished"

    def stream(self):
        with self.connect() as line:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            line.sendall(head_of("POST", "/v1/completions", self.key, len(STREAM)) + STREAM)
            line.recv(self.rng.choice([1, 200, 2000]))
        return "stream left"

    def one(self):
        if self.rng.random() < self.dear:
            return self.body(leaves=self.rng.random() < 0.34)
        return self.rng.choices([self.frame, self.half_body, self.stream], [3, 1, 1])[0]()

    def run(self):
        while self.go_on():
            try:
                self.counts[self.one()] += 1
            except (OSError, http.client.HTTPException):
                self.counts["cut"] += 1
        for line in self.unfinished:
            line.close()


def storm(port, key, kinds, dear, seed, done, most, until, out):
    """One process of clients. `done` counts for all of them."""
    def go_on():
        with done.get_lock():
            done.value += 1
            return done.value <= most and time.monotonic() < until

    clients = [Mallory(port, key, kinds, dear, 1000 * seed + i, go_on) for i in range(THREADS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    out.put((sum((client.counts for client in clients), collections.Counter()),
             list(itertools.chain(*(client.wrong for client in clients)))))


def attack(a, count, dear, minutes):
    """(what came back, how often; what should not have) of so many requests, or of so many minutes."""
    kinds = [(name, path, body) for name in bodies.BODIES
             for path, body in bodies.hostile(name, is_whole=count > 1000)]
    context = multiprocessing.get_context("fork")
    done, out = context.Value("q", 0), context.Queue()
    until = time.monotonic() + 60 * minutes
    args = (done, count, until, out)
    processes = [context.Process(target=storm, args=(a.port, a.keys["mallory"], kinds, dear, i, *args))
                 for i in range(PROCESSES)]
    for process in processes:
        process.start()
    found = []
    while len(found) < len(processes):
        try:
            found.append(out.get(timeout=30))
        except queue.Empty:
            print(f"{done.value} begun, {a.resident_mib():.0f} MiB resident", flush=True)
    for process in processes:
        process.join()
    return sum((counts for counts, _ in found), collections.Counter()), list(itertools.chain(*(w for _, w in found)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--dear", type=float, default=0.5)
    parser.add_argument("--minutes", type=float, default=460)
    args = parser.parse_args()
    with arena(args.program) as a:
        cage = Cage(a.pid, int((a.planned_mib + 512) * MIB))
        answers, wrong = attack(a, args.count, args.dear, args.minutes)
        asked = sum(answers.values())
        most = cage.check()
        print(f"{asked} requests, answers {dict(answers)}, at most {most / MIB:.0f} MiB resident of "
              f"{cage.most_bytes / MIB:.0f} allowed ({cage.kind})", flush=True)
        same(wrong[:5], [], "answers that should not have been")
        # Otherwise it was the limits of bodies that were tried, and not the memory.
        expect(answers["body 200"] >= 0.02 * args.count * args.dear, f"dear bodies that were answered: {answers}")
        expect(a.tokens("prompt")() > 100, "and their prompts computed")
        same(a.pid, a.server.worker_pid(), "the process that was started")
        same(a.ask("POST", "/v1/completions", {"prompt": "x", "max_tokens": 2}, key="victim")[0], 200, "afterwards")
        record("memory", asked, requests=asked, answers=dict(answers), peak_mib=round(most / MIB),
               allowed_mib=round(cage.most_bytes / MIB), limit=cage.kind)
    if cage.folder:
        cage.folder.rmdir()


if __name__ == "__main__":
    sys.exit(main())

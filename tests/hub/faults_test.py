# SPDX-License-Identifier: Apache-2.0
"""Downloads through every fault that a network and a server have: each ends with a verified file or
a clear message, never with a corrupt model; and what arrived is not downloaded again."""
import argparse
import concurrent.futures
import pathlib
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time

from pulls import FAST, PART, PATIENT, clear_message, expect, hearth, models, same, states
from standin import Fault, Hub

KINDS = ("reset", "silent", "status", "drop", "stall", "flip", "short", "long", "shift", "total",
         "norange", "junk")


def content_of(rng, size):
    return b"GGUF" + rng.randbytes(size - 4)


class Case:
    """One download: a file, a plan of faults, and a folder of its own."""

    def __init__(self, number, folder):
        self.rng = random.Random(number)
        self.number = number
        self.folder = pathlib.Path(folder)
        self.hub = Hub()
        self.hub.stall = 1.0
        self.content = content_of(self.rng, self.rng.choice((PART - 1, 5 * PART, 9 * PART + 77)))
        self.hub.repos["a/m-GGUF"]["m-Q8_0.gguf"] = self.content
        self.environment = self.hub.environment(self.folder)

    def close(self):
        self.hub.close()

    @property
    def path(self):
        return self.folder / "models/m-Q8_0/m-Q8_0.gguf"

    def fault(self, kind):
        rng = self.rng
        if kind == "status":
            status = rng.choice((408, 429, 500, 502, 503, 504))
            return Fault("status", status, rng.choice((None, 0, 1 if rng.random() < 0.1 else 0)))
        return Fault(kind, rng.randrange(1 << 20))

    def plan(self, kinds, share):
        """Faults of these kinds for a share of the requests."""
        def choose(request):
            if self.rng.random() >= share:
                return None
            return self.fault(self.rng.choice(kinds))
        return choose

    def pull(self, flags=PATIENT, **options):
        return hearth(self.environment, "pull", "a/m-GGUF", *flags, **options)

    def check(self, code, out, err, what):
        """A whole file that is listed, or a message and nothing that is listed as whole."""
        if code == 0:
            same(out.strip(), str(self.path), f"{what}: the path is printed")
            expect(self.path.read_bytes() == self.content, f"{what}: the bytes")
            expect([m["complete"] for m in models(self.environment)] == [True], f"{what}: listed")
            left = [p.name for p in self.path.parent.iterdir() if p.name.startswith(".")]
            expect(not left, f"{what}: left behind: {left}")
            return
        expect(clear_message(code, err), f"{what}: exit {code} and no clear message: {err!r}")
        expect(not self.path.exists(), f"{what}: failed, and yet there is a file")
        expect(not any(m["complete"] for m in models(self.environment)), f"{what}: listed as whole")

    def check_resumed(self, what):
        """A clean server: it succeeds, and asks for no byte that is here and sound."""
        before = states(self.folder).get("m-Q8_0.gguf", [])
        self.hub.plan = None
        self.hub.requests.clear()
        code, out, err = self.pull()
        self.check(code, out, err, f"{what}, resumed")
        expect(code == 0, f"{what}: a clean server does not help: {err!r}")
        if "checksum" in err:
            return  # a bad part had to be found among those that are here
        for request in self.hub.requests:
            if request.server != "files" or request.span is None:
                continue
            for begin, end in before:
                expect(request.span[1] <= begin or request.span[0] >= end,
                       f"{what}: {request.span} was here: {before}")


def faulty(case):
    """One kind of fault, or all of them, at some rate."""
    rng = case.rng
    kinds = KINDS if rng.random() < 0.4 else (KINDS[case.number % len(KINDS)],)
    case.hub.plan = case.plan(kinds, rng.choice((0.15, 0.3, 0.6)))
    what = f"case {case.number} {kinds}"
    code, out, err = case.pull(FAST)
    case.check(code, out, err, what)
    if code != 0:
        case.check_resumed(what)
    return "whole" if code == 0 else "message"


def wrong_for_good(case):
    """A byte is wrong at the source: no model, and nothing kept."""
    def choose(request):
        is_bad = request.server == "files" and request.span and request.span[0] // PART == 0
        return Fault("flip", 9) if is_bad else None
    case.hub.plan = choose
    code, out, err = case.pull()
    case.check(code, out, err, "wrong at the source")
    expect(code == 1 and "checksum" in err, f"a wrong file is named: {err!r}")
    expect(not list(case.path.parent.glob(".*.part")), "a wrong file is not kept")
    case.check_resumed("wrong at the source")
    return "message"


def killed(case):
    """kill -9 at any moment, again and again, until the download is through."""
    case.hub.bytes_per_second = 2_000_000
    for attempt in range(40):
        process = subprocess.Popen(
            [sys.argv[1], "pull", "a/m-GGUF", *PATIENT], env=case.environment,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            out, err = process.communicate(timeout=case.rng.uniform(0.02, 0.25))
            expect(process.returncode == 0, f"kill: {err!r}")
            case.check(0, out, err, f"kill, attempt {attempt}")
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            if not case.path.exists():
                expect(not any(m["complete"] for m in models(case.environment)), "listed too early")
    else:
        case.hub.bytes_per_second = 0
        case.check_resumed("kill")
        return "whole"
    sent = sum(request.bytes_sent for request in case.hub.requests)
    # What a killed process had of unfinished parts is lost: at most four parts each time.
    expect(sent <= len(case.content) + (attempt + 1) * 4 * PART, f"{sent} bytes sent")
    return "whole"


def two_at_once(case):
    """The second waits for the first, and downloads nothing."""
    case.hub.bytes_per_second = 4_000_000
    command = [sys.argv[1], "pull", "a/m-GGUF", *PATIENT]
    both = [subprocess.Popen(command, env=case.environment, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for process in both:
        out, err = process.communicate(timeout=60)
        case.check(process.returncode, out, err, "two at once")
        expect(process.returncode == 0, f"two at once: {err!r}")
    sent = sum(r.bytes_sent for r in case.hub.requests if r.server == "files")
    same(sent, len(case.content), "two at once: bytes sent")
    return "whole"


def full_disk(case):
    """A limit on file sizes stands for a full disk; then there is room again."""
    limit = case.rng.choice((4096, 20000, len(case.content) // 2))
    code, out, err = case.pull(
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    case.check(code, out, err, "full disk")
    expect(code == 1 and "disk is full" in err and "HEARTH_MODELS" in err, f"full disk: {err!r}")
    case.check_resumed("full disk")
    return "message"


# How many of a hundred.
MIX = ((faulty, 84), (killed, 5), (two_at_once, 4), (full_disk, 4), (wrong_for_good, 3))


def run(number):
    at = number % 100
    for kind, share in MIX:
        if at < share:
            break
        at -= share
    with tempfile.TemporaryDirectory() as folder:
        case = Case(number, folder)
        try:
            return kind.__name__, kind(case)
        finally:
            case.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("hearth")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--workers", type=int, default=6)
    arguments = parser.parse_args()
    began = time.monotonic()
    ends = {}
    with concurrent.futures.ThreadPoolExecutor(arguments.workers) as pool:
        for kind, end in pool.map(run, range(arguments.count)):
            ends[kind, end] = ends.get((kind, end), 0) + 1
    same(sum(ends.values()), arguments.count, "downloads")
    expect(ends.get(("faulty", "whole"), 0) >= arguments.count // 2, f"most get through: {ends}")
    words = ", ".join(f"{kind} {end} {count}" for (kind, end), count in sorted(ends.items()))
    print(f"{arguments.count} downloads in {time.monotonic() - began:.0f} s: {words}")


main()

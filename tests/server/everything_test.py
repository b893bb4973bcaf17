# SPDX-License-Identifier: Apache-2.0
"""Everything at once: two keys with every dialect, streams that are resumed, stored responses, files, batches, tools,
grammars and cancels on two models, while the worker is killed and stopped, the log and the keys are read again, and the
clock on the wall steps by days and years. No reply is another than when nobody else was there, nothing of one key is seen
by the other, nothing is refused or cut for which there was no fault, and memory stays flat.

everything_test.py HEARTH LIBRARY [--minutes N]: LIBRARY is tests/faults' preload, which has the clock."""
import argparse
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import statistics
import sys
import tempfile
import threading
import time

from serving import children, expect, new_key, record, serving, work_model
from tenants import Ledger, Tenant

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "faults"))
from faults import Faults

MODELS = ("tiny-oss-o200k.gguf", "minimind2-small-q8_0.gguf")
KEYS, CLIENTS = ("alice", "bob"), 3
DAY = 24 * 3600
STEPS = (3 * DAY, -3 * DAY, 12 * 365 * DAY, -12 * 365 * DAY)
# The worker is killed in this part of the run; after it one worker's memory is watched.
KILLS_UNTIL, WATCH_FROM = 0.4, 0.55


class Weather:
    """What is done to the server, and when."""

    def __init__(self, server, page, ledger, seconds):
        self.server, self.page, self.ledger, self.rng = server, page, ledger, random.Random(33)
        self.began, self.seconds = time.monotonic(), seconds
        self.done = {"kills": 0, "stops": 0, "steps of the clock": 0, "hang-ups": 0}

    def share(self):
        return (time.monotonic() - self.began) / self.seconds

    def wait_until_ready(self, old):
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with contextlib.suppress(Exception):
                if self.server.worker_pid() != old and self.server.request("GET", "/readyz", timeout=5)[0] == 200:
                    return
            time.sleep(0.05)
        expect(False, "a worker after a kill")

    def kill(self):
        trouble, pid = self.ledger.begin_trouble(), self.server.worker_pid()
        expect(pid != self.server.process.pid, "a worker under its supervisor")
        os.kill(pid, signal.SIGKILL)
        self.wait_until_ready(pid)
        trouble[1] = time.monotonic() + 1
        self.done["kills"] += 1

    def stop(self):
        """Everybody waits, and nothing else."""
        trouble, pid = self.ledger.begin_trouble(), self.server.worker_pid()
        os.kill(pid, signal.SIGSTOP)
        time.sleep(self.rng.uniform(1, 3))
        os.kill(pid, signal.SIGCONT)
        trouble[1] = time.monotonic() + 1
        self.done["stops"] += 1

    def step(self):
        """The date jumps, and jumps back; nobody may notice."""
        self.page.clock_offset_s = self.rng.choice(STEPS)
        self.ledger.is_over.wait(self.rng.uniform(1, 4))
        self.page.clock_offset_s = 0
        self.done["steps of the clock"] += 1

    def hang_up(self):
        self.server.process.send_signal(signal.SIGHUP)
        self.done["hang-ups"] += 1

    def run(self):
        turn = 0
        while not self.ledger.is_over.wait(min(15.0, self.seconds / 24)):
            may_kill = 0.05 < self.share() < KILLS_UNTIL
            acts = [self.step, self.kill if may_kill else self.stop, self.hang_up, self.stop if may_kill else self.step]
            acts[turn % len(acts)]()
            turn += 1


def state_of(pid):
    """(resident KiB, descriptors)."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmRSS:\s+(\d+)", text).group(1)), len(os.listdir(f"/proc/{pid}/fd"))


def watch(server, ledger, weather):
    """(share of the run, pid, resident KiB, descriptors) every half second."""
    rows, said = [], 0.0
    while weather.share() < 1:
        time.sleep(0.5)
        expect(server.process.poll() is None, "a server that lives")
        with contextlib.suppress(OSError, AttributeError):
            for pid in children(server.process.pid):
                rows.append((weather.share(), pid, *state_of(pid)))
        if time.monotonic() - said > 60:
            said = time.monotonic()
            print(f"{weather.share():4.0%} {sum(ledger.counts.values())} done, {len(ledger.wrong)} wrong, "
                  f"{len(ledger.crossed)} crossed, {len(ledger.unexcused)} without a fault, {weather.done}, "
                  f"{rows[-1][2] / 1024 if rows else 0:.0f} MiB", flush=True)
    return rows


def growth(rows, column):
    """(early, late) medians of the worker that served to the end."""
    last = rows[-1][1]
    watched = [row for row in rows if row[1] == last and row[0] >= WATCH_FROM]
    expect(len(watched) >= 12, f"one worker since {WATCH_FROM:.0%} of the run: {len(watched)} looks")
    third = len(watched) // 3
    return [statistics.median(row[column] for row in part) for part in (watched[:third], watched[-third:])]


def check_checker():
    """A ledger that cannot see is worth nothing: planted, both kinds are found."""
    ledger = Ledger()
    ledger.markers = {"alice": "alice-00", "bob": "bob-11"}
    ledger.look("alice", "plain", '{"id": "file-0123456789abcdef", "text": "alice-00"}')
    expect(not ledger.crossed, "one's own is no crossing")
    ledger.look("bob", "planted", '{"data": [{"id": "file-0123456789abcdef"}]}')
    ledger.look("bob", "planted", '{"error": {"message": "no alice-00"}}')
    expect(len(ledger.crossed) == 2, f"both planted crossings: {ledger.crossed}")


def run(server, page, keys, seconds):
    ledger = Ledger()
    names = [pathlib.Path(each).stem for each in MODELS]
    tenants = [Tenant(name, keys[name], server.port, ledger, names) for name in KEYS]
    for tenant in tenants:
        tenant.peers = [each for each in tenants if each is not tenant]
        tenant.learn()
    expect(not ledger.crossed, f"nothing crossed while they learned: {ledger.crossed[:3]}")
    weather = Weather(server, page, ledger, seconds)
    threads = [threading.Thread(target=tenant.run, args=(100 * number + i,))
               for number, tenant in enumerate(tenants) for i in range(CLIENTS)]
    threads.append(threading.Thread(target=weather.run))
    for thread in threads:
        thread.start()
    try:
        rows = watch(server, ledger, weather)
    finally:
        ledger.is_over.set()
        for thread in threads:
            thread.join()
        page.clock_offset_s = 0
    for tenant in tenants:
        settle(tenant)
    return ledger, weather, rows


def settle(tenant):
    """Batches that are under way come to their end, too."""
    until = time.monotonic() + 120
    while tenant.batches and time.monotonic() < until:
        name, lines = tenant.batches.pop(0)
        if not tenant.look_at_batch(name, lines):
            tenant.batches.append((name, lines))
            time.sleep(0.2)
    tenant.ledger.wrong_if(tenant.batches, f"{tenant.name}: batches that do not end: {[name for name, _ in tenant.batches]}")


def judge(ledger, weather, rows, minutes):
    done = {name: count for name, count in sorted(ledger.counts.items())}
    memory, files = growth(rows, 2), growth(rows, 3)
    grown = memory[1] / memory[0] - 1
    print(f"{sum(done.values())} done: {done}")
    print(f"done to the server: {weather.done}")
    print(f"{len(ledger.wrong)} wrong, {len(ledger.crossed)} crossed, {len(ledger.unexcused)} refused or cut without a fault")
    print(f"resident {memory[0] / 1024:.1f} -> {memory[1] / 1024:.1f} MiB ({grown:+.2%}), descriptors {files}")
    for kind in ("wrong", "crossed", "unexcused"):
        for each in getattr(ledger, kind)[:5]:
            print(f"FAILED: {kind}: {each[:1000]}")
    # What was asked must have been: a run that is all cuts shows nothing.
    for what in ("chat", "schema", "tool", "echo", "messages", "ollama", "embeddings", "resumed", "stored", "background",
                 "file", "batch done", "pried"):
        expect(done.get(what), f"at least one of {what!r}")
    expect(all(weather.done.values()), f"each kind of fault: {weather.done}")
    expect(not ledger.wrong and not ledger.crossed and not ledger.unexcused, "0 wrong, 0 crossed, none without a fault")
    # In a minute a new worker is not warm yet.
    expect(minutes < 10 or grown <= 0.02, f"flat memory, not {grown:+.2%}")
    expect(files[1] - files[0] <= 2 * CLIENTS * len(KEYS), f"flat descriptors: {files}")
    record("everything", round(minutes * 60), minutes=minutes, done=sum(done.values()), faults=weather.done, wrong=0,
           crossed=0, growth_percent=round(100 * grown, 2))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("library")
    parser.add_argument("--minutes", type=float, default=1)
    given = parser.parse_args()
    check_checker()
    keys, entries = {}, []
    for name in KEYS:
        keys[name], entry = new_key(given.program, name)
        entries.append(entry)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "keys.json")
        path.write_text(json.dumps({"keys": entries}), encoding="utf-8")
        faults = Faults(given.library, folder)
        models = [flag for name in MODELS for flag in ("--model", work_model(name))]
        with serving(given.program, models, "--keys", str(path), "--responses", f"{folder}/responses", "--batches",
                     f"{folder}/batches", "--log", f"{folder}/log", "--kv-memory", "64MiB", env=faults.env) as server:
            threading.Thread(target=server.process.stderr.read, daemon=True).start()
            ledger, weather, rows = run(server, faults.page, keys, given.minutes * 60)
    judge(ledger, weather, rows, given.minutes)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Every system call of a scenario, failed with every error that it may have: the reply is right, an
error in the asker's words, or cut; the server goes on, and nothing of the request stays. The server has
its store and its log in files. Covered are the calls that preload_calls.cc lists.
calls_test.py HEARTH LIBRARY [--most N: indices of each scenario, call and error; 0: all]"""
import argparse
import collections
import json
import os
import signal
import sys
import tempfile
import time

from faults import (BOOKS, CALLS, ERRORS, HTTP, MAIN, SYSTEM_CALLS, TEXT, expect, failing_server, record,
                    share_among, work_model)
from allocations_test import Sweep, count
from scenarios import SCENARIOS

# What may befall which call.
FILE = ("EINTR", "EIO", "ENOSPC", "short")
FAULTS = {
    "read": ("EINTR", "EIO", "short"), "write": FILE, "readv": ("EINTR", "EIO", "short"), "writev": FILE,
    "pread": ("EINTR", "EIO", "short"), "pwrite": FILE, "open": ("EINTR", "EIO", "ENOSPC", "EMFILE"),
    "fsync": ("EINTR", "EIO", "ENOSPC"), "accept": ("EINTR", "EMFILE", "ENOMEM"),
    "receive": ("EINTR", "EIO", "ECONNRESET", "short"), "send": ("EINTR", "EIO", "ECONNRESET", "short"),
    "map": ("ENOMEM",), "epoll_wait": ("EINTR",), "unlink": ("EIO",), "truncate": ("EINTR", "EIO", "ENOSPC"),
    "stat": ("EIO",), "allocate": ("ENOSPC",), "lock": ("EINTR", "EIO"), "poll": ("EINTR",),
    "epoll_control": ("ENOMEM",),
}
ASKED = ["chat", "chat stream", "completion stream", "response", "response stream", "response chain",
         "response read", "response delete", "messages stream", "ollama chat stream", "tokenize", "models",
         "chat mistake", "not found", "metrics"]


def sweep_calls(rig, sweep, name, most, times, descriptors):
    for call, errors in FAULTS.items():
        bit = 1 << CALLS.index(call)

        def arm(index, error=0):
            rig.faults.arm(SYSTEM_CALLS, HTTP | TEXT | BOOKS, bit, index, error)

        calls = count(sweep, name, arm)
        if calls == 0:
            continue
        step = max(1, calls // most) if most else 1
        indices = [*range(0, calls + 1, step), *[*range(0, calls, step)] * (times - 1)]
        for error in errors:
            before = rig.counts["injected"]
            sweep.run(name, lambda index, e=ERRORS[error]: arm(index, e), indices)
            rig.counts[f"{call} {error}"] += rig.counts["injected"] - before
    rig.expect_idle(descriptors, name)


def sweep_reloads(rig, most):
    """SIGHUP with every call of the reload failing: it is logged or not, and the server goes on."""
    done = 0
    for call in ("open", "read", "stat"):
        bit = 1 << CALLS.index(call)
        for error in FAULTS[call]:
            for index in range(most or 6):
                rig.faults.arm(SYSTEM_CALLS, MAIN, bit, index, ERRORS[error])
                rig.server.process.send_signal(signal.SIGHUP)
                time.sleep(0.02)
                done += rig.faults.disarm()
                rig.expect_alive(f"SIGHUP, {call} {error} {index}")
                expect(rig.server.request("GET", "/livez")[0] == 200, "a server that lives")
    return done


def sweep_share(arguments, names, is_first):
    """One server, and its share of the scenarios: (counts, names that were begun)."""
    until = time.monotonic() + 60 * arguments.minutes
    swept = []
    with tempfile.TemporaryDirectory() as folder:
        store, log = os.path.join(folder, "responses"), os.path.join(folder, "log")
        with failing_server(arguments.program, arguments.library, work_model("tiny-chatml.gguf"),
                            "--responses", store, "--log", log) as rig:
            sweep = Sweep(rig, rig.server.port)
            for name in names:
                sweep.ask(name)()
            time.sleep(0.1)
            descriptors = rig.descriptors() + 1
            for name in names * arguments.rounds:
                if time.monotonic() > until:
                    break
                swept.append(name)
                before = rig.counts.copy()
                sweep_calls(rig, sweep, name, arguments.most, arguments.times, descriptors)
                now = rig.counts - before
                print(f"{name:22} {now['injected']:5} calls failed: {now['right']:5} right, "
                      f"{now['error']:4} errors, {now['cut']:4} cut", flush=True)
            if is_first:
                rig.counts["injected"] += sweep_reloads(rig, arguments.most)
            return rig.counts, swept


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("library")
    parser.add_argument("--most", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--times", type=int, default=1, help="that each index of a round fails")
    parser.add_argument("--minutes", type=float, default=110, help="no scenario begins after so many")
    parser.add_argument("--servers", type=int, default=1, help="that share the scenarios")
    parser.add_argument("--only", default="", help="scenarios whose names contain this")
    arguments = parser.parse_args()
    began = time.monotonic()
    asked = [name for name in ASKED if arguments.only in name]
    found = share_among(arguments.servers, asked, lambda names, i: sweep_share(arguments, names, i == 0))
    counts = sum((each[0] for each in found), collections.Counter())
    swept = [name for each in found for name in each[1]]
    total = {k: counts[k] for k in ("injected", "right", "error", "cut")}
    kinds = {k: v for k, v in counts.items() if " " in k and v > 0}
    took = time.monotonic() - began
    scenarios = len(set(swept))
    print(f"{total['injected']} system calls failed in {scenarios} scenarios: {json.dumps(total)}; {took:.0f} s")
    is_cut = len(swept) < len(asked) * arguments.rounds
    record("system_call_faults", total["injected"], note="stopped by its time" if is_cut else "", scenarios=scenarios,
           kinds=kinds, **total)


if __name__ == "__main__":
    sys.exit(main())

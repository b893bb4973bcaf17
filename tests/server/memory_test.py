# SPDX-License-Identifier: Apache-2.0
"""Hostile requests of every kind against a server that may have its plan and 512 MiB: it is not killed, and
answers afterwards. In a cgroup (v2, whose memory controller this process may use); where there is none, with
the same number as a limit of its data (RLIMIT_DATA), and the largest resident memory is held to it. Which
of the two it was is said: a limit of data makes allocations fail where a cgroup kills.

memory_test.py HEARTH [--count N]"""
import argparse
import concurrent.futures
import contextlib
import http.client
import os
import pathlib
import random
import resource
import sys

from attack_rig import arena, send
from attacks import bodies
from serving import expect, record, same

MIB = 1 << 20


def own_group():
    """The folder of this process's cgroup, where it may make others with a memory limit; else None."""
    for line in pathlib.Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        if line.startswith("0::"):
            folder = pathlib.Path("/sys/fs/cgroup" + line[3:])
            with contextlib.suppress(OSError):
                if "memory" in (folder / "cgroup.subtree_control").read_text(encoding="utf-8").split() and os.access(
                        folder, os.W_OK):
                    return folder
    return None


class Cage:
    """What holds the server to its memory."""

    def __init__(self, pid, most_bytes):
        self.pid, self.most_bytes, self.folder = pid, most_bytes, None
        parent = own_group()
        if parent is None:
            print("NOTICE: no cgroup v2 with a memory controller here: RLIMIT_DATA and the peak stand in for it")
            resource.prlimit(pid, resource.RLIMIT_DATA, (most_bytes, most_bytes))
            return
        self.folder = parent / f"hearth-memory-{os.getpid()}"
        self.folder.mkdir()
        (self.folder / "memory.max").write_text(str(most_bytes), encoding="utf-8")
        (self.folder / "cgroup.procs").write_text(str(pid), encoding="utf-8")

    def check(self):
        if self.folder:
            events = dict(line.split() for line in (self.folder / "memory.events").read_text(
                encoding="utf-8").splitlines())
            same(events["oom_kill"], "0", "kills")
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        most = next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))
        expect(most <= self.most_bytes, f"{most / MIB:.0f} MiB resident, {self.most_bytes / MIB:.0f} allowed")
        return most


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=300)
    args = parser.parse_args()
    made = [(name, *make()) for name, make in bodies.BODIES.items()]
    kinds = [(name, path, bodies.text(body)) for name, path, body in made]
    random.seed(16)
    with arena(args.program) as a:
        cage = Cage(a.pid, int((a.planned_mib + 512) * MIB))
        statuses = {}

        def one(number):
            name, path, body = kinds[number % len(kinds)]
            try:
                if random.random() < 0.2:  # and leaves
                    send(a.port, path, a.keys["mallory"], body).close()
                    return
                status = a.ask("POST", path, body, timeout=600)[0]
            except (OSError, http.client.HTTPException):
                status = "cut"
            expect(status in bodies.FINE | {"cut"}, f"{name}: {status}")
            statuses[status] = statuses.get(status, 0) + 1

        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            for _ in pool.map(one, range(args.count)):
                pass
        same(a.pid, a.server.worker_pid(), "the process that was started")
        same(a.ask("POST", "/v1/completions", {"prompt": "x", "max_tokens": 2}, key="victim")[0], 200, "afterwards")
        print(f"{args.count} requests, answers {statuses}, at most {cage.check() / MIB:.0f} MiB resident of "
              f"{cage.most_bytes / MIB:.0f} allowed")
        record("memory", args.count, requests=args.count, answers={str(k): v for k, v in statuses.items()},
               peak_mib=round(cage.check() / MIB), allowed_mib=round(cage.most_bytes / MIB),
               limit="memory.max" if cage.folder else "RLIMIT_DATA")
        if cage.folder:
            print(f"in {cage.folder}, which is removed with the server")
    if cage.folder:
        cage.folder.rmdir()


if __name__ == "__main__":
    sys.exit(main())

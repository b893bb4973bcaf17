# SPDX-License-Identifier: Apache-2.0
"""Fails one allocation or one system call of a program that runs under preload.cc, whose page this
writes. A server under it, scenarios swept index by index, and what must be true afterwards."""
import collections
import contextlib
import ctypes
import errno
import json
import mmap
import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile
import time

for room in ("server", "support"):
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / room))
from results import record  # for those who import from here as well
from serving import expect, serving, work_model  # likewise

MEMORY, SYSTEM_CALLS = 1, 2
MAIN, HTTP, TEXT, ENGINE, TIER, BOOKS, OTHER = (1 << i for i in range(7))
NEW, MALLOC = 1, 2
SHORT = -1
# In the order of preload_calls.cc.
CALLS = ("read write readv writev pread pwrite open fsync rename accept receive send map epoll_wait "
         "epoll_control unlink truncate stat allocate make_folder socket connect eventfd poll lock").split()
ERRORS = {"EINTR": errno.EINTR, "EIO": errno.EIO, "ENOSPC": errno.ENOSPC, "EMFILE": errno.EMFILE,
          "ENOMEM": errno.ENOMEM, "ECONNRESET": errno.ECONNRESET, "short": SHORT}


class Page(ctypes.Structure):
    _fields_ = [("mode", ctypes.c_uint32), ("threads", ctypes.c_uint32), ("calls", ctypes.c_uint64),
                ("error", ctypes.c_int32), ("repeat", ctypes.c_int32), ("index", ctypes.c_int64),
                ("seen", ctypes.c_int64), ("failed", ctypes.c_int64), ("what", ctypes.c_char * 32),
                ("num_frames", ctypes.c_int64), ("frames", ctypes.c_uint64 * 24),
                ("clock_offset_s", ctypes.c_int64)]


class Faults:
    """The page, and the environment of a program that has it."""

    def __init__(self, library, folder):
        self.path = os.path.join(folder, "faults")
        pathlib.Path(self.path).write_bytes(bytes(ctypes.sizeof(Page)))
        with open(self.path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 0)
        self.page = Page.from_buffer(self.map)
        # No reports of leaks and no cores: the process may be ended on purpose.
        self.env = {**os.environ, "LD_PRELOAD": library, "FAULTS_PAGE": self.path,
                    "HEARTH_CONFIG": "/dev/null"}

    def arm(self, mode, threads, calls, index, error=0, repeat=1):
        page = self.page
        page.mode = 0
        page.what, page.num_frames = b"", 0
        page.threads, page.calls, page.error, page.repeat = threads, calls, error, repeat
        page.index, page.seen, page.failed = index, 0, 0
        page.mode = mode

    def disarm(self):
        """Whether anything failed since."""
        self.page.mode = 0
        return self.page.failed > 0

    def where(self, pid):
        """The stack of the last fault, as far as addr2line knows it."""
        frames = [self.page.frames[i] for i in range(self.page.num_frames)]
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            parts = pathlib.Path(f"/proc/{pid}/maps").read_text(encoding="utf-8").splitlines()
            base = int(next(p for p in parts if p.endswith("bin/hearth")).split("-")[0], 16)
            program = os.readlink(f"/proc/{pid}/exe")
            offsets = [hex(f - base) for f in frames if f > base]
            found = subprocess.run(["addr2line", "-Cfpse", program, *offsets], capture_output=True,
                                   text=True, check=True)
            return self.page.what.decode() + "\n" + found.stdout
        return self.page.what.decode()


class Rig:
    """A server whose parts can be failed."""

    def __init__(self, server, faults):
        self.server, self.faults = server, faults
        self.counts = collections.Counter()

    def status(self):
        return json.loads(self.server.request("GET", "/status", timeout=30)[2])

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.server.process.pid}/fd"))

    def expect_alive(self, what):
        code = self.server.process.poll()
        if code is not None:
            log = self.server.process.stderr.read()[-3000:]
            sys.exit(f"FAILED: the server died ({code}) after {what} of {self.faults.page.what.decode()}: {log}")

    def expect_idle(self, descriptors, what, bound=30):
        """Everything that requests held is given back."""
        end = time.monotonic() + bound
        while True:
            now = self.status()
            held = (now["requests"]["running"], now["requests"]["waiting"], now["requests"]["paused"],
                    sum(group["held"] for group in now["kv"]),
                    sum(now["request_memory"]["held_bytes"].values()), now["request_memory"]["clients"])
            # The connection that asks is one of them.
            open_now = self.descriptors()
            if not any(held) and open_now <= descriptors:
                return
            if time.monotonic() > end:
                sys.exit(f"FAILED: after {what}: running, waiting, paused, blocks, bytes, clients {held}; "
                         f"{open_now} descriptors, before {descriptors}\n{json.dumps(now)}")
            time.sleep(0.02)


@contextlib.contextmanager
def failing_server(program, library, model, *flags, clock_offset_s=0):
    with tempfile.TemporaryDirectory() as folder:
        faults = Faults(library, folder)
        faults.page.clock_offset_s = clock_offset_s
        with serving(program, model, "--no-supervisor", "--threads", "1", *flags, env=faults.env) as server:
            yield Rig(server, faults)


def share_among(servers, names, sweep):
    """What `sweep`, a function of names and a number, found with each server's share of them, in processes of
    their own: a sweep mostly waits for its one request."""
    shares = [names[i::servers] for i in range(servers)]
    if servers == 1:
        return [sweep(names, 0)]
    context = multiprocessing.get_context("fork")
    out = context.Queue()

    def run(i):
        try:
            out.put((i, sweep(shares[i], i), ""))
        except SystemExit as failure:
            print(failure, flush=True)  # at once: the others may go on for long
            out.put((i, None, str(failure)[:2000]))

    processes = [context.Process(target=run, args=(i,)) for i in range(servers)]
    for process in processes:
        process.start()
    found = sorted((out.get() for _ in processes), key=lambda each: each[0])
    for process in processes:
        process.join()
    for _, _, failure in found:
        expect(not failure, failure)
    return [each for _, each, _ in found]

# SPDX-License-Identifier: Apache-2.0
"""A control group with so much processor time, below the root of version 1's or version 2's CPU controller. Needs root."""
import contextlib
import os
import pathlib


class CpuGroup:
    """Exists until `remove`, or the end of a `with`."""

    def __init__(self, name="group"):
        old = pathlib.Path("/sys/fs/cgroup/cpu")
        self.is_old = old.is_dir()
        self.folder = (old if self.is_old else pathlib.Path("/sys/fs/cgroup")) / f"hearth-{os.getpid()}-{name}"
        self.folder.mkdir()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.rmdir()

    def remove(self):
        """As far as nobody is left in it."""
        with contextlib.suppress(OSError):
            self.folder.rmdir()

    def write(self, name, value):
        (self.folder / name).write_text(str(value), encoding="ascii")

    def limit(self, processors, period_us=100_000):
        """So many processors' worth of time; None: no limit."""
        quota = None if processors is None else int(processors * period_us)
        if self.is_old:
            self.write("cpu.cfs_period_us", period_us)
            self.write("cpu.cfs_quota_us", quota or -1)
        else:
            self.write("cpu.max", f"{quota or 'max'} {period_us}")

    def prefer(self):
        """So much weight that only the limit counts, whatever else runs."""
        self.write(*(("cpu.shares", 262144) if self.is_old else ("cpu.weight", 10000)))

    def join(self):
        """For the child, before it becomes the program."""
        self.write("cgroup.procs", 0)

    def wrapped(self, command):
        """The same command, in this group from its first instruction on."""
        return ["sh", "-c", f'echo $$ > {self.folder}/cgroup.procs; exec "$@"', "sh", *command]

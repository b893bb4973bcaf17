# SPDX-License-Identifier: Apache-2.0
"""Replicas that share a machine, each with a share of its processor time that no other can take and that it
cannot exceed, whatever the others do: as if each had a slower machine of its own. Needs root."""
import atexit
import contextlib
import os
import pathlib

from fleet import Replica

PERIOD_US = 10_000  # short, so that a pause between two shares is no longer than a step


class CpuShare:
    """A control group, of the older or the newer kind."""

    def __init__(self, name, processors):
        old = pathlib.Path("/sys/fs/cgroup/cpu")
        self.folder = (old if old.is_dir() else pathlib.Path("/sys/fs/cgroup")) / f"hearth-{os.getpid()}-{name}"
        self.folder.mkdir()
        atexit.register(self.remove)
        quota = int(processors * PERIOD_US)
        if old.is_dir():
            self.write("cpu.cfs_period_us", PERIOD_US)
            self.write("cpu.cfs_quota_us", quota)
        else:
            self.write("cpu.max", f"{quota} {PERIOD_US}")

    def write(self, name, value):
        (self.folder / name).write_text(str(value), encoding="ascii")

    def wrapped(self, command):
        """The same command, in this group from its first instruction on."""
        return ["sh", "-c", f'echo $$ > {self.folder}/cgroup.procs; exec "$@"', "sh", *command]

    def remove(self):
        with contextlib.suppress(OSError):
            self.folder.rmdir()


class SharedReplica(Replica):
    """`share`: None for no limit."""

    def __init__(self, program, model, share, *flags, **place):
        self.share = share
        super().__init__(program, model, *flags, **place)

    def command(self):
        words = super().command()
        return words if self.share is None else self.share.wrapped(words)

# SPDX-License-Identifier: Apache-2.0
"""Replicas that share a machine, each with a share of its processor time that no other can take and that it
cannot exceed, whatever the others do: as if each had a slower machine of its own. Needs root."""
import atexit

from fleet import Replica
from cpu_group import CpuGroup  # after fleet, which knows where it is

PERIOD_US = 10_000  # short, so that a pause between two shares is no longer than a step


class CpuShare(CpuGroup):
    def __init__(self, name, processors):
        super().__init__(name)
        atexit.register(self.remove)
        self.limit(processors, PERIOD_US)


class SharedReplica(Replica):
    """`share`: None for no limit."""

    def __init__(self, program, model, share, *flags, **place):
        self.share = share
        super().__init__(program, model, *flags, **place)

    def command(self):
        words = super().command()
        return words if self.share is None else self.share.wrapped(words)

# SPDX-License-Identifier: Apache-2.0
"""What a server's requests cost in processor time, whatever else the machine is doing."""
import glob
import time


def tree_of(pid):
    """The process and its children: a supervisor's worker is one."""
    found, pids = [], [pid]
    while pids:
        found.append(pids[0])
        for path in glob.glob(f"/proc/{pids.pop(0)}/task/*/children"):
            with open(path, encoding="ascii") as file:
                pids += [int(word) for word in file.read().split()]
    return found


def spent(pids):
    """Seconds on a processor so far, of all threads there are, to the nanosecond."""
    total = 0
    for pid in pids:
        for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
            try:
                with open(path, encoding="ascii") as file:
                    total += int(file.read().split()[0])
            except (FileNotFoundError, ProcessLookupError):
                pass  # a thread that ended; servers' threads do not
    return total / 1e9


class Meter:
    """with Meter(server) as meter: ...; meter.seconds"""

    def __init__(self, pids):
        self.pids, self.seconds = pids, 0.0

    def __enter__(self):
        self.before = spent(self.pids)
        return self

    def __exit__(self, *_):
        # What is done after the answer (logs, freeing) belongs to it.
        last = spent(self.pids)
        for _ in range(20):
            time.sleep(0.001)
            now = spent(self.pids)
            if now - last < 0.0002:
                break
            last = now
        self.seconds = now - self.before

# SPDX-License-Identifier: Apache-2.0
"""Level x nodes x threads x quota: bitwise_test's matrix in cgroups that pay for 0.5, 1 and 1.5 processors, and in
none. At least 3,000 sequences, none with another bit.

matrix_test.py BITWISE_TEST [--quick: one quota, one sequence of each kind, for CI]"""
import os
import pathlib
import re
import subprocess
import sys

QUOTAS = (0.5, 1, 1.5, None)
LEAST = 3000
PERIOD_US = 100_000


class Group:
    """A group of version 1's or version 2's CPU controller, for as long as it is open."""

    def __init__(self, quota):
        old = pathlib.Path("/sys/fs/cgroup/cpu")
        self.folder = (old if old.is_dir() else pathlib.Path("/sys/fs/cgroup")) / f"hearth-matrix-{os.getpid()}"
        self.quota, self.is_old = quota, old.is_dir()

    def __enter__(self):
        if self.quota is None:
            return None
        self.folder.mkdir()
        limit = str(int(self.quota * PERIOD_US))
        if self.is_old:
            (self.folder / "cpu.cfs_period_us").write_text(str(PERIOD_US), encoding="ascii")
            (self.folder / "cpu.cfs_quota_us").write_text(limit, encoding="ascii")
        else:
            (self.folder / "cpu.max").write_text(f"{limit} {PERIOD_US}", encoding="ascii")
        return self.folder / "cgroup.procs"

    def __exit__(self, *_):
        if self.quota is not None:
            self.folder.rmdir()


def run(program, quota, environment):
    with Group(quota) as procs:
        join = f"echo $$ > {procs}; " if procs else ""
        ran = subprocess.run(["sh", "-c", f'{join}exec "$0" --gtest_filter=Matrix.*', program], capture_output=True,
                             text=True, check=False, env=environment)
    found = re.search(r"matrix: (\d+) cases on (\d+) levels, 0 differing", ran.stdout)
    if ran.returncode or not found:
        sys.exit(f"FAILED: quota {quota}: {ran.stdout[-3000:]}{ran.stderr[-500:]}")
    print(f"quota {quota or 'none'}: {found.group(0)}", flush=True)
    return int(found.group(1))


def main():
    is_quick = "--quick" in sys.argv
    environment = {name: value for name, value in os.environ.items() if name != "HEARTH_QUICK"}
    if is_quick:
        environment["HEARTH_QUICK"] = "1"
    try:
        total = sum(run(sys.argv[1], quota, environment) for quota in ((1.5,) if is_quick else QUOTAS))
    except OSError as error:
        print(f"SKIPPED LOUDLY: no CPU controller that this process may use: {error}")
        return
    print(f"{total} cases, 0 differing")
    if total < LEAST and not is_quick:
        sys.exit(f"FAILED: {total} cases, at least {LEAST} are wanted")


main()

# SPDX-License-Identifier: Apache-2.0
"""Level x nodes x threads x quota: bitwise_test's matrix in cgroups that pay for 0.5, 1 and 1.5 processors, and in
none. At least 3,000 sequences, none with another bit.

matrix_test.py BITWISE_TEST [--quick: one quota, one sequence of each kind, for CI]"""
import contextlib
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from cpu_group import CpuGroup

QUOTAS = (0.5, 1, 1.5, None)
LEAST = 3000


def run(program, quota, environment):
    command = [program, "--gtest_filter=Matrix.*"]
    with contextlib.ExitStack() as stack:
        if quota is not None:
            group = stack.enter_context(CpuGroup("matrix"))
            group.limit(quota)
            command = group.wrapped(command)
        ran = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
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

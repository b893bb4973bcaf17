# SPDX-License-Identifier: Apache-2.0
"""Processors that are not here, by qemu-x86_64 (user mode): the kept hashes of logits and the kernels' tests on an
emulated Haswell, which has AVX2 and nothing above, and on a Nehalem, which has not even that.

qemu_test.py CPU_TEST BITWISE_TEST"""
import os
import re
import shutil
import subprocess
import sys

# Model and what must be its levels. The emulator has no AVX-512 and no AVX-VNNI.
PROCESSORS = {"Nehalem": 1, "Haswell": 2, "EPYC": 2}


def run(processor, program, tests):
    command = ["qemu-x86_64", "-cpu", processor, program, f"--gtest_filter={tests}"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False,
                         env=dict(os.environ, HEARTH_WORK="/nonexistent"))
    if ran.returncode or " FAILED " in ran.stdout:
        sys.exit(f"FAILED: {processor}, {tests}: {ran.stdout[-3000:]}{ran.stderr[-1000:]}")
    return ran.stdout


def main():
    kernels, bitwise = sys.argv[1:]
    if not shutil.which("qemu-x86_64"):
        print("SKIPPED LOUDLY: no qemu-x86_64 (apt-get install qemu-user)")
        return
    for processor, levels in PROCESSORS.items():
        out = run(processor, bitwise, "*LogitHashes.*")
        found = re.search(r"(\d+) sequences on (\d+) instruction sets have the hashes kept", out)
        if not found or int(found.group(2)) != levels:
            sys.exit(f"FAILED: {processor}: expected {levels} levels: {out[-2000:]}")
        print(f"{processor}: {found.group(0)}", flush=True)
    out = run("Haswell", kernels, "All/*avx2")
    passed = re.search(r"PASSED  \] (\d+) tests", out)
    if not passed or "SKIPPED" in out:
        sys.exit(f"FAILED: AVX2's kernels did not run: {out[-2000:]}")
    print(f"Haswell: {passed.group(1)} tests of AVX2's kernels passed", flush=True)


main()

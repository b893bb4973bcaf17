# SPDX-License-Identifier: Apache-2.0
"""Runs every gate, or those named, and prints one line for each: `run.py ROOT [NAME...]`."""
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
NOT_GATES = {"run", "tree"}


def run(name, root):
    start = time.monotonic()
    done = subprocess.run([sys.executable, str(HERE / f"{name}.py"), root],
                          capture_output=True, text=True, check=False)
    return name, done.returncode, (done.stdout + done.stderr).strip(), time.monotonic() - start


def main():
    root, wanted = sys.argv[1], sys.argv[2:]
    known = sorted(path.stem for path in HERE.glob("*.py") if path.stem not in NOT_GATES)
    unknown = set(wanted) - set(known)
    if unknown:
        sys.exit(f"no gate named {', '.join(sorted(unknown))}; there are: {' '.join(known)}")
    failed = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, code, text, seconds in pool.map(lambda name: run(name, root), wanted or known):
            if code == 0:
                print(f"ok    {name:<10} {seconds:5.1f} s  {text}")
            else:
                failed.append(name)
                print(f"FAIL  {name:<10} {seconds:5.1f} s\n{text}")
    if failed:
        sys.exit(f"gates failed: {' '.join(failed)}")


if __name__ == "__main__":
    main()

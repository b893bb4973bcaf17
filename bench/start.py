#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From exec to the first byte of a reply, and the most memory resident: python3 bench/start.py
PROGRAM MODEL [--runs N] [--warm] [--json]. One line per run; --warm reads the file into the
operating system's cache first."""
import argparse
import json
import os
import subprocess
import sys
import time


def warm(path):
    """Reads every byte, so that the run after it reads no disk."""
    with open(path, "rb", buffering=0) as file:
        piece = bytearray(8 << 20)
        while file.readinto(piece):
            pass


def peak_bytes(pid):
    """VmHWM, while the process is there."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def start(program, model, extra):
    """(seconds to the first byte, VmHWM then, VmHWM at the end, what the program said)."""
    command = [program, "run", "--model", model, "--prompt", "hi", "--max-tokens", "8",
               "--temperature", "0", *extra]
    begin = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        first = os.read(process.stdout.fileno(), 1)
        seconds = time.monotonic() - begin
        resident = peak_bytes(process.pid)
        process.stdout.read()
        told = process.stderr.read().decode("utf-8", "replace")
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0 or not first:
        sys.exit(f"{' '.join(command)}: exit {process.returncode}, {told}")
    return seconds, resident, usage.ru_maxrss * 1024, told.splitlines()[0] if told else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments, extra = parser.parse_known_args()
    for _ in range(arguments.runs):
        if arguments.warm:
            warm(arguments.model)
        seconds, first, last, told = start(arguments.program, arguments.model, extra)
        row = {"model": os.path.basename(arguments.model), "seconds": round(seconds, 2),
               "peak_gib": round(max(first, last) / 2**30, 2), "told": told}
        print(json.dumps(row) if arguments.json else
              f"{row['seconds']:6.2f} s to the first byte, {row['peak_gib']:.2f} GiB peak; {told}",
              flush=True)


main()

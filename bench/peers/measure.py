# SPDX-License-Identifier: Apache-2.0
"""Runs one program and writes down its time, its peak memory and what others did meanwhile.

Usage: measure.py [--warm FILE] OUT.json PROGRAM [ARGUMENTS]. OUT.json also gets its output. The
clock starts here and not in the caller, so that a wrapper may make the program wait its turn first.
"""
import json
import os
import subprocess
import sys
import tempfile
import time


def cpu_ticks():
    """Busy ticks of all processors; time stolen by a hypervisor counts as busy."""
    with open("/proc/stat", encoding="ascii") as file:
        fields = [int(field) for field in file.readline().split()[1:9]]
    return sum(fields) - fields[3] - fields[4]


def read_through(path):
    """Brings a file into the page cache as far as memory allows."""
    with open(path, "rb", buffering=0) as file:
        while file.read(1 << 24):
            pass


def run(command):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        busy, start = cpu_ticks(), time.monotonic()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        room = seconds * os.cpu_count()
        others = (cpu_ticks() - busy) / os.sysconf("SC_CLK_TCK") - usage.ru_utime - usage.ru_stime
        out.seek(0)
        err.seek(0)
        return {"seconds": seconds, "peak_bytes": usage.ru_maxrss * 1024,
                "others": max(0.0, others / room), "exit": process.returncode,
                "out": out.read().decode("utf-8", "replace"),
                "err": err.read().decode("utf-8", "replace")[-4000:]}


def main():
    arguments = sys.argv[1:]
    if arguments[0] == "--warm":
        read_through(arguments[1])
        arguments = arguments[2:]
    result = run(arguments[1:])
    with open(arguments[0], "w", encoding="utf-8") as file:
        json.dump(result, file)


if __name__ == "__main__":
    main()

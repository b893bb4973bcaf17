# SPDX-License-Identifier: Apache-2.0
"""What a container may refuse: each costs one line on stderr, none ends the program, and the reply
stays the same. The kernel refuses by a seccomp filter, as container runtimes do it; a root that cannot be
written to is made in a mount namespace, as they do that too."""
import ctypes
import errno
import os
import struct
import subprocess
import sys

from models import expect, work_model

MODEL = work_model("smollm2.gguf")
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, MODE_FILTER = 22, 38, 2
REFUSE, ALLOW = 0x00050000 | errno.EPERM, 0x7FFF0000
LOAD, IF_EQUAL, RETURN = 0x20, 0x15, 0x06
MADVISE, ARCH_PRCTL, SCHED_SETAFFINITY, MBIND, SET_MEMPOLICY, IO_URING_SETUP = 28, 158, 203, 237, 238, 425
HUGE_PAGES = (MADVISE, 2, 14)  # the third argument is MADV_HUGEPAGE
TILES = (ARCH_PRCTL, 0, 0x1023)  # the first one is ARCH_REQ_XCOMP_PERM


def program(calls):
    """A filter that refuses system calls: numbers, or (number, argument, value)."""
    out = []
    for call in calls:
        number, *where = call if isinstance(call, tuple) else (call,)
        out.append((LOAD, 0, 0, 0))
        if where:
            out += [(IF_EQUAL, 0, 3, number), (LOAD, 0, 0, 16 + 8 * where[0]),
                    (IF_EQUAL, 0, 1, where[1]), (RETURN, 0, 0, REFUSE)]
        else:
            out += [(IF_EQUAL, 0, 1, number), (RETURN, 0, 0, REFUSE)]
    return out + [(RETURN, 0, 0, ALLOW)]


def refuse(calls):
    """For the child, before it becomes the program."""
    libc = ctypes.CDLL(None, use_errno=True)
    steps = program(calls)
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    table = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
    libc.prctl.argtypes = [ctypes.c_int] + 4 * [ctypes.c_ulong]
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
            PR_SET_SECCOMP, MODE_FILTER, ctypes.addressof(table), 0, 0):
        os._exit(77)


def reply(*flags, without=(), inside=()):
    command = [*inside, sys.argv[1], "run", "--model", MODEL, "--temperature", "0", "--max-tokens", "8",
               "--prompt", "What is the capital of France?", "--threads", "2", *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False,
                          preexec_fn=(lambda: refuse(without)) if without else None)
    if done.returncode == 77:
        sys.exit("SKIPPED LOUDLY: this system does not let a process refuse system calls")
    expect(done.returncode == 0, f"without {without}: exit {done.returncode}: {done.stderr}")
    warnings = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
    return done.stdout, warnings


READ_ONLY = ("unshare", "--mount", "sh", "-c", 'mount -o remount,bind,ro / && ! touch /written 2>/dev/null && exec "$0" "$@"')


def check_read_only(usual):
    """All of the root file system, with the home and /tmp in it."""
    if subprocess.run([*READ_ONLY, "true"], capture_output=True, check=False).returncode:
        print("SKIPPED LOUDLY: this process may not make a read-only root")
        return
    out, warnings = reply(inside=READ_ONLY)
    expect(out == usual and warnings == [], f"on a read-only root: {out!r}, {warnings}")
    print("read-only root: same reply, no warning")


def main():
    usual, warnings = reply()
    expect(warnings == [], f"nothing is missing here: {warnings}")
    has_tiles = "amx_int8" in open("/proc/cpuinfo", encoding="ascii").read()
    cases = [((SCHED_SETAFFINITY,), ["sched_setaffinity"]), ((HUGE_PAGES,), ["huge pages"]),
             ((TILES,), ["AMX"] if has_tiles else []), ((MBIND, SET_MEMPOLICY, IO_URING_SETUP), []),
             ((SCHED_SETAFFINITY, HUGE_PAGES, TILES, MBIND, SET_MEMPOLICY, IO_URING_SETUP),
              ["AMX", "sched_setaffinity", "huge pages"] if has_tiles else
              ["sched_setaffinity", "huge pages"])]
    for without, told in cases:
        out, warnings = reply(without=without)
        expect(out == usual, f"without {without}: {out!r}, usually {usual!r}")
        expect(len(warnings) == len(told) and all(word in line for word, line in zip(told, warnings)),
               f"without {without}: expected a line each for {told}, found {warnings}")
    for nodes in ("off", "2", "3"):
        expect(reply("--numa", nodes)[0] == usual, f"--numa {nodes} changed the reply")
    check_read_only(usual)
    print("5 sets of refusals and 3 of memory nodes: same reply, one line for each that matters")


main()

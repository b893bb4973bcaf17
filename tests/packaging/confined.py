# SPDX-License-Identifier: Apache-2.0
"""Runs the command of the installed unit inside a root as systemd would: its user, folders, limits,
read-only system, no capabilities, no memory that can be written and executed, and its filter of system
calls. usage: confined.py ROOT, as root; NOTIFY_SOCKET is passed on."""
import ctypes
import os
import pathlib
import re
import resource
import struct
import subprocess
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
NEW_MOUNTS = 0x00020000
SET_NO_NEW_PRIVS, DROP_BOUND, SET_SECCOMP, SET_MDWE = 38, 24, 22, 65
UNIT = "lib/systemd/system/hearth.service"


def must(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), what)


def unit_of(root):
    """{key: [values]} of the unit's [Service]."""
    path = next(p for p in (root / UNIT, root / "usr" / UNIT) if p.exists())
    found = {}
    for line in path.read_text().splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(key, []).append(value)
    return found


def own_folders(root, unit, uid, gid):
    """StateDirectory and RuntimeDirectory, which alone can be written."""
    made = []
    for key, above, mode in (("StateDirectory", "var/lib", unit["StateDirectoryMode"][0]),
                             ("RuntimeDirectory", "run", "0755")):
        folder = root / above / unit[key][0]
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(int(mode, 8))
        os.chown(folder, uid, gid)
        made.append(folder)
    return made


def mount(*words):
    subprocess.run(["mount", *map(str, words)], check=True)


def confine_files(root, writable):
    """ProtectSystem=strict, ProtectHome, PrivateTmp, PrivateDevices, ProtectProc."""
    must(LIBC.unshare(NEW_MOUNTS), "unshare")
    mount("--make-rprivate", "/")
    mount("--bind", root, root)
    # Before the root becomes read-only: a bind takes that over from where it is made.
    for folder in writable:
        mount("--bind", folder, folder)
    mount("-o", "remount,bind,ro", root)
    for empty in ("tmp", "root", "home", "dev"):
        mount("-t", "tmpfs", "-o", "mode=0755", "none", root / empty)
    for device in ("null", "zero", "urandom"):
        (root / "dev" / device).touch()
        mount("--bind", f"/dev/{device}", root / "dev" / device)
    mount("-t", "proc", "-o", "hidepid=invisible", "proc", root / "proc")


def call_sets():
    """{"@set": {names}} as systemd has them, sets of sets resolved."""
    sets, name = {}, ""
    listed = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager"], check=True,
                            capture_output=True, text=True).stdout
    for line in listed.splitlines():
        if line.startswith("@"):
            name = line.strip()
            sets[name] = []
        elif line.startswith("#"):
            name = ""
        elif name and line.strip() and not line.strip().startswith("#"):
            sets[name].append(line.strip())

    def resolve(word):
        return {word} if not word.startswith("@") else set().union(*map(resolve, sets[word]))
    return {each: resolve(each) for each in sets}


def allowed_calls(unit):
    """The numbers of SystemCallFilter's calls."""
    sets = call_sets()
    names = set(sets["@default"])
    for line in unit["SystemCallFilter"]:
        for word in line.removeprefix("~").split():
            named = sets.get(word, {word})  # a set or a single call
            names = names - named if line.startswith("~") else names | named
    names |= sets["@default"]
    header = pathlib.Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h").read_text()
    numbers = dict(re.findall(r"#define __NR_(\w+) (\d+)", header))
    return sorted(int(numbers[name]) for name in names if name in numbers)


def filter_calls(numbers):
    """Everything else fails with EPERM, as SystemCallErrorNumber says."""
    def step(code, when, unless, value):
        return struct.pack("HBBI", code, when, unless, value)
    load, equals, give = 0x20, 0x15, 0x06
    allow, kill, refuse = 0x7fff0000, 0x80000000, 0x00050000 | 1
    steps = [step(load, 0, 0, 4), step(equals, 1, 0, 0xc000003e), step(give, 0, 0, kill),
             step(load, 0, 0, 0)]
    for number in numbers:
        steps += [step(equals, 0, 1, number), step(give, 0, 0, allow)]
    steps.append(step(give, 0, 0, refuse))
    code = ctypes.create_string_buffer(b"".join(steps))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code)))
    must(LIBC.prctl(SET_SECCOMP, 2, ctypes.c_void_p(ctypes.addressof(program)), 0, 0), "seccomp")


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    unit = unit_of(root)
    users = (root / "etc/passwd").read_text()
    uid, gid = map(int, re.search(rf"^{unit['User'][0]}:[^:]*:(\d+):(\d+):", users, re.MULTILINE).groups())
    calls = allowed_calls(unit)
    confine_files(root, own_folders(root, unit, uid, gid))
    # Where even root may not raise the limit, it is this machine's.
    files = min(int(unit["LimitNOFILE"][0]), resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    os.chroot(root)
    os.chdir(unit["WorkingDirectory"][0])
    os.umask(int(unit["UMask"][0], 8))
    for capability in range(int(pathlib.Path("/proc/sys/kernel/cap_last_cap").read_text()) + 1):
        must(LIBC.prctl(DROP_BOUND, capability, 0, 0, 0), "capabilities")
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)
    must(LIBC.prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
    if LIBC.prctl(SET_MDWE, 1, 0, 0, 0) != 0:
        print("confined: this kernel cannot forbid memory that is both written and executed", file=sys.stderr)
    environment = dict(each.split("=", 1) for each in unit["Environment"])
    environment |= {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "NOTIFY_SOCKET": os.environ["NOTIFY_SOCKET"]}
    words = unit["ExecStart"][0].split()
    filter_calls(calls)
    os.execve(words[0], words, environment)


main()

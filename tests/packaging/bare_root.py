# SPDX-License-Identifier: Apache-2.0
"""A bare root file system with nothing but its distribution's base, and commands inside of it."""
import os
import shutil
import subprocess

from made import expect, run

CLEAN = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8",
         "DEBIAN_FRONTEND": "noninteractive"}
MIRRORS = {"jammy": "http://archive.ubuntu.com/ubuntu",
           "noble": "http://archive.ubuntu.com/ubuntu"}  # others: debootstrap's own
# An older debootstrap knows no newer Ubuntu, but all of them are made in the same way.
SCRIPTS = {"noble": "/usr/share/debootstrap/scripts/jammy"}
# /proc and /sys as every machine has them; both are gone when the command is.
ENTER = 'mount -t proc proc "$0/proc" && mount --rbind /sys "$0/sys" && exec chroot "$0" "$@"'


def why_not(program="debootstrap"):
    """What is missing for making roots with `program` here; empty when nothing is."""
    if os.geteuid() != 0:
        return "needs root"
    if not shutil.which(program):
        return f"needs {program}"
    if run("unshare", "--mount", "--pid", "--fork", "true")[0] != 0:
        return "needs the right to mount"
    return ""


class Root:
    """`folder` must not exist yet. The network is this machine's, the loopback included."""

    def __init__(self, suite, folder):
        self.folder = folder
        # This machine need not have the keys of another distribution; nothing from there is kept.
        extra = ["--no-check-gpg"] if suite in MIRRORS else []
        more = [MIRRORS[suite]] if suite in MIRRORS else []
        code, out, err = run("debootstrap", "--variant=minbase", *extra, suite, folder, *more,
                             *([SCRIPTS[suite]] if suite in SCRIPTS else []))
        expect(code == 0, f"debootstrap {suite}: {(out + err)[-500:]}")
        shutil.copy("/etc/resolv.conf", folder / "etc/resolv.conf")

    def line(self, *command):
        """What runs `command` inside."""
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER,
                str(self.folder), *map(str, command)]

    def inside(self, *command, **more):
        """(exit code, stdout, stderr)"""
        return run(*self.line(*command), env={**CLEAN, **more}, timeout=300)

    def shown(self, *command, **more):
        """(exit code, what a person would see of both outputs)"""
        done = subprocess.run(self.line(*command), env={**CLEAN, **more}, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, timeout=300)
        return done.returncode, done.stdout

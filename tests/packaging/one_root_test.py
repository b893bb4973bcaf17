# SPDX-License-Identifier: Apache-2.0
"""The .deb on one bare root, made of this machine's own packages (own_root.py): its list of
dependencies is complete, and from there to the first answer are three commands. Asks nobody on the
network; the roots that debootstrap makes are bare_test.py's. Wants root and a Debian: else it is
skipped, with exit code 77. usage: one_root_test.py BUILD"""
import pathlib
import shutil
import sys
import tempfile

from bare_root import why_not
from first_answer import answer_on
from made import expect, package, version
from own_root import OwnRoot

SKIPPED = 77
SYSUSERS = "systemd | systemd-standalone-sysusers"


def check(folder):
    deb, _ = package("deb", folder)
    root = OwnRoot(folder / "root", deb)
    for name in ("bin/gcc", "bin/cmake", "bin/python3", "include/boost", "bin/hearth"):
        expect(not (root.folder / "usr" / name).exists(), f"bare: no {name}")
    # The machine that builds need not have what makes the service's user; all libraries it has.
    expect(not set(root.missing) - {SYSUSERS}, f"what it depends on is here: {root.missing}")
    install = ["dpkg", "-i"]
    if root.missing:
        print(f"SKIPPED: {SYSUSERS} is not installed here: the package is unpacked, not configured")
        install = ["dpkg", "--unpack"]
    shutil.copy(deb, root.folder / "media" / deb.name)
    transcript = answer_on(root, ([*install, f"/media/{deb.name}"], f"dpkg -i {deb.name}"), "hearth")
    expect(root.inside("hearth", "--version")[1].startswith(version()), "runs")
    code, out, err = root.inside("hearth", "config", "check")
    expect(code == 0 and "/etc/hearth/hearth.toml: ok" in out, f"its configuration: {out}{err}")
    if not root.missing:
        code, out, _ = root.inside("cat", "/etc/passwd")
        expect(code == 0 and "\nhearth:" in out, "its user")
    code, _, err = root.inside("hearth", "serve", HOME="/nonexistent")
    expect(code == 1 and "hearth pull" in err, f"says what is missing: {err}")
    install, pull, answer = transcript.seconds
    print(f"installed in {install:.1f} s, pulled in {pull:.1f} s, answered in {answer:.1f} s")


def main():
    missing = why_not("dpkg-query")
    if missing:
        print(f"SKIPPED LOUDLY: the package was tried on no bare root: {missing}")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as name:
        check(pathlib.Path(name))
    print("one root ok")


main()

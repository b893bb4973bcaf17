# SPDX-License-Identifier: Apache-2.0
"""A bare root made of this machine's own packages: Debian's essential ones and what a package depends
on, and nothing else. No mirror is asked, so it is the same every time and made in seconds."""
import os
import re
import shutil
import subprocess

from bare_root import Root
from made import expect, run

MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
FORMAT = "${Package}\t${Architecture}\t${Essential}\t${db:Status-Status}\t${Depends}, ${Pre-Depends}\t${Provides}\n"


class Installed:
    """dpkg's own list of what is installed here."""

    def __init__(self):
        self.files, self.depends, self.essential, self.named = {}, {}, [], {}
        for line in run("dpkg-query", "-W", "-f", FORMAT)[1].splitlines():
            name, kind, essential, state, depends, provides = line.split("\t")
            if state != "installed":
                continue
            self.files[name] = f"{name}:{kind}" if kind != "all" else name
            self.depends[name] = depends
            if essential == "yes":
                self.essential.append(name)
            for word in (name, *alternatives(provides.replace(",", "|"))):
                self.named.setdefault(word, name)

    def closure(self, wanted):
        """Those packages and all that they need; and what is needed and not here."""
        found, missing, line = set(), [], list(wanted)
        while line:
            each = line.pop()
            here = [self.named[word] for word in alternatives(each) if word in self.named]
            if not here:
                missing.append(each.strip())
            elif here[0] not in found:
                found.add(here[0])
                line += [one for one in self.depends[here[0]].split(",") if one.strip()]
        return sorted(found), missing


def alternatives(text):
    """`a (>= 1) | b:any` without versions and architectures."""
    return [re.split(r"[ (:]", one.strip())[0] for one in text.split("|") if one.strip()]


def depends_of(package):
    """Of a .deb."""
    return [one for one in run("dpkg-deb", "-f", package, "Depends")[1].split(",") if one.strip()]


class OwnRoot(Root):
    """`folder` must not exist yet."""

    def __init__(self, folder, package):
        self.folder = folder
        here = Installed()
        names, self.missing = here.closure([*here.essential, *depends_of(package)])
        folder.mkdir(mode=0o755)
        self.copy_files([here.files[name] for name in names])
        self.copy_database(names, here)
        for name, text in (("passwd", "root:x:0:0:root:/root:/bin/sh\n"), ("group", "root:x:0:\n"),
                           ("shadow", "root:*:1:0:99999:7:::\n")):
            (folder / "etc" / name).write_text(text)
        # Some names are links that a package's own script makes.
        if not os.path.lexists(folder / "usr/bin/sh"):
            (folder / "usr/bin/sh").symlink_to("dash")
        for place in ("proc", "sys", "dev", "tmp", "root", "media", "run", "var/tmp"):
            (folder / place).mkdir(parents=True, exist_ok=True)
        if not (folder / "dev/null").exists():
            os.mknod(folder / "dev/null", 0o666 | 0o020000, os.makedev(1, 3))
            os.chmod(folder / "dev/null", 0o666)
        code, _, err = self.inside("ldconfig")
        expect(code == 0, f"ldconfig: {err}")

    def copy_files(self, names):
        for name in MERGED:
            if os.path.islink(f"/{name}"):
                (self.folder / name).symlink_to(os.readlink(f"/{name}"))
                (self.folder / os.readlink(f"/{name}")).mkdir(parents=True, exist_ok=True)
        listed = run("dpkg-query", "-L", *names)[1].splitlines()
        paths = sorted({line[1:] for line in listed
                        if re.match(r"/[^.]", line) and not line.startswith("/usr/share/doc")
                        and line[1:] not in MERGED and os.path.lexists(line)})
        pack = subprocess.Popen(["tar", "-C", "/", "--no-recursion", "-cf", "-", "-T", "-"],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        unpack = subprocess.Popen(["tar", "-C", self.folder, "--keep-directory-symlink", "-xf", "-"],
                                  stdin=pack.stdout)
        pack.stdin.write("\n".join(paths).encode())
        pack.stdin.close()
        expect(unpack.wait() == 0 and pack.wait() == 0, "the packages' files are copied")

    def copy_database(self, names, here):
        """dpkg knows them inside, and nothing else."""
        place = self.folder / "var/lib/dpkg"
        for name in ("info", "updates", "triggers", "parts", "alternatives"):
            (place / name).mkdir(parents=True, exist_ok=True)
        with open("/var/lib/dpkg/status", encoding="utf-8") as file:
            stanzas = file.read().split("\n\n")
        kept = [each for each in stanzas if re.match(r"Package: (\S+)", each)
                and re.match(r"Package: (\S+)", each).group(1) in names]
        (place / "status").write_text("\n\n".join(kept) + "\n")
        (place / "available").touch()
        wanted = set(names) | {here.files[name] for name in names}
        for entry in os.scandir("/var/lib/dpkg/info"):
            if entry.name.rsplit(".", 1)[0] in wanted or entry.name == "format":
                shutil.copy(entry.path, place / "info" / entry.name)

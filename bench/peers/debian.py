# SPDX-License-Identifier: Apache-2.0
"""llama.cpp from Debian: a folder with a minimal Debian sid and its packages, no system change."""
import os
import pathlib
import shutil
import subprocess

PACKAGES = ["llama.cpp", "llama.cpp-tools-extra"]
# Which of llama.cpp's libraries has the instructions of one of our levels.
LIBRARIES = {"avx2": "haswell", "avxvnni": "alderlake", "avx512vnni": "cascadelake", "avx512": "icelake",
             "amx": "sapphirerapids"}
BACKENDS = "usr/lib/x86_64-linux-gnu/ggml/backends0"


def as_root(command):
    return command if os.geteuid() == 0 else ["sudo", *command]


class Sid:
    """The folder. Programs run inside it with chroot; models are linked into it. With a level they see
    the one library for it, mounted over the folder of all in a mount namespace of their own: there is
    no setting that keeps ggml from taking the best one."""

    def __init__(self, folder, level=None):
        self.folder, self.level = pathlib.Path(folder), level

    def ready(self):
        return (self.folder / "usr/bin/llama-batched-bench").exists()

    def install(self):
        """About a minute and 400 MB. Safe to repeat: an unfinished folder is made anew."""
        if self.ready():
            return
        if not shutil.which("debootstrap"):
            raise SystemExit("peers: debootstrap is missing: apt-get install debootstrap")
        print(f"peers: installing {' '.join(PACKAGES)} of Debian sid into {self.folder}")
        if self.folder.exists():
            subprocess.run(as_root(["rm", "-rf", "--one-file-system", str(self.folder)]),
                           check=True)
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(as_root(["debootstrap", "--variant=minbase", "sid", str(self.folder)]),
                       check=True, stdout=subprocess.DEVNULL)
        subprocess.run(as_root(["chroot", str(self.folder), "env", "DEBIAN_FRONTEND=noninteractive",
                                "apt-get", "install", "-y", "--no-install-recommends", *PACKAGES]),
                       check=True, stdout=subprocess.DEVNULL)
        if not self.ready():
            raise SystemExit(f"peers: {self.folder} has no llama-batched-bench after installing")

    def version(self):
        found = subprocess.run(as_root(["chroot", str(self.folder), "dpkg-query", "-W", "-f",
                                        "${Version}", "llama.cpp"]),
                               check=True, capture_output=True, text=True)
        return found.stdout.strip()

    def model(self, path):
        """The model's name inside the folder: a hard link, so nothing is copied or mounted."""
        inside = self.folder / "models" / path.name
        inside.parent.mkdir(exist_ok=True)
        if not inside.exists() or not inside.samefile(path):
            inside.unlink(missing_ok=True)
            os.link(path, inside)
        return f"/models/{path.name}"

    def backends(self):
        """A folder with the level's library alone."""
        found = self.folder / BACKENDS / f"libggml-cpu-{LIBRARIES[self.level]}.so"
        if not found.exists():
            raise SystemExit(f"peers: Debian's llama.cpp has no {found.name}")
        alone = self.folder / "levels" / self.level
        alone.mkdir(parents=True, exist_ok=True)
        if not (alone / found.name).exists():
            os.link(found, alone / found.name)
        return alone

    def command(self, *words):
        inside = ["chroot", str(self.folder), *words]
        if self.level is None:
            return as_root(inside)
        script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
        return as_root(["unshare", "--mount", "sh", "-c", script, "sh", str(self.backends()),
                        str(self.folder / BACKENDS), *inside])

# SPDX-License-Identifier: Apache-2.0
"""Folders that become packages: installing into them, and archives that are the same bits every time."""
import gzip
import hashlib
import io
import os
import pathlib
import shutil
import stat
import subprocess
import tarfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(*command, **options):
    """Runs a program; its failure ends ours with what it said."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          check=False, **options)
    if done.returncode != 0:
        raise SystemExit(f"package: {command[0]} failed ({done.returncode}): "
                         f"{done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def epoch():
    """The time that all packaged files get: $SOURCE_DATE_EPOCH, or that of the last commit."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    return int(run("git", "-C", ROOT, "log", "-1", "--format=%ct"))


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def install(build, folder, prefix):
    """`cmake --install` into `folder` as if it were the root of a system."""
    run("cmake", "--install", build, "--prefix", prefix, "--strip",
        env={**os.environ, "DESTDIR": str(folder)})


def settle(folder, when):
    """One mode for programs, one for the rest, and one time for all: what `umask` and the clock were
    must not show."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_symlink():
            continue
        runs = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
        path.chmod(0o755 if runs else 0o644)
        os.utime(path, (when, when))
    folder.chmod(0o755)
    os.utime(folder, (when, when))


def tar_bytes(folder, name, when, owners=None):
    """The folder as an uncompressed archive under `name`, sorted, owned by root but for what `owners` says
    ({path: number})."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in sorted([folder, *folder.rglob("*")]):
            relative = path.relative_to(folder).as_posix()
            entry = archive.gettarinfo(path, "/".join(part for part in (name, relative)
                                                      if part not in ("", ".")) or ".")
            entry.uid = entry.gid = (owners or {}).get(relative, 0)
            entry.uname = entry.gname = "" if entry.uid else "root"
            entry.mtime = when
            if entry.isreg():
                with open(path, "rb") as file:
                    archive.addfile(entry, file)
            else:
                archive.addfile(entry)
    return out.getvalue()


def gzipped(data):
    # Level 9 takes three times as long for half a percent.
    return gzip.compress(data, compresslevel=6, mtime=0)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def version():
    for line in (ROOT / "CMakeLists.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("project(hearth VERSION "):
            return line.split()[2]
    raise SystemExit("package: CMakeLists.txt names no version")


def md5(data):
    """For dpkg's own list of files, which is not about security."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()

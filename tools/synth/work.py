# SPDX-License-Identifier: Apache-2.0
"""The working directory for large files, and how a file comes into it: whole or not at all."""
import contextlib
import hashlib
import os
import pathlib


def work_dir():
    """$HEARTH_WORK, by default ~/.cache/hearth; made when it is not there."""
    path = pathlib.Path(os.environ.get("HEARTH_WORK") or pathlib.Path.home() / ".cache" / "hearth")
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextlib.contextmanager
def replacing(path):
    """Yields a temporary name beside `path`; it becomes `path` only if the block succeeds."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def sha256_of(path, limit=None):
    """The hash of a file, or of its first `limit` bytes."""
    digest = hashlib.sha256()
    left = path.stat().st_size if limit is None else limit
    with open(path, "rb") as file:
        while left > 0 and (piece := file.read(min(left, 1 << 22))):
            digest.update(piece)
            left -= len(piece)
    return digest.hexdigest()


def require_sha256(path, expected):
    found = sha256_of(path)
    if found != expected:
        raise SystemExit(f"{path.name}: sha256 is {found}, expected {expected}")

# SPDX-License-Identifier: Apache-2.0
"""Every header compiles alone. A source that includes its own header before anything else shows that
in every build; the other headers are compiled here. What passed is remembered in build/gates by the
hash of the header and of everything of ours below it, so that only what changed is compiled again."""
import concurrent.futures
import hashlib
import json
import os
import re
import subprocess

import tree

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
FIRST_INCLUDE = re.compile(r'^\s*#\s*include\s*(\S+)', re.MULTILINE)
FOLDERS = ("src", "tests/support")


class Hasher:
    """Hashes a header together with all of our headers that it reaches."""

    def __init__(self, root):
        self.root = root
        self.texts = {}

    def text(self, path):
        if path not in self.texts:
            self.texts[path] = tree.read(self.root, path) if (self.root / path).is_file() else None
        return self.texts[path]

    def reach(self, path, seen):
        for target in INCLUDE.findall(self.text(path) or ""):
            for folder in FOLDERS:
                below = f"{folder}/{target}"
                if below not in seen and self.text(below) is not None:
                    seen.add(below)
                    self.reach(below, seen)
        return seen

    def hash(self, path):
        reached = sorted(self.reach(path, {path}))
        parts = [f"{name}\0{self.text(name)}" for name in reached]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def is_built_alone(root, path):
    """Whether the header's own source or test includes it first."""
    name = f'"{path.removeprefix("src/")}"'
    for end in (".cc", "_test.cc"):
        source = root / (path.removesuffix(".h") + end)
        if source.is_file():
            first = FIRST_INCLUDE.search(source.read_text())
            if first and first.group(1) == name:
                return True
    return False


def compile_alone(root, path):
    """Returns the compiler's complaint, made relative to the root, or None."""
    command = [os.environ.get("CXX", "g++"), "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra",
               "-Werror", '-DHEARTH_SOURCE_DIR="."', "-include", path, "-x", "c++", "/dev/null"]
    command += [f"-I{folder}" for folder in FOLDERS]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    errors = [line for line in done.stderr.splitlines() if re.search(r":\d+:\d+: .*error", line)]
    return f"{path}:1: does not compile alone\n" + "\n".join(errors[:5] or [done.stderr[:500]])


def main():
    root = tree.root_argument()
    headers = [str(path) for path in tree.files(root)
               if path.suffix == ".h" and str(path).startswith(tuple(f + "/" for f in FOLDERS))]
    memory = root / "build" / "gates" / "headers.json"
    known = set(json.loads(memory.read_text())) if memory.is_file() else set()
    hasher = Hasher(root)
    hashes = {path: hasher.hash(path) for path in headers}
    built = {path for path in headers if is_built_alone(root, path)}
    todo = [path for path in headers if path not in built and hashes[path] not in known]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip(todo, pool.map(lambda path: compile_alone(root, path), todo)))
    memory.parent.mkdir(parents=True, exist_ok=True)
    draft = memory.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps(sorted(hashes[path] for path in headers if not found.get(path))))
    draft.replace(memory)  # in one step: two presets may test at the same time
    tree.report([why for why in found.values() if why],
                f"{len(headers)} headers compile alone ({len(built)} in every build, {len(todo)} "
                "compiled now)")


if __name__ == "__main__":
    main()

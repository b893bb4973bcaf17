# SPDX-License-Identifier: Apache-2.0
"""What every gate shares: the list of files, code without its comments, and the report.

A gate is a script `NAME.py ROOT` that prints `file:line: what is wrong` for each violation and
exits 1, or prints one line that says what it looked at and exits 0. Standard library only.
"""
import pathlib
import re
import subprocess
import sys

CPP = {".h", ".cc", ".inl", ".cu", ".cuh"}
CODE_FOLDERS = ("src", "tests", "fuzz", "tools", "bench", "rust", "web")
SKIPPED = {".git", "build", ".venv", "node_modules", "target", "__pycache__"}


def files(root):
    """Every file that is or could be committed, relative to root, sorted."""
    if (root / ".git").exists():
        listing = subprocess.run(
            ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            check=True, capture_output=True).stdout.decode()
        found = {pathlib.PurePosixPath(name) for name in listing.split("\0") if name}
        return sorted(path for path in found if (root / path).is_file())
    # A planted tree of the gates' own tests: no repository around it.
    found = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return sorted(pathlib.PurePosixPath(path) for path in found
                  if not SKIPPED & set(path.parts))


def cpp_files(root, folders=CODE_FOLDERS):
    return [path for path in files(root) if path.suffix in CPP and path.parts[0] in folders]


def read(root, path):
    return (root / path).read_text(encoding="utf-8", errors="replace")


def is_script(root, path):
    """A file without extension that starts with #!, such as ./dev."""
    if path.suffix or path.name == "LICENSE":
        return False
    with open(root / path, "rb") as file:
        return file.read(2) == b"#!"


# The alternatives are tried in this order at each position; what is in group 'keep' stays.
_TOKENS = re.compile(
    r'//[^\n]*(?:\\\n[^\n]*)*'
    r'|/\*.*?\*/'
    r'|(?:\b(?:u8|u|U|L)?R"(?P<raw>[^()\s\\"]{0,16})\(.*?\)(?P=raw)")'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?P<digits>\b[0-9][0-9a-fA-Fx.]*(?:'[0-9a-fA-F]+)+)"
    r"|'(?:\\.[^'\n]*|[^'\\\n])'",
    re.DOTALL)


def _blank(match):
    text = match.group(0)
    if match.group("digits"):
        return text.replace("'", "0")
    inner = re.sub(r"[^\n]", " ", text)
    # Strings keep their quotes so that `extern "C"` and includes still look like themselves.
    return '"' + inner[1:-1] + '"' if text[0] == '"' else inner


def code_only(text):
    """C++ or Rust text with comments and literals blanked out; lines and columns stay."""
    return _TOKENS.sub(_blank, text)


def root_argument():
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} ROOT")
    return pathlib.Path(sys.argv[1]).resolve()


def report(violations, summary):
    """Prints and ends the program."""
    for line in violations:
        print(line)
    if violations:
        print(f"{len(violations)} violation(s)")
        sys.exit(1)
    print(summary)
    sys.exit(0)

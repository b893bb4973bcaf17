# SPDX-License-Identifier: Apache-2.0
"""`hearth run` on a terminal of its own, and what its screen shows: pyte is the terminal."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import pyte

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from checking import expect, same, work_model  # for those who import from here as well
from on_terminal import OnTerminal

PROGRAM = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "hearth"
CTRL_C, CTRL_D, UP, LEFT, ENTER = b"\x03", b"\x04", b"\x1b[A", b"\x1b[D", b"\r"


def paste(text):
    return b"\x1b[200~" + text.encode().replace(b"\n", b"\r") + b"\x1b[201~"


def without_times(line):
    """Figures that no two runs share."""
    line = re.sub(r"\d+\.\d+ tokens/s", "N tokens/s", line)
    return re.sub(r"\d+(\.\d+)? s\b", "N s", line)


class Talker(OnTerminal):
    def __init__(self, *flags, columns=100, rows=24, env=None, state=None, program=None):
        self.raw = b""
        self.folder = tempfile.TemporaryDirectory()
        self.state = state or self.folder.name
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        base = {"XDG_STATE_HOME": self.state, "HOME": self.state, "PATH": os.environ["PATH"]}
        super().__init__([*(program or [PROGRAM, "run"]), *flags], columns, rows, {**base, **(env or {})},
                         cwd=self.folder.name)

    def __exit__(self, *_):
        super().__exit__()
        self.folder.cleanup()

    def resize(self, columns, rows):
        self.screen.resize(rows, columns)
        super().resize(columns, rows)

    def drain(self, seconds=0.0):
        piece = self.piece(seconds)
        self.raw += piece
        self.stream.feed(piece)
        return bool(piece)

    def settle(self, seconds=0.15):
        """Until nothing came for a moment."""
        while self.drain(seconds):
            pass

    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    def text(self):
        return "\n".join(self.lines())

    def shown(self):
        """The screen without its empty end, and without what differs from run to run."""
        lines = [without_times(line) for line in self.lines()]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def until(self, wanted, seconds=180, times=1):
        """Until the screen shows this, so many times."""
        end = time.monotonic() + seconds
        while self.text().count(wanted) < times:
            came = self.drain(0.05)
            if time.monotonic() > end or (self.process.poll() is not None and not came):
                sys.exit(f"FAILED: {wanted!r} did not come; the screen:\n{self.text()}")

    def at_prompt(self, seconds=180):
        """Until the cursor stands behind a prompt, and nothing more comes."""
        end = time.monotonic() + seconds
        while True:
            self.settle()
            if self.lines()[self.screen.cursor.y] == ">" and self.screen.cursor.x == 2:
                return
            if time.monotonic() > end or self.process.poll() is not None:
                sys.exit(f"FAILED: no prompt; the screen:\n{self.text()}")

    def type(self, keys):
        os.write(self.master, keys if isinstance(keys, bytes) else keys.encode())

    def send(self, line):
        """Types a line and waits for the next prompt."""
        self.type(line)
        self.settle(0.1)
        self.type(ENTER)
        self.at_prompt()

    def end(self, seconds=20):
        """The exit code, once everything written is read; the terminal is as it was."""
        end = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < end:
            self.drain(0.05)
        self.settle(0.05)
        code = self.process.wait(1)
        same(self.modes(), self.modes_before, "the terminal's modes after the end")
        return code

    def cells(self, text):
        """The cells where this text stands first."""
        for y, line in enumerate(self.screen.display):
            x = line.find(text)
            if x >= 0:
                return [self.screen.buffer[y][x + i] for i in range(len(text))]
        sys.exit(f"FAILED: {text!r} is not on the screen:\n{self.text()}")


def run(*flags, stdin=b"", env=None, timeout=300):
    """Without a terminal: (exit code, stdout, stderr)."""
    with tempfile.TemporaryDirectory() as state:
        base = {"PATH": os.environ["PATH"], "XDG_STATE_HOME": state, "TERM": "xterm-256color",
                "HOME": state}
        done = subprocess.run([PROGRAM, "run", *flags], input=stdin, capture_output=True,
                              env={**base, **(env or {})}, timeout=timeout, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()

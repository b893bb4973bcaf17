# SPDX-License-Identifier: Apache-2.0
"""A program on a terminal of its own, for tests: what it wrote, what the terminal's modes are."""
import os
import pathlib
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from on_terminal import OnTerminal


class Terminal(OnTerminal):
    def __init__(self, command, columns, rows, env=None):
        self.text = ""
        super().__init__(command, columns, rows, env or {})

    def drain(self, seconds):
        """Takes what comes within that time; whether anything did."""
        piece = self.piece(seconds)
        self.text += piece.decode("utf-8", "replace")
        return bool(piece)

    def read_until(self, wanted, seconds=30):
        """Only what is written from now on counts."""
        start, end = len(self.text), time.monotonic() + seconds
        while wanted not in self.text[start:]:
            self.drain(0.1)
            if time.monotonic() > end:
                raise AssertionError(f"{wanted!r} did not come: {self.text[start:]!r}")

    def frame(self):
        """The lines of the last whole frame, without commands to the terminal."""
        whole = self.text.split("\x1b[H")[1:]
        last = [frame for frame in whole if frame.endswith("\x1b[J") or frame != whole[-1]][-1]
        return [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) for line in re.split("\r+\n", last)]

    def send(self, what):
        if isinstance(what, bytes):
            os.write(self.master, what)
        else:
            self.process.send_signal(what)

    def wait(self, seconds=10):
        """The exit code, once everything written is read."""
        end = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < end:
            self.drain(0.05)
        while self.drain(0):
            pass
        return self.process.wait(1)

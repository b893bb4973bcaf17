# SPDX-License-Identifier: Apache-2.0
"""A program on a terminal of its own, for tests: what it wrote, what the terminal's modes are."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time


class Terminal:
    def __init__(self, command, columns, rows, env=None):
        self.text = ""
        self.master, self.slave = pty.openpty()
        self.size(columns, rows)
        self.modes_before = self.modes()
        self.process = subprocess.Popen(
            command, stdin=self.slave, stdout=self.slave, stderr=self.slave,
            env={"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **(env or {})},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)

    def size(self, columns, rows):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns, rows):
        self.size(columns, rows)
        self.process.send_signal(signal.SIGWINCH)

    def modes(self):
        return termios.tcgetattr(self.slave)

    def drain(self, seconds):
        """Takes what comes within that time; whether anything did."""
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        self.text += os.read(self.master, 65536).decode("utf-8", "replace")
        return True

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

# SPDX-License-Identifier: Apache-2.0
"""A program on a terminal of its own: started there, resized, its modes asked for, ended."""
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios


class OnTerminal:
    def __init__(self, command, columns, rows, env, cwd=None):
        self.master, self.slave = pty.openpty()
        self.size(columns, rows)
        self.modes_before = self.modes()
        self.process = subprocess.Popen(
            command, stdin=self.slave, stdout=self.slave, stderr=self.slave, cwd=cwd,
            env={"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **env}, start_new_session=True,
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

    def piece(self, seconds):
        """What comes within that time, or nothing."""
        if not select.select([self.master], [], [], seconds)[0]:
            return b""
        return os.read(self.master, 65536)

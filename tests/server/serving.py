# SPDX-License-Identifier: Apache-2.0
"""Starts `hearth serve` for a test on a free port of the loopback, and stops it again."""
import contextlib
import http.client
import json
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from checking import expect, same, work_model  # for those who import from here as well
from results import record  # likewise


def children(pid):
    """The processes that this one started and that still run."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = entry.read_text(encoding="utf-8", errors="replace").rsplit(")", 1)[1].split()
            if int(fields[1]) == pid and fields[0] != "Z":
                found.append(int(entry.parent.name))
    return found


class Server:
    """A running server: its process, port and address. `model` is a path, or a list of arguments; `command` is all
    of it instead."""

    def __init__(self, program, model, *flags, host="127.0.0.1", env=None, command=None):
        self.log = []
        self.process = subprocess.Popen(
            command or [program, "serve", *(["--model", model] if isinstance(model, str) else model),
                        "--port", "0", "--host", host, *flags], stderr=subprocess.PIPE, text=True, env=env)
        self.port = None
        for line in self.process.stderr:
            self.log.append(line)
            found = re.search(r" at https?://[^ ]*:(\d+)/v1", line)
            if found:
                self.port = int(found.group(1))
                break
        if self.port is None:
            self.process.wait()
            return
        self.address = f"http://127.0.0.1:{self.port}"
        self.name = line.split(" at ")[0]

    def request(self, method, path, body=None, headers=None, timeout=120):
        """(status, headers, body bytes) of one plain exchange."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        given = {"content-type": "application/json"} if body is not None else {}
        given.update(headers or {})
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        connection.request(method, path, body, given)
        response = connection.getresponse()
        data = response.read()
        connection.close()
        return response.status, {k.lower(): v for k, v in response.getheaders()}, data

    def worker_pid(self):
        """The process that serves: a child of the one that was started, or without a supervisor
        that one itself."""
        return next(iter(children(self.process.pid)), self.process.pid)

    def stop(self, bound=60):
        """SIGTERM; (exit code, seconds it took)."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(bound)
        self.log += self.process.stderr.readlines()
        return code, time.monotonic() - began


@contextlib.contextmanager
def serving(program, model, *flags, **options):
    server = Server(program, model, *flags, **options)
    try:
        if server.port is None:
            sys.exit("FAILED: no server: " + "".join(server.log))
        yield server
    finally:
        if server.process.poll() is None:
            code, _ = server.stop()
            expect(code == 0, f"a clean end of the server, not {code}: {''.join(server.log)}")


def new_key(program, name, *flags):
    """A fresh key, and its entry for a keys file."""
    made = subprocess.run([program, "key", name, *flags], capture_output=True, text=True, check=True)
    return made.stdout.strip(), json.loads(made.stderr.strip().splitlines()[-1])

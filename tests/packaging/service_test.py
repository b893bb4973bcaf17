# SPDX-License-Identifier: Apache-2.0
"""The service as systemd runs it: everything from the file, ready only when it answers, reloaded, stopped;
and a wrong configuration ends with the code that the unit does not retry."""
import http.client
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
from checking import expect, work_model

HEARTH = sys.argv[1]


def unit_lines(key):
    text = (ROOT / "packaging/hearth.service.in").read_text()
    return [line.split("=", 1)[1] for line in text.splitlines() if line.startswith(key + "=")]


def command(config):
    """The unit's own command, with this program and this file."""
    words = unit_lines("ExecStart")[0].split()
    expect(words[:3] == ["@HEARTH_BIN@", "--config", "/etc/hearth/hearth.toml"], f"{words}")
    return [HEARTH, "--config", str(config), *words[3:]]


class UnixConnection(http.client.HTTPConnection):
    """A client of a Unix socket."""

    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def environment(**more):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HEARTH_")}
    return {**clean, **more}


def check_life(folder):
    config, api = folder / "hearth.toml", folder / "api.sock"
    config.write_text(f'[serve]\nmodel = "{work_model("smollm2.gguf")}"\nunix = "{api}"\n'
                      'max-sequences = 2\ncontext = 256\nkv-memory = "64MiB"\n')
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(folder / "notify"))
        manager.settimeout(120)
        server = subprocess.Popen(command(config), stderr=subprocess.PIPE, text=True,
                                  env=environment(NOTIFY_SOCKET=str(folder / "notify")))
        try:
            expect(manager.recv(64) == b"READY=1", "the manager hears that it is ready")
            client = UnixConnection(str(api))
            client.request("GET", "/readyz")
            expect(client.getresponse().status == 200, "and it is")
            server.send_signal(signal.SIGHUP)  # the unit's reload: without keys nothing to do
            server.send_signal(signal.SIGTERM)
            expect(manager.recv(64) == b"STOPPING=1", "the manager hears that it stops")
            expect(server.wait(60) == 0, "a stop is no failure")
        finally:
            server.kill()
            server.communicate()


def check_mistake(folder):
    config = folder / "wrong.toml"
    config.write_text("[serve]\nmodle = 'x'\n")
    done = subprocess.run(command(config), capture_output=True, text=True, check=False,
                          env=environment(), timeout=60)
    expect(str(done.returncode) in unit_lines("RestartPreventExitStatus"),
           f"the unit does not try again: {done.returncode}")
    expect(f'{config}:2: [serve] has no key "modle"; did you mean "model"?' in done.stderr, done.stderr)


def main():
    with tempfile.TemporaryDirectory() as name:
        check_life(pathlib.Path(name))
        check_mistake(pathlib.Path(name))
    print("service ok")


main()

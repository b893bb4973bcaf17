# SPDX-License-Identifier: Apache-2.0
"""The packages on bare roots. On Debian 12 apt finds all that the .deb needs; from there to the first
answer are three commands; the unit's command serves as the service's user, confined as the unit says;
and the package goes again. On Ubuntu 22.04 and 24.04 the tarball answers as well. Wants
root, debootstrap and mirrors. usage: bare_test.py BUILD [debian] [jammy] [noble]
[--write]: all roots or those; with --write the transcript of docs/install.md is renewed."""
import http.client
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from bare_root import Root, why_not
from first_answer import NAME, answer_on, check_page
from made import expect, package, version

CONFINED = pathlib.Path(__file__).parent / "confined.py"


def installed(root):
    """The commands and what they say of themselves."""
    expect(root.inside("hearth", "--version")[1].startswith(version()), "runs")
    code, out, _ = root.inside("hearth", "--help")
    expect(code == 0 and "serve" in out, "--help")
    code, out, _ = root.inside("hearth", "config", "check")
    expect(code == 0 and "/etc/hearth/hearth.toml: ok" in out, f"its configuration: {out}")
    code, out, _ = root.inside("getent", "passwd", "hearth")
    expect(code == 0 and "/var/lib/hearth" in out, "its user")
    # Here somebody has no model yet.
    code, _, err = root.inside("hearth", "serve", HOME="/nonexistent")
    expect(code == 1 and "hearth pull" in err, f"says what is missing: {err}")


class UnixConnection(http.client.HTTPConnection):
    """A client of a Unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


def ask(path, method, target, body=None):
    client = UnixConnection(path)
    client.request(method, target, body, {"content-type": "application/json"})
    reply = client.getresponse()
    return reply.status, reply.read().decode()


def ready(manager, server):
    """The first thing that the service tells its manager."""
    end = time.monotonic() + 120
    while server.poll() is None and time.monotonic() < end:
        try:
            return manager.recv(64)
        except TimeoutError:
            pass
    server.kill()
    expect(False, f"the service starts: {server.stderr.read()}")


def serves(root):
    """The service as docs/install.md sets it up, its command under the unit's user and limits."""
    state, folder = root.folder / "var/lib/hearth", root.folder
    models = folder / f"root/.local/share/hearth/models/{NAME}"
    model = next(models.glob("*.gguf"))
    code, out, err = root.inside("install", "-d", "-o", "hearth", "-g", "hearth", "-m", "750",
                                 "/var/lib/hearth")
    expect(code == 0, out + err)
    code, out, err = root.inside("install", "-o", "hearth", "-g", "hearth", "-m", "640",
                                 f"/{model.relative_to(folder)}", "/var/lib/hearth/model.gguf")
    expect(code == 0, out + err)
    (folder / "etc/hearth/hearth.toml").write_text(
        '[serve]\nmodel = "/var/lib/hearth/model.gguf"\nunix = "/run/hearth/api"\n'
        'responses = "/var/lib/hearth/responses.sqlite"\nkv-memory = "64MiB"\n')
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(state / "notify"))
        os.chmod(state / "notify", 0o777)
        manager.settimeout(1)
        server = subprocess.Popen([sys.executable, CONFINED, folder], text=True,
                                  stderr=subprocess.PIPE,
                                  env={**os.environ, "NOTIFY_SOCKET": "/var/lib/hearth/notify"})
        try:
            told = ready(manager, server)
            expect(told == b"READY=1", f"it is ready: {told}")
            status, said = ask(folder / "run/hearth/api", "POST", "/v1/chat/completions",
                               '{"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4}')
            expect(status == 200 and "choices" in said, f"it answers: {said}")
            listed = pathlib.Path(f"/proc/{server.pid}/status").read_text()
            expect("CapEff:\t0000000000000000" in listed and "Seccomp:\t2" in listed
                   and "NoNewPrivs:\t1" in listed, f"it is confined: {listed}")
            kept = (state / "responses.sqlite").stat()
            expect(kept.st_uid != 0 and kept.st_mode & 0o777 == 0o600, f"its own file: {kept}")
            server.terminate()
            expect(server.wait(60) == 0, "a stop is no failure")
        finally:
            server.kill()
            server.communicate()


def goes(root):
    for what, left in (("remove", True), ("purge", False)):
        code, out, err = root.inside("apt-get", what, "-y", "-q", "hearth")
        expect(code == 0, f"apt-get {what}: {(out + err)[-500:]}")
        expect((root.folder / "etc/hearth/hearth.toml").exists() == left, f"the conffile after {what}")
    expect(not (root.folder / "usr/bin/hearth").exists(), "gone")


def on_debian(folder, write):
    root = Root("bookworm", folder / "debian")
    deb, _ = package("deb", folder)
    shutil.copy(deb, root.folder / "media" / deb.name)
    expect(root.inside("apt-get", "update", "-q")[0] == 0, "apt-get update")
    get = ["apt-get", "install", "-y", "-q", "--no-install-recommends", f"/media/{deb.name}"]
    code, out, err = root.inside(*get, "--download-only")
    expect(code == 0, f"apt-get install --download-only: {(out + err)[-800:]}")
    transcript = answer_on(root, (get, f"apt install ./{deb.name}",
                                  lambda line: line.startswith("Setting up hearth")), "hearth")
    check_page(transcript.text(), write)
    installed(root)
    serves(root)
    goes(root)
    return transcript


def on_ubuntu(folder, suite):
    root = Root(suite, folder / suite)
    tarball, _ = package("tarball", folder)
    shutil.copy(tarball, root.folder / "media" / tarball.name)
    install = (["tar", "-xzf", f"/media/{tarball.name}", "-C", "/opt", "--one-top-level=hearth",
                "--strip-components=1"], "tar", lambda line: True)
    return answer_on(root, install, "/opt/hearth/bin/hearth")


ROOTS = {"debian": ("Debian 12", on_debian),
         "jammy": ("Ubuntu 22.04", lambda folder, _: on_ubuntu(folder, "jammy")),
         "noble": ("Ubuntu 24.04", lambda folder, _: on_ubuntu(folder, "noble"))}


def main():
    missing = why_not()
    if missing:
        print(f"SKIPPED: {missing}")
        return
    for each in [word for word in sys.argv[2:] if word in ROOTS] or ROOTS:
        where, check = ROOTS[each]
        with tempfile.TemporaryDirectory() as name:
            transcript = check(pathlib.Path(name), "--write" in sys.argv)
        install, pull, answer = transcript.seconds
        print(f"{where}: installed in {install:.1f} s, pulled in {pull:.1f} s, answered in {answer:.1f} s",
              flush=True)
    print("bare ok")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""What other users of the machine, other keys and a taken-over server cannot do: files that are the
owner's alone, a socket that is not stolen, certificates, keys and logs read again, refusals that stay
cheap, grammars that tell nothing, and a process that has given up what it does not need."""
import hashlib
import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time

from processor_time import Meter, tree_of
from serving import Server, expect, new_key, same, serving, work_model

TALK = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 1}


def mode_of(path):
    return oct(os.stat(path).st_mode & 0o777)


def hang_up(server, wanted):
    """SIGHUP; the lines it answered with, up to the one that has `wanted`."""
    server.process.send_signal(signal.SIGHUP)
    lines = []
    for line in server.process.stderr:
        lines.append(line)
        if wanted in line:
            break
    return lines


def check_modes(program, model, folder):
    """Stored responses and logs are their owner's alone, also a store of before."""
    store, log = folder / "responses.db", folder / "log"
    store.touch(0o644)
    os.chmod(store, 0o644)
    before = os.umask(0o022)
    with serving(program, model, "--responses", str(store), "--log", str(log)) as server:
        body = {"input": "a secret", "max_output_tokens": 1}
        same(server.request("POST", "/v1/responses", body)[0], 200, "a response")
        for path in (store, f"{store}-wal", f"{store}-shm", log):
            same(mode_of(path), oct(0o600), f"the mode of {path}")
    subprocess.run([program, "key", "ada", "--keys", str(folder / "k.json")], check=True,
                   capture_output=True)
    os.umask(before)
    same(mode_of(folder / "k.json"), oct(0o600), "the mode of the keys")


def is_deaf(path):
    """Whether nobody listens there: a process that was killed may take a moment to give up its memory."""
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except ConnectionRefusedError:
            return True
    return False


def check_socket(program, model, folder):
    """A second server leaves the first one's socket alone, and one of the dead is taken."""
    path = folder / "s"
    command = [program, "serve", "--model", model, "--threads", "1", "--unix", str(path)]
    first = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    next(line for line in first.stderr if f" at {path}" in line)
    second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    expect(second.returncode != 0 and "another server listens there" in second.stderr,
           f"a second server to be refused: {second.stderr}")
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.sendall(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n")
        expect(client.recv(100).startswith(b"HTTP/1.1 200"), "the first server to be there still")
    for pid in tree_of(first.pid):
        os.kill(pid, signal.SIGKILL)
    first.wait()
    for _ in range(1000):
        if is_deaf(path):
            break
        time.sleep(0.01)
    expect(path.exists(), "a socket to be left by the dead")
    third = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    said = []
    for line in third.stderr:
        said.append(line)
        if f" at {path}" in line:
            break
    expect(f" at {path}" in said[-1], f"the dead one's socket to be taken: {said}")
    third.terminate()
    same(third.wait(30), 0, "the exit code")


def make_certificate(folder):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                    "/CN=localhost", "-keyout", f"{folder}/key.pem", "-out", f"{folder}/chain.pem"],
                   check=True, capture_output=True)


def shake_hands(port, suites=None):
    """The certificate's digest, or None when the server refuses."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if suites:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(suites)
    try:
        with socket.create_connection(("127.0.0.1", port)) as plain:
            with context.wrap_socket(plain) as secure:
                return hashlib.sha256(secure.getpeercert(True)).hexdigest()
    except (ssl.SSLError, ConnectionError):
        return None


def check_reload(program, model, folder):
    """SIGHUP: the certificate is read again, and the log goes on in a new file."""
    make_certificate(folder)
    log = folder / "tls.log"
    with serving(program, model, "--tls-certificate", f"{folder}/chain.pem", "--tls-key",
                 f"{folder}/key.pem", "--log", str(log)) as server:
        first = shake_hands(server.port)
        for suites in ("AES128-SHA:@SECLEVEL=0", "ECDHE-RSA-AES128-SHA:@SECLEVEL=0",
                       "AES256-GCM-SHA384"):
            same(shake_hands(server.port, suites), None, suites)
        same(shake_hands(server.port, "ECDHE-RSA-AES256-GCM-SHA384"), first, "a good suite")
        make_certificate(folder)
        log.rename(folder / "tls.log.1")
        lines = hang_up(server, "log ")
        expect("certificates reloaded\n" in lines and lines[-1] == "log reopened\n", f"{lines}")
        second = shake_hands(server.port)
        expect(second not in (None, first), "the new certificate")
        expect(log.exists(), "the log to go on under its name")
        (folder / "key.pem").write_text("nonsense")
        hang_up(server, "certificates not reloaded")
        same(shake_hands(server.port), second, "the certificate, when the new one is wrong")


def key_file(path, count):
    """Keys that nobody has."""
    path.write_text(json.dumps({"keys": [
        {"id": f"k{i}", "salt": f"hearth-{i:08x}-{secrets.token_hex(16)}",
         "sha256": secrets.token_hex(32)} for i in range(count)]}))
    return str(path)


def refusal_cost(program, model, keys):
    with serving(program, model, "--keys", keys) as server:
        pids, wrong = tree_of(server.process.pid), {"authorization": "Bearer hearth-00000001wrong"}
        best = None
        for _ in range(5):
            with Meter(pids) as meter:
                for _ in range(20):
                    same(server.request("GET", "/v1/models", headers=wrong)[0], 401, "a wrong key")
            best = min(best or meter.seconds, meter.seconds)
        return best / 20


def check_refusals(program, model, folder):
    few = refusal_cost(program, model, key_file(folder / "few.json", 10))
    many = refusal_cost(program, model, key_file(folder / "many.json", 10_000))
    print(f"a wrong key costs {few * 1e6:.0f} us with 10 keys, {many * 1e6:.0f} us with 10,000")
    expect(many < 2 * few + 0.0002, "refusals to cost as much with many keys")


def check_key_command(program, folder):
    """Of many that add a key at the same time none loses another's."""
    path = folder / "together.json"
    running = [subprocess.Popen([program, "key", f"k{i}", "--keys", str(path)],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for i in range(16)]
    for process in running:
        process.communicate()
        same(process.returncode, 0, "hearth key")
    made = sorted(key["id"] for key in json.loads(path.read_text())["keys"])
    same(made, sorted(f"k{i}" for i in range(16)), "all keys")
    expect(not list(folder.glob("together.json.*")), "nothing beside the file")


def schema_cost(server, pids, key, words):
    schema = {"enum": [f"{words} {i}" for i in range(1500)]}
    body = {**TALK, "response_format": {"type": "json_schema",
                                        "json_schema": {"name": "a", "schema": schema}}}
    with Meter(pids) as meter:
        status, _, data = server.request("POST", "/v1/chat/completions", body,
                                         {"authorization": f"Bearer {key}"})
    same(status, 200, data)
    return meter.seconds


def check_grammars(program, model, folder):
    """A schema that another key used costs as much as one that nobody used."""
    keys = {name: new_key(program, name) for name in ("alice", "bob")}
    path = folder / "two.json"
    path.write_text(json.dumps({"keys": [entry for _, entry in keys.values()]}))
    with serving(program, model, "--keys", str(path)) as server:
        pids = tree_of(server.process.pid)
        alice, bob = keys["alice"][0], keys["bob"][0]
        known, fresh, own = [], [], []
        for i in range(5):
            schema_cost(server, pids, alice, f"alice {i}")
            known.append(schema_cost(server, pids, bob, f"alice {i}"))
            fresh.append(schema_cost(server, pids, bob, f"other {i}"))
            own.append(schema_cost(server, pids, bob, f"other {i}"))
    known, fresh, own = min(known), min(fresh), min(own)
    print(f"a schema: another key's {known * 1e3:.1f} ms, new {fresh * 1e3:.1f} ms, "
          f"one's own again {own * 1e3:.1f} ms")
    expect(own < 0.7 * fresh, "a schema of one's own to be kept")
    expect(known > 0.8 * fresh, "another key's schema to cost as much as a new one")


def check_tools(program, model):
    with serving(program, model) as server:
        tools = [{"type": "namespace", "name": "n", "tools": [
            {"type": "function", "name": f"f{i}"} for i in range(129)]}]
        status, _, data = server.request("POST", "/v1/responses", {"input": "x", "tools": tools})
        same((status, json.loads(data)["error"]["param"]), (400, "tools[0].tools[128]"), data)


NO_RIGHTS = "0" * 16


def confined(pid):
    """(no_new_privs, seccomp, capabilities in effect, those that could be had) of each thread of a process."""
    found = set()
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        text = (task / "status").read_text()
        found.add(tuple(re.search(rf"^{name}:\s*(\w+)", text, re.MULTILINE).group(1)
                        for name in ("NoNewPrivs", "Seccomp", "CapEff", "CapPrm")))
    return found


def check_above(server):
    """The supervisor has given up as much; and what another process without root's rights can see of it, whose
    environment may have a password: nothing."""
    above, worker = server.process.pid, server.worker_pid()
    expect(above != worker, "a supervisor")
    same(confined(above), {("1", "2", NO_RIGHTS, NO_RIGHTS)}, "the supervisor")
    if os.geteuid() != 0:
        return
    # As the worker is: the same user, without root's rights. Of such a one that does not hide it sees everything.
    bare = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
    look = [*bare, "cat"]
    with subprocess.Popen([*bare, "sleep", "60"]) as open_one:
        while b"sleep" not in pathlib.Path(f"/proc/{open_one.pid}/cmdline").read_bytes()[:6]:
            time.sleep(0.01)
        seen = subprocess.run([*look, f"/proc/{open_one.pid}/environ"], capture_output=True, check=False)
        expect(seen.returncode == 0 and b"PATH=" in seen.stdout, f"one that does not hide: {seen.stderr}")
        open_one.kill()
    for pid in (above, worker):
        for name in ("environ", "mem", "maps"):
            seen = subprocess.run([*look, f"/proc/{pid}/{name}"], capture_output=True, text=True, check=False)
            expect(seen.returncode != 0 and not seen.stdout and "ermission denied" in seen.stderr,
                   f"/proc/{pid}/{name} not to be read: {seen.stderr}")


def check_rights(program, model, folder):
    """Run by root, a server reads other users' files as anybody does, and says so."""
    if os.geteuid() != 0:
        print("SKIPPED: only root can give files away")
        return
    private = folder / "private.gguf"
    shutil.copy(model, private)
    os.chown(private, 12345, 12345)
    private.chmod(0o600)
    with serving(program, str(private), "--confine", "off") as server:
        same(server.request("POST", "/v1/chat/completions", TALK)[0], 200, "with root's rights")
    done = subprocess.run([program, "serve", "--model", str(private), "--port", "0"], capture_output=True, text=True,
                          timeout=60, check=False)
    expect(done.returncode != 0 and "gives up root's rights" in done.stderr, f"to be told why: {done.stderr}")
    private.chmod(0o644)
    with serving(program, str(private)) as server:
        same(server.request("POST", "/v1/chat/completions", TALK)[0], 200, "one that everybody may read")


# What comes with libcurl, libpq and libzmq.
LATE = r"lib(curl|pq|zmq|ldap|lber|rtmp|ssh2|gnutls|gssapi_krb5|krb5|sasl2|pgm|norm)[-.]"


def libraries_of(pid):
    """Names of the shared libraries that the process has mapped."""
    maps = pathlib.Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")
    return {pathlib.Path(path).name for path in re.findall(r"\s(/\S+\.so[.\d]*)$", maps, re.MULTILINE)}


def check_libraries(program, model):
    """A server that sends no traces maps no LDAP, SSH, RTMP or second TLS; one that does has them from libcurl."""
    counts = []
    for flags in ([], ["--trace-endpoint", "http://127.0.0.1:9"]):
        with serving(program, model, *flags) as server:
            mapped = libraries_of(server.worker_pid())
            counts.append((len(mapped), sorted(name for name in mapped if re.match(LATE, name))))
    print(f"libraries of a server: {counts[0][0]}; of one that sends traces: {counts[1][0]}")
    same(counts[0][1], [], "libraries that nothing needs")
    expect(any(name.startswith("libcurl.") for name in counts[1][1]), f"libcurl for traces: {counts[1]}")


def check_models(program, model, folder):
    """Of a folder of models only those that are served can be opened, under whatever name."""
    folder.mkdir()
    for name in ("b", "neighbour"):
        shutil.copy(model, folder / f"{name}.gguf")

    def ask(server, name):
        return server.request("POST", "/v1/chat/completions", {**TALK, "model": name})

    for mode in ("off", "required"):
        (folder / "a.gguf").unlink(missing_ok=True)
        shutil.copy(model, folder / "a.gguf")
        server = Server(program, [str(folder / "a.gguf"), str(folder / "b.gguf")], "--confine", mode)
        if server.port is None:
            print("SKIPPED LOUDLY: no Landlock here: " + "".join(server.log))
            return
        try:
            same(ask(server, "b")[0], 200, "one of those that are served")
            # As somebody would who can write there but not read the server's memory; or a bug that opens files.
            (folder / "a.gguf").unlink()
            (folder / "a.gguf").symlink_to(folder / "neighbour.gguf")
            status, _, reply = ask(server, "a")
            if mode == "off":
                same(status, 200, "without confinement the neighbour is read")
            else:
                expect(status >= 500 and b"ermission denied" in reply, f"a neighbour not to be read: {status} {reply}")
            same(ask(server, "b")[0], 200, "the other one still")
        finally:
            same(server.stop()[0], 0, "the exit code")


def check_confinement(program, model, folder):
    inside, outside = folder / "inside", folder / "outside"
    inside.mkdir()
    outside.mkdir()
    for place in (inside, outside):
        subprocess.run([program, "key", "ada", "--keys", str(place / "keys.json")], check=True,
                       capture_output=True)
    keys = inside / "keys.json"
    with serving(program, model, "--keys", str(keys), "--confine", "off") as server:
        mine = confined(os.getpid()).pop()[2:]
        for pid in (server.process.pid, server.worker_pid()):
            same(confined(pid), {("0", "0", *mine)}, "--confine off")
    server = Server(program, model, "--keys", str(keys), "--confine", "required")
    if server.port is None:
        print("SKIPPED LOUDLY: no Landlock or no seccomp here: " + "".join(server.log))
        return
    try:
        same(confined(server.worker_pid()), {("1", "2", NO_RIGHTS, NO_RIGHTS)}, "every thread")
        check_above(server)
        expect("warning" not in "".join(server.log), "no warning")
        hang_up(server, "keys reloaded")
        keys.unlink()
        keys.symlink_to(outside / "keys.json")
        lines = hang_up(server, "keys ")
        expect("keys not reloaded" in lines[-1] and "ermission denied" in lines[-1],
               f"a file elsewhere not to be opened: {lines}")
    finally:
        same(server.stop()[0], 0, "the exit code")


def main(program):
    model = work_model("tiny-oss-o200k.gguf")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check_modes(program, model, folder)
        check_socket(program, model, folder)
        check_reload(program, model, folder)
        check_refusals(program, model, folder)
        check_key_command(program, folder)
        check_grammars(program, model, folder)
        check_tools(program, model)
        check_confinement(program, model, folder)
        check_rights(program, model, folder)
        check_libraries(program, model)
        check_models(program, model, folder / "models")
    print("nothing is open that need not be")


if __name__ == "__main__":
    main(sys.argv[1])

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A password planted in every setting that takes an address: no command prints it, no log or report has
it, and files with secrets that others can read are warned of. secrets_test.py HEARTH"""
import http.client
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from checking import expect, same, work_model

PROGRAM = sys.argv[1]
PASSWORD = "Zq7hunter2"  # in one piece and in several: what is looked for is "hunter2"
# Nothing listens on port 1.
ADDRESSES = {
    "serve.cache-redis": [f"redis://:{PASSWORD}@127.0.0.1:1", f"rediss://ada:{PASSWORD}@127.0.0.1:1/2",
                          f"redis://:{PASSWORD}@127.0.0.1:1,redis://ada:x{PASSWORD}@127.0.0.1:2",
                          f"redis://:a@{PASSWORD}@127.0.0.1:1", f"redis://ada:{PASSWORD}%zz@127.0.0.1:1",
                          f"redis://{PASSWORD}@127.0.0.1:1", f"redis:/:{PASSWORD}@127.0.0.1:1?password={PASSWORD}",
                          f"redis://:{PASSWORD} @127.0.0.1:1"],
    "serve.batches": [f"postgresql://ada:{PASSWORD}@127.0.0.1:1/jobs", f"postgresql://ada:a/{PASSWORD}@127.0.0.1:1/jobs",
                      f"postgresql://ada:a@{PASSWORD}@127.0.0.1:1/jobs", f"postgres://127.0.0.1:1/jobs?password={PASSWORD}",
                      f"postgresql://ada:{PASSWORD}%zz@127.0.0.1:1/jobs", f"postgresql://127.0.0.1:1/x?passwrd=a&password={PASSWORD}",
                      f"host=127.0.0.1 port=1 password='{PASSWORD} x' user=ada"],
    "serve.trace-endpoint": [f"http://ada:{PASSWORD}@127.0.0.1:1/v1/traces", f"https://{PASSWORD}@127.0.0.1:1",
                             f"http://127.0.0.1:1/v1/traces?token={PASSWORD}", f"http://ada:a/{PASSWORD}@127.0.0.1:1",
                             f"ftp://ada:{PASSWORD}@127.0.0.1:1"],
    "run.server": [f"http://ada:{PASSWORD}@127.0.0.1:1", f"ftp://ada:{PASSWORD}@127.0.0.1:1",
                   f"http://127.0.0.1:1/?api_key={PASSWORD}"],
    "top.url": [f"http://ada:{PASSWORD}@127.0.0.1:1", f"ada:{PASSWORD}@127.0.0.1:1"],
    "bench.load.url": [f"http://ada:{PASSWORD}@127.0.0.1:1", f"http://ada:x@{PASSWORD}@127.0.0.1:1"],
}
printed = []


def check(where, *outputs):
    for out in outputs:
        printed.append(len(out))
        expect(b"hunter2" not in out, f"{where} prints the password: {out.decode('utf-8', 'replace')[-1500:]}")


class Place:
    def __init__(self, folder):
        self.folder = folder
        self.config = folder / "hearth.toml"
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(("HEARTH_", "HF_"))}
        self.env.update(HOME=str(folder), XDG_CONFIG_HOME=str(folder / "none"), XDG_DATA_HOME=str(folder / "data"),
                        OLLAMA_MODELS=str(folder / "none"), HF_HOME=str(folder / "none"))

    def write(self, mode=0o600, **settings):
        sections = {}
        for name, value in settings.items():
            section, key = name.rsplit(".", 1)
            sections.setdefault(section, []).append(f"{key} = {json.dumps(value)}")
        self.config.write_text("".join(f"[{name}]\n" + "\n".join(lines) + "\n" for name, lines in sections.items()))
        self.config.chmod(mode)

    def run(self, *args, **variables):
        done = subprocess.run([PROGRAM, "--config", str(self.config), *args], capture_output=True, stdin=subprocess.DEVNULL,
                              timeout=120, check=False, cwd=self.folder, env={**self.env, **variables})
        check(f"hearth {' '.join(args)} with {self.config.read_text()}", done.stdout, done.stderr)
        return done

    def serve(self, *flags, bound=60):
        """Until it ends or is ready, with a request; what it wrote to standard error."""
        errors = self.folder / "errors"
        with errors.open("wb") as out:
            server = subprocess.Popen([PROGRAM, "--config", str(self.config), "serve", "--port", "0", "--threads", "1", *flags],
                                      stderr=out, stdin=subprocess.DEVNULL, cwd=self.folder, env=self.env)
        try:
            end, found = time.monotonic() + bound, None
            while not found and server.poll() is None and time.monotonic() < end:
                time.sleep(0.05)
                found = re.search(rb"(https?)://127.0.0.1:(\d+)/v1", errors.read_bytes())
            if found and found.group(1) == b"http":
                self.ask(int(found.group(2)))
        finally:
            server.terminate()
            server.wait(60)
        told = errors.read_bytes()
        check(f"hearth serve with {self.config.read_text()}", told)
        return told.decode()

    def ask(self, port):
        """A request, files of batches, and what operators read."""
        body = json.dumps({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2})
        for method, path, data in (("POST", "/v1/chat/completions", body), ("GET", "/v1/files", None), ("GET", "/v1/batches", None),
                                   ("GET", "/status", None), ("GET", "/metrics", None), ("GET", "/readyz", None)):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request(method, path, data, {"content-type": "application/json"} if data else {})
            check(f"{method} {path}", connection.getresponse().read())
            connection.close()
        time.sleep(6 if "trace-endpoint" in self.config.read_text() else 0.2)  # spans are sent every 5 s


def masked(text, what):
    expect("***" in text, f"{what}: *** where the password is: {text[-1500:]}")


def check_settings(place):
    """Each address in each form: what shows and checks it."""
    count = 0
    for name, forms in ADDRESSES.items():
        for form in forms:
            place.write(**{name: form})
            section = name.rsplit(".", 1)[0]
            masked(place.run("config", "show", *section.split(".")).stdout.decode(), f"config show with {form}")
            place.run("config", "check")
            count += 1
    print(f"config show and check: {count} addresses")


def check_commands(place):
    """Commands that use an address, from the file, a variable and the line."""
    for command, name in ((["top", "--once"], "top.url"), (["run", "hi"], "run.server"),
                          (["bench", "load", "--users", "1", "--duration", "1"], "bench.load.url")):
        flag = "--" + name.rsplit(".", 1)[1]
        variable = "HEARTH_" + re.sub("[.-]", "_", name).upper()
        for form in ADDRESSES[name]:
            place.write(**{name: form})
            told = place.run(*command)
            expect(told.returncode != 0, f"{command} cannot work: {told.stdout} {told.stderr}")
            place.write()
            place.run(*command, flag, form)
            place.run(*command, **{variable: form})
    for form in (f"http://ada:{PASSWORD}@127.0.0.1:1", f"http://ada:{PASSWORD}@127.0.0.1:1/m.gguf?token={PASSWORD}"):
        place.run("pull", "owner/repo", HF_ENDPOINT=form)
        place.run("pull", form)
        for flags in ((), ("--json",)):
            place.run("doctor", "--quick", "--url", form, *flags)
    for name, forms in ADDRESSES.items():
        if name.startswith("serve."):
            for form in forms:
                place.run("serve", "--port", "none", "--" + name[6:], form)
                place.run("serve", "--model", "/nonexistent", "--" + name[6:], form)
    print("top, run, bench load, pull, doctor --url")


def check_doctor(place):
    place.write(mode=0o644, **{name: forms[0] for name, forms in ADDRESSES.items()})
    row = {each["check"]: each for each in json.loads(place.run("doctor", "--quick", "--json").stdout)["checks"]}["config.secrets"]
    same(row["verdict"], "warning", f"a configuration with passwords that others can read: {row}")
    expect("passwords" in row["found"] and "chmod" in row["advice"], f"what is wrong, what to do: {row}")
    bundle = place.folder / "bundle.json"
    place.run("doctor", "--quick", "--all", "--bundle", str(bundle), "--url", ADDRESSES["top.url"][0])
    check("the bundle", bundle.read_bytes())
    for wrong in ("x y", "redis://"):  # mistakes quote values
        place.write(**{"serve.port": f"{wrong}:{PASSWORD}@h" if "//" in wrong else 1, "serve.batches": 5,
                       "serve.cache-redis": ADDRESSES["serve.cache-redis"][0]})
        place.run("doctor", "--quick", "--bundle", str(bundle))
        check("the bundle", bundle.read_bytes())
    readable = {0o600: "good", 0o604: "warning", 0o666: "warning", 0o660: "warning",
                0o640: "good" if os.geteuid() == 0 else "warning"}  # as root:hearth
    for mode, verdict in readable.items():
        place.write(mode=mode, **{"serve.cache-redis": ADDRESSES["serve.cache-redis"][0]})
        row = {each["check"]: each for each in json.loads(place.run("doctor", "--quick", "--json").stdout)["checks"]}
        same(row["config.secrets"]["verdict"], verdict, f"mode {mode:o}: {row['config.secrets']}")
    place.write(mode=0o644, **{"serve.port": 0})
    row = {each["check"]: each for each in json.loads(place.run("doctor", "--quick", "--json").stdout)["checks"]}
    same(row["config.secrets"]["verdict"], "good", "a configuration without secrets is for everybody")
    print("doctor: modes, bundle")


def check_serve(place, model):
    """What cannot be reached, what is refused, and the logs of both."""
    key = place.folder / "cache-key"
    key.write_text("0123456789abcdef0123")
    key.chmod(0o600)
    log = place.folder / "log"
    told = {}
    for name in ("serve.cache-redis", "serve.batches", "serve.trace-endpoint"):
        for i, form in enumerate(ADDRESSES[name]):
            place.write(**{name: form, "serve.cache-key": str(key), "serve.log": str(log)})
            told[name, i] = place.serve("--model", model)
            if log.exists():
                check("the log", log.read_bytes())
    masked(told["serve.trace-endpoint", 0], "spans that cannot be sent")
    expect("127.0.0.1:1" in told["serve.cache-redis", 0], f"the shared cache is named: {told['serve.cache-redis', 0]}")
    expect("PostgreSQL" in told["serve.batches", 0], f"the database is named: {told['serve.batches', 0]}")
    print("serve: a cache, a database and a collector that are away, and addresses that are none")


def check_warnings(place, model):
    """Files with secrets, readable by others or not."""
    made = subprocess.run([PROGRAM, "key", "ada"], capture_output=True, text=True, check=True)
    keys = place.folder / "keys.json"
    keys.write_text(json.dumps({"keys": [json.loads(made.stderr.strip().splitlines()[-1])]}))
    cache_key, folder = place.folder / "cache-key", place.folder / "cache"
    cache_key.write_text("0123456789abcdef0123")
    tls = place.folder / "tls.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", tls, "-out", place.folder / "tls.pem",
                    "-days", "2", "-subj", "/CN=localhost"], capture_output=True, check=True)
    flags = ["--model", model, "--keys", str(keys), "--cache-key", str(cache_key), "--cache-dir", str(folder)]
    secrets = [keys, cache_key, place.config]
    for mode, count in ((0o600, 0), (0o644, len(secrets))):
        place.write(mode=mode, **{"serve.trace-endpoint": ADDRESSES["serve.trace-endpoint"][0]})
        for path in secrets:
            path.chmod(mode)
        warned = [line for line in place.serve(*flags).splitlines() if "can be read by" in line]
        same(len(warned), count, f"warnings at mode {mode:o}: {warned}")
        for path in secrets[:count]:
            same(sum(str(path) in line for line in warned), 1, f"one of {path}: {warned}")
    keys.chmod(0o600)
    place.write()
    tls.chmod(0o644)
    told = place.serve("--model", model, "--tls-certificate", str(place.folder / "tls.pem"), "--tls-key", str(tls))
    same(sum("can be read by" in line for line in told.splitlines()), 1, f"a private key: {told}")
    own = place.folder / "own"
    place.serve("--model", model, "--cache-dir", str(own))
    (own / "key").chmod(0o644)
    told = place.serve("--model", model, "--cache-dir", str(own))
    same(sum("can be read by" in line for line in told.splitlines()), 1, f"the cache's own key: {told}")
    client = place.folder / "client.key"
    client.write_text("hearth-key\n")
    for mode, count in ((0o600, 0), (0o644, 1)):
        client.chmod(mode)
        told = place.run("top", "--once", "--url", "http://127.0.0.1:1", "--key-file", str(client)).stderr.decode()
        same(told.count("can be read by"), count, f"a client's key at mode {mode:o}: {told}")
    print("files with secrets are warned of when others can read them, and else not")


def main():
    model = work_model("tiny-chatml.gguf")
    with tempfile.TemporaryDirectory() as folder:
        place = Place(pathlib.Path(folder))
        for one in (lambda: check_settings(place), lambda: check_commands(place), lambda: check_doctor(place),
                    lambda: check_serve(place, model), lambda: check_warnings(place, model)):
            one()
    print(f"{len(printed)} outputs, {sum(printed)} bytes, without the password")


if __name__ == "__main__":
    main()

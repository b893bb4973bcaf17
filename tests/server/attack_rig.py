# SPDX-License-Identifier: Apache-2.0
"""A server with two keys: one attacks, the other is measured beside it. The victim runs in a process of
its own, so that what the attack costs its client is not taken for what it costs the victim."""
import contextlib
import http.client
import json
import multiprocessing
import pathlib
import re
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.request

from serving import expect, new_key, serving, work_model


def head_of(method, path, key, length):
    return (f"{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n"
            f"content-type: application/json\r\ncontent-length: {length}\r\n\r\n").encode()


# Of another address than the attacker, whose own limit of connections is not the victim's.
VICTIM = "127.0.0.2"


def send(port, path, key, body, *, read_buffer=0, source=None, tls=None):
    """A socket on which a request was sent and nothing was read."""
    connection = socket.socket()
    if source:
        connection.bind((source, 0))
    if read_buffer:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, read_buffer)
    connection.settimeout(60)
    connection.connect(("127.0.0.1", port))
    if tls:
        connection = tls.wrap_socket(connection)
    connection.sendall(head_of("POST", path, key, len(body)) + body)
    return connection


def stream_once(port, key, tls=None):
    """(seconds to the first token, gaps between tokens) of one short stream."""
    body = json.dumps({"prompt": "x", "max_tokens": 40, "stream": True, "ignore_eos": True}).encode()
    began = time.monotonic()
    connection = send(port, "/v1/completions", key, body, source=VICTIM, tls=tls)
    first, last, gaps, tail = None, None, [], b""
    while b"[DONE]" not in tail:
        data = connection.recv(65536)
        if not data:
            raise SystemExit(f"FAILED: the victim's stream broke after {tail!r}")
        now, tail = time.monotonic(), (tail + data)[-400:]
        if b'"error":' in tail or b"HTTP/1.1 4" in tail or b"HTTP/1.1 5" in tail:
            raise SystemExit(f"FAILED: the victim was refused: {tail!r}")
        if b'"text"' in data:
            first = first or now - began
            if last:
                gaps.append(now - last)
            last = now
    connection.close()
    return first, gaps


def together(count, work):
    """`work` by so many threads at once."""
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def live_once(port, tls=None):
    began = time.monotonic()
    made = http.client.HTTPSConnection if tls else http.client.HTTPConnection
    connection = made("127.0.0.1", port, timeout=60, source_address=(VICTIM, 0), **({"context": tls} if tls else {}))
    connection.request("GET", "/livez")
    connection.getresponse().read()
    connection.close()
    return time.monotonic() - began


def watch(port, key, seconds, tls, out):
    firsts, gaps, lives = [], [], []
    until = time.monotonic() + seconds
    while time.monotonic() < until or not firsts:
        first, between = stream_once(port, key, tls)
        firsts.append(first)
        gaps += between
        lives.append(live_once(port, tls))
    out.put((firsts, gaps, lives))


def high(values):
    """The 99th percentile. Without a gap, because all came at once, it is 0."""
    values = sorted(values) or [0.0]
    return values[min(len(values) - 1, int(0.99 * len(values)))]


class Arena:
    def __init__(self, program, server, keys, seconds, is_strict, tls=None):
        self.program, self.server, self.keys = program, server, keys
        self.port, self.seconds, self.is_strict = server.port, seconds, is_strict
        control = re.search(r"control on (http://\S+)", "".join(server.log))
        self.control = control.group(1)
        threading.Thread(target=server.process.stderr.read, daemon=True).start()
        self.pid = server.worker_pid()
        self.name, self.rows, self.tls, self.quiet = "", [], tls, None
        # What the server said at its start that it would need.
        planned = re.search(r"memory: ([\d.]+) GiB now, up to ([\d.]+) GiB more", "".join(server.log))
        self.planned_mib = 1024 * sum(map(float, planned.groups()))

    def ask(self, method, path, body=None, key="mallory", timeout=120):
        headers = {"authorization": "Bearer " + self.keys[key]}
        return self.server.request(method, path, body, headers, timeout)

    def metric(self, name, labels=""):
        with urllib.request.urlopen(self.control + "/metrics?names=hearth", timeout=30) as reply:
            text = reply.read().decode()
        values = re.findall(rf"^{name}(?:\{{[^}}]*{labels}[^}}]*\}})? (\S+)$", text, re.M)
        expect(values or labels, f"a metric {name}")  # what never happened has no line
        return sum(map(float, values))

    def resident_mib(self):
        with open(f"/proc/{self.pid}/status", encoding="utf-8") as file:
            return int(re.search(r"VmRSS:\s+(\d+) kB", file.read()).group(1)) / 1024

    def used_s(self):
        with open(f"/proc/{self.pid}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def measure(self, seconds):
        context = multiprocessing.get_context("fork")
        out = context.Queue()
        process = context.Process(target=watch,
                                  args=(self.port, self.keys["victim"], seconds, self.tls, out))
        process.start()
        found = None
        while found is None:
            try:
                found = out.get(timeout=1)
            except Exception:  # queue.Empty
                expect(process.is_alive() or not out.empty(), "the victim goes on")
        process.join()
        return [high(values) * 1000 for values in found]

    def check_memory(self):
        """The most that was ever resident, not what is now."""
        with open(f"/proc/{self.pid}/status", encoding="utf-8") as file:
            most = int(re.search(r"VmHWM:\s+(\d+) kB", file.read()).group(1)) / 1024
        bound = self.planned_mib + 256
        expect(most <= bound, f"{self.name}: {most:.0f} MiB resident, {self.planned_mib:.0f} planned")
        return most

    def calm(self):
        """The victim's times without anybody else. Not its first requests: what those wait for is the
        start of the server. Ten seconds are enough for a 99th percentile of hundreds of values."""
        if self.quiet is None or self.is_strict:
            self.measure(min(self.seconds, 1))
            self.quiet = self.measure(min(self.seconds, 10))
        return self.quiet

    def storm(self, work, threads=4):
        """Beside `work`, which so many threads repeat; what it raises as a socket is its own affair."""
        def write(stop):
            def one():
                while not stop.is_set():
                    with contextlib.suppress(OSError, http.client.HTTPException):
                        work()
            together(threads, one)

        self.beside(self.name, write)

    def beside(self, _name, attack):
        """Measures the victim quiet and beside `attack`, a function that is called until time is up."""
        quiet = self.calm()
        stop = threading.Event()

        def go_on():
            while not stop.is_set():
                attack(stop)

        thread = threading.Thread(target=go_on, daemon=True)
        thread.start()
        try:
            time.sleep(0.3 if self.is_strict else 0.1)
            loud = self.measure(self.seconds)
        finally:
            stop.set()
            thread.join()
        print(f"{self.name:22} first token {quiet[0]:6.1f} -> {loud[0]:7.1f} ms   "
              f"gap {quiet[1]:5.1f} -> {loud[1]:6.1f} ms   /livez {quiet[2]:5.1f} -> {loud[2]:6.1f} ms   "
              f"{self.check_memory():5.0f} MiB", flush=True)
        wrong = []
        for what, calm, found in zip(("first token", "gap"), quiet, loud):
            # In CI other tests run beside it: there only what would be seconds is wrong.
            bound = max(2 * calm, calm + 20) if self.is_strict else 10 * calm + 3000
            if found > bound:
                wrong.append(f"{self.name}: {what} p99 {found:.1f} ms, at most {bound:.1f} ms")
        live = 50 if self.is_strict else 3000
        if loud[2] > live:
            wrong.append(f"{self.name}: /livez {loud[2]:.1f} ms, at most {live} ms")
        self.rows.append({"name": self.name, "quiet": quiet, "loud": loud, "wrong": wrong,
                          "resident": self.check_memory(), "planned": self.planned_mib})


def unchecked():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def certificate(folder):
    """(flags of the server, a client's context) of a certificate that nobody checks."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{folder}/key.pem",
                    "-out", f"{folder}/chain.pem", "-subj", "/CN=localhost"], check=True, capture_output=True)
    return ["--tls-certificate", f"{folder}/chain.pem", "--tls-key", f"{folder}/key.pem"], unchecked()


@contextlib.contextmanager
def arena(program, *, flags=None, model="tiny-oss-o200k.gguf", seconds=2, is_strict=False):
    """`flags` of the server, or "tls" for those of a certificate."""
    keys, entries, tls = {}, [], None
    for name in ("victim", "mallory"):
        keys[name], entry = new_key(program, name)
        entries.append(entry)
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "keys.json")
        file.write_text(json.dumps({"keys": entries}), encoding="utf-8")
        if flags == "tls":
            flags, tls = certificate(folder)
        # Large enough that the server tells its plan, and small enough to be a bound.
        with serving(program, work_model(model), "--keys", str(file), "--control-port", "0", "--threads", "1",
                     "--context", "32768", "--kv-memory", "1GiB", *(flags or [])) as server:
            yield Arena(program, server, keys, seconds, is_strict, tls)

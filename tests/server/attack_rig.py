# SPDX-License-Identifier: Apache-2.0
"""A server with two keys: one attacks, the other is measured beside it. The victim runs in a process of
its own, so that what the attack costs its client is not taken for what it costs the victim.

An attack that does nothing is held by any server. So each one names counters that show what it made the server
do (`shows`, `showed`), with the least that counts; below that the test fails, however well the victim fared."""
import collections
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


def head_of(method, path, key, length, more=""):
    return (f"{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n"
            f"content-type: application/json\r\ncontent-length: {length}\r\n{more}\r\n").encode()


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


class Worker(threading.Thread):
    """A thread whose failure is not lost with it: Python drops a SystemExit there without a word."""

    def __init__(self, work):
        super().__init__(daemon=True)
        self.work, self.failure = work, None

    def run(self):
        try:
            self.work()
        except BaseException as failure:
            self.failure = failure

    def join(self, timeout=None):
        super().join(timeout)
        if self.failure is not None:
            raise self.failure


def together(count, work):
    """`work` by so many threads at once, and what any of them failed with."""
    threads = [Worker(work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        threading.Thread.join(thread)
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


class Shown:
    """A counter that tells whether an attack does its work: at least `least` of it altogether, and measured
    strictly `a_second` of it."""

    def __init__(self, what, read, least, a_second=0.0):
        self.what, self.read, self.least, self.a_second = what, read, least, a_second
        self.before, self.grown = read(), 0.0

    def look(self):
        """Whether that is enough by now."""
        self.grown = max(self.grown, self.read() - self.before)
        return self.grown >= self.least

    def __str__(self):
        return f"{self.grown:,.0f} {self.what}" if self.grown >= 10 else f"{self.grown:.3g} {self.what}"


class Arena:
    def __init__(self, program, server, keys, seconds, is_strict, tls=None):
        self.program, self.server, self.keys = program, server, keys
        self.port, self.seconds, self.is_strict = server.port, seconds, is_strict
        control = re.search(r"control on (http://\S+)", "".join(server.log))
        self.control = control.group(1)
        threading.Thread(target=server.process.stderr.read, daemon=True).start()
        # The one that serves, which is a child of the one that was started.
        self.pid = server.worker_pid()
        expect(self.pid != server.process.pid, "a worker under its supervisor")
        self.name, self.rows, self.tls, self.quiet = "", [], tls, None
        self.shown, self.was_watched, self.replies, self.lock = [], False, collections.Counter(), threading.Lock()
        self.failures = []
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

    def begin(self, name):
        self.name, self.shown, self.was_watched = name, [], False
        self.replies.clear()

    def shows(self, what, read, least=1, a_second=0.0):
        """From now on the attack counts only if `read()` grows by `least` while it goes on."""
        self.shown.append(Shown(what, read, least, a_second))

    def showed(self, what, count, least=1):
        """What an attack without a victim did."""
        self.shown.append(Shown(what, lambda: 0, least))
        self.shown[-1].grown = count

    def replied(self, status):
        """Counts a reply that the attacker was given."""
        with self.lock:
            self.replies[status] += 1

    def count_of(self, *statuses):
        """A counter of such replies, for `shows`."""
        return lambda: sum(self.replies[each] for each in statuses)

    def tokens(self, kind):
        """A counter of what the attacker's key was charged: "prompt" or "generated"."""
        return lambda: self.metric("hearth_key_tokens_total", f'key="mallory",kind="{kind}"')

    def counter(self, name, labels=""):
        return lambda: self.metric(name, labels)

    def check_shown(self):
        """No attack without evidence that it was one."""
        expect(self.shown, f"{self.name}: something that shows what it did")
        for each in self.shown:
            expect(each.look(), f"{self.name} is no attack: {each}, at least {each.least:,.0f} wanted; "
                                f"replies {dict(self.replies)}")

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

    def most_resident_mib(self):
        """The most that was ever resident, not what is now."""
        with open(f"/proc/{self.pid}/status", encoding="utf-8") as file:
            return int(re.search(r"VmHWM:\s+(\d+) kB", file.read()).group(1)) / 1024

    def memory_bound_mib(self):
        return self.planned_mib + 256

    def check_memory(self):
        most = self.most_resident_mib()
        expect(self.is_strict or most <= self.memory_bound_mib(),
               f"{self.name}: {most:.0f} MiB resident, {self.planned_mib:.0f} planned")
        return most

    def calm(self):
        """The victim's times without anybody else. Not its first requests: what those wait for is the
        start of the server. Ten seconds are enough for a 99th percentile of hundreds of values."""
        if self.quiet is None or self.is_strict:
            self.measure(min(self.seconds, 1))
            self.quiet = self.measure(min(self.seconds, 10))
        return self.quiet

    def storm(self, work, threads=4):
        """Beside `work`, which so many threads repeat; what it raises as a socket is its own affair, and what it
        returns, if anything, is the status of a reply."""
        def write(stop):
            def one():
                while not stop.is_set():
                    with contextlib.suppress(OSError, http.client.HTTPException):
                        if (status := work()) is not None:
                            self.replied(status)
            together(threads, one)

        self.beside(self.name, write)

    def beside(self, _name, attack):
        """Measures the victim quiet and beside `attack`, a function that is called until time is up."""
        quiet = self.calm()
        self.was_watched = True
        self.shown = [Shown(each.what, each.read, each.least, each.a_second) for each in self.shown]
        stop = threading.Event()

        def go_on():
            while not stop.is_set():
                attack(stop)

        thread = Worker(go_on)
        thread.start()
        try:
            time.sleep(0.3 if self.is_strict else 0.1)
            loud = self.measure(self.seconds)
            # In a moment on a busy machine it may not have come to it yet.
            until = time.monotonic() + (0 if self.is_strict else 40)
            while not all([each.look() for each in self.shown]) and time.monotonic() < until:
                time.sleep(0.1)
        finally:
            stop.set()
            thread.join()
        print(f"{self.name:22} first token {quiet[0]:6.1f} -> {loud[0]:7.1f} ms   "
              f"gap {quiet[1]:5.1f} -> {loud[1]:6.1f} ms   /livez {quiet[2]:5.1f} -> {loud[2]:6.1f} ms   "
              f"{self.resident_mib():5.0f} MiB   {'; '.join(map(str, self.shown))}", flush=True)
        # Told at the end of a strict run, which goes on with the next attack; in CI it is the end at once.
        wrong = [] if self.is_strict else self.check_shown() or []
        for each in self.shown if self.is_strict else []:
            if each.grown < max(each.least, each.a_second * self.seconds):
                wrong.append(f"{self.name} is no attack: {each} in {self.seconds:g} s; replies {dict(self.replies)}")
        for what, calm, found in zip(("first token", "gap"), quiet, loud):
            # In CI other tests run beside it: there only what would be seconds is wrong.
            bound = max(2 * calm, calm + 20) if self.is_strict else 10 * calm + 3000
            if found > bound:
                wrong.append(f"{self.name}: {what} p99 {found:.1f} ms, at most {bound:.1f} ms")
        live = 50 if self.is_strict else 3000
        if loud[2] > live:
            wrong.append(f"{self.name}: /livez {loud[2]:.1f} ms, at most {live} ms")
        most, bound = self.most_resident_mib(), self.memory_bound_mib()
        if most > bound:
            wrong.append(f"{self.name}: {most:.0f} MiB resident, {self.planned_mib:.0f} planned")
        self.rows.append({"name": self.name, "quiet": quiet, "loud": loud, "wrong": wrong,
                          "resident": most, "planned": self.planned_mib, "shown": [str(each) for each in self.shown]})


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

# SPDX-License-Identifier: Apache-2.0
"""A server under mixed use for as long as one likes: every dialect, streams, tools, stored responses,
clients that leave in the middle, and SIGHUPs. After warming up, memory and descriptors stay where they
are, and no reply is a 5xx. soak_test.py HEARTH [--minutes M]"""
import argparse
import collections
import http.client
import json
import os
import pathlib
import random
import re
import signal
import socket
import statistics
import sys
import tempfile
import threading
import time

from serving import expect, new_key, record, serving, work_model

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "faults"))
from scenarios import SCENARIOS

CLIENTS = 6
# Not the one whose megabytes would be what is seen of memory.
NAMES = [name for name in SCENARIOS if "{" not in SCENARIOS[name][2] and name != "chat large"]


class Soak:
    def __init__(self, server, key):
        self.server, self.key = server, key
        self.counts, self.lock = collections.Counter(), threading.Lock()
        self.is_over = threading.Event()

    def ask(self, name, rng):
        """One request as a client sends it; one in ten leaves before the end."""
        _, method, path, body = SCENARIOS[name]
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        data = data.replace(b"{model}", b"tiny-chatml").replace(b'"previous_response_id": "{kept}"', b'"store": true')
        headers = {"authorization": "Bearer " + self.key}
        if data:
            headers["content-type"] = "application/json"
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        try:
            connection.request(method, path, data or None, headers)
            if rng.random() < 0.1:
                time.sleep(rng.random() * 0.01)
                return "left"
            reply = connection.getresponse()
            reply.read()
            return str(reply.status)
        except (http.client.HTTPException, ConnectionError, socket.timeout) as broken:
            return type(broken).__name__
        finally:
            connection.close()

    def run(self, seed):
        rng = random.Random(seed)
        while not self.is_over.is_set():
            name = rng.choice(NAMES)
            outcome = self.ask(name, rng)
            with self.lock:
                self.counts[outcome] += 1
                if outcome.startswith("5") or not (outcome.isdigit() or outcome == "left"):
                    self.counts[f"{outcome} {name}"] += 1


def resident_kib(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmRSS:\s+(\d+)", text).group(1))


def watch(server, soak, seconds):
    """(resident set, descriptors) every second, with a SIGHUP now and then."""
    rows, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(1)
        expect(server.process.poll() is None, f"the server lives: {soak.counts}")
        rows.append((resident_kib(server.process.pid), len(os.listdir(f"/proc/{server.process.pid}/fd"))))
        if len(rows) % 5 == 0:
            server.process.send_signal(signal.SIGHUP)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--minutes", type=float, default=3)
    arguments = parser.parse_args()
    key, entry = new_key(arguments.program, "soak")
    with tempfile.TemporaryDirectory() as folder:
        keys = os.path.join(folder, "keys.json")
        pathlib.Path(keys).write_text(json.dumps({"keys": [entry]}), encoding="utf-8")
        # A small cache of K and V, so that it is full early and the resident set has its size.
        with serving(arguments.program, work_model("tiny-chatml.gguf"), "--no-supervisor", "--keys", keys,
                     "--responses", os.path.join(folder, "responses"), "--log", os.path.join(folder, "log"),
                     "--kv-memory", "32MiB") as server:
            threading.Thread(target=server.process.stderr.read, daemon=True).start()
            soak = Soak(server, key)
            threads = [threading.Thread(target=soak.run, args=(i,)) for i in range(CLIENTS)]
            for thread in threads:
                thread.start()
            try:
                rows = watch(server, soak, arguments.minutes * 60)
            finally:
                soak.is_over.set()
                for thread in threads:
                    thread.join()
    # The first third warms up; then the beginning is compared with the end.
    rows = rows[len(rows) // 3:]
    third = max(1, len(rows) // 3)
    early, late = rows[:third], rows[-third:]
    memory = [statistics.median(row[0] for row in part) for part in (early, late)]
    files = [statistics.median(row[1] for row in part) for part in (early, late)]
    growth = memory[1] / memory[0] - 1
    asked = sum(v for k, v in soak.counts.items() if " " not in k)
    print(f"{asked} requests: {dict(soak.counts)}")
    print(f"resident set {memory[0] / 1024:.1f} -> {memory[1] / 1024:.1f} MiB ({growth:+.2%}), "
          f"descriptors {files[0]:.0f} -> {files[1]:.0f}")
    bad = {k: v for k, v in soak.counts.items() if not (k == "left" or k[0] in "24")}
    expect(not bad, f"no reply of 5xx and no broken connection: {bad}")
    expect(growth < 0.01, f"a flat resident set, not {growth:+.2%}")
    expect(abs(files[1] - files[0]) <= CLIENTS, f"flat descriptors: {files}")
    record("soak", round(arguments.minutes * 60), minutes=arguments.minutes, requests=asked,
           growth_percent=round(100 * growth, 2), descriptors=files, server_errors=0)


if __name__ == "__main__":
    main()

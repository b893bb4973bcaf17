# SPDX-License-Identifier: Apache-2.0
"""A pull is at least 0.9 times as fast as curl from the same server on a link of a gigabit, although
it checks the sum. Without a limit the processor is the limit: there the figures are printed beside
those of curl with a SHA-256 by OpenSSL after it, which is the same work, and must not be worse."""
import argparse
import hashlib
import http.server
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

from pulls import expect, same

SIZE = 800_000_000
GIGABIT = 125_000_000
LEAST = 0.9


class Link:
    """Bytes a second that all connections share."""

    def __init__(self, rate):
        self.rate, self.lock, self.free_at = rate, threading.Lock(), 0.0

    def take(self, count):
        if not self.rate:
            return
        with self.lock:
            start = max(self.free_at, time.monotonic() - 0.02)
            self.free_at = start + count / self.rate
            wait = self.free_at - time.monotonic()
        if wait > 0:
            time.sleep(wait)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET(False)

    def do_GET(self, has_body=True):
        span = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        begin, end = (int(span.group(1)), int(span.group(2)) + 1) if span else (0, SIZE)
        self.send_response(206 if span else 200)
        if span:
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{SIZE}")
        self.send_header("Content-Length", str(end - begin))
        self.send_header("ETag", '"x"')
        self.end_headers()
        self.wfile.flush()
        step = 1 << 20
        while has_body and begin < end:
            count = min(step, end - begin)
            self.server.link.take(count)
            begin += os.sendfile(self.connection.fileno(), self.server.file, begin, count)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass


def sha256_of(path):
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def seconds(command, environment=None):
    began = time.monotonic()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    expect(done.returncode == 0, f"{command}: {done.stderr!r}")
    return time.monotonic() - began


def best(folder, address, sha256, rounds, against):
    """The best time of each, taking turns: curl, curl and then the sum, hearth. More rounds than three
    only while it is behind `against`: others may be at work on this machine."""
    times = {"curl": [], "summed": [], "hearth": []}
    kept = {name: value for name, value in os.environ.items() if not re.match("(?i).*_proxy$", name)}
    environment = {**kept, "HOME": str(folder), "HEARTH_MODELS": str(folder / "models")}
    for number in range(rounds):
        if number >= 3 and min(times[against]) / min(times["hearth"]) >= LEAST:
            break
        times["curl"].append(
            seconds(["curl", "-sS", "--noproxy", "*", "-o", str(folder / "by-curl"), address]))
        began = time.monotonic()
        same(sha256_of(folder / "by-curl"), sha256, "what curl got")
        times["summed"].append(times["curl"][-1] + time.monotonic() - began)
        (folder / "by-curl").unlink()
        times["hearth"].append(seconds([sys.argv[1], "pull", address, "--name", "m", "--sha256", sha256,
                                        "--quiet"], environment))
        seconds([sys.argv[1], "rm", "m"], environment)
    return tuple(min(each) for each in times.values())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("hearth")
    parser.add_argument("--rounds", type=int, default=8)
    arguments = parser.parse_args()
    # In memory: the network is to be measured, not the disk.
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        folder = pathlib.Path(name)
        source = folder / "source"
        with source.open("wb") as out:
            out.write(b"GGUF")
            block = os.urandom(1 << 20)
            for _ in range(SIZE // len(block)):
                out.write(block)
            out.truncate(SIZE)
        sha256 = sha256_of(source)
        server = Server(("127.0.0.1", 0), Handler)
        server.file = os.open(source, os.O_RDONLY)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}/m.gguf"
        for rate in (GIGABIT, 0):
            server.link = Link(rate)
            curl, summed, ours = best(folder, address, sha256, arguments.rounds,
                                      "curl" if rate else "summed")
            print(f"{'1 Gbit/s' if rate else 'no limit'}: curl {SIZE / curl / 1e6:.0f} MB/s, with a "
                  f"sum {SIZE / summed / 1e6:.0f} MB/s, hearth {SIZE / ours / 1e6:.0f} MB/s: "
                  f"{curl / ours:.2f} and {summed / ours:.2f} times", flush=True)
            expect((curl if rate else summed) / ours >= LEAST, f"at least {LEAST} times the rate")
        server.shutdown()


main()

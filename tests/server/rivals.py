# SPDX-License-Identifier: Apache-2.0
"""Two keys on one server: what one of them asks for all the time, and how long the other one's small
requests take meanwhile. The rivals are a process of their own, which this file is as a program; all that they do
is raw bytes on sockets, since on one machine their processor time is taken from the server's."""
import contextlib
import itertools
import json
import random
import socket
import subprocess
import sys
import threading
import time

from attack_rig import VICTIM, head_of

RIVAL = "127.0.0.3"
CHAT = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}


def packed(path, key, body, more="connection: close\r\n"):
    data = json.dumps(body, separators=(",", ":")).encode()
    return head_of("POST", path, key, len(data), more) + data


def connect(port, source, timeout=900):
    line = socket.create_connection(("127.0.0.1", port), timeout=timeout, source_address=(source, 0))
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return line


class Victim:
    """Asks for one token at a time, on a connection that stays."""

    def __init__(self, port, key, model=None):
        self.line = connect(port, VICTIM)
        self.sent = packed("/v1/chat/completions", key, {**CHAT, **({"model": model} if model else {})}, "")
        self.rng = random.Random(7)

    def once(self):
        """Seconds until the whole reply was there. One that is not a 200 ends everything."""
        began = time.perf_counter()
        self.line.sendall(self.sent)
        data = b""
        while not self.is_whole(data):
            more = self.line.recv(65536)
            if not more:
                raise SystemExit(f"FAILED: the victim's connection was cut after {data[:300]!r}")
            data += more
        seconds = time.perf_counter() - began
        if not data.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"FAILED: the victim was refused: {data[:500]!r}")
        return seconds

    @staticmethod
    def is_whole(data):
        head, found, body = data.partition(b"\r\n\r\n")
        if not found:
            return False
        length = head.lower().split(b"content-length: ", 1)[1].split(b"\r\n", 1)[0]
        return len(body) >= int(length)

    def measure(self, seconds, least=1, between=lambda: None, pause_s=0.02):
        """Times of requests, as many as fit and at least `least`. A rest of random length keeps them from falling
        into step with the server's."""
        found, until = [], time.monotonic() + seconds
        while time.monotonic() < until or len(found) < least:
            found.append(self.once())
            between()
            time.sleep(self.rng.uniform(0.2, 1.8) * pause_s)
        return found

    def close(self):
        self.line.close()


# --- what rivals do, each in a thread ------------------------------------------------------------

class Rival:
    """One of them: repeats a kind of request until there is nothing left to do."""

    def __init__(self, crowd, number):
        self.crowd, self.plan, self.number = crowd, crowd.plan, number
        self.rng, self.line = random.Random(1000 * crowd.plan.get("seed", 0) + number), None

    def ids(self, count):
        return [self.rng.randrange(1000, self.plan["vocab"] - 1000) for _ in range(count)]

    def completion(self, **body):
        model = {"model": self.plan["model"]} if self.plan.get("model") else {}
        return packed("/v1/completions", self.plan["key"], {**model, "ignore_eos": True, **body})

    def ask(self, data, leaves=False):
        """Its outcome: a status, "left", or "cut" when the reply did not come to its end."""
        with contextlib.closing(connect(self.crowd.port, RIVAL)) as self.line:
            self.line.sendall(data)
            if leaves:
                return "left"
            first = last = b""
            while piece := self.line.recv(1 << 16):
                first, last = first or piece, (last + piece)[-64:]
        if not first.startswith(b"HTTP/1.1 ") or (b"event-stream" in first and b"[DONE]" not in last):
            return "cut"
        return first[9:12].decode()

    def long_prompt(self):
        return self.ask(self.completion(prompt=self.ids(self.plan["prompt_tokens"]), max_tokens=1))

    def endless_stream(self):
        return self.ask(self.completion(prompt=self.ids(4), max_tokens=self.plan["answer_tokens"], stream=True))

    def cancelled(self):
        self.crowd.keep_to_rate()
        return self.ask(self.completion(prompt="x", max_tokens=2000, stream=True), leaves=True)

    def busted_cache(self):
        return self.ask(self.completion(prompt=self.ids(800), max_tokens=1, cache_salt=f"{self.rng.random()}"))

    def switched_model(self):
        name = self.plan["models"][next(self.crowd.numbers) % len(self.plan["models"])]
        return self.ask(packed("/v1/chat/completions", self.plan["key"], {**CHAT, "model": name}))

    def run(self):
        work = getattr(self, self.plan["kind"])
        while self.crowd.go_on():
            try:
                outcome = work()
            except OSError as broken:
                outcome = type(broken).__name__
            if not self.crowd.is_over.is_set():
                self.crowd.count(outcome)


class Crowd:
    """`connections` rivals at once; with `requests` no more than that many altogether."""

    def __init__(self, plan):
        self.plan, self.port = plan, plan["port"]
        self.is_over, self.lock, self.outcomes = threading.Event(), threading.Lock(), {}
        self.begun, self.numbers, self.began = 0, itertools.count(), time.monotonic()

    def go_on(self):
        with self.lock:
            self.begun += 1
            return not self.is_over.is_set() and self.begun <= self.plan.get("requests", 1 << 60)

    def count(self, outcome):
        with self.lock:
            self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1

    def keep_to_rate(self):
        """Rests until the next one is due, where there is a `rate` for all of them together."""
        if rate := self.plan.get("rate"):
            due = self.began + next(self.numbers) / rate
            self.is_over.wait(max(0.0, due - time.monotonic()))

    def run(self):
        rivals = [Rival(self, number) for number in range(self.plan["connections"])]
        threads = [threading.Thread(target=rival.run) for rival in rivals]
        threading.Thread(target=self.wait_for_end, args=(rivals,), daemon=True).start()
        print("begun", flush=True)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(json.dumps({"outcomes": self.outcomes, "seconds": time.monotonic() - self.began,
                          "processor_s": time.process_time()}), flush=True)

    def wait_for_end(self, rivals):
        """The other side closes our input when it is enough. What hangs on a socket then is cut loose, again and again
        for those that were just connecting."""
        sys.stdin.read()
        self.is_over.set()
        while True:
            for rival in rivals:
                with contextlib.suppress(OSError, AttributeError):
                    rival.line.shutdown(socket.SHUT_RDWR)
            time.sleep(0.02)


class Rivals:
    """The process of a crowd; `with Rivals(plan) as rivals:`, and afterwards `outcomes`, and what their own
    work took of a processor."""

    def __init__(self, plan):
        self.process = subprocess.Popen([sys.executable, __file__, json.dumps(plan)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()

    def wait(self):
        """Until a crowd that has so many requests is through with them."""
        self.hear(self.process.stdout.readline())

    def hear(self, line):
        told = json.loads(line)
        self.outcomes, self.seconds = told["outcomes"], told["seconds"]
        self.processor_share = told["processor_s"] / told["seconds"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        rest, _ = self.process.communicate(timeout=60)  # which closes its input
        if rest:
            self.hear(rest)


if __name__ == "__main__":
    Crowd(json.loads(sys.argv[1])).run()

# SPDX-License-Identifier: Apache-2.0
"""Clients of every dialect that go away at every point of their exchange, beside one that stays:
what it is told never changes, and afterwards nothing is left: no sequence, no held block, no
descriptor, no memory. --count says how many leave."""
import argparse
import collections
import json
import os
import random
import re
import socket
import threading
import time
import urllib.request

from serving import Server, expect, same, work_model

WORDS = "tell me a story about seven owls and a lighthouse keeper who counts the waves ".split()
SCHEMA = {"type": "object", "additionalProperties": False, "required": ["sky"],
          "properties": {"sky": {"type": "string", "maxLength": 400}}}
STEADY = {"messages": [{"role": "user", "content": "Count the owls."}], "max_tokens": 12, "seed": 7,
          "temperature": 1, "ignore_eos": True}
# Where a client leaves. "queued" and "prefill" follow from how long it stays and its prompt.
POINTS = ["head", "body", "chunk", "sent", "queued", "prefill", "first", "stream", "reset"]


def prompt(rng, long):
    # Few different ones: what the cache keeps of them must not look like a leak.
    words = rng.choice([900, 1500]) if long else rng.choice([3, 40, 120])
    return " ".join((WORDS * (words // len(WORDS) + 1))[:words])


def body_for(dialect, rng, long):
    """(path, body) of a request that would go on for long."""
    text, streams = prompt(rng, long), rng.random() < 0.7
    body = {"stream": streams, "temperature": 1}
    shape = rng.random()
    if dialect == "completions":
        body |= {"prompt": text, "max_tokens": 600, "ignore_eos": True}
        if shape < 0.3:
            body["guided_json"] = SCHEMA
        return "/v1/completions", body
    if dialect == "responses":
        body |= {"input": text, "max_output_tokens": 600, "store": False}
        if shape < 0.3:
            body["text"] = {"format": {"type": "json_schema", "name": "s", "schema": SCHEMA}}
        if shape > 0.7:
            body |= {"tools": [{"type": "function", "name": "f", "parameters": SCHEMA}],
                     "tool_choice": "required"}
        return "/v1/responses", body
    body |= {"messages": [{"role": "user", "content": text}], "max_tokens": 600}
    if dialect == "messages":
        if shape > 0.6:
            body |= {"tools": [{"name": "f", "input_schema": SCHEMA}], "tool_choice": {"type": "any"}}
        return "/v1/messages", body
    body |= {"ignore_eos": True, "n": rng.choice([1, 1, 2])}
    if shape < 0.3:
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA}}
    if shape > 0.7:
        body |= {"tools": [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}],
                 "tool_choice": "required"}
    return "/v1/chat/completions", body


def leave(port, seed):
    """One client that goes; (dialect, point, whether it streamed)."""
    rng = random.Random(seed)
    dialect, point = rng.choice(["chat", "completions", "responses", "messages"]), rng.choice(POINTS)
    path, body = body_for(dialect, rng, point == "prefill")
    if point in ("first", "stream"):
        body["stream"] = True
    data = json.dumps(body).encode()
    framing = "transfer-encoding: chunked" if point == "chunk" else f"content-length: {len(data)}"
    head = (f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            f"{framing}\r\n\r\n").encode()
    with socket.create_connection(("127.0.0.1", port), timeout=300) as sock:
        if point == "head":
            sock.sendall(head[:rng.randint(1, len(head) - 1)])
        elif point == "body":
            sock.sendall(head + data[:rng.randint(0, len(data) - 1)])
        elif point == "chunk":
            sock.sendall(head + b"%x\r\n" % len(data) + data[:rng.randint(0, len(data) - 1)])
        else:
            sock.sendall(head + data)
            if point in ("queued", "prefill"):
                time.sleep(rng.random() * 0.03)
            wanted = {"first": 1, "stream": rng.randint(3, 8)}.get(point, 0)
            got = b""
            # A reply that is thought alone shows a dialect without thoughts few events.
            while got.count(b"\n\n") < wanted and not got.endswith(b"\r\n0\r\n\r\n"):
                piece = sock.recv(4096)
                expect(piece, f"more of a stream after {got[-300:]!r}")
                got += piece
            if wanted:
                expect(got.startswith(b"HTTP/1.1 200"), f"a stream, not {got[:200]!r}")
        if rng.random() < 0.3 or point == "reset":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    return dialect, point, body["stream"]


class Watch:
    """What the server says of itself, and what the system says of it."""

    def __init__(self, server):
        self.server = server
        self.pid = server.worker_pid()
        self.control = re.search(r"control on (\S+)", "".join(server.log)).group(1)

    def page(self):
        text = urllib.request.urlopen(f"{self.control}/metrics?names=hearth").read().decode()
        return {k: float(v) for k, v in re.findall(r"^(hearth_\S+) (\S+)$", text, re.MULTILINE)}

    def descriptors(self):
        """The least of a second: the server takes a moment to let go of our own last question."""
        counts = []
        for _ in range(20):
            counts.append(len(os.listdir(f"/proc/{self.pid}/fd")))
            time.sleep(0.05)
        return min(counts)

    def resident_mib(self):
        with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1)) / 1024

    def cached_blocks(self):
        return self.page()['hearth_kv_blocks{group="full",state="cached"}']

    def problems(self):
        """What is not as it must be when nobody asks for anything."""
        page = self.page()
        zero = ["requests_running", "requests_waiting", "requests_paused", "waiting_tokens",
                "backlog_tokens", "backend_failures_total", "stalls_total",
                'requests_finished_total{reason="error"}', "requests_refused_total",
                'http_open_connections{listener="api"}']
        found = [f"{name} is {page['hearth_' + name]}" for name in zero if page["hearth_" + name]]
        for group in ("full", "window"):
            states = {s: page[f'hearth_kv_blocks{{group="{group}",state="{s}"}}']
                      for s in ("free", "held", "cached", "pinned")}
            if states["held"] or states["pinned"]:
                found.append(f"{group} blocks {states}")
            if sum(states.values()) != page[f'hearth_kv_capacity_blocks{{group="{group}"}}']:
                found.append(f"{group} blocks do not add up: {states}")
        ended = sum(v for k, v in page.items() if k.startswith("hearth_requests_finished_total"))
        if ended != page["hearth_requests_admitted_total"]:
            found.append(f"{page['hearth_requests_admitted_total']} let in, {ended} ended")
        return found

    def settle(self, bound=60):
        """Seconds until nothing is left."""
        began = time.monotonic()
        while found := self.problems():
            expect(time.monotonic() - began < bound, f"nothing left after {bound} s, not {found}")
            time.sleep(0.02)
        return time.monotonic() - began


def steady(server):
    status, _, data = server.request("POST", "/v1/chat/completions", STEADY, timeout=300)
    same(status, 200, f"the one who stays: {data}")
    reply = json.loads(data)
    return json.dumps(reply["choices"]), reply["usage"]["completion_tokens"]


def storm(server, seeds, told, counts):
    """Everybody leaves, twelve at a time, while one client stays."""
    lock, over, problems = threading.Lock(), threading.Event(), []
    seeds = list(seeds)

    def work():
        try:
            while True:
                with lock:
                    if not seeds:
                        return
                    seed = seeds.pop()
                what = leave(server.port, seed)
                with lock:
                    counts[what] += 1
        except BaseException as problem:  # pylint: disable=broad-except
            problems.append(f"seed {seed}: {problem!r}")

    def stay():
        try:
            while not over.is_set():
                same(steady(server), told, "what the one who stays is told")
                with lock:
                    counts["stayed"] += 1
        except BaseException as problem:  # pylint: disable=broad-except
            problems.append(repr(problem))

    threads = [threading.Thread(target=work) for _ in range(12)]
    stayer = threading.Thread(target=stay)
    for thread in [*threads, stayer]:
        thread.start()
    for thread in threads:
        thread.join()
    over.set()
    stayer.join()
    same(problems, [], "problems of clients")


def main(program, count):
    server = Server(program, work_model("tiny-oss-o200k.gguf"), "--threads", "1", "--control-port",
                    "0", "--max-sequences", "4", "--drain", "60")
    watch, counts, began = Watch(server), collections.Counter(), time.monotonic()
    told = steady(server)
    warm = max(60, count // 3)
    storm(server, range(warm), told, counts)
    watch.settle()
    fds, resident, cached = watch.descriptors(), watch.resident_mib(), watch.cached_blocks()
    storm(server, range(warm, count), told, counts)
    settled = watch.settle()
    grown = watch.resident_mib() - resident
    kept = (watch.cached_blocks() - cached) * 18.4 / 1024  # MiB of K and V per block of this model
    same(steady(server), told, "the same request at the end")
    watch.settle()
    same(watch.descriptors(), fds, "open descriptors")
    expect(grown < 48 + 2 * kept, f"{grown:.0f} MiB more, {kept:.0f} of it in the cache")
    cancelled = watch.page()['hearth_requests_finished_total{reason="cancelled"}']
    expect(cancelled > count / 4, f"many to leave while they run, not {cancelled}")
    code, seconds = server.stop(90)
    same(code, 0, "the exit code")
    expect(seconds < 5, f"nothing to drain; it took {seconds:.1f} s")
    by_point = collections.Counter()
    for what, number in counts.items():
        if what != "stayed":
            by_point[what[0]] += number
            by_point[what[1]] += number
    same(sum(by_point[p] for p in POINTS), count, "clients that left")
    print(f"{count} left in {time.monotonic() - began:.0f} s, {cancelled:.0f} while they ran: "
          f"{dict(by_point)}; one stayed for {counts['stayed']} replies, all the same; settled after "
          f"{settled:.2f} s, {fds} descriptors before and after, {grown:+.1f} MiB; gone in {seconds:.2f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=300)
    flags = parser.parse_args()
    main(flags.program, flags.count)

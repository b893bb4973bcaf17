# SPDX-License-Identifier: Apache-2.0
"""No request costs more than its share: every array, string and object of every route, made from the
server's own field tables, with n and with 2n elements. The server's processor time may grow with the
size, and not faster: more than 2.5 times for twice the size fails.

complexity_test.py HEARTH [--bytes N] [--only TEXT] [--every N]: bodies of up to N bytes (1,000,000; the server
takes 4 MiB)."""
import argparse
import collections
import http.client
import json
import subprocess
import sys

from processor_time import Meter, tree_of
from request_shapes import EMPTY, shapes_of
from serving import expect, record, serving, work_model

MOST = 2.5      # times the time for twice the size
# Seconds. Below it nobody is harmed, and a busy machine's caches grow by more than the work (21 ms came out as
# 2.8 times beside six other programs); what is quadratic takes tenths of a second with bodies of 200 KB.
FLOOR = 0.04
REPEATS = 6     # of what looks too steep: the least of them counts
# `route field shape` whose growth is known and whose mending is on its way, each with its reason.
KNOWN = {}


def routes(program):
    """(path, field, kind) of every field that has a size, from the tables that requests are read
    with."""
    text = subprocess.run([program, "api-docs", "--openapi"], check=True, capture_output=True).stdout
    for path, methods in json.loads(text)["paths"].items():
        for operation in methods.values():
            if "requestBody" not in operation:
                continue
            expect(path in EMPTY, f"a smallest body for {path} in request_shapes.py")
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            yield path, "", "object"  # members that are in no table
            for name, field in schema["properties"].items():
                kind = field.get("type", "any")
                if kind in ("string", "array", "object", "any"):
                    yield path, name, kind


class Asker:
    """One connection to the server, and what its requests cost."""

    def __init__(self, server):
        self.server, self.pids = server, tree_of(server.process.pid)
        self.requests, self.statuses = 0, collections.Counter()
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)

    def cost(self, path, body):
        with Meter(self.pids) as meter:
            self.connection.request("POST", path, body, {"content-type": "application/json"})
            response = self.connection.getresponse()
            response.read()
        self.requests += 1
        self.statuses[response.status] += 1
        expect(response.status < 500 or response.status in (501, 504), f"{path}: {response.status}")
        return meter.seconds

    def growth(self, path, bodies):
        """(times, seconds) for the larger body; asked again when it looks too steep."""
        least = [self.cost(path, body) for body in bodies]
        for _ in range(REPEATS):
            if least[1] < FLOOR or least[1] < MOST * least[0]:
                break
            least = [min(old, self.cost(path, body)) for old, body in zip(least, bodies)]
        return least[1] / max(least[0], 1e-6), least[1]


def body_of(path, field, value, name):
    body = dict(EMPTY[path])
    if "model" in body:
        body["model"] = name
    if field:
        body[field] = value
    else:
        body.update(value)
    return json.dumps(body, separators=(",", ":")).encode()


def bodies_of(path, field, shape, name, most_bytes):
    """With n and 2n elements, the larger near the size that is allowed."""
    def made(n):
        return body_of(path, field, shape.make(n), name)

    count = 64
    per_element = (len(made(2 * count)) - len(made(count))) / count
    expect(per_element > 0, f"{path} {field}: {shape.name} grows")
    most = min(most_bytes, shape.most_bytes or most_bytes)
    n = int((most - len(made(1))) / per_element / 2)
    return made(max(1, min(n, shape.most // 2))), made(max(2, 2 * min(n, shape.most // 2)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--bytes", type=int, default=1_000_000)
    parser.add_argument("--only", default="")
    parser.add_argument("--every", type=int, default=1, help="of all fields and shapes each Nth: CI's share")
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    rows, bad, known, seen = [], [], [], 0
    with serving(given.program, work_model("tiny-oss-o200k.gguf"), "--threads", "1", "--context",
                 "512") as server:
        asker = Asker(server)
        for path, field, kind in routes(given.program):
            for shape in shapes_of(path, field, kind):
                what = f"{path} {field or '(unknown members)'} {shape.name}"
                seen += 1
                if given.only not in what or seen % given.every:
                    continue
                times, seconds = asker.growth(
                    path, bodies_of(path, field, shape, server.name, given.bytes))
                rows.append((times, seconds, what))
                if given.verbose:
                    print(f"{times:5.2f} times {seconds * 1e3:8.1f} ms {what}", flush=True)
                if seconds >= FLOOR and times > MOST:
                    (known if what in KNOWN else bad).append(rows[-1])
        requests, statuses = asker.requests, asker.statuses
    for title, some in (("steepest", sorted((r for r in rows if r[1] >= FLOOR), reverse=True)[:8]),
                        ("longest", sorted(rows, key=lambda row: -row[1])[:8]), ("known", known)):
        for times, seconds, what in some:
            print(f"{title}: {times:.2f} times, {seconds * 1e3:.1f} ms: {what}")
    print(f"{len(rows)} fields and shapes, {requests} requests: {dict(statuses)}")
    # What is refused at its first value costs little at any size: some must be answered, or nothing was rendered.
    expect(given.only or statuses[200] >= 0.1 * requests, f"one in ten answered: {dict(statuses)}")
    for times, seconds, what in bad:
        print(f"FAILED: twice the size takes {times:.1f} times as long, {seconds * 1e3:.0f} ms: {what}")
    record("complexity", len(rows), shapes=len(rows), bytes=given.bytes, above=len(bad), known=len(known), most=MOST)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""One client floods the server with bodies of 4 MiB that are expensive to read; another one's small
requests are timed meanwhile, against the same requests on the quiet server of the same run."""
import json
import os
import random
import socket
import subprocess
import sys
import time

from rig import Others, Row, milliseconds, rig

# Without keys a client is its address; loopback has many.
QUIET, FLOOD = "127.0.0.2", "127.0.0.3"
PATH = "/v1/chat/completions"


def hostile_schemas(number):
    """Schemas within the limits that take long to compile; the number keeps them out of caches."""
    mark = f"n{number}x{os.getpid()}"
    dates = [{"type": "object", "required": [f"{mark}{j}"], "properties": {
        f"{mark}{i}": {"type": "string", "format": "date-time"} for i in range(220)}}
        for j in range(2)]
    objects = [{"type": "object", "properties": {f"{mark}{i}": {"const": j} for i in range(12)}}
               for j in range(12)]
    return [
        {"anyOf": dates},
        {"anyOf": [{"type": "object", "required": [f"{mark}{i}"], "properties": {
            f"{mark}{i}": {"type": "string", "format": "uri", "minLength": i}}}
            for i in range(800)]},
        {"enum": [f"{mark} {i} " + "x" * 40 for i in range(4000)]},
        {"allOf": [{"anyOf": objects} for _ in range(2)]},
        {"type": "string", "pattern": f"^({mark}|a|b)*a(a|b){{20}}$"},
    ]


def flood_body(number, size):
    """A request of that many bytes: padding that is read and dropped, a prompt that is too long, or
    as many values as a body may have."""
    schemas = hostile_schemas(number)
    body = {"messages": [{"role": "user", "content": f"{number}"}], "max_tokens": 4,
            "response_format": {"type": "json_schema", "json_schema": {
                "name": "a", "schema": schemas[number % len(schemas)]}}}
    kind = number // len(schemas) % 3
    if kind == 1:
        body["metadata"] = {"v": [{"k": i} for i in range(60_000)]}
    room = size - len(json.dumps(body)) - 64
    if kind == 2:
        body["messages"][0]["content"] = ("many words " * (room // 11 + 1))[:room]
    else:
        body["user"] = "u" * room
    return json.dumps(body).encode()


def head(length, path=PATH):
    return (f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
            f"content-length: {length}\r\n\r\n").encode()


def connect(port, source):
    connection = socket.create_connection(("127.0.0.1", port), timeout=120,
                                          source_address=(source, 0))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def flood(port, connections, size):
    """Keeps that many connections busy until stdin closes; prints what was answered."""
    import selectors  # pylint: disable=import-outside-toplevel
    # Made before: making them takes longer than reading them.
    bodies = [flood_body(i, size) for i in range(30)]
    bodies = [head(len(body)) + body for body in bodies]
    marks = [f"x{os.getpid()}".encode()] * len(bodies)
    chosen = selectors.DefaultSelector()
    chosen.register(sys.stdin, selectors.EVENT_READ, None)
    sent = 0
    statuses = {}

    def start(connection):
        nonlocal sent
        index = sent % len(bodies)
        # Never the same schema twice: the same length, another text.
        fresh = f"x{sent % 10 ** (len(marks[index]) - 1):0{len(marks[index]) - 1}d}".encode()
        state = {"out": memoryview(bodies[index].replace(marks[index], fresh)), "in": b""}
        sent += 1
        events = selectors.EVENT_READ | selectors.EVENT_WRITE
        chosen.register(connection, events, state)

    def renew(connection):
        chosen.unregister(connection)
        connection.close()
        start(fresh_connection())

    def fresh_connection():
        connection = connect(port, FLOOD)
        connection.setblocking(False)
        return connection

    for _ in range(connections):
        start(fresh_connection())
    print("flooding", flush=True)
    while True:
        for key, events in chosen.select():
            if key.data is None:
                print(json.dumps({"sent": sent, "statuses": statuses}))
                return
            state = key.data
            if events & selectors.EVENT_WRITE:
                try:
                    state["out"] = state["out"][key.fileobj.send(state["out"][:1 << 18]):]
                except BlockingIOError:
                    pass
                except OSError:
                    renew(key.fileobj)
                    continue
                if not state["out"]:
                    chosen.modify(key.fileobj, selectors.EVENT_READ, state)
            if events & selectors.EVENT_READ:
                try:
                    state["in"] += key.fileobj.recv(1 << 16)
                except OSError:
                    state["in"] += b"HTTP/1.1 cut"
                status = state["in"][9:12].decode("latin-1")
                statuses[status] = statuses.get(status, 0) + 1
                renew(key.fileobj)


class Probe:
    """Small streamed requests of one client, one after another on one connection."""

    def __init__(self, port):
        self.connection = connect(port, QUIET)
        self.random = random.Random(7)

    def once(self, number):
        """(seconds to the first byte, seconds to the last)."""
        body = json.dumps({"messages": [{"role": "user", "content": f"say {number}"}],
                           "max_tokens": 1, "stream": True}).encode()
        request = head(len(body)) + body
        began = time.perf_counter()
        self.connection.sendall(request)
        data = self.connection.recv(1 << 16)
        first = time.perf_counter() - began
        while not data.endswith(b"0\r\n\r\n"):
            more = self.connection.recv(1 << 16)
            if not more:
                raise SystemExit(f"the stream was cut: {data[:300]!r}")
            data += more
        if b"HTTP/1.1 200" not in data[:20]:
            raise SystemExit(f"a small request was refused: {data[:300]!r}")
        return first, time.perf_counter() - began

    def round(self, count, pause_s=0.01):
        out = []
        for number in range(count):
            out.append(self.once(number))
            time.sleep(self.random.uniform(0.2, 1.8) * pause_s)
        return out


def at(sorted_values, share):
    return sorted_values[min(len(sorted_values) - 1, int(share * len(sorted_values)))]


def figures(rounds):
    firsts, wholes = (sorted(pair[i] for pair in rounds) for i in (0, 1))
    out = {"count": len(rounds)}
    for name, values in (("first", firsts), ("whole", wholes)):
        for percent in (50, 90, 99):
            out[f"{name}_p{percent}"] = at(values, percent / 100)
    return out


def measure(program, model, *, count=1000, connections=8, size=4 << 20, rounds=1):
    """Quiet, flooded and quiet again, `rounds` times; requests of equal rounds are put together."""
    if os.geteuid() == 0:
        os.nice(-10)  # clients are other machines in real life
    quiet, beside, answered, sent, seconds = [], [], {}, 0, 0
    with rig(program, "", model) as under_load, Others(under_load.pid) as others:
        probe = Probe(under_load.port)
        probe.round(50)
        for _ in range(rounds):
            quiet += probe.round(count // 2)
            # The flood's own work is another machine's too: it gets what the server leaves.
            flooder = subprocess.Popen(["nice", "-n", "25", sys.executable, __file__, "flood",
                                        str(under_load.port), str(connections), str(size)],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            flooder.stdout.readline()
            time.sleep(1)  # until the first of them are being read
            began = time.monotonic()
            beside += probe.round(count)
            seconds += time.monotonic() - began
            flooder.stdin.close()
            flooded = json.loads(flooder.stdout.readline())
            flooder.wait()
            sent += flooded["sent"]
            for status, number in flooded["statuses"].items():
                answered[status] = answered.get(status, 0) + number
            time.sleep(2)  # what is being read goes on
            quiet += probe.round(count - count // 2)
    return {"quiet": figures(quiet), "beside": figures(beside), "answered": answered,
            "sent": sent, "per_s": sum(answered.values()) / seconds, "others": others.share,
            "connections": connections, "size": size}


def ratio(out, what="first_p99"):
    return out["beside"][what] / out["quiet"][what]


def rows(out):
    quiet, beside = out["quiet"], out["beside"]

    def times(side, kind):
        return " / ".join(milliseconds(side[f"{kind}_{p}"]) for p in ("p50", "p90", "p99"))

    return [
        Row("small requests, quiet and beside the flood", f"{quiet['count']}, {beside['count']}"),
        Row("hostile bodies answered", f"{out['per_s']:.1f}/s: " + ", ".join(
            f"{n} with {status}" for status, n in sorted(out["answered"].items()))),
        Row("first byte, quiet, p50 / p90 / p99", times(quiet, "first")),
        Row("first byte beside the flood, p50 / p90 / p99", times(beside, "first")),
        Row("ratio of the p99", f"{ratio(out):.2f}", "<= 2", ratio(out) <= 2),
        Row("whole reply, quiet, p50 / p90 / p99", times(quiet, "whole")),
        Row("whole reply beside the flood, p50 / p90 / p99", times(beside, "whole")),
        Row("ratio of the p99", f"{ratio(out, 'whole_p99'):.2f}"),
    ]


def words(out):
    return (f"A flood of {out['size'] >> 20} MiB bodies with hostile schemas over "
            f"{out['connections']} connections of one client; small streamed requests of another. "
            f"Others used {100 * out['others']:.0f} % of the machine.")


if __name__ == "__main__":
    if sys.argv[1] == "flood":
        flood(*map(int, sys.argv[2:5]))

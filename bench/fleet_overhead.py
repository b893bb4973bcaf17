# SPDX-License-Identifier: Apache-2.0
"""What a balancer costs: the same streams from a replica directly, through HAProxy and through Envoy with its
endpoint picker, in turns; the time to the first byte and the gaps between tokens. Then idle streams through
HAProxy: so many clients whose replies wait, all held for a time.
usage: fleet_overhead.py HEARTH [--requests N] [--streams N] [--seconds S] [--json FILE]"""
import argparse
import asyncio
import http.client
import json
import pathlib
import random
import re
import resource
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests/fleet"))
# pylint: disable=wrong-import-position
from envoy import EnvoyFleet
from fleet import Haproxy, Replica, free_port, percentile, wait_until
from serving import expect, work_model

MODEL = "tiny-chatml"
TOKENS = 24


class Path:
    """A way to the replica, with a connection that stays open."""

    def __init__(self, port, host="127.0.0.1"):
        self.connection = http.client.HTTPConnection(host, port, timeout=60)
        self.first, self.gaps = [], []

    def ask(self, number):
        body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": f"Tale {number}"}],
                           "max_tokens": TOKENS, "min_tokens": TOKENS, "temperature": 0, "stream": True})
        began = time.perf_counter()
        self.connection.request("POST", "/v1/chat/completions", body, {
            "content-type": "application/json", "x-session-affinity": str(number)})
        response = self.connection.getresponse()
        times = [time.perf_counter()]
        while line := response.readline():
            if line.startswith(b"data: {"):
                times.append(time.perf_counter())
        expect(response.status == 200 and len(times) >= TOKENS, f"a stream of {TOKENS} tokens: {response.status}")
        self.first.append(times[0] - began)
        self.gaps += [b - a for a, b in zip(times[2:], times[3:])]


def measure(paths, requests):
    """Everybody in turns, in another order each time: what else the machine does hits all alike."""
    draw = random.Random(1)
    for number in range(requests + 20):
        for name in draw.sample(list(paths), len(paths)):
            paths[name].ask(number)
        if number == 19:  # those warmed up caches and connections
            for path in paths.values():
                path.first.clear()
                path.gaps.clear()
    out = {}
    for name, path in paths.items():
        out[name] = {f"{kind}_{label}_ms": round(1000 * percentile(values, share), 3)
                     for kind, values in (("first_byte", path.first), ("gap", path.gaps))
                     for label, share in (("p50", 0.5), ("p99", 0.99))}
    return out


def overheads(program, folder, requests):
    host, port = "127.0.0.21", free_port()
    replica = Replica(program, work_model(f"{MODEL}.gguf"), host=host, port=port)
    try:
        balancer = Haproxy(program, folder, [replica])
        fleet = EnvoyFleet(folder, [host], port)
        out = measure({"direct": Path(port, host), "haproxy": Path(balancer.port), "envoy": Path(fleet.port)},
                      requests)
        fleet.stop()
        balancer.stop()
    finally:
        replica.kill()
    for name in ("haproxy", "envoy"):
        added = {key: round(out[name][key] - out["direct"][key], 3) for key in out[name]}
        out[name]["added"] = added
        print(f"{name}: first byte p50 {added['first_byte_p50_ms']:+.2f} ms, p99 "
              f"{added['first_byte_p99_ms']:+.2f} ms; gap between tokens p50 {added['gap_p50_ms']:+.3f} ms, "
              f"p99 {added['gap_p99_ms']:+.3f} ms (directly: {out['direct']})")
    return out


async def hold(port, number, tokens, state):
    """One stream whose reply waits; its pings are counted until the time is over."""
    body = json.dumps({"messages": [{"role": "user", "content": f"Wait {number}"}], "max_tokens": tokens,
                       "min_tokens": tokens, "stream": True}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
                 b"content-length: %d\r\nx-session-affinity: %d\r\n\r\n" % (len(body), number) + body)
    head = await reader.readuntil(b"\r\n\r\n")
    status = head[9:12].decode()
    state["statuses"][status] = state["statuses"].get(status, 0) + 1
    state["open"] += 1
    if status != "200":
        state["refusal"] = (await reader.read(2000)).decode()
        state["broken"] += 1
        writer.close()
        return
    was_heard = is_whole = False
    try:
        while data := await reader.read(65536):
            was_heard = True
            is_whole |= b"[DONE]" in data or data.endswith(b"0\r\n\r\n")
            if is_whole:
                break
        state["ended" if is_whole else "broken"] += 1
    except asyncio.CancelledError:
        state["held"] += 1
        state["heard"] += was_heard
    writer.close()


async def crowd(port, streams, tokens, seconds):
    state = {"statuses": {}, "open": 0, "held": 0, "heard": 0, "ended": 0, "broken": 0}
    tasks = []
    for number in range(streams):
        tasks.append(asyncio.create_task(hold(port, number, tokens, state)))
        if number % 50 == 49:
            await asyncio.sleep(0.05)
    while state["open"] < streams and not any(task.done() and task.exception() for task in tasks):
        await asyncio.sleep(0.1)
    began = time.monotonic()
    await asyncio.sleep(seconds)
    state["seconds"] = round(time.monotonic() - began, 1)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return state


def resident_mib(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1)) // 1024


def reply_tokens(port, queued):
    """As many that the last of the queue waits some minutes, twice as long as computed beside so many clients: who would
    wait for ten is refused at once."""
    path = Path(port)
    for number in range(20):
        path.ask(number)
    began = time.perf_counter()
    for number in range(20):
        path.ask(number)
    each = (time.perf_counter() - began) / 20 / TOKENS
    return max(8, min(1000, int(150 / each / queued)))


def idle_streams(program, folder, streams, seconds):
    """Two replicas that run one reply at a time: all others wait and get pings. The agent check would keep so
    many waiting ones at the balancer, so it is off, and the bound of connections to a replica is raised. Where a
    process may not open two files for every stream, several of HAProxy share the port."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    processes = -(-(2 * streams + 1000) // most)
    flags = ("--max-sequences", "1", "--max-queued", str(streams), "--max-connections", str(streams + 100),
             "--max-connections-per-peer", str(streams + 100), "--request-memory", "2GiB")
    replicas = [Replica(program, work_model(f"{MODEL}.gguf"), *flags) for _ in range(2)]
    port, stats = free_port(), free_port()
    try:
        text = subprocess.run(
            [program, "fleet", "haproxy", "--replicas", ",".join(each.address for each in replicas), "--listen",
             f"127.0.0.1:{port}", "--stats", f"127.0.0.1:{stats}", "--agent-port", "0", "--max-connections",
             str(min(streams + 400, (most - 600) // 2))], capture_output=True, text=True, check=True).stdout
        text, count = re.subn(r"maxconn 256\b", f"maxconn {streams}", text)
        expect(count == 1, "the bound of connections to a replica")
        path = pathlib.Path(folder) / "crowd.cfg"
        path.write_text(text, encoding="utf-8")
        balancers = [subprocess.Popen(["haproxy", "-db", "-f", path], stderr=subprocess.DEVNULL)
                     for _ in range(processes)]
        try:
            wait_until(lambda: subprocess.run(["curl", "-sf", f"http://127.0.0.1:{port}/readyz"], check=False,
                                              stdout=subprocess.DEVNULL).returncode == 0)
            bare = sum(resident_mib(each.pid) for each in balancers)
            tokens = reply_tokens(replicas[0].port, streams / len(replicas))
            state = asyncio.run(crowd(port, streams, tokens, seconds))
            state["haproxy_processes"], state["haproxy_bare_mib"] = processes, bare
            state["haproxy_mib"] = sum(resident_mib(each.pid) for each in balancers)
        finally:
            for each in balancers:
                each.kill()
                each.wait()
    finally:
        for each in replicas:
            each.kill()
    if "refusal" in state:
        print(f"a refusal: {state['refusal']}")
    print(f"{streams} streams through HAProxy for {state['seconds']} s: {state['held']} held ({state['heard']} of "
          f"them got pings or tokens), {state['ended']} whole, {state['broken']} broken; answers {state['statuses']}; "
          f"{processes} HAProxy with {state['haproxy_mib']} MiB ({bare} without them)")
    return state


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = {"overhead": overheads(options.program, folder, options.requests)} if options.requests else {}
        out["idle"] = idle_streams(options.program, folder, options.streams, options.seconds)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(out, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Several servers and one real Redis: what one computed the others fetch, with the same replies as ever.
A Redis that is away, stalled, empty, full or wrong costs a line in the log and no reply."""
import argparse
import contextlib
import json
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

from disk_cache_test import ask
from serving import Server, expect, same, serving, work_model

# The scalar kernels compute slowly, so that fetching always pays: what is tested here is the cache.
SLOW = ("--isa", "scalar", "--threads", "1")
TURNS = 3


@contextlib.contextmanager
def redis(folder, *flags, port=None):
    if port is None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
    process = subprocess.Popen(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "",
                                "--appendonly", "no", "--dir", str(folder), *flags],
                               stdout=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                expect(time.monotonic() < until, "redis-server to start")
                time.sleep(0.02)
        process.port = port
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()


def shared_of(server):
    """What the server says of the shared tier."""
    parts = json.loads(server.request("GET", "/status")[2])["tier"]["parts"]
    return next(part for part in parts if part["name"] == "shared")


def wait_for(what, is_true, seconds=60):
    until = time.monotonic() + seconds
    while not is_true():
        expect(time.monotonic() < until, what)
        time.sleep(0.05)


def connected(server):
    wait_for("a connection to Redis", lambda: shared_of(server)["reads"] and shared_of(server)["writes"])
    return server


def stored(server):
    """Waits until nothing more is being stored."""
    last = -1
    while last != (last := shared_of(server)["stored"]):
        time.sleep(0.3)


def reference(program, model, num_chats):
    with serving(program, model, *SLOW) as server:
        for chat in range(num_chats):
            for turns in range(1, TURNS):
                ask(server, chat, turns)
        return [ask(server, chat, TURNS) for chat in range(num_chats)]


def check_replicas(program, model, flags, plain):
    """One of three servers is killed amid its chats; the others go on with them."""
    servers = [Server(program, model, *SLOW, *flags) for _ in range(3)]
    try:
        for server in servers:
            expect(server.port is not None, f"a start: {server.log}")
            connected(server)
        for chat in range(len(plain)):
            for turns in range(1, TURNS):
                ask(servers[chat % 3], chat, turns)
        for server in servers:
            stored(server)
        servers[0].process.send_signal(signal.SIGKILL)
        moved = [ask(servers[1 + chat % 2], chat, TURNS) for chat in range(0, len(plain), 3)]
        for at, chat in enumerate(range(0, len(plain), 3)):
            same(moved[at][:2], plain[chat][:2], f"the reply of chat {chat}")
        found, reusable = sum(each[2] for each in moved), sum(plain[chat][2] for chat in range(0, len(plain), 3))
        print(f"{len(moved)} chats of a server that died: {found} of {reusable} reusable tokens found by others")
        expect(found >= 0.8 * reusable, "80 % of the reusable tokens")
        page = servers[1].request("GET", "/metrics?names=hearth")[2].decode()
        expect('hearth_tier_fetches_total{tier="shared",result="hit"}' in page, "metrics")
        # Neither memory nor Redis tells one tenant of another; the same tenant is served by both.
        ask(servers[1], 99, 2, salt="mine")
        stored(servers[1])
        same(ask(servers[2], 99, 2, salt="yours")[2], 0, "another's prompt")
        expect(ask(servers[2], 99, 2, salt="mine")[2] > 50, "one's own prompt on another server")
    finally:
        for server in servers:
            server.process.kill()
            server.process.wait()
            server.process.stderr.close()


def check_encrypted(program, model, flags, server):
    """What Redis holds tells nothing of a prompt."""
    with socket.create_connection(("127.0.0.1", server.port)) as link:
        link.sendall(b"RANDOMKEY\r\n")
        name = link.recv(4096).split(b"\r\n")[1]
        link.sendall(b"*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n" % (len(name), name))
        data = link.recv(1 << 20)
    expect(len(data) > 500 and data.count(b"\0") < len(data) / 50, "ciphertext")
    with tempfile.NamedTemporaryFile("w") as other:
        other.write("another secret, as long as it must be")
        other.flush()
        strangers = [*flags[:-1], other.name]
        with serving(program, model, *SLOW, *strangers) as stranger:
            connected(stranger)
            same(ask(stranger, 0, 2)[2], 0, "nothing for another key")


def check_troubles(program, model, folder, key):
    """Redis goes, stalls, comes back empty: replies stay the same, and nobody waits for it."""
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(redis(folder))
        flags = ("--cache-redis", f"redis://127.0.0.1:{first.port}", "--cache-key", key)
        server = stack.enter_context(serving(program, model, *SLOW, *flags))
        connected(server)
        before = ask(server, 0, 2)[0]
        stored(server)
        first.send_signal(signal.SIGSTOP)
        same(ask(server, 0, 2)[0], before, "the reply beside a stalled Redis")
        ask(server, 1, 2)
        first.send_signal(signal.SIGCONT)
        first.kill()
        first.wait()
        wait_for("that it is seen", lambda: not shared_of(server)["reads"])
        ask(server, 2, 2)
        stack.enter_context(redis(folder, "--maxmemory", "2mb", "--maxmemory-policy", "allkeys-lru",
                                  port=first.port))
        connected(server)
        same(ask(server, 0, 2)[0], before, "the reply beside an empty Redis")
        ask(server, 3, 2)
        same(server.request("GET", "/readyz")[0], 200, "ready all the time")


def check_flags(program, model, key):
    for flags, said in ((("--cache-redis", "redis://localhost"), "--cache-key"),
                        (("--cache-redis", "localhost:6379", "--cache-key", key), "redis://"),
                        (("--cache-redis", "redis://localhost", "--cache-key", "/nonexistent"), "cannot be read"),
                        (("--cache-key", "/dev/null"), "openssl rand")):
        done = subprocess.run([program, "serve", model, "--port", "0", *flags], capture_output=True, text=True,
                              timeout=60)
        expect(done.returncode != 0 and said in done.stderr, f"{flags}: {done.stderr}")
    with serving(program, model, *SLOW, "--cache-redis", "redis://127.0.0.1:1", "--cache-key", key) as server:
        same(ask(server, 0, 1)[1] > 0, True, "a server without its Redis")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--chats", type=int, default=6)
    args = parser.parse_args()
    model = work_model("tiny-oss-o200k.gguf")
    with tempfile.TemporaryDirectory() as folder:
        key = pathlib.Path(folder) / "key"
        key.write_text("a secret that all servers share\n")
        plain = reference(args.program, model, args.chats)
        with redis(folder) as one, redis(folder) as two:
            servers = f"redis://127.0.0.1:{one.port},redis://127.0.0.1:{two.port}"
            flags = ("--cache-redis", servers, "--cache-key", str(key))
            check_replicas(args.program, model, flags, plain)
            check_encrypted(args.program, model, flags, one)
            # A directory that cannot be used takes nothing else with it.
            with serving(args.program, model, *SLOW, *flags, "--cache-dir", "/proc/hearth-cache") as server:
                same(ask(connected(server), 0, TURNS)[:2], plain[0][:2], "a reply without a disk")
                expect(any("no disk cache" in line for line in server.log), f"a line: {server.log}")
                expect(shared_of(server)["hits"] > 0, "hits in Redis")
        check_troubles(args.program, model, folder, str(key))
        check_flags(args.program, model, str(key))


if __name__ == "__main__":
    sys.exit(main())

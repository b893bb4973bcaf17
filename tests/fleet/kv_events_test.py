# SPDX-License-Identifier: Apache-2.0
"""KV events at real sockets: subscribers that join late, lose batches, reconnect, or see the publisher
begin anew end with exactly what the cache has; and a server's events tell the tokens it computed."""
import argparse
import json
import random
import subprocess
import tempfile
import time

import zmq

from fleet import free_port, wait_until
from kv_events import END, Subscriber
from serving import expect, same, serving, work_model


class Player:
    """Random histories of a cache, published (kv_events_player.cc)."""

    def __init__(self, program):
        self.address, self.replay = (f"tcp://127.0.0.1:{free_port()}" for _ in range(2))
        self.process = subprocess.Popen([program, self.address, self.replay],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def say(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def content(self):
        found = {}
        for group, block, parent, tokens in json.loads(self.say("content")):
            found[("GPU", group, block)] = (parent, tokens)
        return found

    def close(self):
        self.process.stdin.close()
        same(self.process.wait(), 0, "the player's end")


def settle(subscriber, player, what):
    """Until it knows what the cache has; what it knows then stays so."""
    subscriber.lost = 0
    deadline = time.monotonic() + 20
    while True:
        subscriber.receive(200)
        expected = player.content()  # also wakes an engine that has all to tell again
        subscriber.receive(200)
        if subscriber.blocks.known == expected:
            break
        expect(time.monotonic() < deadline,
               f"{what}: {len(subscriber.blocks.known)} blocks known, {len(expected)} cached")
    for _ in range(2):
        subscriber.receive(200)
    same(subscriber.blocks.known, expected, f"{what}, a moment later")


def check_histories(program, count):
    player = Player(program)
    standing = Subscriber(player.address, player.replay)  # hears of all processes in turn
    replays = 0
    for seed in range(count):
        draw = random.Random(seed)
        same(player.say(f"start {seed}"), "started\n", "a publisher")
        lossy = Subscriber(player.address, player.replay, "kv@player", lost=0.5, seed=seed)
        late = None
        for i in range(6):
            same(player.say(f"play {draw.randrange(20)}"), "played\n", "steps")
            if draw.random() < 0.3:
                lossy.reconnect()
            if i == 3:
                late = Subscriber(player.address, player.replay)
            for each in (standing, lossy, late):
                if each is not None and draw.random() < 0.7:
                    each.drain()
        for name, each in (("standing", standing), ("lossy", lossy), ("late", late)):
            settle(each, player, f"history {seed}, the {name} one")
        replays += lossy.replays + late.replays
        lossy.close()
        late.close()
    expect(replays >= count, f"{replays} replays: too quiet a test")
    standing.close()
    player.close()
    print(f"{count} histories, {replays} replays")


def check_strangers(player):
    """What is no request of a replay is not answered, and harms nobody."""
    same(player.say("start 6"), "started\n", "a publisher")
    context = zmq.Context.instance()
    with context.socket(zmq.DEALER) as stranger:
        stranger.setsockopt(zmq.LINGER, 0)
        stranger.connect(player.replay)
        for frames in ([b""], [b"", b"1234567"], [b"x", bytes(8)], [b"", bytes(8), b""], [b"", b""]):
            stranger.send_multipart(frames)
        stranger.send_multipart([b"", bytes(8)])
        empty, number, payload = stranger.recv_multipart()
        expect(empty == b"" and number != END and payload, "only the last is answered")
        same(stranger.recv_multipart()[1], END, "and it ends")
        expect(not stranger.poll(200), "nothing else comes")


def check_server(program, model):
    """What a server publishes is what it computed, and its metrics count it."""
    ports = [free_port(), free_port()]
    address, replay = (f"tcp://127.0.0.1:{port}" for port in ports)
    flags = ("--kv-events", address, "--kv-events-replay", replay, "--threads", "1")
    for _ in range(2):  # a second process at the same address
        with serving(program, model, *flags) as server:
            first = Subscriber(address, replay, f"kv@127.0.0.1:{server.port}@")
            prompts = []
            for i in range(4):
                body = {"messages": [{"role": "user", "content": f"{i} " + "river stone " * 40}],
                        "max_tokens": 4, "temperature": 0}
                status, _, text = server.request("POST", "/v1/chat/completions", body)
                same(status, 200, text)
                _, _, text = server.request("POST", "/v1/chat/completions/render", body)
                prompts.append(json.loads(text)["token_ids"])
            late = Subscriber(address, replay, "kv@")

            def knows_all(each):
                each.receive(200)
                chains = {tuple(chain) for chain in each.blocks.chains().values()}
                return all(tuple(prompt[:len(prompt) // 16 * 16]) in chains for prompt in prompts)

            for each in (first, late):
                wait_until(lambda each=each: knows_all(each))
            wait_until(lambda: metric(server, "hearth_kv_event_blocks") ==
                       len(late.blocks.known) == len(first.blocks.known))
            expect(metric(server, 'hearth_kv_events_total{kind="stored"}') >=
                   len(first.blocks.known), "the events are counted")
            expect(late.replays > 0 and metric(
                server, 'hearth_kv_event_replays_total{answer="everything"}') > 0, "a replay")
            same(metric(server, "hearth_kv_events_dropped_total"), 0, "nothing was lost")
            first.close()
            late.close()


def check_disk(program):
    """Blocks that the cache on disk took are told as such, once each."""
    address, replay = (f"tcp://127.0.0.1:{free_port()}" for _ in range(2))
    with tempfile.TemporaryDirectory() as folder, serving(
            program, work_model("tiny-chatml.gguf"), "--kv-events", address, "--kv-events-replay",
            replay, "--cache-dir", folder, "--cache-disk", "64MiB", "--threads", "1") as server:
        body = {"messages": [{"role": "user", "content": "river stone " * 60}], "max_tokens": 4}
        same(server.request("POST", "/v1/chat/completions", body)[0], 200, "a reply")
        late = Subscriber(address, replay)

        def hashes(medium):
            return {block for kind, _, block in late.blocks.known if kind == medium}

        wait_until(lambda: late.receive(200) and hashes("DISK"))
        wait_until(lambda: late.receive(200) and hashes("DISK") == hashes("GPU"))
        same({late.blocks.known[("DISK", 0, each)] == late.blocks.known[("GPU", 0, each)]
              for each in hashes("DISK")}, {True}, "the same tokens and parents")
        late.close()


def metric(server, name):
    page = server.request("GET", "/metrics")[2].decode()
    for line in page.splitlines():
        if line.startswith(name + " "):
            return float(line.rsplit(" ", 1)[1])
    raise AssertionError(f"no metric {name}")


def check_mistakes(program):
    model = work_model("tiny-chatml.gguf")
    for flags, words in (
            (["--kv-events", "127.0.0.1:5557"], "expected tcp://HOST:PORT"),
            (["--kv-events", "tcp://127.0.0.1:99999"], "--kv-events"),
            (["--kv-events-replay", "tcp://127.0.0.1:0"], "needs --kv-events"),
            (["--kv-events", "tcp://127.0.0.1:0", "--kv-events-form", "x"], "expected one of")):
        ended = subprocess.run([program, "serve", "--model", model, "--port", "0", *flags],
                               capture_output=True, text=True, timeout=60, check=False)
        expect(ended.returncode != 0 and words in ended.stderr, f"{flags}: {ended.stderr}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("player")
    parser.add_argument("--histories", type=int, default=20)
    args = parser.parse_args()
    player = Player(args.player)
    check_strangers(player)
    player.close()
    check_histories(args.player, args.histories)
    check_mistakes(args.program)
    for name in ("tiny-chatml.gguf", "tiny-oss-o200k.gguf"):  # full layers; full and windows
        check_server(args.program, work_model(name))
    check_disk(args.program)


if __name__ == "__main__":
    main()

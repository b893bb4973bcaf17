# SPDX-License-Identifier: Apache-2.0
"""A fleet that is measured beside its simulation: replicas with a share of the processors each and a small KV
cache, the chats of `hearth plan fleet` routed by HAProxy in three ways, or by what the replicas' KV events tell;
and what the plan says of the same."""
import concurrent.futures
import json
import pathlib
import re
import subprocess
import threading

from chat_load import Load, Player, send, summary
from fleet import Haproxy, free_port, get
from kv_events import Subscriber
from serving import expect
from shares import CpuShare, SharedReplica

HAPROXY = {"round-robin": "round robin", "least": "least loaded", "session": "session hash"}
STREAM_TOKENS = 64  # what a running reply costs a newcomer, as in src/plan/fleet_route.cc


class EventReader(threading.Thread):
    """What one replica has cached, as its KV events tell it."""

    def __init__(self, address, replay):
        super().__init__(daemon=True)
        self.subscriber, self.over = Subscriber(address, replay, "kv@"), False
        self.lock, self.children = threading.Lock(), {}  # (parent, tokens) -> block
        self.seen = 0
        self.start()

    def run(self):
        while not self.over:
            if not self.subscriber.receive(100):
                continue
            blocks = {(parent, tuple(tokens)): block
                      for (medium, group, block), (parent, tokens) in self.subscriber.blocks.known.items()
                      if (medium, group) == ("GPU", 0)}
            with self.lock:
                self.children = blocks
        self.subscriber.close()

    def cached(self, tokens, size=16):
        """Tokens of this prompt that need not be computed; of a whole prompt the last always is."""
        parent, count = None, 0
        with self.lock:
            while count + size < len(tokens):
                parent = self.children.get((parent, tuple(tokens[count:count + size])))
                if parent is None:
                    break
                count += size
        return count


class Precise:
    """Sends each ask where the least is to be computed and waited for, by the plan's own arithmetic."""

    def __init__(self, replicas, readers):
        self.replicas, self.readers, self.lock = replicas, readers, threading.Lock()
        self.backlog, self.served, self.turns = ([0] * len(replicas) for _ in range(3))
        self.turn = 0

    def choose(self, ask):
        own = [len(ask.tokens) - reader.cached(ask.tokens) for reader in self.readers]
        with self.lock:
            index = min(range(len(own)), key=lambda i: (own[i] + self.backlog[i] + STREAM_TOKENS * self.served[i],
                                                        self.turns[i]))
            self.backlog[index] += own[index]
            self.served[index] += 1
            self.turn += 1
            self.turns[index] = self.turn
        return index, own[index]

    def send(self, ask, said, model):
        index, own = self.choose(ask)
        left = [own]

        def begun():
            with self.lock:
                self.backlog[index] -= left[0]
                left[0] = 0

        replica = self.replicas[index]
        try:
            send(ask, (replica.host, replica.port), {}, said, model, begun)
        finally:
            begun()
            with self.lock:
                self.served[index] -= 1


class RoutedFleet:
    """Started anew for every policy, so that all begin with empty caches."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.shares = [CpuShare(i, options.share) for i in range(options.replicas)]
        self.name = pathlib.Path(options.model).stem
        self.kv_tokens = 0

    def started(self, number):
        events = [f"tcp://127.0.0.1:{free_port()}" for _ in range(2)]
        flags = ("--kv-memory", self.options.kv_memory, "--context", str(self.options.context),
                 "--kv-events", events[0], "--kv-events-replay", events[1], "--max-sequences",
                 str(self.options.max_sequences))
        replica = SharedReplica(self.options.program, self.options.model, self.shares[number], *flags)
        replica.events = events
        return replica

    def measure(self, policy, spec):
        with concurrent.futures.ThreadPoolExecutor() as pool:
            replicas = list(pool.map(self.started, range(self.options.replicas)))
        try:
            self.kv_tokens = kv_tokens(replicas[0])
            load = Load(spec, range(self.options.first_token, self.options.last_token), self.options.last_token)
            if policy == "precise":
                readers = [EventReader(*each.events) for each in replicas]
                router = Precise(replicas, readers)
                asks = Player(load, lambda ask: router.send(ask, load.said, self.name)).play()
                for reader in readers:
                    reader.over = True
            else:
                balancer = Haproxy(self.options.program, self.folder, replicas, "--balance", policy)
                address = "127.0.0.1", balancer.port
                asks = Player(load, lambda ask: send(ask, address, {}, load.said, self.name)).play()
                balancer.stop()
            expect(len(asks) == spec.requests, f"{spec.requests} replies, not {len(asks)}")
            return summary(asks)
        finally:
            for each in replicas:
                each.kill()

    def bench(self):
        """What a replica does in a step, measured under its share of the processors while the others work."""
        path = pathlib.Path(self.folder) / "bench.json"
        words = [self.options.program, "bench", "--model", self.options.model, "--threads", "1", "--batch",
                 "1,4,16", "--depth", "512", "--prefill", "512", "--decode", "32", "--repeat", "3", "--phases"]
        others = [subprocess.Popen(share.wrapped(words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                  for share in self.shares[1:]]
        done = subprocess.run(self.shares[0].wrapped([*words, "--json", str(path)]), capture_output=True, text=True,
                              check=False)
        for each in others:
            each.kill()
            each.wait()
        expect(done.returncode == 0, done.stderr)
        return path

    def plan(self, bench, spec):
        """What `hearth plan fleet` says, by policy."""
        words = [self.options.program, "plan", "fleet", "--bench", str(bench), "--kv-tokens", str(self.kv_tokens),
                 "--context", str(self.options.context), "--max-sequences", str(self.options.max_sequences),
                 "--replicas", str(self.options.replicas), *spec.flags(), "--json"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        expect(done.returncode == 0, done.stderr)
        return {each["policy"]: each for each in json.loads(done.stdout)["policies"]}


def kv_tokens(replica):
    page = get(replica.port, "/metrics")[1]
    labels = re.search(r"^vllm:cache_config_info\{(.*)\}", page, re.MULTILINE).group(1)
    facts = dict(re.findall(r'(\w+)="([^"]*)"', labels))
    return int(facts["block_size"]) * int(facts["num_gpu_blocks"])

# SPDX-License-Identifier: Apache-2.0
"""The chats of `hearth plan fleet` (src/plan/fleet_load.cc), number for number, asked of real replicas: prompts
are token ids, and a reply is one token again and again, which a bias makes certain, so that the next prompt has
it. Times are real."""
import bisect
import dataclasses
import heapq
import http.client
import itertools
import json
import math
import threading
import time

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(x):
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & MASK
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def fold(a, b):
    return mix(mix(a ^ GOLDEN) ^ b)


class SimRandom:
    def __init__(self, seed):
        self.state = mix(seed ^ 0x5851F42D4C957F2D)

    def share(self):
        self.state = self.state + GOLDEN & MASK
        return (mix(self.state) >> 11) * 2.0 ** -53

    def exponential(self, mean):
        return -mean * math.log1p(-self.share())

    def length(self, mean):
        return max(8, int(min(self.exponential(mean), 6 * mean)))


@dataclasses.dataclass
class ChatSpec:
    rate: float = 1.0
    requests: int = 1000
    turns: float = 5
    message: int = 150
    reply: int = 250
    system: int = 1000
    apps: int = 20
    think: float = 30
    seed: int = 1

    def flags(self):
        """The same for `hearth plan fleet`."""
        return [word for field in dataclasses.fields(self)
                for word in (f"--{field.name}", str(getattr(self, field.name)))]


@dataclasses.dataclass
class Ask:
    at: float
    chat: int
    turn: int
    key: int
    tokens: list  # of the prompt
    reply: int
    first: float = 0
    ended: float = 0
    cached: int = 0


class Load:
    """`tokens`: ids that prompts are made of. `said`: the id of all replies."""

    def __init__(self, spec, tokens, said):
        self.spec, self.vocabulary, self.said = spec, tokens, said
        shares = list(itertools.accumulate(1 / (app + 1) for app in range(spec.apps)))
        self.app_shares = [share / shares[-1] for share in shares]
        self.random, self.clock, self.begun, self.chats = SimRandom(spec.seed), 0.0, 0, 0

    def content(self, name, first, count):
        return [self.vocabulary[fold(name, i) % len(self.vocabulary)] for i in range(first, first + count)]

    def turn(self, chat, turn, history, at):
        spec = self.spec
        draw = SimRandom(fold(spec.seed, fold(chat, turn)))
        once = SimRandom(fold(spec.seed, fold(chat, MASK)))
        app = fold(spec.seed, bisect.bisect_left(self.app_shares, once.share()) + 1)
        session = fold(app, chat)
        begin = self.content(app, 0, spec.system) if turn == 0 else history
        tokens = begin + self.content(session, len(begin), draw.length(spec.message))
        return Ask(at, chat, turn, session, tokens, draw.length(spec.reply))

    def next(self):
        if self.begun >= self.spec.requests:
            return None
        self.begun += 1
        self.clock += self.random.exponential(self.spec.turns / self.spec.rate)
        self.chats += 1
        return self.turn(self.chats - 1, 0, [], self.clock)

    def after(self, ask):
        draw = SimRandom(fold(~self.spec.seed & MASK, fold(ask.chat, ask.turn)))
        if self.begun >= self.spec.requests or draw.share() >= 1 - 1 / self.spec.turns:
            return None
        self.begun += 1
        return self.turn(ask.chat, ask.turn + 1, ask.tokens + [self.said] * ask.reply,
                         ask.ended + draw.exponential(self.spec.think))


def send(ask, address, headers, said, model, begun=lambda: None):
    """One request to a balancer or replica. Its first token is the first event that has one; then `begun`
    is called."""
    host, port = address
    body = {"model": model, "prompt": ask.tokens, "max_tokens": ask.reply, "min_tokens": ask.reply,
            "temperature": 0, "logit_bias": {str(said): 100}, "stream": True,
            "stream_options": {"include_usage": True}}
    connection = http.client.HTTPConnection(host, port, timeout=600)
    connection.request("POST", "/v1/completions", json.dumps(body), {
        "content-type": "application/json", "x-session-affinity": f"{ask.key:016x}", **headers})
    response = connection.getresponse()
    last = b""
    while line := response.readline():
        if not line.startswith(b"data: {"):
            continue
        if not ask.first:
            ask.first = time.monotonic()
            begun()
        last = line
    ask.ended = time.monotonic()
    connection.close()
    if response.status != 200 or not last:
        raise AssertionError(f"{response.status} {last}")
    usage = json.loads(last[6:])["usage"]
    if usage["prompt_tokens"] != len(ask.tokens) or usage["completion_tokens"] != ask.reply:
        raise AssertionError(f"{len(ask.tokens)} and {ask.reply} tokens, not {usage}")
    ask.cached = usage["prompt_tokens_details"]["cached_tokens"]


class Player:
    """Sends every ask when its time has come, each in a thread of its own."""

    def __init__(self, load, sender):
        self.load, self.sender = load, sender
        self.lock, self.news = threading.Lock(), threading.Condition()
        self.due, self.done, self.flying, self.mistakes = [], [], 0, []
        self.order = itertools.count()

    def play(self):
        """All asks, as they ended; times are seconds since the beginning."""
        began = time.monotonic()
        self.push(self.load.next())
        fresh = self.due[0][2]
        while self.due or self.flying:
            with self.news:
                pause = self.due[0][0] + began - time.monotonic() if self.due else 1
                if pause > 0:
                    self.news.wait(pause)
                    continue
                ask = heapq.heappop(self.due)[2]
            if ask is fresh:
                with self.lock:
                    fresh = self.load.next()
                if fresh is not None:
                    self.push(fresh)
            with self.news:
                self.flying += 1
            threading.Thread(target=self.run, args=(ask, began), daemon=True).start()
        if self.mistakes:
            raise self.mistakes[0]
        return self.done

    def push(self, ask):
        with self.news:
            heapq.heappush(self.due, (ask.at, next(self.order), ask))
            self.news.notify()

    def run(self, ask, began):
        try:
            self.sender(ask)
            ask.first, ask.ended = ask.first - began, ask.ended - began
            with self.lock:
                coming = self.load.after(ask)
        except BaseException as mistake:  # pylint: disable=broad-except
            self.mistakes.append(mistake)
            coming = None
        if coming is not None:
            self.push(coming)
        with self.news:
            self.done.append(ask)
            self.flying -= 1
            self.news.notify()


def summary(asks):
    """As `hearth plan fleet` counts: without the first tenth."""
    asks = sorted(asks, key=lambda ask: ask.at)
    counted = asks[int(0.1 * len(asks)):]
    waits = sorted(ask.first - ask.at for ask in counted)
    seconds = max(ask.ended for ask in counted) - counted[0].at
    return {"hit_share": sum(ask.cached for ask in counted) / sum(len(ask.tokens) for ask in counted),
            "tokens_per_second": sum(ask.reply for ask in counted) / seconds,
            "p50": waits[len(waits) // 2], "p95": waits[int(len(waits) * 0.95)], "counted": len(counted)}

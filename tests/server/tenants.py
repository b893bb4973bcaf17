# SPDX-License-Identifier: Apache-2.0
"""One key's clients in a crowd: what they ask, what each reply must be (what it was when nobody else was there), and
whose texts and ids it may have (their own). everything_test.py lets two of them loose."""
import collections
import dataclasses
import http.client
import json
import pathlib
import random
import re
import socket
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "faults"))
from scenarios import OPENAI_TOOL, SCHEMA, TOOL, read_stream, steady

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
TOPICS = ("rain", "salt", "a ladder", "the sea at night")
# Names that the server makes up: of replies, responses, files, batches, and events of streams.
NAMES = re.compile(r"\b(?:resp|file|batch|chatcmpl|cmpl|msg|rs|fc|call|item)[-_][A-Za-z0-9]{8,}"
                   r"|(?<=id: )[A-Za-z0-9+/_=-]{60,}")
# Left alone: other clients wait too.
BUSY = {429, 503}


@dataclasses.dataclass
class Ask:
    """A request that has the same reply whenever it is asked."""
    name: str
    path: str
    body: dict
    is_stream: bool = False
    is_lines: bool = False
    wanted: object = None

    def meaning(self, status, data):
        if status != 200 or not self.is_stream:
            found = steady(json.loads(data)) if data else None
            if self.path == "/v1/messages" and status == 200:
                del found["usage"]["input_tokens"]  # without those that were cached
            return status, found
        text, is_ended, error = read_stream(data, self.is_lines)
        return status, text, is_ended, error is not None


def asks_of(marker, models):
    """What one key asks: every text has its marker."""
    found = []
    for number, topic in enumerate(TOPICS):
        model = models[number % len(models)]
        text = f"{marker}: tell me of {topic}."
        user = [{"role": "user", "content": text}]
        words = {"temperature": 0.8 if number % 2 else 0, "seed": 11 + number}
        chat = {"model": model, "messages": user, "max_tokens": 12, **words}
        form = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}}
        own = {"type": "object", "properties": {"a": {"enum": [marker, topic]}}, "required": ["a"],
               "additionalProperties": False}
        options = {"num_predict": 8, **words}
        found += [
            Ask("chat", CHAT, chat),
            Ask("stream", CHAT, {**chat, "stream": True, "max_tokens": 40, "ignore_eos": True}, is_stream=True),
            Ask("choices", CHAT, {**chat, "n": 3}),
            Ask("logprobs", CHAT, {**chat, "logprobs": True, "top_logprobs": 5}),
            Ask("schema", CHAT, {**chat, "response_format": form, "max_tokens": 30}),
            Ask("own schema", CHAT, {**chat, "max_tokens": 60, "response_format": {
                "type": "json_schema", "json_schema": {"name": "n", "schema": own, "strict": True}}}),
            Ask("tool", CHAT, {**chat, "tools": [OPENAI_TOOL], "tool_choice": "required", "max_tokens": 30}),
            Ask("echo", "/v1/completions", {"model": model, "prompt": text, "echo": True, "max_tokens": 6, **words}),
            Ask("regex", "/v1/completions", {"model": model, "prompt": text, "guided_regex": "[a-f]{4,9} [0-9]+",
                                             "max_tokens": 16, **words}),
            Ask("response", RESPONSES, {"model": model, "input": text, "max_output_tokens": 16, "store": False,
                                        "temperature": 0}),
            Ask("messages", "/v1/messages", {"model": model, "messages": user, "max_tokens": 10, "temperature": 0}),
            Ask("messages stream", "/v1/messages", {"model": model, "messages": user, "max_tokens": 10, "temperature": 0,
                                                    "stream": True}, is_stream=True),
            Ask("messages tool", "/v1/messages", {"model": model, "messages": user, "max_tokens": 10, "temperature": 0,
                                                  "tools": [{"name": "weather", "input_schema": TOOL}]}),
            Ask("ollama", "/api/chat", {"model": model, "messages": user, "stream": False, "options": options}),
            Ask("ollama stream", "/api/chat", {"model": model, "messages": user, "options": options},
                is_stream=True, is_lines=True),
            Ask("embeddings", "/v1/embeddings", {"model": model, "input": [text, topic]}),
            Ask("tokenize", "/tokenize", {"model": model, "prompt": text}),
            Ask("mistake", CHAT, {**chat, "max_tokens": f"{marker} many"}),
        ]
    return found


class Ledger:
    """Which names and texts are whose, what went wrong, and when something was done to the server."""

    def __init__(self):
        self.lock, self.owners, self.markers = threading.Lock(), {}, {}
        self.crossed, self.wrong, self.unexcused = [], [], []
        self.counts, self.troubles = collections.Counter(), []
        self.is_over = threading.Event()

    def begin_trouble(self):
        """A time when replies may be refused or cut, which the caller ends."""
        with self.lock:
            self.troubles.append([time.monotonic(), float("inf")])
            return self.troubles[-1]

    def is_excused(self, since):
        with self.lock:
            return any(since <= end and begin <= time.monotonic() for begin, end in self.troubles)

    def look(self, key, what, text, asked=""):
        """No text of another's, no name that is another's, but for names that were `asked` for; new names are the
        reader's own."""
        found = [f"the marker of {name}" for name, marker in self.markers.items() if name != key and marker in text]
        with self.lock:
            for name in set(NAMES.findall(text)) - set(NAMES.findall(asked)):
                owner = self.owners.setdefault(name, key)
                if owner != key:
                    found.append(f"{name}, which is {owner}'s")
            if found:
                self.crossed.append(f"{key}: {what}: {found[:3]} in {text[:300]!r}")

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def wrong_if(self, is_wrong, what):
        if is_wrong:
            with self.lock:
                self.wrong.append(what)
        return is_wrong


class Cut(Exception):
    """No whole reply: the connection broke, or the server said that it cannot now."""


class Tenant:
    """A key, its clients' requests, and what is theirs on the server."""

    def __init__(self, name, key, port, ledger, models):
        self.name, self.key, self.port, self.ledger = name, key, port, ledger
        self.marker = f"{name}-{random.Random(name).randrange(16 ** 8):08x}"
        ledger.markers[name] = self.marker
        self.asks = asks_of(self.marker, models)
        self.models, self.peers = models, []
        self.lock = threading.Lock()
        self.stored, self.files, self.batches, self.background = [], [], [], []
        self.chained = None

    # --- one exchange ---------------------------------------------------------------------------

    def exchange(self, method, path, body=None, headers=None, kind="application/json", rng=random, leave=False):
        """(status, bytes) of a whole reply, in which nothing is another's. Every body is another one by the blanks at
        its end: what was met at two deaths of a worker is not computed again."""
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        if data is not None and kind == "application/json":
            data += "".join(rng.choices(" \n\t", k=24)).encode()
        given = {"authorization": f"Bearer {self.key}", **({"content-type": kind} if data else {}), **(headers or {})}
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        began = time.monotonic()
        try:
            line.request(method, path, data, given)
            if leave:
                time.sleep(rng.random() * 0.02)
                raise Cut("left")
            reply = line.getresponse()
            text = reply.read()
        except (http.client.HTTPException, OSError, socket.timeout) as broken:
            self.excuse(began, f"{method} {path}: {type(broken).__name__} {broken}")
            raise Cut(type(broken).__name__) from broken
        finally:
            line.close()
        head = "".join(f"{name}: {value}\n" for name, value in reply.getheaders())
        asked = path + (data or b"").decode(errors="replace")
        self.ledger.look(self.name, f"{method} {path}", head + text.decode(errors="replace"), asked)
        if reply.status >= 500 or reply.status in BUSY:
            self.excuse(began, f"{method} {path}: {reply.status} {text[:300]!r}")
            raise Cut(str(reply.status))
        return reply.status, text

    def excuse(self, began, what):
        if not self.ledger.is_excused(began):
            with self.ledger.lock:
                self.ledger.unexcused.append(f"{self.name}: {what}")

    def must(self, status, method, path, body=None, **more):
        """The JSON of a reply that has this status."""
        found, text = self.exchange(method, path, body, **more)
        if self.ledger.wrong_if(found != status, f"{self.name}: {method} {path}: {found} {text[:300]!r}, wanted {status}"):
            raise Cut("wrong")
        return json.loads(text) if text else None

    # --- what they do ---------------------------------------------------------------------------

    def learn(self):
        """What each reply is when nobody else is there. Twice, or it could not be compared."""
        for _ in range(2):
            for ask in self.asks:
                found = ask.meaning(*self.exchange("POST", ask.path, ask.body))
                if (found[0] == 200) == (ask.name == "mistake"):
                    raise SystemExit(f"FAILED: {ask.name}, asked alone: {found}")
                if ask.wanted is not None and ask.wanted != found:
                    raise SystemExit(f"FAILED: {ask.name}, asked alone: {found}, before {ask.wanted}")
                ask.wanted = found

    def plain(self, rng):
        ask = rng.choice(self.asks)
        found = ask.meaning(*self.exchange("POST", ask.path, ask.body, rng=rng, leave=rng.random() < 0.08))
        self.ledger.wrong_if(found != ask.wanted and not (len(found) == 4 and found[3]),
                             f"{self.name}: {ask.name}: {found}, alone {ask.wanted}")
        return ask.name

    def resumed(self, rng):
        """A stream that its client leaves after some events, and goes on with elsewhere."""
        ask = rng.choice([each for each in self.asks if each.name == "stream"])
        text, last, times, until = b"", None, 0, time.monotonic() + 90
        while b"[DONE]" not in text:
            if time.monotonic() > until:
                raise Cut("late")
            piece = self.part_of_stream(ask, last, rng.randrange(3, 20) if times < 3 else 1 << 30)
            times += 1
            text += piece
            found = re.findall(rb"^id: (\S+)$", piece, re.M)
            last = found[-1].decode() if found else last
        found = ask.meaning(200, text)
        self.ledger.wrong_if(found != ask.wanted, f"{self.name}: resumed {times} times: {found}, alone {ask.wanted}")
        return "resumed"

    def part_of_stream(self, ask, last, events):
        """So many whole events of a stream after the one named `last`; fewer when it is cut."""
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        began, found = time.monotonic(), b""
        headers = {"authorization": f"Bearer {self.key}", "content-type": "application/json",
                   **({"last-event-id": last} if last else {})}
        try:
            line.request("POST", ask.path, json.dumps(ask.body), headers)
            reply = line.getresponse()
            if reply.status != 200:
                self.excuse(began, f"stream after {last}: {reply.status} {reply.read()[:300]!r}")
                time.sleep(0.2)
                return b""
            while found.count(b"\n\n") < events and (data := reply.read1(4096)):
                found += data
        except (http.client.HTTPException, OSError) as broken:
            self.excuse(began, f"stream: {type(broken).__name__}")
            time.sleep(0.2)
        finally:
            line.close()
        whole = found[:found.rfind(b"\n\n") + 2] if b"\n\n" in found else b""
        if b'"error":' in whole:  # the last word of a server that goes
            self.excuse(began, f"stream: {whole[-300:]!r}")
            whole = whole[:whole.index(b'"error":')]
            whole = whole[:whole.rfind(b"\n\n") + 2] if b"\n\n" in whole else b""
        self.ledger.look(self.name, "stream", whole.decode(errors="replace"))
        return whole

    def store(self, rng):
        """A response that is kept, read back, built upon and at last deleted."""
        text = f"{self.marker}: keep this"
        made = self.must(200, "POST", RESPONSES, {"input": text, "model": self.models[0], "max_output_tokens": 16,
                                                  "temperature": 0, "metadata": {"of": self.marker}}, rng=rng)
        path = f"{RESPONSES}/{made['id']}"
        with self.lock:
            self.stored.append(made["id"])
            old = self.stored.pop(0) if len(self.stored) > 20 else None
        self.ledger.wrong_if(self.must(200, "GET", path) != made, f"{self.name}: {path} is not what was stored")
        items = json.dumps(self.must(200, "GET", path + "/input_items"))
        self.ledger.wrong_if(text not in items, f"{self.name}: {path}: its items are {items[:300]}")
        chained = steady(self.must(200, "POST", RESPONSES, {
            "input": "and then?", "model": self.models[0], "max_output_tokens": 16, "temperature": 0, "store": False,
            "previous_response_id": made["id"]}, rng=rng))
        with self.lock:
            self.chained = self.chained or chained
        self.ledger.wrong_if(chained != self.chained, f"{self.name}: a chain: {chained}, before {self.chained}")
        if old:
            self.must(200, "DELETE", f"{RESPONSES}/{old}")
            self.must(404, "GET", f"{RESPONSES}/{old}")
        return "stored"

    def in_background(self, rng):
        made = self.must(200, "POST", RESPONSES, {"input": f"{self.marker}: later", "model": self.models[0],
                                                  "background": True, "max_output_tokens": rng.choice([16, 2000])}, rng=rng)
        path = f"{RESPONSES}/{made['id']}"
        if rng.random() < 0.7:
            self.cancel(path)
        self.must(200, "GET", path)
        self.cancel(path)
        return "background"

    def cancel(self, path):
        """A response that ended just before is not cancelled, and says so."""
        status, text = self.exchange("POST", path + "/cancel", {})
        if status == 400 and b"not_cancellable" in text:
            state = self.must(200, "GET", path)["status"]
            self.ledger.wrong_if(state not in ("completed", "incomplete"), f"{self.name}: {path} cannot be cancelled, yet is {state}")
        else:
            self.ledger.wrong_if(status != 200, f"{self.name}: POST {path}/cancel: {status} {text[:200]!r}")

    def file(self, rng):
        content = f"{self.marker} {rng.random()}\n".encode() * rng.randrange(1, 400)
        made = self.upload(content, rng)
        path = f"/v1/files/{made['id']}"
        self.ledger.wrong_if(self.exchange("GET", path + "/content")[1] != content, f"{self.name}: {path} has another content")
        listed = self.must(200, "GET", "/v1/files?limit=100")["data"]
        theirs = [each["filename"] for each in listed if self.marker not in each["filename"] and "output" not in each["filename"]
                  and "error" not in each["filename"]]
        self.ledger.wrong_if(theirs, f"{self.name}: among the files {theirs[:3]}")
        self.must(200, "DELETE", path)
        return "file"

    def upload(self, content, rng):
        mark = f"part{rng.randrange(1 << 40):x}"
        head = (f'--{mark}\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--{mark}\r\n'
                f'content-disposition: form-data; name="file"; filename="{self.marker}.jsonl"\r\n\r\n').encode()
        return self.must(200, "POST", "/v1/files", head + content + f"\r\n--{mark}--\r\n".encode(),
                         kind=f"multipart/form-data; boundary={mark}")

    def batch(self, rng):
        """One is begun, or one that was is looked at, and in the end every line is as it is answered alone."""
        with self.lock:
            one = self.batches.pop(0) if self.batches else None
        if one is None:
            chosen = [each for each in self.asks if each.name in ("chat", "choices", "schema")]
            lines = {f"{self.marker}-{i}": each for i, each in enumerate(rng.choices(chosen, k=6))}
            content = "".join(json.dumps({"custom_id": name, "method": "POST", "url": CHAT, "body": ask.body}) + "\n"
                              for name, ask in lines.items()).encode()
            file = self.upload(content, rng)
            made = self.must(200, "POST", "/v1/batches", {"input_file_id": file["id"], "endpoint": CHAT,
                                                          "completion_window": "24h"})
            with self.lock:
                self.batches.append((made["id"], lines))
            return "batch begun"
        try:
            is_done = self.look_at_batch(*one)
        except Cut:
            is_done = False
        if not is_done:
            with self.lock:
                self.batches.append(one)
            time.sleep(0.05)
        return "batch done" if is_done else "batch looked at"

    def look_at_batch(self, name, lines):
        now = self.must(200, "GET", f"/v1/batches/{name}")
        if now["status"] in ("validating", "in_progress", "finalizing"):
            return False
        if self.ledger.wrong_if(now["status"] != "completed", f"{self.name}: a batch is {now['status']}: {now}"):
            return True
        text = self.exchange("GET", f"/v1/files/{now['output_file_id']}/content")[1].decode()
        found = {each["custom_id"]: each["response"] for each in map(json.loads, text.splitlines())}
        self.ledger.wrong_if(set(found) != set(lines), f"{self.name}: {name} has the lines {sorted(found)}")
        for line, ask in lines.items():
            reply = found.get(line) or {"status_code": 0, "body": None}
            got = (reply["status_code"], steady(reply["body"]))
            self.ledger.wrong_if(got != ask.wanted, f"{self.name}: line {line}: {got}, alone {ask.wanted}")
        for file in (now["input_file_id"], now["output_file_id"]):
            self.must(200, "DELETE", f"/v1/files/{file}")
        return True

    def pry(self, rng):
        """What is another key's is not there, whatever is asked of it."""
        other = rng.choice(self.peers)
        with other.lock:
            ids = (other.stored[-1:], [name for name, _ in other.batches[-1:]])
        for name in ids[0]:
            for method, path, body in (("GET", "", None), ("GET", "/input_items", None), ("POST", "/cancel", {}),
                                       ("DELETE", "", None)):
                self.must(404, method, f"{RESPONSES}/{name}{path}", body)
            status, text = self.exchange("POST", RESPONSES, {"input": "x", "previous_response_id": name,
                                                             "max_output_tokens": 16}, rng=rng)
            self.ledger.wrong_if(status not in (400, 404), f"{self.name}: built upon {other.name}'s: {status} {text[:200]!r}")
        for name in ids[1]:
            self.must(404, "GET", f"/v1/batches/{name}")
            self.must(404, "POST", f"/v1/batches/{name}/cancel", {})
        self.must(200, "GET", "/v1/batches?limit=100")
        return "pried"

    def run(self, seed):
        rng = random.Random(seed)
        while not self.ledger.is_over.is_set():
            act = rng.choices([self.plain, self.resumed, self.store, self.in_background, self.file, self.batch, self.pry],
                              [30, 4, 3, 1, 1, 3, 2])[0]
            try:
                self.ledger.count(act(rng))
            except Cut as cut:
                self.ledger.count(f"cut: {cut}")
                time.sleep(0.05)
            except Exception as failure:  # a reply that cannot be read is one, too
                self.ledger.wrong_if(True, f"{self.name}: {act.__name__}: {type(failure).__name__} {failure}")

# SPDX-License-Identifier: Apache-2.0
"""Streams of `hearth serve` whose server is killed with SIGKILL while they run: resumed by the
wrapper of clients/python they equal the undisturbed ones byte for byte, in every dialect, with a
journal on disk and without. resume_test.py HEARTH [--kills N]: so many streams killed in flight."""
import argparse
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import socket
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "clients" / "python"))
import hearth_streams
from anthropic import Anthropic
from openai import OpenAI
from serving import expect, same, serving, work_model

MODEL = "minimind2-small-q8_0.gguf"
STREAMS = 40  # at a time; so many are killed at once
CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
WORDS = "once upon a time there was a little dog who lived near the big red house".split()


class Transport(hearth_streams.ResumingTransport):
    """Counts the breaks it mended."""

    def __init__(self, **options):
        super().__init__(patience=240, **options)
        self.breaks = 0

    def again(self, request, body, last_id, error):
        self.breaks += 1
        return super().again(request, body, last_id, error)


def ask_of(number, tokens):
    """A path and a body; each number has its own, and some have no seed of their own."""
    chosen = random.Random(number)
    text = "Tell a long tale: " + " ".join(chosen.choices(WORDS, k=12))
    body = {"temperature": chosen.choice([0, 0.7, 1]), "stream": True}
    messages = [{"role": "user", "content": text}]
    kind = number % 4
    if kind == 2:
        return MESSAGES, {**body, "messages": messages, "max_tokens": tokens}
    if kind == 3:
        return "/v1/responses", {**body, "input": text, "max_output_tokens": tokens, "store": False}
    body.update(max_tokens=tokens, min_tokens=tokens)  # which the other two do not know
    if number % 3:
        body["seed"] = number
    if kind == 0:
        return "/v1/completions", {**body, "prompt": text}
    return CHAT, {**body, "messages": messages, "stream_options": {"include_usage": True}}


def events_of(text):
    """The events of a stream, without its comments."""
    blocks = ("\n".join(line for line in block.split("\n") if not line.startswith(":"))
              for block in text.split("\n\n"))
    return [block for block in blocks if block and not block.startswith("event: ping")]


class Stream(threading.Thread):
    """One request, read to its end."""

    def __init__(self, server, number, tokens, headers=None):
        super().__init__(daemon=True)
        self.path, self.body = ask_of(number, tokens)
        self.server, self.headers = server, {"content-type": "application/json", **(headers or {})}
        self.address = server.address
        self.transport = Transport()
        self.text, self.trouble = "", None
        self.has_begun = threading.Event()

    def run(self):
        client = hearth_streams.httpx.Client(transport=self.transport, timeout=240)
        try:
            with client.stream("POST", self.address + self.path, headers=self.headers,
                               content=json.dumps(self.body)) as response:
                if response.status_code != 200:
                    response.read()
                    self.trouble = f"{response.status_code} {response.text}"
                for chunk in response.iter_text():
                    self.text += chunk
                    if self.text.count("id: ") > 2 + len(self.body) % 9:  # somewhere in it
                        self.has_begun.set()
        except Exception as error:  # told by the main thread
            self.trouble = repr(error)
        finally:
            self.has_begun.set()
            client.close()


def run_all(streams, during=None):
    for stream in streams:
        stream.start()
    for stream in streams:
        stream.has_begun.wait(240)
    if during is not None:
        during()
    for stream in streams:
        stream.join()
        expect(stream.trouble is None, f"{stream.path} {stream.body}: {stream.trouble}")


def kill_worker(server):
    pid = server.worker_pid()
    expect(pid != server.process.pid, "a worker under its supervisor")
    os.kill(pid, signal.SIGKILL)


def check_form(text):
    """Every event has an id, and no id stands twice."""
    events = events_of(text)
    ids = [re.match(r"id: ([A-Za-z0-9+/]{108})\n", event) for event in events]
    expect(all(ids), f"an event without an id: {[e for e, i in zip(events, ids) if not i][:2]}")
    same(len({found.group(1) for found in ids}), len(ids), "ids of as many events")
    return events


def text_of(events):
    """What the model said, whatever the dialect."""
    said = ""
    for event in events:
        data = event.split("data: ", 1)[1]
        if data == "[DONE]":
            continue
        data = json.loads(data)
        if data.get("choices"):
            said += data["choices"][0].get("text") or data["choices"][0].get("delta", {}).get("content") or ""
        elif data.get("type") == "content_block_delta":
            said += data["delta"].get("text", "")
        elif data.get("type") == "response.output_text.delta":
            said += data["delta"]
    return said


def plain_text(server, stream):
    """The same request once more, without any of these headers."""
    status, _, data = server.request("POST", stream.path, stream.body, timeout=240)
    same(status, 200, "status of the undisturbed stream")
    return text_of(events_of(data.decode()))


def first_known(events):
    """The events until the first text's, and the id of that one: from there on an id says all that
    is to be known of its reply."""
    at = next(i for i, event in enumerate(events) if text_of([event]) or i == len(events) - 1)
    return events[:at + 1], re.match(r"id: ([^\n]*)\n", events[at]).group(1)


def resumed_from(stream, had, last_id):
    """The same request for the rest after `last_id`, which nobody disturbs."""
    again = Stream(stream.server, 0, 0, {"last-event-id": last_id})
    again.path, again.body = stream.path, stream.body
    return again, had


def kills(server, count, first, tokens=32):
    """Rounds of streams, killed in flight once each, unless they end too early. How many were."""
    killed = number = 0
    while killed < count:
        streams = [Stream(server, first + number + i, tokens)
                   for i in range(min(STREAMS, (count - killed) * 3 // 2 + 2))]
        number += len(streams)
        run_all(streams, lambda: kill_worker(server))
        killed += sum(stream.transport.breaks > 0 for stream in streams)
        rest = [resumed_from(stream, *first_known(check_form(stream.text))) for stream in streams]
        run_all([again for again, _ in rest])
        for stream, (again, had) in zip(streams, rest):
            events = check_form(stream.text)
            same(had + events_of(again.text), events, f"events of {stream.path}")
            if "seed" in stream.body and number % 7 == 0:
                same(text_of(events), plain_text(server, stream), f"text of {stream.path}")
    return killed


def replays(server):
    """A key's reply is the same after the death of the worker, while it ran or later."""
    streams = [Stream(server, 5000 + i, 40, {"idempotency-key": f"key {i}"}) for i in range(4)]
    run_all(streams, lambda: kill_worker(server))
    kill_worker(server)
    again = [Stream(server, 5000 + i, 40, {"idempotency-key": f"key {i}"}) for i in range(4)]
    run_all(again)
    for one, other in zip(streams, again):
        same(check_form(other.text), check_form(one.text), f"events of {one.path} once more")
    expect(metric(server, "hearth_replies_replayed_total") >= 4, "replays in /metrics")
    status, _, _ = server.request("POST", CHAT, {"messages": [{"role": "user", "content": "x"}]},
                                  {"idempotency-key": "key 1"})
    same(status, 422, "status of another request with that key")


def official_clients(server):
    """The SDKs over the transport: their own parsers see one whole stream."""
    transports = []

    def client_for(make, base):
        transports.append(Transport())
        http = hearth_streams.httpx.Client(transport=transports[-1], timeout=240)
        return make(base_url=base, api_key="none", http_client=http, max_retries=0)

    def chat(client):
        chunks = client.chat.completions.create(
            model=server.name, messages=[{"role": "user", "content": "a long tale"}], stream=True,
            max_tokens=150, seed=5, extra_body={"min_tokens": 150})
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)

    def message(client):
        with client.messages.stream(model=server.name, max_tokens=150,
                                    messages=[{"role": "user", "content": "a long tale"}],
                                    extra_body={"temperature": 0}) as stream:
            return "".join(stream.text_stream)

    for make, base, ask in [(OpenAI, server.address + "/v1", chat),
                            (Anthropic, server.address, message)]:
        undisturbed = ask(client_for(make, base))
        expect(len(undisturbed) > 100, f"a long text, not {undisturbed!r}")
        for _ in range(20):  # until one was in flight when its server died
            out = []
            client = client_for(make, base)
            thread = threading.Thread(target=lambda: out.append(ask(client)), daemon=True)
            thread.start()
            wait_for_stream(server, thread)
            kill_worker(server)
            thread.join(240)
            same(out, [undisturbed], f"the text that {make.__name__} heard")
            if transports[-1].breaks > 0:
                break
        expect(transports[-1].breaks > 0, "that one was in flight when its server died")


class Mute:
    """A relay before the server whose first connections fall silent after some bytes of the answer,
    as one to a machine that hangs does: nothing more comes, and nothing is closed."""

    def __init__(self, port, silences, after):
        self.target, self.silences, self.after = port, silences, after
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            near, _ = self.socket.accept()
            far = socket.create_connection(("127.0.0.1", self.target))
            left = self.after if self.silences > 0 else 1 << 60
            self.silences -= 1
            threading.Thread(target=self.pass_on, args=(near, far, 1 << 60), daemon=True).start()
            threading.Thread(target=self.pass_on, args=(far, near, left), daemon=True).start()

    @staticmethod
    def pass_on(source, sink, left):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data[:left])
                left = max(0, left - len(data))
            if left > 0:
                sink.shutdown(socket.SHUT_WR)


def silences(server):
    """A server that hangs, before the head of its answer and in the middle: the stream is resumed."""
    for after in (0, 1500):
        stream = Stream(server, 6001, 40)
        run_all([stream])
        relay = Mute(server.port, 2, after)
        quiet = Stream(server, 6001, 40)
        quiet.transport = Transport(gap=0.5)
        quiet.address = f"http://127.0.0.1:{relay.port}"
        run_all([quiet])
        expect(relay.silences < 0, f"two silences and an answer: {2 - relay.silences} connections")
        same(text_of(check_form(quiet.text)), text_of(check_form(stream.text)), "the resumed text")


def wait_for_stream(server, thread):
    """Until something runs, or ran already."""
    while thread.is_alive() and not metric(server, "hearth_requests_running"):
        time.sleep(0.002)


def metric(server, series):
    status, _, page = server.request("GET", "/metrics?names=hearth")
    same(status, 200, "status of /metrics")
    found = re.findall(rf"^{series}(?:\{{[^}}]*\}})? (\S+)$", page.decode(), re.M)
    return sum(map(float, found))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--kills", type=int, default=12)
    flags = parser.parse_args()
    model = work_model(MODEL)
    with tempfile.TemporaryDirectory() as folder:
        with serving(flags.program, model, "--context", "1024", "--cache-dir", folder + "/cache",
                     "--cache-disk", "64MiB", "--quiet") as server:
            killed = kills(server, flags.kills, 1000)
            for series in ("hearth_streams_resumed_total", "hearth_resume_tokens_total"):
                expect(metric(server, series) > 0, f"{series} in /metrics")
            replays(server)
            silences(server)
            official_clients(server)
        with serving(flags.program, model, "--context", "1024", "--quiet") as server:
            without = kills(server, max(3, flags.kills // 10), 900_000)
    print(f"{killed} streams killed in flight with a journal on disk, {without} without: all equal")


if __name__ == "__main__":
    main()

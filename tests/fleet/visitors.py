# SPDX-License-Identifier: Apache-2.0
"""Clients of a fleet that hold one chat after the other, each reply compared with a lone engine's: plain
ones, which see a broken request fail and send it again, and such with the resuming transport of
clients/python, which must see none."""
import json
import pathlib
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "clients/python"))
# pylint: disable=wrong-import-position
import hearth_streams
from fleet import Failed, ask, percentile
from haproxy_test import Chat
from serving import expect, same

MODEL = "tiny-chatml"


class FreshChat(Chat):
    """Learns each reply from the lone engine just before its turn. Turns with log-probabilities and such
    with a long stream alternate for plain clients; a resuming one has streams alone."""

    def __init__(self, name, turns, reply, resumes):
        super().__init__(name, turns)
        self.reply, self.resumes = reply, resumes

    def body(self, turn):
        body = {"model": MODEL, **super().body(turn)}
        if self.resumes:
            del body["logprobs"]  # with them a reply is computed again, without them the journal has it
            body |= {"stream": True, "max_tokens": self.reply, "min_tokens": self.reply}
        return body


class Visit:
    """One request as its client saw it."""

    def __init__(self, began, trouble=None, is_again=False, breaks=0):
        self.began, self.ended, self.trouble = began, time.monotonic(), trouble
        self.is_again, self.breaks = is_again, breaks  # sent before and failed; resumed so often


class Transport(hearth_streams.ResumingTransport):
    """Counts the breaks it mended."""

    breaks = 0

    def again(self, request, body, last_id, error):
        self.breaks += 1
        return super().again(request, body, last_id, error)


def whole_events(text):
    """The data of a stream's events. Each has an id, which is the same when the event comes again, so none
    came twice; whether one was lost, its text tells."""
    ids, data = [], []
    for block in filter(None, text.split("\n\n")):
        lines = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
        ids.append(lines["id"])
        data.append(lines["data"])
    same(len(set(ids)), len(ids), "ids of as many events")
    expect(data and data[-1] == "[DONE]", f"the end of a stream: {text[-200:]}")
    return [json.loads(each) for each in data[:-1]]


class Visitors:
    """They go on until `finish`."""

    def __init__(self, front, lone, headers, options):
        self.front, self.lone, self.headers, self.options = front, lone, headers, options
        self.lock, self.visits, self.mistakes = threading.Lock(), [], []
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.live, args=(f"{front.name}-{i}", i >= options.plain),
                                         daemon=True)
                        for i in range(options.plain + options.resuming)]
        for thread in self.threads:
            thread.start()

    def live(self, name, resumes):
        try:
            number = 0
            while not self.over.is_set():
                chat = FreshChat(f"{name}-{number}", self.options.turns, self.options.reply, resumes)
                number += 1
                for turn in range(self.options.turns):
                    if self.over.is_set():
                        return
                    chat.expected.append(ask(self.lone.port, chat.body(turn), self.headers)[0])
                    (self.resume if resumes else self.visit)(chat, turn)
        except BaseException as mistake:  # pylint: disable=broad-except
            self.mistakes.append(f"{name}: {mistake!r}")
            self.over.set()

    def visit(self, chat, turn):
        """Again until it is answered: a user would not give up either."""
        for i in range(200):
            began = time.monotonic()
            try:
                reply, _, _ = ask(self.front.port, chat.body(turn), {**self.headers, **chat.headers()})
            except Failed as failure:
                self.note(Visit(began, str(failure), i > 0))
                self.over.wait(0.2)
                continue
            self.note(Visit(began, None, i > 0))
            same(reply, chat.expected[turn], f"{chat.name}, turn {turn}")
            return
        raise AssertionError(f"{chat.name}: nobody answers")

    def resume(self, chat, turn):
        transport, began = Transport(patience=120, gap=self.options.gap), time.monotonic()
        with hearth_streams.httpx.Client(transport=transport, timeout=600) as client:
            answer = client.post(f"http://127.0.0.1:{self.front.port}/v1/chat/completions",
                                 headers={**self.headers, **chat.headers()}, json=chat.body(turn))
        same(answer.status_code, 200, f"{chat.name}, turn {turn}: {answer.text[:300]}")
        self.note(Visit(began, breaks=transport.breaks))
        events = whole_events(answer.text)
        said = "".join(event["choices"][0]["delta"].get("content") or "" for event in events if event["choices"])
        same(said, chat.expected[turn][0], f"{chat.name}, turn {turn}, resumed {transport.breaks} times")

    def note(self, visit):
        with self.lock:
            self.visits.append(visit)

    def check(self):
        expect(not self.mistakes, f"right replies: {self.mistakes[:3]}")

    def finish(self):
        self.over.set()
        for thread in self.threads:
            thread.join()
        self.check()

    def between(self, began, ended):
        """Requests that were under way in this time."""
        with self.lock:
            return [each for each in self.visits if each.ended > began and each.began < ended]


def p99(visits):
    """Of the seconds that answered requests took."""
    return percentile([each.ended - each.began for each in visits if each.trouble is None], 0.99)

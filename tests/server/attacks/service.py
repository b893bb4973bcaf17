# SPDX-License-Identifier: Apache-2.0
"""Requests that are well formed, and too many or too dear."""
import itertools
import json
import random
import urllib.request

from serving import expect, same

numbers = itertools.count()


def asking(a, method, path, body=None, threads=4, fine=(200, 429, 503), key="mallory", meant=200, least=2, a_second=2.0):
    """The same request over and over; `body` may be a function. Answered with `meant` so and so often, or it was no
    attack; with something that is not `fine` never."""
    def work():
        status, _, reply = a.ask(method, path, body() if callable(body) else body, key=key)
        expect(status in fine, f"{a.name}: {status} {reply[:400]}")
        return status

    a.shows(f"replies of {meant}", a.count_of(meant), least=least, a_second=a_second)
    a.storm(work, threads)


def response_chains(a):
    """Each built upon the one before, and read through a request of ninety bytes."""
    last = None
    for _ in range(12):
        body = {"input": "word " * 200, "max_output_tokens": 1, **({"previous_response_id": last} if last else {})}
        status, _, reply = a.ask("POST", "/v1/responses", body)
        same(status, 200, f"a link of the chain: {reply[:200]}")
        last = json.loads(reply)["id"]
    a.shows("tokens of prompts", a.tokens("prompt"), least=2 * 12 * 200, a_second=12 * 200)
    asking(a, "POST", "/v1/responses", {"input": "x", "max_output_tokens": 1, "previous_response_id": last,
                                        "store": False})


def background_churn(a):
    def work():
        status, _, reply = a.ask("POST", "/v1/responses", {"input": "x", "background": True,
                                                           "max_output_tokens": 1000})
        if status == 200:
            path = "/v1/responses/" + json.loads(reply)["id"]
            same(a.ask("GET", path)[0], 200, "one that was just made")
            a.ask("POST", path + "/cancel", {})
            same(a.ask("DELETE", path)[0], 200, "forgotten")
        return status

    a.shows("begun", a.count_of(200), least=2, a_second=5)
    a.shows("let in", a.counter("hearth_requests_admitted_total"), least=2, a_second=5)
    a.storm(work)


def storing_responses(a):
    """Short ones, each written to the store."""
    a.shows("stored", a.counter("hearth_stored_responses"), least=2, a_second=5)
    asking(a, "POST", "/v1/responses", {"input": "x", "max_output_tokens": 1}, threads=8)


def storing_long_responses(a):
    """With megabytes of instructions that are few tokens."""
    body = {"input": "x", "max_output_tokens": 1, "instructions": " " * (3_900_000 if a.is_strict else 200_000)}
    a.shows("bytes stored", a.counter("hearth_stored_response_bytes"), least=400_000)
    asking(a, "POST", "/v1/responses", body, threads=8, a_second=0.2)


def cache_busting(a):
    a.shows("prompt tokens computed", a.counter("hearth_prefill_tokens_total"), least=1600, a_second=1600)
    asking(a, "POST", "/v1/completions", lambda: {
        "prompt": [random.randrange(1000, 100_000) for _ in range(800)], "max_tokens": 1, "cache_salt": str(next(numbers))})


def logprob_floods(a):
    a.shows("tokens of replies", a.tokens("generated"), least=120, a_second=200)
    asking(a, "POST", "/v1/completions", {"prompt": "x", "max_tokens": 60, "logprobs": 20, "ignore_eos": True})


def priority_abuse(a):
    """The most urgent class there is; numbers beyond it are refused."""
    same(a.ask("POST", "/v1/completions", {"prompt": "x", "priority": -1000})[0], 400, "no class of that number")
    a.shows("tokens of replies", a.tokens("generated"), least=120, a_second=200)
    asking(a, "POST", "/v1/completions", {"prompt": "x", "max_tokens": 60, "priority": -1, "ignore_eos": True})


def many_replies(a):
    """The most choices that one request may have."""
    a.shows("tokens of replies", a.tokens("generated"), least=640, a_second=640)
    asking(a, "POST", "/v1/completions", {"prompt": "x", "max_tokens": 20, "n": 16, "ignore_eos": True})


def long_prompts(a):
    a.shows("prompt tokens computed", a.counter("hearth_prefill_tokens_total"), least=6000, a_second=1000)
    asking(a, "POST", "/v1/completions", lambda: {"prompt": f"{next(numbers)} " + "word " * 6000, "max_tokens": 1},
           a_second=0.2)


def longest_prompts(a):
    """As long as the context, each another one."""
    a.shows("prompt tokens computed", a.counter("hearth_prefill_tokens_total"), least=2000, a_second=1000)
    asking(a, "POST", "/v1/completions", lambda: {
        "prompt": [random.randrange(1000, 100_000) for _ in range(32_000)], "max_tokens": 1}, threads=8, least=0, a_second=0)


def endless_replies(a):
    """More of them than run at once."""
    a.shows("tokens of replies", a.tokens("generated"), least=600, a_second=600)
    asking(a, "POST", "/v1/completions", {"prompt": "x", "max_tokens": 300, "ignore_eos": True}, threads=24)


def key_guessing(a):
    a.keys["nobody"] = "hearth-" + "0" * 40
    asking(a, "POST", "/v1/completions", {"prompt": "x"}, fine=(401,), key="nobody", meant=401, a_second=50)


def model_churn(a):
    """An ordinary key may load a model that is there already, and unload none."""
    def work():
        status = a.ask("POST", "/models/load", {"model": "tiny-oss-o200k"})[0]
        expect(status in (200, 400, 403, 409, 429, 501), f"load: {status}")
        gone = a.ask("POST", "/models/unload", {"model": "tiny-oss-o200k"})[0]
        expect(gone in (403, 404, 405, 501), f"unload: {gone}")
        return gone

    a.shows("refusals", lambda: sum(a.replies.values()), least=2, a_second=50)
    a.storm(work)


def metrics_scraping(a):
    """Pages of an ordinary key, and those of the operator's own port."""
    def work():
        for path, status in (("/metrics", 403), ("/status", 403), ("/v1/models", 200), ("/readyz", 200), ("/livez", 200)):
            same(a.ask("GET", path)[0], status, path)
        with urllib.request.urlopen(a.control + "/metrics", timeout=60) as page:
            expect(b"hearth_steps_total" in page.read(), "a page of metrics")
        return 200

    a.shows("pages", a.count_of(200), least=2, a_second=10)
    a.storm(work)


def unknown_paths(a):
    """One that is not there, and one that is too long to be looked at."""
    turns = itertools.cycle([(404, "/v1/" + "chat/" * 200), (431, "/v1/" + "chat/" * 3000)])

    def work():
        status, path = next(turns)
        found = a.ask("GET", path)[0]
        expect(found in {404: (404,), 431: (400, 414, 431)}[status], f"{len(path)} bytes of path: {found}")
        return found

    a.shows("replies of 404", a.count_of(404), least=2, a_second=50)
    a.storm(work)


ATTACKS = [response_chains, background_churn, storing_responses, storing_long_responses, cache_busting, logprob_floods,
           priority_abuse, many_replies, long_prompts, longest_prompts, endless_replies, key_guessing, model_churn,
           metrics_scraping, unknown_paths]

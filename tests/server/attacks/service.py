# SPDX-License-Identifier: Apache-2.0
"""Requests that are well formed, and too many or too dear."""
import itertools
import json
import random

from serving import expect

numbers = itertools.count()


def asking(a, method, path, body=None, threads=4, fine=(200, 400, 404, 429, 503), key="mallory"):
    """The same request over and over; `body` may be a function."""
    statuses = set()

    def work():
        statuses.add(a.ask(method, path, body() if callable(body) else body, key=key)[0])

    a.storm(work, threads)
    expect(statuses <= set(fine), f"{a.name}: answers {statuses}")


def response_chains(a):
    """Each built upon the one before, and read through a request of ninety bytes."""
    last = None
    for _ in range(12):
        body = {"input": "word " * 200, "max_output_tokens": 1, **({"previous_response_id": last} if last else {})}
        last = json.loads(a.ask("POST", "/v1/responses", body)[2])["id"]
    asking(a, "POST", "/v1/responses", {"input": "x", "max_output_tokens": 1, "previous_response_id": last,
                                        "store": False})


def background_churn(a):
    def work():
        status, _, reply = a.ask("POST", "/v1/responses", {"input": "x", "background": True,
                                                           "max_output_tokens": 1000})
        if status == 200:
            path = "/v1/responses/" + json.loads(reply)["id"]
            a.ask("GET", path)
            a.ask("POST", path + "/cancel", {})
            a.ask("DELETE", path)

    a.storm(work)


def cache_busting(a):
    asking(a, "POST", "/v1/completions", lambda: {
        "prompt": [random.randrange(1000, 100_000) for _ in range(800)], "max_tokens": 1, "cache_salt": str(next(numbers))})


def logprob_floods(a):
    asking(a, "POST", "/v1/completions", {"prompt": "x", "max_tokens": 60, "logprobs": 20, "ignore_eos": True})


def priority_abuse(a):
    asking(a, "POST", "/v1/completions", {"prompt": "x", "max_tokens": 60, "priority": -1000, "ignore_eos": True})


def many_replies(a):
    asking(a, "POST", "/v1/completions", {"prompt": "x", "max_tokens": 20, "n": 64, "best_of": 64, "ignore_eos": True})


def long_prompts(a):
    asking(a, "POST", "/v1/completions", lambda: {"prompt": f"{next(numbers)} " + "word " * 6000, "max_tokens": 1})


def endless_replies(a):
    """More of them than run at once."""
    asking(a, "POST", "/v1/completions", {"prompt": "x", "max_tokens": 300, "ignore_eos": True}, threads=24)


def key_guessing(a):
    a.keys["nobody"] = "hearth-" + "0" * 40
    asking(a, "POST", "/v1/completions", {"prompt": "x"}, fine=(401,), key="nobody")


def model_churn(a):
    fine = (200, 400, 403, 404, 405, 409, 429, 501)

    def work():
        for path in ("/models/load", "/models/unload"):
            status = a.ask("POST", path, {"model": "tiny-oss-o200k"})[0]
            expect(status in fine, f"{path}: {status}")

    a.storm(work)


def metrics_scraping(a):
    def work():
        for path in ("/metrics", "/status", "/v1/models", "/readyz", "/livez"):
            expect(a.ask("GET", path)[0] < 500, path)

    a.storm(work)


def unknown_paths(a):
    asking(a, "GET", "/v1/" + "chat/" * 3000, threads=4, fine=(404, 431, 414, 400))


ATTACKS = [response_chains, background_churn, cache_busting, logprob_floods, priority_abuse, many_replies,
           long_prompts, endless_replies, key_guessing, model_churn, metrics_scraping, unknown_paths]

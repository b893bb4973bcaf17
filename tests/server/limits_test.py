# SPDX-License-Identifier: Apache-2.0
"""What a key may ask for: limits of the keys file on a real server, what a client beyond them hears
in both dialects, and that another key does not notice."""
import json
import os
import re
import signal
import sys
import tempfile
import threading
import time
import urllib.request

import openai

from serving import expect, new_key, same, serving, work_model

NUM_REFUSED = 6
HELLO = [{"role": "user", "content": "Say hello."}]


def chat(server, key, **members):
    body = {"messages": HELLO, "max_tokens": 4, "ignore_eos": True, **members}
    status, headers, data = server.request("POST", "/v1/chat/completions", body,
                                           {"authorization": "Bearer " + key})
    return status, headers, json.loads(data)


def messages(server, key):
    body = {"messages": HELLO, "max_tokens": 4}
    status, headers, data = server.request("POST", "/v1/messages", body, {"x-api-key": key})
    return status, headers, json.loads(data)


def check_requests(server, key, other):
    """Three a minute: the fourth hears when to come back, the other key nothing at all."""
    began = time.monotonic()
    for left in (2, 1, 0):
        status, headers, _ = chat(server, key)
        same((status, headers["x-ratelimit-limit-requests"]), (200, "3"), "within the limit")
        same(headers["x-ratelimit-remaining-requests"], str(left), "what is left")
        expect(re.fullmatch(r"(\d+m)?\d+m?s", headers["x-ratelimit-reset-requests"]),
               f"a duration, not {headers['x-ratelimit-reset-requests']}")
    for _ in range(NUM_REFUSED):
        status, headers, reply = chat(server, key)
        same((status, reply["error"]["code"]), (429, "rate_limit_exceeded"), "the fourth")
        # One comes back every 20 s.
        passed = time.monotonic() - began
        expect(20 - passed - 1 <= int(headers["retry-after"]) <= 20, f"after {passed} s: {headers}")
        same(headers["x-ratelimit-remaining-requests"], "0", "what is left")
        same(chat(server, other)[0], 200, "another key beside it")
    status, headers, reply = messages(server, key)
    same((status, reply["type"], reply["error"]["type"]), (429, "error", "rate_limit_error"),
         "in the other dialect")
    expect(1 <= int(headers["retry-after"]) <= 20, "and there")
    status, _, _ = server.request("POST", "/tokenize", {"prompt": "a"}, {"x-api-key": key})
    same(status, 429, "counting tokens is a request, too")
    client = openai.OpenAI(base_url=server.address + "/v1", api_key=key, max_retries=0)
    try:
        client.chat.completions.create(model=server.name, messages=HELLO)
        expect(False, "the SDK's own error")
    except openai.RateLimitError as error:
        same(error.code, "rate_limit_exceeded", "its code")


def check_tokens(server, key):
    """600 a minute, charged as usage tells them; what was used beyond is waited for."""
    began = time.monotonic()
    status, headers, reply = chat(server, key, max_tokens=16)
    same(status, 200, "a first request")
    used = reply["usage"]["total_tokens"]
    back = int(headers["x-ratelimit-remaining-tokens"]) - (600 - used)
    expect(0 <= back <= 10 * (time.monotonic() - began) + 1, f"charged by usage: {used} {headers}")
    status, headers, reply = chat(server, key, max_tokens=900)
    same(status, 200, "a reply longer than what is left")
    debt = used + reply["usage"]["total_tokens"] - 600
    status, headers, reply = chat(server, key)
    same((status, reply["error"]["type"]), (429, "tokens"), "a key in debt")
    wait = int(headers["retry-after"])
    # They come back at ten a second, and some did while the reply was said.
    passed = time.monotonic() - began
    expect(debt / 10 - passed - 1 <= wait <= debt / 10 + 1, f"{debt} tokens, {passed} s: {wait} s")


def check_shape(server, key):
    """One reply at a time, of at most 200 tokens with its prompt."""
    status, _, reply = chat(server, key, n=2)
    same((status, reply["error"]["param"]), (400, "n"), "two at a time")
    status, _, reply = chat(server, key, max_tokens=500)
    same((status, reply["error"]["code"]), (400, "context_length_exceeded"), "too long")
    status, _, reply = chat(server, key, max_tokens=None)
    same((status, reply["choices"][0]["finish_reason"]), (200, "length"), "without a bound")
    same(reply["usage"]["total_tokens"], 200, "the key's own bound")
    done = []

    def ask():
        status, headers, _ = chat(server, key, max_tokens=60)
        done.append((status, "retry-after" in headers))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(done.count((200, False)) >= 1 and done.count((429, True)) >= 1
           and done.count((200, False)) + done.count((429, True)) == 6, f"some wait: {done}")
    for _ in range(5):
        same(chat(server, key)[0], 200, "one after the other, without a pause between")


def check_tenants(server, first, second):
    """Another key's prompt is as new as it ever was: by every header, and by the work done."""
    body = {"messages": [{"role": "user", "content": "a plan of one's own " * 40}], "max_tokens": 4,
            "seed": 1}

    def ask(key):
        status, headers, data = server.request("POST", "/v1/chat/completions", body,
                                               {"x-api-key": key})
        same(status, 200, "a request")
        cached = json.loads(data)["usage"]["prompt_tokens_details"]["cached_tokens"]
        return [cached] + [headers["x-hearth-" + name] for name in (
            "cached-tokens", "computed-tokens", "cache-miss")]

    cold = ask(first)
    same(cold[:2], [0, "0"], "nothing cached at first")
    warm = ask(first)
    expect(warm[0] > 100 and int(warm[2]) < int(cold[2]), f"one's own is found again: {warm}")
    same(ask(second), cold, "another's is not")
    same(ask(second), warm, "until it is one's own")


def check_reload(server, path, entries, key):
    for entry in entries:
        if entry["id"] == "ada":
            entry["limits"]["requests_per_minute"] = 1000
    write(path, entries)
    server.process.send_signal(signal.SIGHUP)
    expect(any("keys reloaded" in line for line in server.process.stderr), "the keys to be read again")
    status, headers, _ = chat(server, key)
    same((status, headers["x-ratelimit-limit-requests"]), (200, "1000"), "the new limit")


def check_metrics(server):
    control = next(line for line in server.log if line.startswith("control on")).split()[-1]
    page = urllib.request.urlopen(control + "/metrics").read().decode()
    found = dict(re.findall(r"^(hearth_key_\S+) (\S+)$", page, re.MULTILINE))
    expect(float(found['hearth_key_refused_total{key="ada",limit="requests"}']) >= NUM_REFUSED,
           f"{found}")
    expect(float(found['hearth_key_refused_total{key="bob",limit="requests"}']) == 0, f"{found}")
    expect(float(found['hearth_key_refused_total{key="cleo",limit="tokens"}']) >= 1, f"{found}")
    expect(float(found['hearth_key_refused_total{key="dan",limit="concurrent"}']) >= 1, f"{found}")
    expect(float(found['hearth_key_tokens_total{key="cleo",kind="generated"}']) == 916, f"{found}")
    same(float(found['hearth_key_running_replies{key="dan"}']), 0, "running")


def write(path, entries):
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"keys": entries}, file)


def main(program):
    model = work_model("tiny-oss-o200k.gguf")
    made = [new_key(program, "ada", "--requests-per-minute", "3"), new_key(program, "bob"),
            new_key(program, "cleo", "--tokens-per-minute", "600"),
            new_key(program, "dan", "--max-concurrent", "1", "--max-tokens-per-request", "200"),
            new_key(program, "eve", "--max-priority", "low"), new_key(program, "fay")]
    (ada, bob, cleo, dan, eve, fay), entries = zip(*made)
    del entries[1]["admin"]  # as older files may be
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "keys.json")
        write(path, entries)
        with serving(program, model, "--keys", path, "--control-port", "0") as server:
            began = time.monotonic()
            check_requests(server, ada, bob)
            check_tokens(server, cleo)
            check_shape(server, dan)
            check_tenants(server, eve, fay)
            check_reload(server, path, entries, ada)
            check_metrics(server)
            print(f"limits hold, {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1])

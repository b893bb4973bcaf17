# SPDX-License-Identifier: Apache-2.0
"""Keys that are missing, tenants that listen, bodies from hell: the server goes on."""
import json
import os
import random
import signal
import socket
import sys
import tempfile
import time

from chat_test import events
from serving import expect, new_key, same, serving, work_model


def head(length, extra=""):
    return (f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n{extra}"
            f"content-type: application/json\r\ncontent-length: {length}\r\n\r\n").encode()


def check_bodies(server):
    """Random damage to a good body is refused or understood, never an error of ours."""
    rng = random.Random(11)
    good = json.dumps({"messages": [{"role": "user", "content": "hé \\u00e9 🦉"}], "max_tokens": 1,
                       "stop": ["a"], "tools": [], "logit_bias": {"5": 1}}).encode()
    counts = {}
    for _ in range(200):
        body = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(max(1, len(body)))
            action = rng.randrange(4)
            if action == 0:
                body[at:at + 1] = bytes([rng.randrange(256)])
            elif action == 1:
                del body[at:at + rng.randint(1, 8)]
            elif action == 2:
                body[at:at] = rng.choice([b"[", b"{", b'"', b"\xff", b"\xc0\x80", b"\xed\xa0\x80",
                                          b"1e999", b"\\u", b"\x00", b"null"])
            else:
                body = body[:at + 1]
        status, _, data = server.request("POST", "/v1/chat/completions", bytes(body))
        expect(status in (200, 400), f"200 or 400, not {status} {data} for {bytes(body)}")
        json.loads(data)
        counts[status] = counts.get(status, 0) + 1
    expect(counts.get(400, 0) > 100, f"most damage to be noticed: {counts}")
    large = json.dumps({"messages": [{"role": "user", "content": "a b " * 1000000}]}).encode()
    status, _, data = server.request("POST", "/v1/chat/completions", large[:4 << 20][:-200])
    same(status, 400, "4 MiB that end in the middle")
    status, _, data = server.request("POST", "/v1/chat/completions", large[:3999000] + b'"}]}')
    same((status, json.loads(data)["error"]["code"]), (400, "context_length_exceeded"),
         "4 MiB of prompt")
    status, _, _ = server.request("POST", "/v1/chat/completions", b" " * ((4 << 20) + 1))
    same(status, 413, "more than 4 MiB")


ROUTES = [("POST", "/v1/chat/completions"), ("POST", "/v1/completions"), ("GET", "/v1/models"),
          ("GET", "/v1/models/x"), ("POST", "/tokenize"), ("POST", "/detokenize"),
          ("POST", "/v1/embeddings")]


def check_keys(program, model):
    """Every route asks for a key; a new file of keys counts from SIGHUP on."""
    first, first_entry = new_key(program, "ada")
    second, second_entry = new_key(program, "bob")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "keys.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"keys": [first_entry]}, file)
        with serving(program, model, "--keys", path, host="0.0.0.0") as server:
            for method, route in ROUTES:
                body = {} if method == "POST" else None
                for headers in ({}, {"authorization": "Bearer " + second}, {"x-api-key": first[:-1]}):
                    status, _, data = server.request(method, route, body, headers)
                    same((status, json.loads(data)["error"]["code"]), (401, "invalid_api_key"),
                         f"{method} {route} with {headers}")
            same(server.request("GET", "/livez")[0], 200, "/livez without a key")
            for headers in ({"authorization": "Bearer " + first}, {"x-api-key": first}):
                same(server.request("GET", "/v1/models", None, headers)[0], 200, "a key")
            check_tenants(server, first)
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"keys": [second_entry]}, file)
            server.process.send_signal(signal.SIGHUP)
            expect(any("keys reloaded" in line for line in server.process.stderr), "the keys to be read again")
            same(server.request("GET", "/v1/models", None, {"x-api-key": first})[0], 401, "a lost key")
            same(server.request("GET", "/v1/models", None, {"x-api-key": second})[0], 200, "a new key")


def check_tenants(server, key):
    """Cached work is seen within a salt only."""
    def cached(salt):
        body = {"messages": [{"role": "user", "content": "a secret plan " * 30}], "max_tokens": 1}
        if salt:
            body["cache_salt"] = salt
        _, headers, data = server.request("POST", "/v1/chat/completions", body, {"x-api-key": key})
        usage = json.loads(data)["usage"]["prompt_tokens_details"]["cached_tokens"]
        same(int(headers["x-hearth-cached-tokens"]), usage, "header and usage")
        return usage

    same(cached("one"), 0, "cached tokens at first")
    expect(cached("one") > 50, "the second time to find them")
    same(cached("two"), 0, "cached tokens of another salt")
    same(cached(""), 0, "cached tokens without a salt")


def check_streams_begin_at_once(server):
    """The head and a comment come before the prompt is read."""
    body = json.dumps({"messages": [{"role": "user", "content": "long " * 3000}], "stream": True,
                       "max_tokens": 4}).encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as sock:
        began = time.monotonic()
        sock.sendall(head(len(body), "connection: close\r\n") + body)
        got = sock.recv(65536)
        first = time.monotonic() - began
        expect(got.startswith(b"HTTP/1.1 200"), f"a head, not {got!r}")
        while True:
            piece = sock.recv(65536)
            if not piece:
                break
            got += piece
        whole = time.monotonic() - began
        print(f"first byte after {first * 1000:.0f} ms, all after {whole:.1f} s")
        expect(first < 0.5 * whole, "a sign of life long before the prompt is read")
    expect(b": accepted" in got and b"x-hearth-computed-tokens" in got, "comments")
    expect(any("[DONE]" in e for e in events(got.split(b"\r\n\r\n", 1)[1])), "the end")


def main(program):
    model = work_model("tiny-oss-o200k.gguf")
    check_keys(program, model)
    with serving(program, model) as server:
        check_bodies(server)
        check_streams_begin_at_once(server)
    print("the server stands")


if __name__ == "__main__":
    main(sys.argv[1])

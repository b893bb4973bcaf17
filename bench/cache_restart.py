#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The next turn of a chat after a restart, with a cache on disk and without: time to the first token by the
length of the chat, bytes written and read a token, and how long the start takes with what is stored."""
import argparse
import http.client
import json
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests" / "server"))
from serving import Server


def start(args, *flags):
    began = time.monotonic()
    server = Server(args.program, args.model, *args.flags, *flags)
    if server.port is None:
        sys.exit("".join(server.log))
    return server, time.monotonic() - began


def chat(words, number):
    """About `words` words of history that no other chat has."""
    text = " ".join(f"w{number * 7919 + i * 31 % 997}" for i in range(words))
    return [{"role": "user", "content": text}, {"role": "assistant", "content": "I see."}]


def first_token(server, messages):
    """(seconds, prompt tokens, cached tokens)"""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    body = {"messages": messages, "max_tokens": 2, "temperature": 0, "stream": True,
            "stream_options": {"include_usage": True}, "ignore_eos": True}
    began = time.monotonic()
    connection.request("POST", "/v1/chat/completions", json.dumps(body),
                       {"content-type": "application/json"})
    took, usage = None, {}
    for line in connection.getresponse():
        if not line.startswith(b"data: {"):
            continue
        event = json.loads(line[6:])
        usage = event.get("usage") or usage
        if took is None and event["choices"] and event["choices"][0]["delta"].keys() - {"role"}:
            took = time.monotonic() - began
    connection.close()
    return took, usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("--words", type=int, nargs="+", default=[50, 200, 800])
    parser.add_argument("--chats", type=int, default=5)
    parser.add_argument("flags", nargs="*", help="further flags of hearth serve, after --")
    args = parser.parse_args()
    again = [{"role": "user", "content": "And what follows from that?"}]
    with tempfile.TemporaryDirectory(dir=pathlib.Path.home()) as folder:
        for words in args.words:
            flags = ("--cache-dir", f"{folder}/{words}")
            server, plain_start = start(args)
            server.stop()
            server, _ = start(args, *flags)
            chats = [chat(words, i) for i in range(args.chats)]
            computed = 0
            cold = []
            for messages in chats:
                took, prompt, cached = first_token(server, messages + again)
                cold.append(took)
                computed += prompt - cached + 2
            time.sleep(4)
            tier = json.loads(server.request("GET", "/status")[2])["tier"]["parts"][0]
            written = tier["bytes_written"] / computed
            _, stop_s = server.stop()
            server, warm_start = start(args, *flags)
            warm = [first_token(server, messages + again) for messages in chats]
            tier = json.loads(server.request("GET", "/status")[2])["tier"]["parts"][0]
            server.stop()
            tokens, found = sum(each[1] for each in warm), sum(each[2] for each in warm)
            cold_s, warm_s = sorted(cold)[len(cold) // 2], sorted(each[0] for each in warm)[len(warm) // 2]
            print(f"{tokens // len(warm):6d} tokens: first token {1000 * cold_s:7.1f} ms cold, "
                  f"{1000 * warm_s:6.1f} ms after a restart ({100 * warm_s / cold_s:.0f} %), "
                  f"{100 * found / tokens:.0f} % of the prompt found; {written:,.0f} bytes written a token "
                  f"computed, {tier['bytes_read'] / max(1, found):,.0f} read a token found; start "
                  f"{plain_start:.2f} s without, {warm_start:.2f} s with it, end {stop_s:.2f} s", flush=True)


if __name__ == "__main__":
    main()

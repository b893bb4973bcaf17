# SPDX-License-Identifier: Apache-2.0
"""A line per request where a person watches: on a terminal, without --log and --quiet, and without a
word of what was asked. usage: request_lines_test.py HEARTH"""
import http.client
import json
import re
import signal
import sys

from serving import expect, same, work_model
from terminal import Terminal

SECRET = "zebrafinch"


def ask(port, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("POST", "/v1/chat/completions", json.dumps(body),
                       {"content-type": "application/json"})
    response = connection.getresponse()
    response.read()
    return response.status


def lines_of(program, *flags):
    """What a server on a terminal prints between its address and its end."""
    command = [program, "serve", "--model", work_model("tiny-oss-o200k.gguf"), "--port", "0", *flags]
    with Terminal(command, 200, 40) as terminal:
        terminal.read_until("tokens of context", 120)
        port = int(re.search(r":(\d+)/v1", terminal.text).group(1))
        start = len(terminal.text)
        hello = [{"role": "user", "content": SECRET}]
        same(ask(port, {"messages": hello, "max_tokens": 4, "ignore_eos": True}), 200, "a chat")
        same(ask(port, {"messages": hello, SECRET: 1}), 400, "a mistake")
        terminal.send(signal.SIGTERM)
        same(terminal.wait(60), 0, "a clean end")
        said = terminal.text[start:]
    expect(SECRET not in said, f"nothing of the requests in {said!r}")
    return [line for line in re.split("[\r\n]+", said) if re.match(r"\d\d:\d\d:\d\d ", line)]


def main(program):
    lines = lines_of(program)
    same(len(lines), 2, f"lines in {lines}")
    expect(re.fullmatch(r"\S+ chat 200  \d+ prompt \(0 cached\) \+ 4 reply tokens, "
                        r"[\d.]+ tok/s, [\d.]+ s", lines[0]), f"the line of a chat in {lines}")
    expect(re.fullmatch(r"\S+ chat 400 unknown_parameter  [\d.]+ s", lines[1]),
           f"the line of a mistake in {lines}")
    same(lines_of(program, "--quiet"), [], "lines with --quiet")
    same(lines_of(program, "--log", "/dev/null"), [], "lines with --log")
    print("a line per request, on terminals only")


if __name__ == "__main__":
    main(sys.argv[1])

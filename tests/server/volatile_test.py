# SPDX-License-Identifier: Apache-2.0
"""Clients that put something new before every system prompt find their cached work all the same, in
every dialect, and are told what was taken out."""
import json
import pathlib
import sys
import tempfile

from serving import expect, same, serving, work_model

SYSTEM = "You are a careful agent. " * 40
HEADER = "x-anthropic-billing-header: cc_version=2.1.177.{0}; cc_entrypoint=cli; cch={1};"


def chat(nonce, role="system"):
    text = HEADER.format(nonce[:3], nonce) + "\n" + SYSTEM
    return "/v1/chat/completions", {"max_tokens": 2, "messages": [
        {"role": role, "content": text}, {"role": "user", "content": "hello"}]}


def developer(nonce):
    return chat(nonce, "developer")


def messages(nonce):
    blocks = [HEADER.format(nonce[:3], nonce), SYSTEM]
    return "/v1/messages", {"max_tokens": 2, "messages": [{"role": "user", "content": "hello"}],
                            "system": [{"type": "text", "text": text} for text in blocks]}


def responses(nonce):
    text = HEADER.format(nonce[:3], nonce) + "\n" + SYSTEM
    return "/v1/responses", {"max_output_tokens": 2, "instructions": text, "input": "hello",
                             "store": False}


def ask(server, form, nonce, salt):
    """(cached tokens, tokens of the prompt, what was taken out)"""
    path, body = form(nonce)
    status, headers, data = server.request("POST", path, {**body, "cache_salt": salt})
    same(status, 200, f"{path}: {data[:300]}")
    usage = json.loads(data)["usage"]
    prompt = usage.get("prompt_tokens", usage.get("input_tokens", 0))
    prompt += usage.get("cache_read_input_tokens", 0) or 0
    return int(headers["x-hearth-cached-tokens"]), prompt, headers.get("x-hearth-neutralised")


def main(program):
    model = work_model("tiny-oss-o200k.gguf")
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log"
        with serving(program, model, "--log", str(log)) as server:
            for form in (chat, developer, messages, responses):
                salt = form.__name__
                cached, prompt, name = ask(server, form, "36ee5", salt)
                same((cached, name), (0, "billing-header"), f"{salt}: at first")
                cached, again, name = ask(server, form, "0aaa9", salt)
                expect(cached > 150, f"{salt}: cached tokens of the second turn: {cached}")
                same((again, name), (prompt, "billing-header"), f"{salt}: the same prompt")
                print(f"{salt}: {cached} of {prompt} prompt tokens cached")
            _, body = chat("36ee5")
            body["messages"][1]["content"] = HEADER.format("1", "2")
            body["messages"][0]["content"] = "plain"
            _, headers, _ = server.request("POST", "/v1/chat/completions", body)
            expect("x-hearth-neutralised" not in headers, "a user's text is left alone")
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        same([line.get("neutralised") for line in lines], 8 * ["billing-header"] + [None], "the log")
    with serving(program, model, "--neutralise", "none") as server:
        ask(server, chat, "36ee5", "s")
        cached, _, name = ask(server, chat, "0aaa9", "s")
        expect(cached < 100 and name is None, f"as it was sent: {cached} {name}")
    print("what changes every time costs nothing")


if __name__ == "__main__":
    main(sys.argv[1])

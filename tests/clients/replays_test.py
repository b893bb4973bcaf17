# SPDX-License-Identifier: Apache-2.0
"""Clients of docs/clients.md that are not run: their requests, kept in replays/ with lengths in place
of texts, are sent to the real server with a script for a model. Every reply must be a success and of
the SDK's types.

    replays_test.py SCRIPTED_SERVE
"""
import json
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "server"), str(HERE.parent / "agents")]

import pydantic
from anthropic.types import Message, MessageTokensCount, RawMessageStreamEvent
from openai.types.chat import ChatCompletion

from recipes import PAGE, recipes
from recorder import Exchange
from replay_test import filled
from serving import expect, same, serving, work_model
from shapes import TASK, strict_events
from strict import leftovers, strictly

EVENT = pydantic.TypeAdapter(RawMessageStreamEvent)
MODEL = "gpt-oss-20b"  # as the page has it
ANSWER = [{"channel": "analysis", "text": "Easy."}, {"channel": "final", "text": "It is Paris."}]


def claude_code(recipe):
    """Where its settings send it, and the headers that they add."""
    env = json.loads(recipe.files[".claude/settings.json"])["env"]
    for name, value in env.items():
        expect(isinstance(value, str), f"{name}: variables are strings")
        if name.endswith("_MODEL"):
            same(value, MODEL, name)
    return env["ANTHROPIC_BASE_URL"], {"authorization": f"Bearer {env['ANTHROPIC_AUTH_TOKEN']}"}


def open_webui(recipe):
    words = dict(word.split("=", 1) for word in recipe.run.split() if "=" in word)
    base, suffix = words["OPENAI_API_BASE_URL"], "/v1"
    expect(base.endswith(suffix), f"its base URL ends in {suffix}: {base}")
    return base.removesuffix(suffix), {"authorization": f"Bearer {words['OPENAI_API_KEY']}"}


SETTINGS = {"claude-code": claude_code, "open-webui": open_webui}


def check_messages_stream(exchange):
    kinds = []
    for name, data in exchange.events():
        if name != "ping":
            event = EVENT.validate_json(json.dumps(data), strict=True)
            same(leftovers(event), [], f"fields unknown to {event.type}")
            kinds.append(event.type)
    same((kinds[0], kinds[-1]), ("message_start", "message_stop"), "the stream's ends")
    expect("content_block_delta" in kinds, f"something is said: {kinds}")


def check_reply(exchange):
    """Of the type that the path promises."""
    path, body = exchange.path.split("?")[0], exchange.json() or {}
    if path == "/v1/models":
        same(len(json.loads(exchange.reply)["data"]), 1, "models")
    elif path == "/v1/messages/count_tokens":
        expect(strictly(MessageTokensCount, exchange.reply).input_tokens > 0, "tokens")
    elif path == "/v1/messages":
        if body.get("stream"):
            check_messages_stream(exchange)
        else:
            strictly(Message, exchange.reply)
    elif body.get("stream"):
        strict_events(exchange)
        same(exchange.events()[-1][1], "[DONE]", "the stream's end")
    else:
        strictly(ChatCompletion, exchange.reply)


def replay(name, server, recipe):
    address, extra = SETTINGS[name](recipe)
    same(address, "http://127.0.0.1:8080", f"{name}: the page's address")
    kept = json.loads((HERE / f"replays/{name}.json").read_text(encoding="utf-8"))
    for row in kept["requests"]:
        body = filled(row.get("body"), [])
        if body:
            same(body["model"], MODEL, f"{name}: its model is the page's")
            body["model"] = server.name
        headers = {**extra, **row.get("headers", {})}
        exchange = Exchange(row["method"], row["path"], headers, json.dumps(body).encode())
        exchange.status, exchange.reply_headers, exchange.reply = server.request(
            row["method"], row["path"], body, headers)
        same(exchange.status, 200, f"{name}: {row['path']}: {exchange.reply[:600]}")
        check_reply(exchange)
    print(f"ok      {kept['client']}: {len(kept['requests'])} requests")


def main(program):
    page = recipes(PAGE.read_text(encoding="utf-8"))
    with tempfile.NamedTemporaryFile("w", suffix=".json") as script:
        json.dump({"task": TASK[:30], "turns": 8 * [ANSWER], "otherwise": ANSWER}, script)
        script.flush()
        with serving(program, work_model("tiny-oss-o200k.gguf"), "--script", script.name) as server:
            for name in SETTINGS:
                replay(name, server, page[name])


if __name__ == "__main__":
    main(sys.argv[1])

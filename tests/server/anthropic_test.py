# SPDX-License-Identifier: Apache-2.0
"""hearth serve as the anthropic package sees it: messages, streams, tools, thinking, counts and
errors. On a real small model and on gpt-oss's architecture with noise for weights."""
import json
import random
import sys

import anthropic
import pydantic
from anthropic.types import Message, MessageTokensCount, RawMessageStreamEvent

from serving import expect, same, serving, work_model
from strict import leftovers, strictly

HELLO = [{"role": "user", "content": "Say hello to Ada, please."}]
TOOL = {"name": "get_weather", "description": "The weather of a city.",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 9}},
                         "required": ["city"], "additionalProperties": False}}
EVENT = pydantic.TypeAdapter(RawMessageStreamEvent)


def client(server, key="none"):
    return anthropic.Anthropic(base_url=server.address, api_key=key, max_retries=0, timeout=300)


def whole(server, body):
    status, headers, data = server.request("POST", "/v1/messages", body)
    same(status, 200, f"{body}: {data[:300]}")
    return strictly(Message, data), headers


def events(server, body):
    """Every event of a stream, strictly of the SDK's types, with pings left out."""
    status, headers, data = server.request("POST", "/v1/messages", {**body, "stream": True})
    same(status, 200, f"{body}: {data[:300]}")
    expect(headers["content-type"].startswith("text/event-stream"), f"a stream, not {headers}")
    found = []
    for block in data.decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n") if line[:1] not in ("", ":"))
        if not lines or lines["event"] == "ping":
            continue
        event = EVENT.validate_json(lines["data"], strict=True)
        same(event.type, lines["event"], "the name of an event")
        same(leftovers(event), [], f"fields unknown to {event.type}")
        found.append(event)
    return found


def counted(blocks, end, usage):
    return blocks, end.stop_reason, end.stop_sequence, usage.output_tokens


def joined(found):
    """What the events say, as content of a whole message would."""
    same((found[0].type, found[-1].type), ("message_start", "message_stop"), "first and last")
    blocks, last = [], None
    for event in found:
        if event.type == "content_block_start":
            same(event.index, len(blocks), "the index of a block")
            blocks.append(event.content_block.model_dump())
            blocks[-1]["json"] = ""
        elif event.type == "content_block_delta":
            delta = event.delta.model_dump()
            kind = delta.pop("type")
            if kind == "input_json_delta":
                blocks[event.index]["json"] += delta["partial_json"]
            else:
                for name, text in delta.items():
                    blocks[event.index][name] += text
        elif event.type == "message_delta":
            last = event
    for block in blocks:
        text = block.pop("json")
        if block["type"] == "tool_use":
            try:
                block["input"] = json.loads(text) if text else {}
            except ValueError:
                block["input"] = {"_incomplete": text}
            block.pop("id")
    return counted(blocks, last.delta, last.usage)


def told(message):
    blocks = [block.model_dump() for block in message.content]
    for block in blocks:
        if block["type"] == "tool_use":
            block.pop("id")
    return counted(blocks, message, message.usage)


def check_hello(server, content=None):
    api = client(server)
    reply = api.messages.create(model=server.name, messages=HELLO, max_tokens=24,
                                system="Be brief.", extra_body={"temperature": 0})
    text = "".join(block.text for block in reply.content if block.type == "text")
    if content:
        expect(content in text, f"{content!r} in {reply}")
    with api.messages.stream(model=server.name, messages=HELLO, max_tokens=24,
                             system="Be brief.", extra_body={"temperature": 0}) as stream:
        pieces = "".join(stream.text_stream)
        final = stream.get_final_message()
    same(pieces, text, "text of the stream")
    same(told(final), told(reply), "the SDK's own accumulation")
    total = [m.usage.input_tokens + m.usage.cache_read_input_tokens for m in (reply, final)]
    same(total[0], total[1], "tokens of the prompt")
    count = api.messages.count_tokens(model=server.name, messages=HELLO, system="Be brief.")
    same(count.input_tokens, total[0], "counted and used tokens")
    _, _, raw = server.request("POST", "/v1/messages/count_tokens", {"messages": HELLO})
    strictly(MessageTokensCount, raw)


def random_body(rng, with_tools):
    words = ["tell", "me", "a", "story", "about", "Zoë", "and", "7", "owls\n", "🦉", "please", "?"]
    body = {"messages": [{"role": "user", "content": " ".join(rng.choices(words, k=8))}],
            "seed": rng.randrange(1 << 30), "temperature": rng.choice([0, 0.7, 1]),
            "max_tokens": rng.randint(1, 32)}
    if rng.random() < 0.3:
        body["stop_sequences"] = rng.choice([["e"], ["the", " a"], ["\n"]])
    if rng.random() < 0.5:
        body["thinking"] = rng.choice([{"type": "adaptive"}, {"type": "disabled"},
                                       {"type": "enabled", "budget_tokens": rng.randint(1, 8)}])
    if with_tools and rng.random() < 0.4:
        body["tools"] = [TOOL]
        body["tool_choice"] = rng.choice([{"type": "auto"}, {"type": "any"}, {"type": "none"},
                                          {"type": "tool", "name": "get_weather"}])
    return body


def check_streams_equal_wholes(server, count, seed, with_tools):
    rng = random.Random(seed)
    kinds = set()
    for _ in range(count):
        body = random_body(rng, with_tools)
        one, _ = whole(server, body)
        same(joined(events(server, body)), told(one), f"streamed and whole of {body}")
        kinds |= {block.type for block in one.content} | {one.stop_reason}
    return kinds


def check_tools(server):
    """A call that is asked for comes, is of its schema, and its result goes back in."""
    api = client(server)
    ask = [{"role": "user", "content": "What is the weather in Rome?"}]
    reply = api.messages.create(model=server.name, messages=ask, max_tokens=200, tools=[TOOL],
                                tool_choice={"type": "tool", "name": "get_weather"},
                                thinking={"type": "enabled", "budget_tokens": 8},
                                extra_body={"seed": 1})
    calls = [block for block in reply.content if block.type == "tool_use"]
    same((len(calls) > 0, reply.stop_reason), (True, "tool_use"), f"a call in {reply}")
    same((calls[0].name, list(calls[0].input)), ("get_weather", ["city"]), "the call")
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": "Sunny, 25 degrees."}
               for call in calls]
    after = api.messages.create(
        model=server.name, max_tokens=40, tools=[TOOL], tool_choice={"type": "none"},
        messages=[*ask, {"role": "assistant", "content": reply.content},
                  {"role": "user", "content": results}])
    expect(after.usage.input_tokens + after.usage.cache_read_input_tokens >
           reply.usage.input_tokens + reply.usage.cache_read_input_tokens, "a longer prompt")
    expect(all(block.type != "tool_use" for block in after.content), f"no call in {after}")


def check_schema(server):
    reply = client(server).messages.create(
        model=server.name, messages=HELLO, max_tokens=300, extra_body={
            "seed": 3, "thinking": {"type": "disabled"}, "output_config": {"format": {
                "type": "json_schema", "schema": {
                    "type": "object", "properties": {"n": {"type": "integer", "maximum": 9,
                                                           "minimum": 0}},
                    "required": ["n"], "additionalProperties": False}}}})
    text = "".join(block.text for block in reply.content if block.type == "text")
    same(list(json.loads(text)), ["n"], "an answer of the schema")


def check_mistakes(server):
    bad = [({"max_tokens": None}, 400, "max_tokens"), ({"temperatur": 1}, 400, "temperatur"),
           ({"messages": []}, 400, "messages"), ({"container": "c"}, 400, "container"),
           ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, 400,
            "messages[0].content[0].type"),
           ({"max_tokens": 1 << 26}, 400, "prompt is too long"), ({"model": "gpt-7"}, 404, "model"),
           ({"tools": [{"type": "bash_20250124", "name": "bash"}]}, 400, "tools[0].type"),
           ({"thinking": {"type": "enabled"}}, 400, "thinking.budget_tokens")]
    for change, status, names in bad:
        body = {"messages": HELLO, "max_tokens": 4, **change}
        found, _, data = server.request("POST", "/v1/messages", body)
        error = json.loads(data)
        same((found, error["type"]), (status, "error"), f"{change} got {data}")
        same(set(error["error"]), {"type", "message"}, "members of an error")
        expect(names in error["error"]["message"], f"{names} in {data}")
    try:
        client(server).messages.create(model="gpt-7", messages=HELLO, max_tokens=4)
        expect(False, "an unknown model answered")
    except anthropic.NotFoundError as error:
        same(error.body["error"]["type"], "not_found_error", "the type of the error")


def main(program):
    with serving(program, work_model("smollm2.gguf"), "--context", "2048") as server:
        check_hello(server, "Ada")
        check_schema(server)
        check_mistakes(server)
        check_streams_equal_wholes(server, 3, seed=1, with_tools=False)
    with serving(program, work_model("tiny-oss-o200k.gguf")) as server:
        check_hello(server)
        check_tools(server)
        check_schema(server)
        check_mistakes(server)
        kinds = check_streams_equal_wholes(server, 60, seed=2, with_tools=True)
        expect({"thinking", "text", "tool_use", "max_tokens"} <= kinds, f"every kind, not {kinds}")
    print("messages are as the anthropic package wants them")


if __name__ == "__main__":
    main(sys.argv[1])

# SPDX-License-Identifier: Apache-2.0
"""hearth serve's /v1/responses as the openai package sees it: streams, reasoning, calls, what is
stored and for whom. On a real small model and on gpt-oss's architecture with noise for weights."""
import json
import pathlib
import random
import re
import sqlite3
import sys
import tempfile
import urllib.request

import openai
import pydantic
from openai.types.responses import Response, ResponseStreamEvent

from serving import expect, new_key, same, serving, work_model
from strict import leftovers, strictly

HELLO = "Say hello to Ada, please."
TOOL = {"type": "function", "name": "get_weather", "description": "The weather of a city.",
        "strict": True, "parameters": {
            "type": "object", "properties": {"city": {"type": "string", "maxLength": 9}},
            "required": ["city"], "additionalProperties": False}}
AGENT_TOOLS = [
    {"type": "custom", "name": "patch", "description": "Patches."},
    {"type": "namespace", "name": "crew", "description": "Others.", "tools": [
        {"type": "function", "name": "call", "strict": True, "parameters": {
            "type": "object", "properties": {"who": {"enum": ["a", "b"]}}, "required": ["who"],
            "additionalProperties": False}}]},
    {"type": "web_search"}]
EVENT = pydantic.TypeAdapter(ResponseStreamEvent)


def client(server, key="none"):
    return openai.OpenAI(base_url=server.address + "/v1", api_key=key, max_retries=0, timeout=300)


def refused(call, kind, names):
    try:
        call()
    except kind as error:
        expect(names in str(error), f"{names} in {error}")
        return
    expect(False, f"no {kind.__name__} that names {names}")


def whole(server, body):
    status, _, data = server.request("POST", "/v1/responses", body)
    same(status, 200, f"{body}: {data[:300]}")
    return strictly(Response, data)


def events(server, body):
    """Every event of a stream, strictly of the SDK's types."""
    status, _, data = server.request("POST", "/v1/responses", {**body, "stream": True})
    same(status, 200, f"{body}: {data[:300]}")
    found = []
    for block in data.decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n") if line[:1] not in ("", ":"))
        if not lines:
            continue
        event = EVENT.validate_json(lines["data"], strict=True)
        same((event.type, event.sequence_number), (lines["event"], len(found)), "name and number")
        same(leftovers(event), [], f"fields unknown to {event.type}")
        found.append(event)
    return found


def told(response):
    """What a response says, without ids and times."""
    items = []
    for item in response.output:
        item = item.model_dump()
        for name in ("id", "call_id"):
            item.pop(name, None)
        items.append(item)
    details = response.incomplete_details and response.incomplete_details.reason
    return items, response.status, details, response.usage.output_tokens


def joined(found):
    """The response of the last event, checked against what the deltas before it add up to."""
    same([event.type for event in found[:2]], ["response.created", "response.in_progress"], "begin")
    texts, final = {}, found[-1].response
    for event in found:
        if event.type.endswith(".delta"):
            texts[event.output_index] = texts.get(event.output_index, "") + event.delta
        if event.type == "response.output_item.done":
            same(event.item, final.output[event.output_index], "an item when it was done")
    for index, item in enumerate(final.output):
        text = {"function_call": lambda: item.arguments, "custom_tool_call": lambda: item.input}.get(
            item.type, lambda: item.content[0].text)()
        same(texts.get(index, ""), text, f"the deltas of {item}")
    return told(final)


def check_hello(server, content=None):
    api = client(server)
    given = {"model": server.name, "input": HELLO, "temperature": 0, "max_output_tokens": 24}
    reply = api.responses.create(**given, instructions="Be brief.", metadata={"a": "b"})
    if content:
        expect(content in reply.output_text, f"{content!r} in {reply}")
    with api.responses.stream(**given, instructions="Be brief.", metadata={"a": "b"}) as stream:
        final = list(stream)[-1].response
    same(told(final)[1:], told(reply)[1:], "the SDK's own accumulation")
    same(final.output_text, reply.output_text, "text of the stream")
    again = api.responses.retrieve(reply.id)
    same(again.model_dump(), reply.model_dump(), "the stored response")
    same(again.metadata, {"a": "b"}, "its metadata")
    listed = api.responses.input_items.list(reply.id).data
    same([item.content[0].text for item in listed], [HELLO], "the stored input")
    counted = api.responses.input_tokens.count(model=server.name, input=HELLO,
                                               instructions="Be brief.")
    same(counted.input_tokens, reply.usage.input_tokens, "counted and used tokens")
    refused(lambda: api.responses.cancel(reply.id), openai.BadRequestError, "ended")
    api.responses.delete(reply.id)
    refused(lambda: api.responses.retrieve(reply.id), openai.NotFoundError, reply.id)
    refused(lambda: api.responses.delete(reply.id), openai.NotFoundError, reply.id)


def check_conversation(server):
    """Naming the previous response is the same as sending everything again."""
    api = client(server)
    given = {"model": server.name, "max_output_tokens": 40, "temperature": 0}
    first = api.responses.create(input="My name is Ada.", **given)
    second = api.responses.create(input="What is my name?", previous_response_id=first.id, **given)
    items = [{"role": "user", "content": "My name is Ada."},
             *[item.model_dump(exclude_none=True) for item in first.output],
             {"role": "user", "content": "What is my name?"}]
    by_hand = api.responses.create(input=items, store=False, **given)
    same(told(second), told(by_hand), "by name and by hand")
    same(second.usage.input_tokens, by_hand.usage.input_tokens, "tokens of the prompt")
    same(second.previous_response_id, first.id, "the name of the one before")
    refused(lambda: api.responses.retrieve(by_hand.id), openai.NotFoundError, by_hand.id)
    third = api.responses.create(input="Again?", previous_response_id=second.id, **given)
    expect(third.usage.input_tokens > second.usage.input_tokens, "a longer prompt")
    api.responses.delete(first.id)
    refused(lambda: api.responses.create(input="x", previous_response_id=third.id, **given),
            openai.NotFoundError, third.id)


def check_tools(server):
    api = client(server)
    given = {"model": server.name, "max_output_tokens": 100, "tools": [TOOL]}
    for seed in range(40):  # noise may talk until its tokens are over before it calls
        reply = api.responses.create(
            input="The weather in Rome?", **given, extra_body={"seed": seed, "max_output_tokens": 200},
            tool_choice={"type": "function", "name": "get_weather"}, reasoning={"effort": "none"})
        if reply.status == "completed":
            break
    calls = [item for item in reply.output if item.type == "function_call"]
    same((len(calls) > 0, reply.status), (True, "completed"), f"a call in {reply}")
    same((calls[0].name, list(json.loads(calls[0].arguments))), ("get_weather", ["city"]), "it")
    results = [{"type": "function_call_output", "call_id": call.call_id, "output": "Sunny."}
               for call in calls]
    after = api.responses.create(input=results, previous_response_id=reply.id, tool_choice="none",
                                 **given)
    expect(all(item.type != "function_call" for item in after.output), f"no call in {after}")


def check_schema(server):
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 9}},
              "required": ["n"], "additionalProperties": False}
    reply = client(server).responses.create(
        model=server.name, input=HELLO, max_output_tokens=300, reasoning={"effort": "none"},
        text={"format": {"type": "json_schema", "name": "n", "schema": schema, "strict": True}},
        extra_body={"seed": 3})
    same(list(json.loads(reply.output_text)), ["n"], "an answer of the schema")


def random_body(rng, with_tools):
    words = ["tell", "me", "a", "story", "about", "Zoë", "and", "7", "owls\n", "🦉", "please", "?"]
    body = {"input": " ".join(rng.choices(words, k=8)), "seed": rng.randrange(1 << 30),
            "temperature": rng.choice([0, 0.7, 1]), "max_output_tokens": rng.randint(1, 32),
            "store": rng.random() < 0.5}
    if rng.random() < 0.4:
        body["reasoning"] = {"effort": rng.choice(["none", "low", "high"]), "summary": "auto"}
        body["include"] = ["reasoning.encrypted_content"]
    if with_tools and rng.random() < 0.4:
        body["tools"] = [TOOL]
        body["tool_choice"] = rng.choice(["auto", "required", "none",
                                          {"type": "function", "name": "get_weather"}])
    if with_tools and rng.random() < 0.2:
        body["tools"] = AGENT_TOOLS
        body["tool_choice"] = "required"
    if rng.random() < 0.3:
        body["include"] = [*body.get("include", []), "message.output_text.logprobs"]
        body["top_logprobs"] = rng.choice([0, 2])
    return body


def check_streams_equal_wholes(server, count, seed, with_tools):
    rng = random.Random(seed)
    kinds = set()
    for _ in range(count):
        body = random_body(rng, with_tools)
        one = whole(server, body)
        same(joined(events(server, body)), told(one), f"streamed and whole of {body}")
        kinds |= {item.type for item in one.output} | {one.status}
    return kinds


def check_agents_tools(server):
    """Tools that are no plain functions: called, answered, and told as the client named them."""
    kinds = set()
    for seed in range(60):
        body = {"input": "Do something.", "tools": AGENT_TOOLS, "tool_choice": "required",
                "max_output_tokens": 200, "seed": seed, "reasoning": {"effort": "none"}}
        reply = whole(server, body)
        same([tool.type for tool in reply.tools], ["custom", "namespace"], "tools the model has")
        for item in reply.output:
            if item.type == "function_call" and reply.status == "completed":
                same((item.namespace, item.name), ("crew", "call"), "a namespace's call")
                expect(json.loads(item.arguments)["who"] in ("a", "b"), f"arguments of {item}")
            kinds.add(item.type)
        if reply.status == "completed":
            results = [{"type": item.type + "_output", "call_id": item.call_id, "output": "Done."}
                       for item in reply.output if item.type.endswith("_call")]
            whole(server, {**body, "input": results, "previous_response_id": reply.id})
        if {"function_call", "custom_tool_call"} <= kinds:
            return
    expect(False, f"both kinds of calls in {kinds}")


def check_logprobs(server):
    body = {"input": HELLO, "max_output_tokens": 30, "temperature": 0, "top_logprobs": 3,
            "reasoning": {"effort": "none"}, "include": ["message.output_text.logprobs"]}
    parts = [part for item in whole(server, body).output if item.type == "message"
             for part in item.content]
    expect(parts and parts[0].logprobs, f"logprobs in {parts}")
    text = b"".join(bytes(one.bytes) for one in parts[0].logprobs).decode(errors="replace")
    expect(parts[0].text.startswith(text[:5]), f"{text!r} is {parts[0].text!r}")
    for one in parts[0].logprobs:
        same((one.logprob <= 0, len(one.top_logprobs)), (True, 3), f"{one}")
        expect(one.top_logprobs[0].logprob >= one.logprob, "the likeliest first")
    told = [one for event in events(server, body) if event.type == "response.output_text.delta"
            for one in event.logprobs]
    same([(one.token, one.logprob) for one in told],
         [(one.token, one.logprob) for one in parts[0].logprobs], "logprobs of the stream")


def check_background(server):
    api = client(server)
    given = {"model": server.name, "max_output_tokens": 400, "temperature": 1, "background": True}
    made = api.responses.create(input=HELLO, **given)
    same((made.status, made.background, made.output), ("queued", True, []), "the first answer")
    polled = api.responses.retrieve(made.id)
    while polled.status in ("queued", "in_progress"):
        polled = api.responses.retrieve(made.id)
    expect(polled.status in ("completed", "incomplete") and polled.usage.output_tokens > 0,
           f"an end: {polled}")
    # A stream that is left and gone back to tells the same events once each.
    stream = api.responses.create(input=HELLO, stream=True, **given)
    seen = [event for event, _ in zip(stream, range(5))]
    stream.close()
    resumed = list(api.responses.retrieve(seen[0].response.id, stream=True,
                                          starting_after=seen[-1].sequence_number))
    same([event.sequence_number for event in seen + resumed], list(range(len(seen + resumed))), "all")
    stored = api.responses.retrieve(seen[0].response.id)
    same(resumed[-1].response.model_dump(), stored.model_dump(), "the end of the stream and GET")
    refused(lambda: api.responses.cancel(stored.id), openai.BadRequestError, "ended")
    plain = api.responses.create(input=HELLO, model=server.name, max_output_tokens=2)
    status, _, data = server.request("GET", f"/v1/responses/{plain.id}?stream=true")
    same((status, "stream" in data.decode()), (400, True), "events of one that kept none")
    # Cancelled while it runs, and it stays so.
    long = api.responses.create(input=HELLO, **{**given, "max_output_tokens": 1500})
    refused(lambda: api.responses.delete("resp_none"), openai.NotFoundError, "resp_none")
    try:
        cancelled = api.responses.cancel(long.id)
        same(cancelled.status, "cancelled", "the answer to cancel")
        same(api.responses.retrieve(long.id).status, "cancelled", "and later")
        same(api.responses.cancel(long.id).status, "cancelled", "and again")
    except openai.BadRequestError as error:
        expect("ended" in str(error), f"it was over already: {error}")
        return False
    api.responses.delete(long.id)
    refused(lambda: api.responses.retrieve(long.id), openai.NotFoundError, long.id)
    return True


def check_mistakes(server):
    for change, names in [({"background": True, "store": False}, "background"),
                          ({"truncation": "auto"}, "truncation"),
                          ({"input": [{"type": "reasoning", "id": "r", "summary": [],
                                       "encrypted_content": "hearth1.AAAA"}]}, "encrypted_content"),
                          ({"top_logprobs": 3}, "top_logprobs"),
                          ({"input": None}, "input"), ({"inputs": "x"}, "inputs"),
                          ({"tools": [{"type": "file_search"}]}, "tools[0].type"),
                          ({"max_output_tokens": 1 << 26}, "maximum context length")]:
        status, _, data = server.request("POST", "/v1/responses", {"input": HELLO, **change})
        error = json.loads(data)["error"]
        same((status, set(error)), (400, {"message", "type", "param", "code"}), f"{change}: {data}")
        expect(names in error["message"], f"{names} in {data}")
    for method, path in [("GET", "/v1/responses/resp_x"), ("DELETE", "/v1/responses/resp_x"),
                         ("GET", "/v1/responses/resp_x/input_items")]:
        same(server.request(method, path)[0], 404, path)


def check_tenants(program, model):
    """A key sees its own responses alone, also after a restart from the file."""
    with tempfile.TemporaryDirectory() as folder:
        keys, entries = zip(*(new_key(program, name) for name in ("anna", "bert")))
        path = pathlib.Path(folder) / "keys.json"
        path.write_text(json.dumps({"keys": list(entries)}))
        flags = ("--keys", str(path), "--responses", str(pathlib.Path(folder) / "responses.db"))
        with serving(program, model, *flags) as server:
            anna, bert = client(server, keys[0]), client(server, keys[1])
            made = anna.responses.create(model=server.name, input="secret", max_output_tokens=4)
            same(anna.responses.retrieve(made.id).id, made.id, "her own")
            for call in (lambda: bert.responses.retrieve(made.id),
                         lambda: bert.responses.delete(made.id),
                         lambda: bert.responses.cancel(made.id),
                         lambda: bert.responses.input_items.list(made.id),
                         lambda: bert.responses.create(model=server.name, input="x",
                                                       previous_response_id=made.id)):
                refused(call, openai.NotFoundError, made.id)
            refused(lambda: client(server).responses.retrieve(made.id), openai.AuthenticationError,
                    "key")
        with serving(program, model, *flags) as server:
            kept = client(server, keys[0]).responses.retrieve(made.id)
            same(kept.model_dump(), made.model_dump(), "the response after a restart")


def check_store_failure(program, model):
    """A reply that could not be stored is the client's all the same, and everybody hears of it."""
    with tempfile.TemporaryDirectory() as folder:
        path, log = pathlib.Path(folder) / "responses.db", pathlib.Path(folder) / "log"
        flags = ("--responses", str(path), "--log", str(log), "--control-port", "0")
        with serving(program, model, *flags) as server:
            body = {"input": HELLO, "max_output_tokens": 4}
            status, headers, _ = server.request("POST", "/v1/responses", body)
            same((status, "x-hearth-warning" in headers), (200, False), "as long as all is well")
            with sqlite3.connect(path) as other:
                other.execute("DROP TABLE responses")
            status, headers, data = server.request("POST", "/v1/responses", body)
            strictly(Response, data)
            same((status, headers.get("x-hearth-warning")), (200, "response_not_stored"), "a header")
            _, _, data = server.request("POST", "/v1/responses", {**body, "stream": True})
            expect(b": x-hearth-warning: response_not_stored" in data, "a comment in a stream")
            control = re.search(r"control on (\S+)", "".join(server.log)).group(1)
            with urllib.request.urlopen(control + "/metrics") as page:
                expect(b"hearth_response_store_failures_total 2" in page.read(), "a metric")
        errors = [json.loads(line)["error"] for line in log.read_text().splitlines()]
        same(errors, ["", "response_not_stored", "response_not_stored"], "the log")


def main(program):
    with serving(program, work_model("smollm2.gguf"), "--context", "2048") as server:
        check_hello(server, "Ada")
        check_conversation(server)
        check_schema(server)
        check_mistakes(server)
        check_logprobs(server)
        check_background(server)
        check_streams_equal_wholes(server, 3, seed=1, with_tools=False)
    with serving(program, work_model("tiny-oss-o200k.gguf")) as server:
        check_hello(server)
        check_conversation(server)
        check_tools(server)
        check_agents_tools(server)
        expect(any(check_background(server) for _ in range(5)), "one that was cancelled in time")
        check_schema(server)
        check_mistakes(server)
        kinds = check_streams_equal_wholes(server, 60, seed=2, with_tools=True)
        expect({"reasoning", "message", "function_call", "incomplete"} <= kinds, f"not all: {kinds}")
    check_tenants(program, work_model("tiny-oss-o200k.gguf"))
    check_store_failure(program, work_model("tiny-oss-o200k.gguf"))
    print("responses are as the openai package wants them")


if __name__ == "__main__":
    main(sys.argv[1])

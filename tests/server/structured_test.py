# SPDX-License-Identifier: Apache-2.0
"""Shapes of replies over HTTP: schemas, grammars, tools and their choice, choices and
log-probabilities. Noise for weights writes the replies: what is right is right by enforcement."""
import json
import re
import sys

import jsonschema
import openai
from openai.types.chat import ChatCompletion

from chat_test import client, joined, streamed, told, whole
from serving import expect, same, serving, work_model
from strict import strictly

ASK = [{"role": "user", "content": "Report on the weather in Uppsala."}]
SCHEMA = {
    "type": "object", "additionalProperties": False, "required": ["city", "sky", "degrees", "wet"],
    "properties": {
        "city": {"enum": ["Uppsala", "Umeå"]}, "sky": {"type": "string", "maxLength": 5},
        "degrees": {"type": "integer", "minimum": -40, "maximum": 40},
        "wet": {"type": "array", "items": {"type": "boolean"}, "maxItems": 3},
    },
}
TOOLS = [
    {"type": "function", "function": {
        "name": "get_weather", "description": "The weather of a city",
        "parameters": {"type": "object", "additionalProperties": False, "required": ["city"],
                       "properties": {"city": {"enum": ["Uppsala", "Visby"]},
                                      "days": {"type": "integer", "minimum": 1, "maximum": 7}}}}},
    {"type": "function", "function": {
        "name": "wait", "parameters": {"type": "object", "additionalProperties": False,
                                       "properties": {"minutes": {"enum": [1, 5, 10]}}}}},
]
PARAMETERS = {t["function"]["name"]: t["function"]["parameters"] for t in TOOLS}
FORMAT = {"type": "json_schema", "json_schema": {"name": "report", "strict": True, "schema": SCHEMA}}


def ask(server, **more):
    body = {"messages": ASK, "max_tokens": 400, "max_reasoning_tokens": 6, **more}
    reply, _ = whole(server, body)
    return reply


def check_answers(server):
    """Every way to ask for a shape, each with some seeds, streamed and whole."""
    ways = [
        ({"response_format": FORMAT}, lambda t: jsonschema.validate(json.loads(t), SCHEMA)),
        ({"guided_json": SCHEMA}, lambda t: jsonschema.validate(json.loads(t), SCHEMA)),
        ({"structured_outputs": {"json": json.dumps(SCHEMA)}},
         lambda t: jsonschema.validate(json.loads(t), SCHEMA)),
        ({"guided_regex": "(a|b)[0-9]{2,4}"},
         lambda t: expect(re.fullmatch("(a|b)[0-9]{2,4}", t), f"{t!r} matches")),
        ({"guided_choice": ["north", "south", "söder"]},
         lambda t: expect(t in ("north", "south", "söder"), f"{t!r} is a choice")),
        ({"structured_outputs": {"grammar": 'start: "x" "y"+ "z"'}},
         lambda t: expect(re.fullmatch("xy+z", t), f"{t!r} is of the grammar")),
    ]
    whole_ones = 0
    for way, is_right in ways:
        for seed in range(3):
            body = {"messages": ASK, "max_tokens": 400, "max_reasoning_tokens": 4, "seed": seed, **way}
            reply, _ = whole(server, body)
            same(joined(streamed(server, body)), told(reply), f"streamed and whole of {way}")
            if reply.choices[0].finish_reason == "stop":
                is_right(reply.choices[0].message.content)
                whole_ones += 1
    expect(whole_ones >= 15, f"most of 18 answers to come to their end, not {whole_ones}")
    reply = ask(server, response_format={"type": "json_object"}, seed=1, max_tokens=60)
    expect(reply.choices[0].message.content.lstrip().startswith("{"), f"an object in {reply}")


def calls_of(reply):
    calls = reply.choices[0].message.tool_calls or []
    for call in calls:
        if reply.choices[0].finish_reason == "tool_calls":
            jsonschema.validate(json.loads(call.function.arguments), PARAMETERS[call.function.name])
    return [c.function.name for c in calls]


def check_tools(server):
    for seed in range(4):
        required = ask(server, tools=TOOLS, tool_choice="required", seed=seed)
        expect(calls_of(required), f"a call in {required}")
        same(required.choices[0].finish_reason, "tool_calls", "why it ended")
        named = ask(server, tools=TOOLS, seed=seed,
                    tool_choice={"type": "function", "function": {"name": "wait"}})
        same(set(calls_of(named)), {"wait"}, "calls of the one named")
        single = ask(server, tools=TOOLS, tool_choice="required", parallel_tool_calls=False, seed=seed)
        same(len(calls_of(single)), 1, "calls without parallel ones")
        none = ask(server, tools=TOOLS, tool_choice="none", seed=seed, max_tokens=30)
        same(calls_of(none), [], "calls when there may be none")
        calls_of(ask(server, tools=TOOLS, seed=seed, max_tokens=60))
        body = {"messages": ASK, "max_tokens": 400, "max_reasoning_tokens": 6, "tools": TOOLS,
                "tool_choice": "required", "seed": seed}
        same(joined(streamed(server, body)), told(whole(server, body)[0]), "streamed calls")


def check_round_trip(server):
    """A call, its result, and the answer: as agents do it."""
    api = client(server)
    messages = list(ASK)
    first = api.chat.completions.create(
        model=server.name, messages=messages, tools=TOOLS, tool_choice="required", seed=3,
        max_completion_tokens=400, extra_body={"max_reasoning_tokens": 4})
    message = first.choices[0].message
    messages.append(message.model_dump(exclude_none=True))
    for call in message.tool_calls:
        messages.append({"role": "tool", "tool_call_id": call.id, "content": '{"degrees": 4}'})
    second = api.chat.completions.create(
        model=server.name, messages=messages, tools=TOOLS, tool_choice="none", seed=3,
        max_completion_tokens=200, response_format=FORMAT, extra_body={"max_reasoning_tokens": 4})
    if second.choices[0].finish_reason == "stop":
        jsonschema.validate(json.loads(second.choices[0].message.content), SCHEMA)
    expect(second.usage.prompt_tokens > first.usage.prompt_tokens, "a longer second prompt")


def check_reasoning(server):
    for effort in ("none", "minimal", "low", "medium", "high", "xhigh"):
        reply = ask(server, reasoning_effort=effort, seed=1, max_tokens=20)
        if effort == "none":
            same(told(reply)[1], "", "thoughts when there may be none")
    free = ask(server, seed=5, max_tokens=40, max_reasoning_tokens=12)
    details = free.usage.completion_tokens_details
    expect(details.reasoning_tokens <= 12, f"at most 12 thoughts in {free.usage}")


def check_choices(server):
    several = ask(server, n=3, seed=4, max_tokens=20, temperature=1)
    same([c.index for c in several.choices], [0, 1, 2], "indices")
    expect(len({told(several, i)[:2] for i in range(3)}) == 3, f"three replies in {several}")
    same([told(ask(server, n=3, seed=4, max_tokens=20, temperature=1), i) for i in range(3)],
         [told(several, i) for i in range(3)], "the same seed")
    same(told(ask(server, seed=4, max_tokens=20, temperature=1)), told(several), "n does not matter")
    expect(several.usage.completion_tokens <= 60, "usage of all")


def check_logprobs(server):
    body = {"messages": ASK, "max_tokens": 12, "logprobs": True, "top_logprobs": 3, "temperature": 0,
            "reasoning_effort": "none"}
    _, _, raw = server.request("POST", "/v1/chat/completions", body)
    reply = strictly(ChatCompletion, raw)
    entries = reply.choices[0].logprobs.content
    text = b"".join(bytes(e.bytes) for e in entries).decode("utf-8", "replace")
    same(text, reply.choices[0].message.content, "the tokens spell the answer")
    for entry in entries:
        same(len(entry.top_logprobs), 3, "alternatives")
        tops = [t.logprob for t in entry.top_logprobs]
        expect(tops == sorted(tops, reverse=True) and entry.logprob <= 0, f"order in {entry}")
    streamed_entries = [e for c in streamed(server, body) for choice in c.choices
                        if choice.logprobs for e in choice.logprobs.content]
    same([(e.token, e.logprob) for e in streamed_entries], [(e.token, e.logprob) for e in entries],
         "streamed log-probabilities")
    # A bias of -100 on every likely token changes what is said; on the first, it never comes.
    _, _, raw = server.request("POST", "/tokenize", {"prompt": entries[0].token,
                                                     "add_special_tokens": False})
    banned = json.loads(raw)["tokens"]
    if len(banned) == 1:
        other = ask(server, temperature=0, max_tokens=12, reasoning_effort="none",
                    logit_bias={str(banned[0]): -100})
        expect(not other.choices[0].message.content.startswith(entries[0].token), "a banned token")


def check_completions(server):
    api = client(server)
    one = api.completions.create(model=server.name, prompt="Once upon", max_tokens=8, temperature=0)
    expect(one.object == "text_completion" and one.usage.completion_tokens <= 8, f"{one}")
    many = api.completions.create(model=server.name, prompt=["Once upon", "Two"], n=2, max_tokens=6,
                                  seed=1, logprobs=2)
    same([c.index for c in many.choices], [0, 1, 2, 3], "choices of two prompts")
    for choice in many.choices:
        same(len(choice.logprobs.tokens), len(choice.logprobs.token_logprobs), "parallel lists")
    stream = api.completions.create(model=server.name, prompt="Once upon", max_tokens=8,
                                    temperature=0, stream=True)
    same("".join(c.choices[0].text for c in stream), one.choices[0].text, "streamed text")
    tokens = json.loads(server.request("POST", "/tokenize", {"prompt": "Once upon"})[2])
    again = api.completions.create(model=server.name, prompt=tokens["tokens"], max_tokens=8,
                                   temperature=0)
    same(again.choices[0].text, one.choices[0].text, "the same prompt as tokens")
    text = json.loads(server.request("POST", "/detokenize", {"tokens": tokens["tokens"]})[2])
    expect(text["prompt"].endswith("Once upon"), f"{text}")
    same(server.request("POST", "/detokenize", {"tokens": [1 << 28]})[0], 400, "a token too large")
    counted = json.loads(server.request("POST", "/tokenize", {"messages": ASK})[2])
    expect(counted["count"] == len(counted["tokens"]) > 8, f"{counted}")
    same(server.request("POST", "/v1/moderations", {"input": "x"})[0], 501, "moderations")
    try:
        api.completions.create(model=server.name, prompt="x", suffix="y")
        expect(False, "a suffix was taken")
    except openai.BadRequestError as error:
        same(error.param, "suffix", "the field at fault")


def check_exhausted(server):
    """A grammar that compiles and then grows beyond its limits ends its own request, as the client's
    to change: before the first byte with 400, in a stream with the same error."""
    body = {"prompt": "x", "max_tokens": 1500, "seed": 3,
            "guided_grammar": "start: T\nT: /[a-z]*a[a-z]{15}1/ & /[a-z1]{2000,}/"}
    status, _, data = server.request("POST", "/v1/completions", body)
    error = json.loads(data)["error"]
    same((status, error["code"], error["param"], error["type"]),
         (400, "grammar_error", "guided_grammar", "invalid_request_error"), "a whole answer")
    status, _, data = server.request("POST", "/v1/completions", {**body, "stream": True})
    last = data.decode().strip().split("\n\n")[-1].removeprefix("data: ")
    same((status, json.loads(last)["error"]), (200, error), "a stream's last event")


def main(program):
    with serving(program, work_model("tiny-oss-o200k.gguf")) as server:
        check_answers(server)
        check_tools(server)
        check_round_trip(server)
        check_reasoning(server)
        check_choices(server)
        check_logprobs(server)
        check_completions(server)
        check_exhausted(server)
    with serving(program, work_model("smollm2.gguf"), "--context", "2048") as server:
        reply = ask(server, response_format=FORMAT, temperature=0, max_tokens=120)
        if reply.choices[0].finish_reason == "stop":
            jsonschema.validate(json.loads(reply.choices[0].message.content), SCHEMA)
        check_completions(server)
        # Its template has no way to write a call; other_engines_test.py has more of this.
        tool = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}
        reply = ask(server, tools=[tool], tool_choice="required", parallel_tool_calls=False,
                    temperature=0, max_tokens=120)
        if reply.choices[0].finish_reason == "tool_calls":
            call = reply.choices[0].message.tool_calls[0].function
            jsonschema.validate(json.loads(call.arguments), SCHEMA)
    print("replies have the shapes that were asked for")


if __name__ == "__main__":
    main(sys.argv[1])

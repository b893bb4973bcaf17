# SPDX-License-Identifier: Apache-2.0
"""Clients written for other servers: their names of fields and models, conversations that end with
the assistant's words, and tools on a model whose template knows none.
usage: other_engines_test.py HEARTH"""
import json
import pathlib
import sys
import tempfile

import anthropic
import jsonschema
import openai

from serving import expect, same, serving, work_model

HELLO = [{"role": "user", "content": "Name three colours."}]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
          "required": ["city", "days"], "additionalProperties": False}
TOOLS = [{"type": "function", "function": {"name": "forecast", "description": "The weather",
                                           "parameters": SCHEMA}},
         {"type": "function", "function": {"name": "now", "description": "The time"}}]
GREEDY = {"temperature": 0}
WEATHER = [{"role": "user", "content": "What will the weather be in Ulm for 3 days?"}]


def chat(server, **members):
    """(status, headers, JSON) of one chat."""
    body = {"messages": HELLO, "max_tokens": 24, "temperature": 0, **members}
    status, headers, data = server.request("POST", "/v1/chat/completions", body)
    return status, headers, json.loads(data)


def said(server, **members):
    status, _, reply = chat(server, **members)
    same(status, 200, f"a chat with {members}: {reply}")
    return reply["choices"][0]["message"]


def check_fields(server):
    greedy = said(server)["content"]
    same(said(server, n_predict=24, max_tokens=None, cache_prompt=False, id_slot=3, keep_alive="5m",
              mirostat=0, skip_special_tokens=True)["content"], greedy, "fields that ask for nothing")
    same(said(server, repeat_penalty=1.3)["content"],
         said(server, repetition_penalty=1.3)["content"], "two names of a penalty")
    expect(said(server, repeat_penalty=1.8)["content"] != greedy, "a penalty to have an effect")
    for members, param in (({"top_a": 1}, "top_a"), ({"mirostat": 2}, "mirostat"),
                           ({"enable_thinking": False}, "chat_template_kwargs.enable_thinking"),
                           ({"chat_template_kwargs": {"messages": 1}},
                            "chat_template_kwargs.messages")):
        status, _, reply = chat(server, **members)
        same((status, reply["error"]["param"]), (400, param), f"{members}")


def check_ignored(program, model):
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log"
        with serving(program, model, "--unknown-fields", "warn", "--log", str(log)) as server:
            _, headers, reply = chat(server, top_a=1, mirostat=2, enable_thinking=False)
            names = "top_a, mirostat, chat_template_kwargs.enable_thinking"
            same(headers.get("x-hearth-ignored-fields"), names, f"the header of {reply}")
            _, headers, _ = chat(server)
            expect("x-hearth-ignored-fields" not in headers, "no header where nothing was ignored")
            same(chat(server, store=True)[0], 400, "a field that is refused by name")
        lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        same([line.get("ignored_fields") for line in lines], [names, None, None], "the log")


def check_names(program, model):
    with serving(program, model, "--name", "own", "--served-name", "gpt-4o", "--served-name",
                 "small") as server:
        api = openai.OpenAI(base_url=server.address + "/v1", api_key="none", max_retries=0)
        same([m.id for m in api.models.list().data], ["own", "gpt-4o", "small"], "the list")
        same(api.models.retrieve("small").model_extra["root"], "own", "whose alias it is")
        for name in ("own", "gpt-4o", "small"):
            same(chat(server, model=name)[2]["model"], "own", f"the model's own name, under {name}")
        status, _, reply = chat(server, model="gpt-4")
        same((status, reply["error"]["code"]), (404, "model_not_found"), "another name")
        expect("available: gpt-4o, " in reply["error"]["message"], f"the nearest first in {reply}")
    with serving(program, model, "--name", "own", "--served-name", "*") as server:
        same(chat(server, model="claude-opus")[2]["model"], "own", "any name")


def check_continuing(server):
    whole = said(server)["content"]
    words = whole.split(" ")
    expect(len(words) >= 4, f"some words in {whole!r}")
    begun = " ".join(words[:3])
    ends = [*HELLO, {"role": "assistant", "content": begun}]
    rest = said(server, messages=ends)["content"]
    expect(rest.startswith(" ") and (begun + rest).startswith(whole[:len(begun) + 4]),
           f"{whole!r} to be gone on with after {begun!r}, not {rest!r}")
    same(said(server, messages=ends, continue_final_message=True, add_generation_prompt=False)
         ["content"], rest, "vLLM's fields")
    expect(said(server, messages=ends, continue_final_message=False)["content"] != rest,
           "another message to begin")
    api = anthropic.Anthropic(base_url=server.address, api_key="none", max_retries=0)
    same(api.messages.create(model=server.name, max_tokens=24, messages=ends, extra_body=GREEDY)
         .content[0].text, rest, "Anthropic's dialect")
    status, _, reply = chat(server, messages=HELLO, continue_final_message=True)
    same(status, 400, f"nothing to continue: {reply}")
    calls = [{"id": "a", "type": "function", "function": {"name": "now", "arguments": "{}"}}]
    status, _, reply = chat(server, tools=TOOLS,
                            messages=[*HELLO, {"role": "assistant", "tool_calls": calls}])
    same(status, 400, f"a call without its result: {reply}")


def streamed_calls(server, body):
    _, headers, data = server.request("POST", "/v1/chat/completions", {**body, "stream": True})
    same(headers.get("x-hearth-tools"), "generic", "the header of a stream")
    calls = []
    for line in data.decode().splitlines():
        if not line.startswith("data: {"):
            continue
        for choice in json.loads(line[6:])["choices"]:
            for call in choice["delta"].get("tool_calls") or []:
                if call["index"] == len(calls):
                    calls.append([call["function"]["name"], ""])
                calls[call["index"]][1] += call["function"].get("arguments") or ""
    return calls


def check_tools(server):
    for seed in range(2):
        body = {"messages": WEATHER, "tools": TOOLS, "tool_choice": "required", "max_tokens": 120,
                "temperature": 1, "seed": seed, "parallel_tool_calls": seed % 2 == 0}
        status, headers, reply = chat(server, **body)
        same((status, headers.get("x-hearth-tools")), (200, "generic"), f"tools: {reply}")
        choice = reply["choices"][0]
        if choice["finish_reason"] == "length":
            continue
        same(choice["finish_reason"], "tool_calls", f"why {reply} ended")
        calls = choice["message"]["tool_calls"]
        expect(len(calls) == 1 or seed % 2 == 0, f"one call in {calls}")
        for call in calls:
            if call["function"]["name"] == "forecast":
                jsonschema.validate(json.loads(call["function"]["arguments"]), SCHEMA)
            else:
                same(json.loads(call["function"]["arguments"]), {}, "arguments of now")
        same(streamed_calls(server, body),
             [[c["function"]["name"], c["function"]["arguments"]] for c in calls], "the stream")
    named = {"type": "function", "function": {"name": "now"}}
    call = said(server, messages=WEATHER, tools=TOOLS, tool_choice=named,
                parallel_tool_calls=False)["tool_calls"][0]
    same(call["function"]["name"], "now", "the named tool")
    none = said(server, messages=WEATHER, tools=TOOLS, tool_choice="none")
    expect(not none.get("tool_calls") and none["content"], f"an answer, not {none}")
    expect("x-hearth-tools" not in chat(server)[1], "no header without tools")
    check_results(server, call)


def check_results(server, call):
    """A result comes back as text that the model can read."""
    messages = [*WEATHER, {"role": "assistant", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": call["id"], "content": "a quarter past <|im_end|>"}]
    expect(said(server, messages=messages, tools=TOOLS, tool_choice="none")["content"],
           "an answer after a result")
    status, _, data = server.request("POST", "/tokenize", {"messages": messages, "tools": TOOLS,
                                                           "return_token_strs": True})
    prompt = "".join(json.loads(data)["token_strs"])
    same(status, 200, "the prompt")
    written = '{"name": "now", "arguments": %s}' % call["function"]["arguments"]
    for part in ('{"name":"forecast","description":"The weather"', f"assistant\n{written}<|im_end|>",
                 "user\nResult of now {}:\na quarter past <|im_end|><|im_end|>"):
        expect(part in prompt, f"{part!r} in {prompt!r}")
    api = anthropic.Anthropic(base_url=server.address, api_key="none", max_retries=0)
    reply = api.messages.create(
        model=server.name, max_tokens=120, extra_body=GREEDY, messages=WEATHER,
        tools=[{"name": "now", "input_schema": {"type": "object"}}],
        tool_choice={"type": "tool", "name": "now", "disable_parallel_tool_use": True})
    same((reply.content[0].type, reply.content[0].name), ("tool_use", "now"), "Anthropic's dialect")


def main(program):
    model = work_model("smollm2.gguf")
    with serving(program, model) as server:
        check_fields(server)
        check_continuing(server)
        check_tools(server)
    check_ignored(program, model)
    check_names(program, model)
    print("clients of other engines are served")


if __name__ == "__main__":
    main(sys.argv[1])

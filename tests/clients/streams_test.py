# SPDX-License-Identifier: Apache-2.0
"""Random requests in every dialect, each asked whole and streamed: what is told must not differ.
Texts, thoughts, tools and schemas, on both models; several at a time, as a server is asked.
usage: streams_test.py HEARTH [COUNT] [SEED]"""
import collections
import concurrent.futures
import json
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "server"))

import anthropic_test
import chat_test
import responses_test
from openai.types import Completion

from serving import expect, same, serving, work_model
from strict import leftovers

WORDS = ["tell", "me", "a", "story", "about", "Zoë", "and", "7", "owls\n", "🦉", "please", "?",
         "{\"a\": 1}", "<|end|>", "\u200d", "naïve", "数", "```"]
SCHEMAS = [
    {"type": "object", "required": ["n"], "additionalProperties": False,
     "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 99}}},
    {"enum": ["north", "söder", "東", "a\"b\\c"]},
    {"type": "array", "items": {"type": "boolean"}, "maxItems": 4},
    {"type": "object", "additionalProperties": False, "required": ["s", "t"], "properties": {
        "s": {"type": "string", "maxLength": 6}, "t": {"enum": [True, None, 1.5]}}},
]
PARAMETERS = {"type": "object", "required": ["city"], "additionalProperties": False,
              "properties": {"city": {"type": "string", "maxLength": 9},
                             "days": {"type": "integer", "minimum": 1, "maximum": 7}}}
NAMES = ["get_weather", "wait"]
EFFORTS = ["none", "minimal", "low", "medium", "high"]


def prompt_of(rng):
    return " ".join(rng.choices(WORDS, k=rng.randint(1, 14)))


def sampling_of(rng):
    return {"seed": rng.randrange(1 << 30), "temperature": rng.choice([0, 0.7, 1, 1.5]),
            "top_p": rng.choice([1, 0.9])}


def turns_of(rng):
    """A user's word, sometimes after some of a conversation."""
    out = []
    for _ in range(rng.choice([0, 0, 0, 1, 2])):
        out += [{"role": "user", "content": prompt_of(rng)},
                {"role": "assistant", "content": prompt_of(rng)}]
    return out + [{"role": "user", "content": prompt_of(rng)}]


def kind_of(rng, dialect, has_tools):
    if dialect == "completions":  # which know neither thoughts nor tools
        return rng.choice(["text", "schema"])
    return rng.choice(["text", "reasoning", "schema"] + ["tools"] * (2 if has_tools else 0))


def chat_body(rng, kind):
    body = {"messages": turns_of(rng), "max_tokens": rng.randint(1, 28), **sampling_of(rng)}
    if rng.random() < 0.3:
        body["stop"] = rng.choice(["e", ["the", " a"], ["\n"], [".", ",", "🦉"]])
    if rng.random() < 0.2:
        body["n"] = 2
    if kind == "reasoning":
        body["reasoning_effort"] = rng.choice(EFFORTS)
        body["max_reasoning_tokens"] = rng.randint(0, 12)
    if kind == "schema":
        body["response_format"] = {"type": "json_schema", "json_schema": {
            "name": "x", "schema": rng.choice(SCHEMAS)}}
    if kind == "tools":
        body["tools"] = [{"type": "function", "function": {"name": name, "parameters": PARAMETERS}}
                         for name in NAMES]
        body["tool_choice"] = rng.choice(["auto", "required", "none", {
            "type": "function", "function": {"name": rng.choice(NAMES)}}])
        body["max_tokens"] = rng.randint(8, 60)
        body["max_reasoning_tokens"] = rng.randint(0, 4)
    return body


def responses_body(rng, kind):
    body = {"input": turns_of(rng), "max_output_tokens": rng.randint(1, 28),
            "store": rng.random() < 0.3, **sampling_of(rng)}
    if kind == "reasoning":
        body["reasoning"] = {"effort": rng.choice(EFFORTS), "summary": "auto"}
        if rng.random() < 0.5:
            body["include"] = ["reasoning.encrypted_content"]
    if kind == "schema":
        body["text"] = {"format": {"type": "json_schema", "name": "x",
                                   "schema": rng.choice(SCHEMAS)}}
    if kind == "tools":
        body["tools"] = [{"type": "function", "name": name, "parameters": PARAMETERS,
                          "strict": True} for name in NAMES]
        body["tool_choice"] = rng.choice(["auto", "required", "none",
                                          {"type": "function", "name": rng.choice(NAMES)}])
        body["max_output_tokens"] = rng.randint(8, 60)
    return body


def messages_body(rng, kind):
    body = {"messages": turns_of(rng), "max_tokens": rng.randint(1, 28), **sampling_of(rng)}
    if rng.random() < 0.3:
        body["stop_sequences"] = rng.choice([["e"], ["the", " a"], ["\n"]])
    if kind == "reasoning":
        body["thinking"] = rng.choice([{"type": "adaptive"}, {"type": "disabled"},
                                       {"type": "enabled", "budget_tokens": rng.randint(1, 12)}])
    if kind == "schema":
        body["output_config"] = {"format": {"type": "json_schema", "schema": rng.choice(SCHEMAS)}}
    if kind == "tools":
        body["tools"] = [{"name": name, "input_schema": PARAMETERS} for name in NAMES]
        body["tool_choice"] = rng.choice([{"type": "auto"}, {"type": "any"}, {"type": "none"},
                                          {"type": "tool", "name": rng.choice(NAMES)}])
        body["max_tokens"] = rng.randint(8, 60)
    return body


def completions_body(rng, kind):
    body = {"prompt": prompt_of(rng), "max_tokens": rng.randint(1, 28), **sampling_of(rng)}
    if rng.random() < 0.3:
        body["prompt"] = [body["prompt"], prompt_of(rng)]
    if rng.random() < 0.3:
        body["stop"] = rng.choice(["e", ["the", " a"], ["\n"]])
    if rng.random() < 0.3:
        body["n"] = 2
    if kind == "schema":
        body["response_format"] = {"type": "json_schema", "json_schema": {
            "name": "x", "schema": rng.choice(SCHEMAS)}}
    return body


def ollama_body(rng, kind):
    """Chats and prompts; kinds are as for chats."""
    options = {**sampling_of(rng), "num_predict": rng.randint(1, 28)}
    if rng.random() < 0.3:
        options["stop"] = rng.choice(["e", ["the", " a"], ["\n"]])
    body = {"options": options}
    if kind != "tools" and rng.random() < 0.3:
        body |= {"prompt": prompt_of(rng), "raw": kind == "text" and rng.random() < 0.5}
    else:
        body["messages"] = turns_of(rng)
    if kind == "schema":
        body["format"] = rng.choice([*SCHEMAS, "json"])
    if kind == "tools":
        body["tools"] = [{"type": "function", "function": {"name": name, "parameters": PARAMETERS}}
                         for name in NAMES]
        options["num_predict"] = rng.randint(8, 60)
    if kind in ("schema", "tools"):
        body["think"] = False
    return body


def ask_chat(server, body):
    one, _ = chat_test.whole(server, body)
    chunks = chat_test.streamed(server, body)
    indices = range(body.get("n", 1))
    told = [chat_test.told(one, index) for index in indices]
    seen = {"reasoning" for each in told if each[1]} | {"calls" for each in told if each[2]}
    return [chat_test.joined(chunks, index) for index in indices], told, seen


def ask_responses(server, body):
    one = responses_test.whole(server, body)
    seen = {item.type for item in one.output}
    return responses_test.joined(responses_test.events(server, body)), responses_test.told(one), {
        {"function_call": "calls"}.get(each, each) for each in seen}


def ask_messages(server, body):
    one, _ = anthropic_test.whole(server, body)
    seen = {block.type for block in one.content}
    return anthropic_test.joined(anthropic_test.events(server, body)), anthropic_test.told(one), {
        {"tool_use": "calls", "thinking": "reasoning"}.get(each, each) for each in seen}


def ask_completions(server, body):
    status, _, data = server.request("POST", "/v1/completions", body)
    same(status, 200, f"{body}: {data[:300]}")
    one = Completion.model_validate_json(data, strict=True)
    same(leftovers(one), [], "fields unknown to a completion")
    status, _, data = server.request("POST", "/v1/completions", {**body, "stream": True})
    same(status, 200, f"{body}: {data[:300]}")
    texts = {choice.index: ["", None] for choice in one.choices}
    found = list(chat_test.events(data))
    same(found[-1], "[DONE]", "the last event")
    for text in found[:-1]:
        # Until the last one the reason is null, for which the package has no type.
        for choice in json.loads(text)["choices"]:
            same(set(choice), {"index", "text", "logprobs", "finish_reason"}, "members of a choice")
            texts[choice["index"]][0] += choice["text"]
            texts[choice["index"]][1] = choice["finish_reason"] or texts[choice["index"]][1]
    told = {choice.index: [choice.text, choice.finish_reason] for choice in one.choices}
    return texts, told, set()


def told_by_ollama(parts):
    """What lines of JSON add up to, or the one object of a whole answer."""
    said = [part.get("message", part) for part in parts]
    calls = [call["function"] for each in said for call in each.get("tool_calls", [])]
    texts = ["".join(each.get(name, "") for each in said)
             for name in ("content", "response", "thinking")]
    last = parts[-1]
    same([part["done"] for part in parts], [False] * (len(parts) - 1) + [True], "one last line")
    return texts, calls, last["done_reason"], last["eval_count"], last["prompt_eval_count"]


def ask_ollama(server, body):
    path = "/api/generate" if "prompt" in body else "/api/chat"
    body = {**body, "model": server.name}
    status, _, data = server.request("POST", path, {**body, "stream": False})
    same(status, 200, f"{body}: {data[:300]}")
    told = told_by_ollama([json.loads(data)])
    status, _, data = server.request("POST", path, body)
    same(status, 200, f"{body}: {data[:300]}")
    streamed = told_by_ollama([json.loads(line) for line in data.decode().splitlines()])
    return streamed, told, {"reasoning"} if told[0][2] else {"calls"} if told[1] else set()


DIALECTS = {"chat": (chat_body, ask_chat), "responses": (responses_body, ask_responses),
            "messages": (messages_body, ask_messages),
            "completions": (completions_body, ask_completions),
            "ollama": (ollama_body, ask_ollama)}


def one_case(server, number, seed, has_tools):
    rng = random.Random(f"{seed}/{number}")
    dialect = list(DIALECTS)[number % len(DIALECTS)]
    make, ask = DIALECTS[dialect]
    kind = kind_of(rng, dialect, has_tools)
    body = make(rng, kind)
    streamed, whole, seen = ask(server, body)
    same(streamed, whole, f"case {seed}/{number}, streamed and whole of {dialect} {body}")
    return dialect, kind, seen


def check_model(server, count, seed, has_tools):
    counts, seen = collections.Counter(), collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for dialect, kind, kinds in pool.map(
                lambda number: one_case(server, number, seed, has_tools), range(count)):
            counts[dialect, kind] += 1
            seen.update((dialect, each) for each in kinds)
    same(sum(counts.values()), count, "cases")
    for (dialect, kind), number in sorted(counts.items()):
        print(f"  {dialect:12} {kind:10} {number}")
    return seen


def main(program, count=200, seed=1):
    began = time.monotonic()
    few = max(4, count // 10)  # a real model's tokens cost more
    with serving(program, work_model("smollm2.gguf"), "--context", "2048") as server:
        print(f"smollm2: {few} cases")
        check_model(server, few, seed, has_tools=False)
    with serving(program, work_model("tiny-oss-o200k.gguf")) as server:
        print(f"tiny-oss-o200k: {count - few} cases")
        seen = check_model(server, count - few, seed, has_tools=True)
    for kind in ("reasoning", "calls"):
        dialects = [each for each in DIALECTS if seen[each, kind] > 0]
        expect(len(dialects) >= (3 if count >= 1000 else 2), f"{kind} in more than {dialects}")
    print(f"{count} streams are what is said whole ({time.monotonic() - began:.0f} s)")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))

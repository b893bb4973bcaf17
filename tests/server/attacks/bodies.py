# SPDX-License-Identifier: Apache-2.0
"""Bodies that are dear to read: each dialect's, and what may be large in them."""
import json

from serving import expect

TALK = [{"role": "user", "content": "x"}]
# Never an error of the server's own, nor the end of it.
FINE = {200, 400, 404, 413, 422, 429, 501, 503}


def text(body):
    return body if isinstance(body, bytes) else json.dumps(body, separators=(",", ":")).encode()


def chat(**more):
    return "/v1/chat/completions", {"messages": TALK, "max_tokens": 1, **more}


def completion(**more):
    return "/v1/completions", {"prompt": "x", "max_tokens": 1, **more}


def schema_of(count):
    return {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(count)},
            "required": [f"p{i}" for i in range(count)]}


def tools_of(count):
    return [{"type": "function", "function": {"name": f"f{i}", "parameters": schema_of(20)}} for i in range(count)]


def anthropic_tools():
    return [{"name": f"f{i}", "input_schema": schema_of(20)} for i in range(128)]


# Made when they are asked for: together they have 60 MB.
BODIES = {
    "deep_json": lambda: chat(),
    "wide_json": lambda: chat(metadata={f"k{i}": i for i in range(190_000)}),
    "wide_unknown_fields": lambda: completion(**{f"k{i}": 1 for i in range(190_000)}),
    "long_string": lambda: chat(messages=[{"role": "user", "content": "word " * 700_000}]),
    "long_escapes": lambda: completion(prompt="\u0001" * 600_000),
    "many_messages": lambda: chat(messages=TALK * 40_000),
    "many_parts": lambda: chat(messages=[{"role": "user", "content": [{"type": "text", "text": "x"}] * 60_000}]),
    "many_tools": lambda: chat(tools=tools_of(128)),
    "too_many_tools": lambda: chat(tools=tools_of(2_000)),
    "large_schema": lambda: chat(response_format={"type": "json_schema", "json_schema": {
        "name": "a", "schema": schema_of(900)}}),
    "too_large_schema": lambda: completion(guided_json=schema_of(40_000)),
    "large_enum": lambda: completion(guided_json={"enum": [f"v{i:05d}" for i in range(4_000)]}),
    "nested_repeats": lambda: completion(guided_regex="((((a{1,50}){1,50}){1,50}b){1,50}c){1,50}"),
    "long_regex": lambda: completion(guided_regex="(ab|cd)?[a-z]{1,9}" * 3_000),
    "grammar_rules": lambda: completion(guided_grammar="start: r0\n" + "".join(
        f"r{i}: \"x\" r{i + 1} | \"y\"\n" for i in range(1_500)) + "r1500: \"z\"\n"),
    "many_choices_given": lambda: completion(guided_choice=[f"choice {i}" for i in range(4_000)]),
    "stop_lists": lambda: completion(stop=["s" * 100_000] * 4),
    "logit_biases": lambda: completion(logit_bias={str(i): 1 for i in range(150_000)}),
    "bad_utf8": lambda: ("/v1/completions", b'{"prompt":"' + b"\xff\xc0\x80" * 1_000_000 + b'"}'),
    "huge_ids": lambda: chat(messages=[*TALK, {"role": "assistant", "content": "", "tool_calls": [
        {"id": "i" * 3_000_000, "type": "function", "function": {"name": "f", "arguments": "{}"}}]}]),
    "huge_model_name": lambda: completion(model="m" * 3_000_000),
    "call_arguments": lambda: chat(messages=[*TALK, {"role": "assistant", "content": "", "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "f", "arguments": "[" * 1_500_000}}]}, *TALK]),
    "anthropic_blocks": lambda: ("/v1/messages", {"max_tokens": 1, "messages": [{"role": "user", "content": [
        {"type": "text", "text": "x"}] * 60_000}]}),
    "anthropic_tools": lambda: ("/v1/messages", {"max_tokens": 1, "messages": TALK, "tools": anthropic_tools()}),
    "anthropic_counts": lambda: ("/v1/messages/count_tokens", {"messages": [
        {"role": "user", "content": "ab cd " * 500_000}]}),
    "response_items": lambda: ("/v1/responses", {"max_output_tokens": 1, "store": False, "input": TALK * 40_000}),
    "ollama_messages": lambda: ("/api/chat", {"model": "tiny-oss-o200k", "messages": TALK * 40_000, "stream": False,
                                              "options": {"num_predict": 1}}),
    "ollama_options": lambda: ("/api/generate", {"model": "tiny-oss-o200k", "prompt": "x", "stream": False,
                                                 "options": {f"k{i}": 1 for i in range(150_000)}}),
    "many_embeddings": lambda: ("/v1/embeddings", {"input": ["x"] * 2_000}),
    "tokenise": lambda: ("/tokenize", {"prompt": "".join(chr(33 + (i * i) % 90) for i in range(300_000)) * 3}),
    "detokenise": lambda: ("/detokenize", {"tokens": list(range(180_000))}),
}


def hostile(name):
    """(path, bytes) of one of them."""
    path, body = BODIES[name]()
    if name != "deep_json":
        return path, text(body)
    return path, text({**body, "metadata": 0}).replace(b'"metadata":0', b'"metadata":' + b"[" * 1_500_000)


def body_attack(name):
    def attack(a):
        path, sent = hostile(name)
        statuses = {a.ask("POST", path, sent)[0]}
        a.storm(lambda: statuses.add(a.ask("POST", path, sent)[0]), threads=3)
        expect(statuses <= FINE, f"{name}: answers {statuses}")

    attack.__name__ = name
    return attack


ATTACKS = [body_attack(name) for name in BODIES]

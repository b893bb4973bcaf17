# SPDX-License-Identifier: Apache-2.0
"""Bodies that are dear to read: each dialect's, and what may be large in them. Each at the largest size that is
answered, so that it is rendered and computed, and at one beyond, which is refused for the reason given here."""
import dataclasses
import itertools
import json
from typing import Callable

from serving import expect

TALK = [{"role": "user", "content": "x"}]
# Never an error of the server's own, nor the end of it.
FINE = {200, 400, 404, 413, 422, 429, 501, 503}
# Refused for a moment: others of the same client's are there.
BUSY = {429, 503}


@dataclasses.dataclass
class Body:
    """`make(n)`: path and body with n of what there are many of. `most` of them are answered with 200; `over` are
    refused with a message that has `words`. Either may be absent."""
    make: Callable
    most: int | None
    over: int | None = None
    words: str = ""
    brief: int | None = None  # in place of `most` where there is a moment only: prompts are computed

    def sent(self, count):
        path, body = self.make(count)
        return path, body if isinstance(body, bytes) else json.dumps(body, separators=(",", ":")).encode()

    def forms(self, is_whole=True):
        """(path, bytes, whether it is answered) of both."""
        most = self.most if is_whole or self.brief is None else self.brief
        return [(*self.sent(n), n == most) for n in (most, self.over) if n is not None]


def chat(**more):
    return "/v1/chat/completions", {"messages": TALK, "max_tokens": 1, **more}


def completion(**more):
    return "/v1/completions", {"prompt": "x", "max_tokens": 1, **more}


def message(**more):
    return "/v1/messages", {"max_tokens": 1, "messages": TALK, **more}


def ollama(path, **more):
    return path, {"model": "tiny-oss-o200k", "stream": False, "options": {"num_predict": 1}, **more}


def schema_of(count):
    return {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(count)},
            "required": [f"p{i}" for i in range(count)]}


def tools_of(count):
    return [{"type": "function", "function": {"name": f"f{i}", "parameters": schema_of(20)}} for i in range(count)]


def deep(count):
    path, body = chat(metadata=0)
    text = json.dumps(body, separators=(",", ":")).encode()
    return path, text.replace(b'"metadata":0', b'"metadata":' + b'{"a":' * count + b"1" + b"}" * count)


def parts(count):
    return [{"role": "user", "content": [{"type": "text", "text": "x"}] * count}]


def called(**function):
    return [*TALK, {"role": "assistant", "content": "", "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}, **function}]},
        {"role": "tool", "tool_call_id": function.get("id", "c"), "content": "y"}]


def rules(count):
    return "start: r0\n" + "".join(f"r{i}: \"x\" r{i + 1} | \"y\"\n" for i in range(count)) + f"r{count}: \"z\"\n"


def doubled(count):
    """Each definition is the one before twice over: 2^count of them when written out."""
    definitions = {f"d{i}": {"type": "object", "properties": {name: {"$ref": f"#/$defs/d{i + 1}"} for name in "ab"},
                             "required": ["a", "b"]} for i in range(count)}
    return {"$defs": {**definitions, f"d{count}": {"type": "string"}}, "$ref": "#/$defs/d0"}


# Made when they are asked for: together they have 60 MB.
BODIES = {
    "deep_json": Body(deep, 60, 600_000, "too deep"),
    "wide_json": Body(lambda n: chat(metadata={f"k{i}": i for i in range(n)}), 190_000),
    "wide_unknown_fields": Body(lambda n: completion(**{f"k{i}": 1 for i in range(n)}), None, 190_000, "Unknown field"),
    "long_string": Body(lambda n: chat(messages=[{"role": "user", "content": "word " * n}]), 32_000, 700_000, "context", brief=2_000),
    "long_escapes": Body(lambda n: completion(prompt="\u0001" * n), 32_000, 600_000, "context", brief=2_000),
    "many_messages": Body(lambda n: chat(messages=TALK * n), 4_096, 40_000, "4096", brief=400),
    "many_parts": Body(lambda n: chat(messages=parts(n)), 60_000, brief=2_000),
    "many_tools": Body(lambda n: chat(tools=tools_of(n)), 128, 129, "128", brief=8),
    "too_many_tools": Body(lambda n: chat(tools=tools_of(n)), None, 2_000, "128"),
    "large_schema": Body(lambda n: chat(response_format={"type": "json_schema", "json_schema": {
        "name": "a", "schema": schema_of(n)}}), 310, 900, "too many properties", brief=100),
    "too_large_schema": Body(lambda n: completion(guided_json=schema_of(n)), None, 40_000, "too many properties"),
    "large_enum": Body(lambda n: completion(guided_json={"enum": [f"v{i:05d}" for i in range(n)]}), 4_096, 5_000, "enum"),
    "nested_repeats": Body(lambda n: completion(guided_regex=f"((((a{{1,{n}}}){{1,{n}}}){{1,{n}}}b){{1,{n}}}c){{1,{n}}}"), 50),
    "long_regex": Body(lambda n: completion(guided_regex="(ab|cd)?[a-z]{1,9}" * n), 56, 3_000, "8192"),
    "grammar_rules": Body(lambda n: completion(guided_grammar=rules(n)), 1_000, 3_000, "32768"),
    "many_choices_given": Body(lambda n: completion(guided_choice=[f"choice {i}" for i in range(n)]), 4_096, 5_000, "4096"),
    "doubled_references": Body(lambda n: completion(guided_json=doubled(n)), 40, 4_000, "4096"),
    "stop_lists": Body(lambda n: completion(stop=["s" * n] * 16), 256, 100_000, "256"),
    "logit_biases": Body(lambda n: completion(logit_bias={str(i): 1 for i in range(n)}), 1_024, 150_000, "1024"),
    "bad_utf8": Body(lambda n: ("/v1/completions", b'{"prompt":"' + b"\xff\xc0\x80" * n + b'"}'), None, 1_000_000, "syntax"),
    "huge_ids": Body(lambda n: chat(messages=called(id="i" * n)), 1_000, 3_000_000, "4194304"),
    "huge_model_name": Body(lambda n: completion(model="m" * n), None, 3_000_000, "256"),
    "call_arguments": Body(lambda n: chat(messages=called(function={"name": "f", "arguments": "[" * n})), 60_000, 1_500_000, "context", brief=2_000),
    "anthropic_blocks": Body(lambda n: message(messages=parts(n)), 60_000, brief=2_000),
    "anthropic_tools": Body(lambda n: message(tools=[
        {"name": f"f{i}", "input_schema": schema_of(20)} for i in range(n)]), 128, 129, "128", brief=8),
    "anthropic_counts": Body(lambda n: ("/v1/messages/count_tokens", {"messages": [
        {"role": "user", "content": "ab cd " * n}]}), 500_000),
    "response_items": Body(lambda n: ("/v1/responses", {"max_output_tokens": 1, "store": False, "input": TALK * n}), 8_192, 40_000, "8192", brief=400),
    "ollama_messages": Body(lambda n: ollama("/api/chat", messages=TALK * n), 4_096, 40_000, "4096", brief=400),
    "ollama_options": Body(lambda n: ollama("/api/generate", prompt="x", options={
        "num_predict": 1, **{f"k{i}": 1 for i in range(n)}}), None, 150_000,
                           "Unknown field"),
    "many_embeddings": Body(lambda n: ("/v1/embeddings", {"input": ["x"] * n}), 2_048, 2_049, "2048", brief=64),
    "tokenise": Body(lambda n: ("/tokenize", {"prompt": "".join(chr(33 + (i * i) % 90) for i in range(n)) * 3}), 300_000),
    "detokenise": Body(lambda n: ("/detokenize", {"tokens": list(range(n))}), 180_000),
}


def hostile(name, is_whole):
    """(path, bytes) of its forms."""
    return [(path, sent) for path, sent, _ in BODIES[name].forms(is_whole)]


def check_reply(name, is_answered, status, reply):
    """Answered when it should be, and otherwise refused for what it is."""
    if status in BUSY:
        return
    found = reply[:2000].decode(errors="replace")
    if is_answered:
        expect(status == 200, f"{name}: {status} {found[:400]}")
        return
    expect(400 <= status < 500 and BODIES[name].words in found,
           f"{name}: refused with {BODIES[name].words!r}, not {status} {found[:400]}")


def body_attack(name):
    def attack(a):
        forms = BODIES[name].forms(a.is_strict)
        for path, sent, is_answered in forms:
            status, _, reply = a.ask("POST", path, sent)
            check_reply(name, is_answered, status, reply)
        turns = itertools.cycle(forms)

        def work():
            path, sent, is_answered = next(turns)
            status, _, reply = a.ask("POST", path, sent)
            check_reply(name, is_answered, status, reply)
            return status

        a.shows("answered" if BODIES[name].most else "refused", a.count_of(200 if BODIES[name].most else 400))
        a.shows("s of reading", a.counter("hearth_account_seconds_total"), least=0.001)
        a.storm(work, threads=3)

    attack.__name__ = name
    return attack


ATTACKS = [body_attack(name) for name in BODIES]

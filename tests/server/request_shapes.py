# SPDX-License-Identifier: Apache-2.0
"""Values for the fields of requests, of any size: what clients send, and what nobody would."""
import dataclasses
import typing

TALK = [{"role": "user", "content": "x"}]
# The smallest whole body of each route; `model` is filled in where it must be there.
EMPTY = {
    "/v1/chat/completions": {"messages": TALK, "max_tokens": 1},
    "/v1/completions": {"prompt": "x", "max_tokens": 1},
    "/v1/chat/completions/render": {"messages": TALK, "max_tokens": 1},
    "/v1/completions/render": {"prompt": "x", "max_tokens": 1},
    "/v1/batches": {"input_file_id": "file-x", "endpoint": "/v1/completions", "completion_window": "24h"},
    "/v1/embeddings": {"input": "x"},
    "/v1/responses": {"input": "x", "max_output_tokens": 1, "store": False},
    "/v1/responses/input_tokens": {"input": "x"},
    "/v1/messages": {"messages": TALK, "max_tokens": 1},
    "/v1/messages/count_tokens": {"messages": TALK},
    "/api/chat": {"model": "", "messages": TALK, "stream": False, "options": {"num_predict": 1}},
    "/api/generate": {"model": "", "prompt": "x", "stream": False, "options": {"num_predict": 1}},
    "/api/embed": {"model": "", "input": "x"},
    "/api/embeddings": {"model": "", "prompt": "x"},
    "/api/show": {"model": ""},
    "/api/pull": {"model": ""},
    "/models/load": {"model": ""},
    "/models/unload": {"model": ""},
    "/tokenize": {"prompt": "x"},
    "/detokenize": {"tokens": [1]},
}
SCHEMA_BYTES = 60_000  # schemas and grammars may have 64 KiB; what is larger is refused


@dataclasses.dataclass
class Shape:
    name: str
    make: typing.Callable[[int], object]
    most: int = 180_000   # elements; a body may have 200,000 values
    most_bytes: int = 0   # of the body; 0: as many as the test allows


def names(n, letter):
    return [f"{letter}{i:06d}" for i in range(n)]


def schemas():
    """JSON schemas, one thing of each growing."""
    return {
        "properties": lambda n: {"type": "object", "properties": {p: {} for p in names(n, "p")}},
        "required": lambda n: {"type": "object", "required": names(n, "r")},
        "properties x required": lambda n: {
            "type": "object", "properties": {p: {} for p in names(n, "p")}, "required": names(n, "r")},
        "properties that are required": lambda n: {
            "type": "object", "properties": {p: {"type": "string"} for p in names(n, "p")},
            "required": names(n, "p")},
        "enum": lambda n: {"enum": names(n, "v")},
        "anyOf": lambda n: {"anyOf": [{"const": v} for v in names(n, "v")]},
        "oneOf": lambda n: {"oneOf": [{"const": v} for v in names(n, "v")]},
        "allOf": lambda n: {"allOf": [{"minimum": i} for i in range(n)]},
        "prefixItems": lambda n: {"type": "array", "prefixItems": [{"type": "integer"}] * n},
        "types": lambda n: {"type": ["string", "null"] * n},
        "definitions": lambda n: {"$defs": {d: {"type": "string"} for d in names(n, "d")},
                                  "$ref": "#/$defs/d000000"},
        "references": lambda n: {"$defs": {d: {"type": "string"} for d in names(n, "d")},
                                 "type": "object",
                                 "properties": {d: {"$ref": f"#/$defs/{d}"} for d in names(n, "d")}},
        "pattern": lambda n: {"type": "string", "pattern": "ab" * n},
        "description": lambda n: {"type": "string", "description": "ab " * n},
    }


def texts():
    return {"letters": lambda n: "a" * n, "words": lambda n: "ab cd " * n, "signs": lambda n: "^" * n,
            "spaces": lambda n: " " * n, "characters": lambda n: "\u0928\u092e" * n}


def shaped(makers, wrap=lambda value: value, prefix="", **limits):
    return [Shape(prefix + name, lambda n, make=make: wrap(make(n)), **limits)
            for name, make in makers.items()]


def schema_shapes(wrap, prefix="schema: "):
    """As large as a body may be, and as large as a schema may be."""
    return (shaped(schemas(), wrap, prefix, most=50_000) +
            shaped(schemas(), wrap, prefix + "within its limit: ", most_bytes=SCHEMA_BYTES))


def tool_shapes(path):
    def tool(name, schema):
        if path.startswith("/v1/messages"):
            return {"name": name, "input_schema": schema}
        if path.startswith("/v1/responses"):
            return {"type": "function", "name": name, "parameters": schema}
        return {"type": "function", "function": {"name": name, "parameters": schema}}

    return schema_shapes(lambda schema: [tool("f", schema)], "a tool's ") + [
        Shape("tools", lambda n: [tool(f"f{i}", {"type": "object"}) for i in range(n)], 20_000),
        Shape("tools within their number", lambda n: [
            tool(f"f{i}", {"type": "object", "properties": {p: {"type": "string"} for p in names(20, "p")}})
            for i in range(n)], 128),
        Shape("one tool's name", lambda n: [tool("f" * n, {})]),
        Shape("spaces", lambda n: [{"type": "namespace", "name": "n", "tools": [
            tool(f"f{i}", {}) for i in range(n)]}], 20_000),
        Shape("a tool's members", lambda n: [{**tool("f", {}), **{m: 1 for m in names(n, "m")}}])]


def message_shapes():
    calls = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    return (shaped(texts(), lambda text: [{"role": "user", "content": text}], "one of ") +
            shaped(texts(), lambda text: [{"role": "system", "content": text}, *TALK], "system of ") + [
        Shape("messages", lambda n: TALK * n, 40_000),
        Shape("turns", lambda n: [*TALK, {"role": "assistant", "content": "y"}] * n, 20_000),
        Shape("parts", lambda n: [{"role": "user", "content": [{"type": "text", "text": "x"}] * n}],
              40_000),
        Shape("calls", lambda n: [*TALK, {"role": "assistant", "content": "", "tool_calls": calls * n},
                                  *TALK], 20_000),
        Shape("calls and results", lambda n: [
            *TALK, {"role": "assistant", "content": "", "tool_calls": [
                {**calls[0], "id": c} for c in names(n, "c")]},
            *({"role": "tool", "tool_call_id": c, "content": "y"} for c in names(n, "c"))], 15_000),
        Shape("arguments", lambda n: [*TALK, {"role": "assistant", "content": "", "tool_calls": [
            {"id": "c", "type": "function", "function": {
                "name": "f", "arguments": "[" + "1," * n + "1]"}}]}, *TALK]),
        Shape("thinking", lambda n: [{"role": "assistant", "reasoning": "a " * n, "content": "y"}, *TALK]),
        Shape("a message's members", lambda n: [{**TALK[0], **{m: 1 for m in names(n, "m")}}]),
        Shape("blocks of calls", lambda n: [*TALK, {"role": "assistant", "content": [
            {"type": "tool_use", "id": c, "name": "f", "input": {}} for c in names(n, "c")]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": c, "content": "y"}
                                         for c in names(n, "c")]}], 8_000)])


def item_shapes():
    return shaped(texts(), prefix="text of ") + [
        Shape("items", lambda n: [{"role": "user", "content": "x"}] * n, 40_000),
        Shape("strings", lambda n: ["x"] * n, 90_000),
        Shape("tokens", lambda n: [1] * n),
        Shape("lists of tokens", lambda n: [[1]] * n, 80_000),
        Shape("calls", lambda n: [{"type": "function_call", "call_id": c, "name": "f", "arguments": "{}"}
                                  for c in names(n, "c")], 30_000),
        Shape("calls and results", lambda n: [
            *({"type": "function_call", "call_id": c, "name": "f", "arguments": "{}"}
              for c in names(n, "c")),
            *({"type": "function_call_output", "call_id": c, "output": "y"} for c in names(n, "c"))],
            15_000),
        Shape("thoughts", lambda n: [*TALK, *[{"type": "reasoning", "content": [
            {"type": "reasoning_text", "text": "x"}]}] * n, *TALK], 20_000),
        Shape("more tools", lambda n: [{"type": "additional_tools", "role": "developer", "tools": [
            {"type": "function", "name": f"f{i}"} for i in range(n)]}, *TALK], 20_000)]


def grammar_shapes(limits):
    return [Shape("letters", lambda n: "ab" * n, **limits),
            Shape("branches", lambda n: "|".join(names(n, "b")), **limits),
            Shape("classes", lambda n: "[a-z]" * n, **limits),
            Shape("groups", lambda n: "(a|b)" * n, **limits),
            Shape("repeats", lambda n: "a{1,3}b?" * n, **limits),
            Shape("rules", lambda n: "start: r000000\n" + "".join(
                f"{r}: \"{r}\"\n" for r in names(n, "r")), **limits),
            Shape("terminals", lambda n: "start: " + "|".join(names(n, "T")) + "\n" + "".join(
                f"{r}: /{r}/\n" for r in names(n, "T")), **limits)]


# Where a schema goes, by the field's name.
SCHEMA_FIELDS = {
    "response_format": lambda schema: {"type": "json_schema",
                                       "json_schema": {"name": "a", "schema": schema}},
    "guided_json": lambda schema: schema,
    "json_schema": lambda schema: schema,
    "format": lambda schema: schema,
    "structured_outputs": lambda schema: {"json": schema},
    "text": lambda schema: {"format": {"type": "json_schema", "name": "a", "schema": schema}},
    "output_config": lambda schema: {"format": {"type": "json_schema", "schema": schema}},
}


def own_shapes(path, field):
    """Beyond what any field of its kind gets."""
    if field in SCHEMA_FIELDS:
        return schema_shapes(SCHEMA_FIELDS[field])
    if field == "tools":
        return tool_shapes(path)
    if field == "messages":
        return message_shapes()
    if field in ("input", "prompt", "system"):
        return item_shapes()
    if field in ("guided_regex", "guided_grammar", "grammar"):
        return grammar_shapes({}) + [dataclasses.replace(shape, name=shape.name + " within the limit")
                                     for shape in grammar_shapes({"most_bytes": SCHEMA_BYTES})]
    if field == "guided_choice":
        return [Shape("choices", lambda n: names(n, "c"), 4_096)]
    if field == "logit_bias":
        return [Shape("tokens", lambda n: {str(i): 1 for i in range(n)}),
                Shape("tokens within their number", lambda n: {str(i): 1 for i in range(n)}, 1_024)]
    if field in ("stop", "stop_sequences"):
        return [Shape("long ones", lambda n: ["a" * n] * 4)]
    if field == "options":
        return [Shape("stops", lambda n: {"num_predict": 1, "stop": names(n, "s")})]
    return []


def shapes_of(path, field, kind):
    generic = {
        "string": shaped({"letters": texts()["letters"], "words": texts()["words"]}),
        "array": [Shape("array of strings", lambda n: names(n, "s"), 90_000),
                  Shape("array of numbers", lambda n: list(range(n))),
                  Shape("array of objects", lambda n: [{"a": 1}] * n, 60_000)],
        "object": [Shape("members", lambda n: {m: "v" for m in names(n, "m")}, 90_000)],
    }
    kinds = ("string", "array", "object") if kind == "any" else (kind,)
    return [shape for one in kinds for shape in generic[one]] + own_shapes(path, field)

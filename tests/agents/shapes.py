# SPDX-License-Identifier: Apache-2.0
"""What agents and server said, without the agents' texts: fields, kinds, sizes and order. Their
prompts are other people's writing, so a text becomes its size and a hash that tells whether it is
the same one as before; and back: a shape becomes a request with words of ours in their place."""
import hashlib
import json
import pathlib

import pydantic
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent

from serving import expect
from strict import leftovers

TASK = "Task 42: make hello.py print 42, run it, and mend what test_calc.py finds wrong."
EVENT = pydantic.TypeAdapter(ResponseStreamEvent)
# Members whose strings are words of an API, not of a person.
WORDS = {"type", "role", "model", "name", "object", "status", "tool_choice", "summary", "effort",
         "reasoning_effort", "include", "required", "enum", "$schema", "phase"}
HEADERS = {"accept", "accept-encoding", "content-type", "connection", "user-agent", "originator",
           "authorization"}


def strict_events(exchange):
    """Every event is of the SDK's own types, with nothing left over."""
    for _, data in exchange.events():
        if data == "[DONE]":
            continue
        raw = json.dumps(data)
        if exchange.path == "/v1/responses":
            value = EVENT.validate_json(raw, strict=True)
        else:
            value = ChatCompletionChunk.model_validate_json(raw, strict=True)
        extra = leftovers(value)
        expect(extra == [], f"fields unknown to the SDK: {extra} in {raw[:300]}")


def text_shape(text):
    return {"$text": len(text), "$hash": hashlib.sha256(text.encode()).hexdigest()[:8]}


def shape(value, name=""):
    if isinstance(value, dict):
        return {key: shape(each, key) for key, each in value.items()}
    if isinstance(value, list):
        return [shape(each, name) for each in value]
    if not isinstance(value, str) or (name in WORDS and len(value) < 64):
        return value
    if name == "encrypted_content":
        return {"$sealed": len(value)}
    if TASK in value and len(value) < 2 * len(TASK):
        return {"$task": len(value)}
    return text_shape(value)


def schema_shape(tool):
    """A tool with its parameters' names and types, without descriptions."""
    if isinstance(tool, dict):
        return {key: {"$text": len(each)} if key == "description" and isinstance(each, str)
                else schema_shape(each) for key, each in tool.items()}
    if isinstance(tool, list):
        return [schema_shape(each) for each in tool]
    return tool


def request_shape(exchange):
    body = exchange.json()
    shaped = {key: shape(value, key) for key, value in body.items() if key != "tools"}
    if "tools" in body:
        shaped["tools"] = schema_shape(body["tools"])
    headers = {name.lower(): value if name.lower() in HEADERS else {"$text": len(value)}
               for name, value in exchange.headers.items() if name.lower() != "host"}
    return {"method": exchange.method, "path": exchange.path, "headers": headers, "body": shaped}


def reply_shape(exchange):
    """Events in order, neighbours of a kind counted."""
    events = []
    for name, data in exchange.events():
        if data == "[DONE]":
            kind = data
        elif name:
            kind = name
        else:
            choice = (data.get("choices") or [{}])[0]
            said = sorted(choice.get("delta", {})) or ["usage" if data.get("usage") else "end"]
            kind = f"chunk {'+'.join(said)} finish={choice.get('finish_reason')}"
        if events and events[-1][0] == kind:
            events[-1][1] += 1
        else:
            events.append([kind, 1])
    kept = {name: value for name, value in exchange.reply_headers.items()
            if name in ("content-type", "cache-control", "x-accel-buffering")}
    usage = [data.get("usage") or data.get("response", {}).get("usage")
             for _, data in exchange.events() if data != "[DONE]"]
    comments = [line for line in exchange.comments() if line.startswith("x-hearth")]
    return {"status": exchange.status, "headers": kept, "events": events, "comments": comments,
            "usage": next((each for each in reversed(usage) if each), None)}


def without_repeats(exchanges):
    """Requests as shapes; what repeats the request before of the same kind is said in one word."""
    before = {}
    for exchange in exchanges:
        request = request_shape(exchange)
        body, earlier = request["body"], before.get("tools" in request["body"], {})
        before["tools" in body] = dict(body)
        list_name = "input" if "input" in body else "messages"
        old, new = earlier.get(list_name, []), body[list_name]
        same_start = len(old) if new[:len(old)] == old else 0
        if same_start:
            body[list_name] = [{"$as_before": same_start}, *new[same_start:]]
        for name, value in list(body.items()):
            if name != list_name and earlier.get(name) == value and len(json.dumps(value)) > 80:
                body[name] = {"$as_before": True}
        yield {"request": request, "reply": reply_shape(exchange)}


def record(name, exchanges, place, folder):
    rows = list(without_repeats(exchanges))
    for row in rows[1:]:
        row["request"]["headers"] = sorted(row["request"]["headers"])
    lines = [f'{{"request": {json.dumps(row["request"])},\n "reply": {json.dumps(row["reply"])}}}'
             for row in rows]
    text = f'{{"agent": "{name}", "exchanges": [\n' + ",\n".join(lines) + "\n]}\n"
    for part in (str(place.folder.name), str(pathlib.Path.home()), "/tmp"):
        expect(part not in text, f"{part} is in the record")
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    path = pathlib.Path(folder) / f"{name}.json"
    path.write_text(text)
    print(f"  {path.name}: {len(text)} bytes")

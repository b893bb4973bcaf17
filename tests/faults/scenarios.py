# SPDX-License-Identifier: Apache-2.0
"""What clients ask while something fails, and how a reply is judged: right as without the fault, an
error in the words of its dialect, or a connection that was cut. Nothing else."""
import http.client
import json
import socket

WORDS = {"temperature": 0, "seed": 1}
TOOL = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer", "maximum": 9}}, "required": ["a"],
          "additionalProperties": False}
USER = [{"role": "user", "content": "hello there"}]


def chat(**more):
    return {"messages": USER, "max_tokens": 4, "ignore_eos": True, **WORDS, **more}


def response(**more):
    return {"input": "hello there", "max_output_tokens": 16, "temperature": 0, **more}


def message(**more):
    return {"model": "{model}", "messages": USER, "max_tokens": 4, "temperature": 0, **more}


def ollama(**more):
    return {"model": "{model}", "messages": USER, "options": {"num_predict": 4, **WORDS}, **more}


OPENAI_TOOL = {"type": "function", "function": {"name": "weather", "parameters": TOOL}}
FORMAT = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}}
DIALOGUE = [{"role": "system", "content": "be short"}, *USER, {"role": "assistant", "content": "yes"}, *USER]

# name: (dialect, method, path, body)
SCENARIOS = {
    "chat": ("openai", "POST", "/v1/chat/completions", chat()),
    "chat stream": ("openai", "POST", "/v1/chat/completions", chat(stream=True)),
    "chat stream usage": ("openai", "POST", "/v1/chat/completions",
                          chat(stream=True, stream_options={"include_usage": True})),
    "chat choices": ("openai", "POST", "/v1/chat/completions", chat(n=3)),
    "chat logprobs": ("openai", "POST", "/v1/chat/completions", chat(logprobs=True, top_logprobs=5)),
    "chat tools": ("openai", "POST", "/v1/chat/completions", chat(tools=[OPENAI_TOOL])),
    "chat tool forced": ("openai", "POST", "/v1/chat/completions",
                         chat(tools=[OPENAI_TOOL], tool_choice="required", max_tokens=24)),
    "chat schema": ("openai", "POST", "/v1/chat/completions",
                    {**chat(response_format=FORMAT, max_tokens=24), "ignore_eos": False}),
    "chat dialogue": ("openai", "POST", "/v1/chat/completions", {**chat(), "messages": DIALOGUE}),
    "chat stop": ("openai", "POST", "/v1/chat/completions", chat(stop=["e", "zz"])),
    "chat bias": ("openai", "POST", "/v1/chat/completions", chat(logit_bias={"5": 1, "7": -3})),
    "chat mistake": ("openai", "POST", "/v1/chat/completions", chat(max_tokens="many")),
    "chat bad json": ("openai", "POST", "/v1/chat/completions", b'{"messages": [{"role":'),
    # Read in many pieces, for which connections take turns.
    "chat large": ("openai", "POST", "/v1/chat/completions", b'{"messages": "' + b"x" * 3_900_000),
    "completion": ("openai", "POST", "/v1/completions",
                   {"prompt": "once upon", "max_tokens": 4, "ignore_eos": True, **WORDS}),
    "completion stream": ("openai", "POST", "/v1/completions",
                          {"prompt": "a", "max_tokens": 3, "stream": True, "ignore_eos": True, **WORDS}),
    "completion echo": ("openai", "POST", "/v1/completions",
                        {"prompt": "once upon", "max_tokens": 2, "echo": True, "logprobs": 2, **WORDS}),
    "embeddings": ("openai", "POST", "/v1/embeddings", {"input": ["hello", "there"]}),
    "response": ("openai", "POST", "/v1/responses", response()),
    "response unstored": ("openai", "POST", "/v1/responses", response(store=False)),
    "response stream": ("openai", "POST", "/v1/responses", response(stream=True)),
    "response chain": ("openai", "POST", "/v1/responses", response(previous_response_id="{kept}")),
    "response read": ("openai", "GET", "/v1/responses/{kept}", None),
    "response items": ("openai", "GET", "/v1/responses/{kept}/input_items", None),
    "response delete": ("openai", "DELETE", "/v1/responses/{fresh}", None),
    "response background": ("openai", "POST", "/v1/responses", response(background=True)),
    "response background stream": ("openai", "POST", "/v1/responses", response(background=True, stream=True)),
    "response resumed": ("openai", "GET", "/v1/responses/{streamed}?stream=true", None),
    "response count": ("openai", "POST", "/v1/responses/input_tokens", {"input": "hello there"}),
    "response schema": ("openai", "POST", "/v1/responses",
                        response(text={"format": {"type": "json_schema", "name": "n", "schema": SCHEMA,
                                                  "strict": True}}, max_output_tokens=24)),
    "messages": ("anthropic", "POST", "/v1/messages", message()),
    "messages stream": ("anthropic", "POST", "/v1/messages", message(stream=True)),
    "messages tools": ("anthropic", "POST", "/v1/messages",
                       message(tools=[{"name": "weather", "input_schema": TOOL}], system="be short")),
    "messages count": ("anthropic", "POST", "/v1/messages/count_tokens", {"model": "{model}", "messages": USER}),
    "ollama chat": ("ollama", "POST", "/api/chat", ollama(stream=False)),
    "ollama chat stream": ("ollama", "POST", "/api/chat", ollama()),
    "ollama generate": ("ollama", "POST", "/api/generate",
                        {"model": "{model}", "prompt": "once", "stream": False, "options": {"num_predict": 3, **WORDS}}),
    "ollama embed": ("ollama", "POST", "/api/embed", {"model": "{model}", "input": "hello"}),
    "ollama show": ("ollama", "POST", "/api/show", {"model": "{model}"}),
    "ollama tags": ("ollama", "GET", "/api/tags", None),
    "ollama ps": ("ollama", "GET", "/api/ps", None),
    "tokenize": ("openai", "POST", "/tokenize", {"content": "hello there, " * 20}),
    "tokenize messages": ("openai", "POST", "/tokenize", {"messages": DIALOGUE}),
    "detokenize": ("openai", "POST", "/detokenize", {"tokens": [5, 6, 7, 8] * 10}),
    "models": ("openai", "GET", "/v1/models", None),
    "model": ("openai", "GET", "/v1/models/{model}", None),
    "not found": ("openai", "GET", "/v1/nothing", None),
    "metrics": ("openai", "GET", "/metrics", None),
    "status": ("openai", "GET", "/status", None),
    "live": ("openai", "GET", "/livez", None),
}

# What differs between two right replies: names, times, what the cache knew.
VOLATILE = {"id", "created", "created_at", "completed_at", "modified_at", "expires_at", "item_id", "request_id",
            "cached_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "input_tokens_details",
            "prompt_tokens_details", "timings", "obfuscation", "sequence_number", "response_id", "size_vram",
            "previous_response_id", "first_id", "last_id", "call_id"}
PIECES = ("text", "content", "delta", "response", "thinking", "arguments", "partial_json")
LISTS = ("metrics", "status")  # what they say changes all the time


def steady(value):
    if isinstance(value, dict):
        return {k: steady(v) for k, v in value.items() if k not in VOLATILE and not k.endswith("_duration")}
    return [steady(v) for v in value] if isinstance(value, list) else value


def pieces(value, found):
    """The text of a stream, however it was cut into events."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, str) and key in PIECES:
                found.append(inner)
            else:
                pieces(inner, found)
    elif isinstance(value, list):
        for inner in value:
            pieces(inner, found)


def read_stream(data, is_lines):
    """(text, whether it came to its end, its error if it has one) of a stream."""
    found, is_ended, error = [], False, None
    for line in data.decode().split("\n"):
        text = line if is_lines else line[6:] if line.startswith("data: ") else ""
        if not text:
            continue
        if text == "[DONE]":
            is_ended = True
            continue
        event = json.loads(text)
        kind = event.get("type", "")
        if event.get("error") or kind in ("error", "response.failed"):
            error = event
        is_ended |= kind in ("message_stop", "response.completed", "response.incomplete") or event.get("done") is True
        if not kind.startswith("response.") or kind.endswith(".delta"):
            pieces(event, found)
    return "".join(found), is_ended, error


def is_error_of(dialect, body):
    """Whether this is how that API says that something went wrong."""
    if not isinstance(body, dict):
        return False
    error = body.get("error")
    if dialect == "ollama":
        return isinstance(error, str) and bool(error)
    if dialect == "anthropic":
        return (body.get("type") == "error" and isinstance(error, dict)
                and all(isinstance(error.get(k), str) for k in ("type", "message")))
    if isinstance(body.get("response"), dict):  # response.failed
        error = body["response"].get("error")
    if body.get("type") == "error" and "message" in body:  # the event of the Responses API
        return True
    return isinstance(error, dict) and isinstance(error.get("message"), str)


def ask(port, method, path, body, timeout=20):
    """(status, body) or None when the connection was cut; a hang is a failure of the test."""
    data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request(method, path, data, {"content-type": "application/json"} if data else {})
        reply = connection.getresponse()
        return reply.status, reply.read()
    except (http.client.HTTPException, ConnectionError):
        return None
    except (socket.timeout, TimeoutError) as late:
        raise SystemExit(f"FAILED: no end of a reply within {timeout} s to {method} {path}") from late
    finally:
        connection.close()


def meaning(name, reply):
    """What must be the same in every right reply."""
    status, data = reply
    body = SCENARIOS[name][3]
    is_ollama = SCENARIOS[name][0] == "ollama" and "stream" in name
    is_resumed = "?stream=true" in SCENARIOS[name][2]
    if status == 200 and ((isinstance(body, dict) and body.get("stream")) or is_ollama or is_resumed):
        text, is_ended, error = read_stream(data, is_ollama)
        return status, text, is_ended, error is not None
    if name in LISTS or name == "live":
        return (status,)
    return status, steady(json.loads(data)) if data else None


def judge(name, reply, wanted):
    """'right', 'error' or 'cut'; ends the test for anything else."""
    if reply is None:
        return "cut"
    dialect = SCENARIOS[name][0]
    try:
        found = meaning(name, reply)
    except ValueError as bad:
        raise SystemExit(f"FAILED: {name}: not JSON ({bad}): {reply}") from bad
    if found == wanted:
        return "right"
    status, data = reply
    if status == 200 and len(found) == 4:
        error = read_stream(data, dialect == "ollama")[2]
        if error is not None and is_error_of(dialect, error):
            return "error"
        raise SystemExit(f"FAILED: {name}: a stream that is neither right nor says why: {data!r}\nwanted {wanted}")
    if status in (503, 500, 429) and is_error_of(dialect, json.loads(data or b"null")):
        return "error"
    raise SystemExit(f"FAILED: {name}: {status} {data!r}\nwanted {wanted}")

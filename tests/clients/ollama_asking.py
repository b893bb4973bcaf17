# SPDX-License-Identifier: Apache-2.0
"""The package `ollama` for ollama_test.py: clients that look at every byte on its way, and what is
expected of any answer."""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "server"))

import httpx
import ollama
from ollama import _types as types

from serving import expect, same

HELLO = [{"role": "user", "content": "Say hello to Ada, please."}]
SHORT = {"num_predict": 10, "temperature": 0}
REPORT = {"type": "object", "additionalProperties": False, "required": ["city", "degrees"],
          "properties": {"city": {"type": "string", "enum": ["Uppsala", "Visby"]},
                         "degrees": {"type": "integer", "minimum": -40, "maximum": 40}}}
# Beyond the package's types: what Ollama itself sends as well, and Hearth's version.
EXTRAS = {"id", "index", "name", "bytes", "hearth", "tool_calls", "version"}
BODIES = {"/api/chat": types.ChatResponse, "/api/generate": types.GenerateResponse,
          "/api/embed": types.EmbedResponse, "/api/embeddings": types.EmbeddingsResponse,
          "/api/tags": types.ListResponse, "/api/ps": types.ProcessResponse,
          "/api/show": types.ShowResponse, "/api/pull": types.ProgressResponse}


def leftovers(raw, value, path=""):
    """Names in `raw` that the package's type of `value` does not have."""
    if isinstance(raw, list):
        return [each for one, other in zip(raw, value) for each in leftovers(one, other, path)]
    if not isinstance(raw, dict) or not isinstance(value, types.SubscriptableBaseModel):
        return []
    names = {(field.alias or name): name for name, field in type(value).model_fields.items()}
    found = [f"{path}.{name}" for name in raw if name not in names and name not in EXTRAS]
    for name in raw.keys() & names.keys():
        found += leftovers(raw[name], getattr(value, names[name]), f"{path}.{name}")
    return found


class Wire(httpx.BaseTransport):
    """Passes bytes on, and holds each JSON of a good answer to the package's own type."""

    def __init__(self):
        self.inner = httpx.HTTPTransport()
        self.looks = 0
        self.headers = {}

    def handle_request(self, request):
        response = self.inner.handle_request(request)
        data = response.read()
        self.headers = response.headers
        if response.status_code == 200 and request.url.path in BODIES:
            lines = data.decode().split("\n")
            if response.headers["content-type"] == "application/x-ndjson":
                same(lines.pop(), "", "the end of the last line")
            for line in lines:
                raw = json.loads(line)
                if "error" not in raw:
                    value = BODIES[request.url.path].model_validate_json(line, strict=True)
                    same(leftovers(raw, value), [], f"fields unknown to {type(value).__name__}")
                self.looks += 1
        return httpx.Response(response.status_code, headers=dict(response.headers), content=data)


class House:
    """A running server and the package's clients for it."""

    def __init__(self, server, name, key=None):
        self.server, self.model, self.house = server, server.name, name
        self.wire = Wire()
        headers = {"Authorization": f"Bearer {key}"} if key else None
        self.api = ollama.Client(server.address, transport=self.wire, headers=headers)
        self.direct = ollama.Client(server.address, headers=headers)  # as it comes, unbuffered
        self.headers = headers

    def asynchronous(self):
        return ollama.AsyncClient(self.server.address, headers=self.headers)


def told(part):
    """What a reply says, without ids and times."""
    message = part.get("message")
    said = part if message is None else message
    calls = [(c.function.name, dict(c.function.arguments)) for c in said.get("tool_calls") or []]
    return {"text": said["response" if message is None else "content"] or "",
            "thinking": said.get("thinking") or "", "calls": calls,
            "logprobs": [(p.token, p.logprob) for p in part.get("logprobs") or []],
            "why": part.done_reason, "tokens": part.eval_count, "prompt": part.prompt_eval_count}


def joined(parts):
    """What the pieces of a stream add up to."""
    parts = list(parts)
    expect(parts and parts[-1].done and not any(p.done for p in parts[:-1]), "one last piece")
    pieces = [told(part) for part in parts]
    out = pieces[-1]
    for name in ("text", "thinking"):
        out[name] = "".join(piece[name] for piece in pieces)
    for name in ("calls", "logprobs"):
        out[name] = [each for piece in pieces for each in piece[name]]
    return out


def both_ways(ask, **given):
    whole = ask(**given)
    same(joined(ask(**given, stream=True)), told(whole), f"streamed and whole of {given}")
    return whole


def chat(h, **more):
    options = {**SHORT, **more.pop("options", {})}
    return both_ways(h.api.chat, model=h.model, **{"messages": HELLO, **more}, options=options)


def generate(h, **more):
    options = {**SHORT, **more.pop("options", {})}
    return both_ways(h.api.generate, model=h.model, **{"prompt": "Once upon", **more},
                     options=options)


def refused(status, pattern, ask, *given, **named):
    try:
        answer = ask(*given, **named)
        if not isinstance(answer, (types.SubscriptableBaseModel, types.StatusResponse)):
            list(answer)
    except ollama.ResponseError as error:
        same(error.status_code, status, f"the status of {error}")
        expect(re.search(pattern, error.error), f"{pattern!r} in {error.error!r}")
        return
    expect(False, f"a refusal of {given} {named}")


def first(what, is_right, ask, count=40):
    """Noise for weights may talk until its tokens are over: some seed comes to its end."""
    for seed in range(count):
        found = ask(seed)
        if is_right(found):
            return found
    expect(False, f"{what} among {count} seeds")

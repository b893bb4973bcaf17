# SPDX-License-Identifier: Apache-2.0
"""hearth serve as the openai package sees it: chats, streams, errors, ends. On a real small model
and on gpt-oss's architecture and vocabulary with noise for weights."""
import json
import random
import sys
import time

import openai
from openai.types import Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from serving import Server, expect, same, serving, work_model
from strict import strictly

HELLO = [{"role": "user", "content": "Say hello to Ada, please."}]


def client(server, **options):
    return openai.OpenAI(base_url=server.address + "/v1", api_key="none", max_retries=0,
                         timeout=300, **options)


def events(data):
    """The data of each server-sent event; comments dropped."""
    for event in data.decode("utf-8").split("\n\n"):
        for line in event.split("\n"):
            if line.startswith("data: "):
                yield line[6:]


def whole(server, body):
    status, headers, data = server.request("POST", "/v1/chat/completions", body)
    same(status, 200, f"{body}: {data[:300]}")
    return strictly(ChatCompletion, data), headers


def streamed(server, body):
    """The chunks of a stream put together again."""
    status, _, data = server.request("POST", "/v1/chat/completions", {**body, "stream": True})
    same(status, 200, f"{body}: {data[:300]}")
    found = list(events(data))
    same(found[-1], "[DONE]", "the last event")
    chunks = [strictly(ChatCompletionChunk, text) for text in found[:-1]]
    same(len({c.id for c in chunks}), 1, "ids of one stream")
    return chunks


def joined(chunks, index=0):
    """(content, reasoning, calls, finish reason) of one choice of a stream."""
    content, reasoning, calls, finish = "", "", [], None
    for chunk in chunks:
        for choice in chunk.choices:
            if choice.index != index:
                continue
            content += choice.delta.content or ""
            extra = choice.delta.model_extra or {}
            same(extra.get("reasoning"), extra.get("reasoning_content"), "both names of reasoning")
            reasoning += extra.get("reasoning") or ""
            for call in choice.delta.tool_calls or []:
                if call.index == len(calls):
                    calls.append([call.id, call.function.name, ""])
                calls[call.index][2] += call.function.arguments or ""
            finish = choice.finish_reason or finish
    return content, reasoning, [tuple(c[1:]) for c in calls], finish


def told(completion, index=0):
    choice = completion.choices[index]
    message = choice.message
    calls = [(c.function.name, c.function.arguments) for c in message.tool_calls or []]
    reasoning = (message.model_extra or {}).get("reasoning") or ""
    return message.content or "", reasoning, calls, choice.finish_reason


def check_models(server):
    listed = client(server).models.list().data
    same([m.id for m in listed], [server.name], "the models")
    _, _, raw = server.request("GET", "/v1/models/" + server.name)
    card = strictly(Model, raw)
    expect(card.model_extra["max_model_len"] >= 512, f"a context length in {raw}")
    try:
        client(server).models.retrieve("gpt-7")
        expect(False, "an unknown model was found")
    except openai.NotFoundError as error:
        same(error.code, "model_not_found", "the code of an unknown model")
    for path in ("/livez", "/readyz"):
        same(server.request("GET", path)[0], 200, path)


def check_chat(server, content=None):
    api = client(server)
    reply = api.chat.completions.create(
        model=server.name, messages=HELLO, temperature=0, max_completion_tokens=24)
    expect(reply.usage.prompt_tokens > 5 and 0 < reply.usage.completion_tokens <= 24,
           f"plausible usage, not {reply.usage}")
    if content is not None:
        expect(content in reply.choices[0].message.content, f"{content!r} in {reply}")
    again, headers = whole(server, {"messages": HELLO, "temperature": 0, "max_tokens": 24})
    same(told(again), told(reply), "the same request again")
    expect(int(headers["x-hearth-cached-tokens"]) == again.usage.prompt_tokens_details.cached_tokens,
           f"{headers} to agree with {again.usage}")
    pieces = []
    with api.chat.completions.create(
            model=server.name, messages=HELLO, temperature=0, max_completion_tokens=24, stream=True,
            stream_options={"include_usage": True}) as stream:
        pieces = list(stream)
    same(joined(pieces), told(reply), "streamed and whole")
    same(pieces[-1].usage.completion_tokens, reply.usage.completion_tokens, "usage of the stream")


def random_body(rng):
    """A request whose reply depends on nothing but itself."""
    words = ["tell", "me", "a", "story", "about", "Zoë", "and", "7", "owls\n", "🦉", "please", "?"]
    body = {
        "messages": [{"role": "user", "content": " ".join(rng.choices(words, k=rng.randint(1, 12)))}],
        "seed": rng.randrange(1 << 30), "temperature": rng.choice([0, 0.7, 1, 1.5]),
        "max_tokens": rng.randint(1, 24), "top_p": rng.choice([1, 0.9]),
    }
    if rng.random() < 0.4:
        body["stop"] = rng.choice(["e", ["the", " a"], ["\n"], [".", ",", "owl"]])
    if rng.random() < 0.3:
        body["messages"].insert(0, {"role": "system", "content": "Be brief."})
    if rng.random() < 0.3:
        body["frequency_penalty"] = 0.5
    if rng.random() < 0.2:
        body["n"] = 2
    return body


def check_streams_equal_wholes(server, count, seed):
    rng = random.Random(seed)
    for _ in range(count):
        body = random_body(rng)
        one, _ = whole(server, body)
        chunks = streamed(server, body)
        for index in range(body.get("n", 1)):
            same(joined(chunks, index), told(one, index), f"streamed and whole of {body}")


# body or members to change, status, code, what the message names
MISTAKES = [
    (b"", 400, "invalid_json", "body"),
    (b"{", 400, "invalid_json", "body"),
    (b'{"messages": []} x', 400, "invalid_json", "body"),
    (b'{"messages": [{"role": "user", "content": "\xff\xfe"}]}', 400, "invalid_json", "body"),
    (b"[" * 5000 + b"]" * 5000, 400, "invalid_json", "body"),
    (b'{"model": "a", "model": "b"}', 400, "invalid_json", "body"),
    (b"[1]", 400, None, "object"),
    ({"messages": None}, 400, None, "messages"),
    ({"messages": []}, 400, None, "messages"),
    ({"messages": [{"role": "wizard", "content": "x"}]}, 400, None, "messages[0].role"),
    ({"messages": [{"role": "user", "content": 7}]}, 400, None, "messages[0].content"),
    ({"temperatur": 1}, 400, "unknown_parameter", "temperatur"),
    ({"temperature": 9}, 400, None, "temperature"),
    ({"temperature": "hot"}, 400, None, "temperature"),
    ({"max_tokens": 0}, 400, None, "max_tokens"),
    ({"max_tokens": 1 << 26}, 400, "context_length_exceeded", "maximum context length"),
    ({"n": 99}, 400, None, "n:"),
    ({"stop": [""]}, 400, None, "stop"),
    ({"stop": [1]}, 400, None, "stop"),
    ({"logit_bias": {"x": 1}}, 400, None, "logit_bias"),
    ({"logit_bias": {"99999999": 1}}, 400, None, "logit_bias"),
    ({"audio": {"voice": "x"}}, 400, "unsupported_parameter", "audio"),
    ({"store": True}, 400, "unsupported_parameter", "store"),
    ({"top_logprobs": 3}, 400, None, "logprobs"),
    ({"tool_choice": "required"}, 400, None, "tool_choice"),
    ({"stream_options": {"x": True}}, 400, "unknown_parameter", "stream_options.x"),
    ({"response_format": {"type": "xml"}}, 400, None, "response_format.type"),
    ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}, 400, None, "schema"),
    ({"response_format": {"type": "json_schema", "json_schema": {
        "name": "x", "schema": {"type": "banana"}}}}, 400, None, "banana"),
    ({"model": "gpt-7"}, 404, "model_not_found", "model"),
]


def check_mistakes(server):
    for change, status, code, names in MISTAKES:
        body = change if isinstance(change, bytes) else {
            "messages": HELLO, "max_tokens": 4, **change}
        found, _, data = server.request("POST", "/v1/chat/completions", body)
        error = json.loads(data)["error"]
        same((found, error["code"]), (status, code), f"{change} got {data}")
        expect(names in error["message"], f"{names} in {data} for {change}")
        same(set(error), {"message", "type", "param", "code"}, "members of an error")
    same(server.request("POST", "/v1/chat/completions", b"x", {"content-type": "text/plain"})[0], 400,
         "a body that is no JSON")
    hello = json.dumps({"messages": HELLO, "max_tokens": 1}).encode()
    same(server.request("POST", "/v1/chat/completions", hello,
                        {"content-type": "application/x-www-form-urlencoded"})[0], 200, "what curl -d sends")
    same(server.request("GET", "/v1/chat/completions")[0], 405, "GET")
    same(server.request("GET", "/v1/nothing")[0], 404, "an unknown path")
    same(server.request("GET", "/v1/models", headers={"host": "evil.example"})[0], 403, "a host")
    same(server.request("GET", "/v1/models", headers={"origin": "http://evil.example"})[0], 403,
         "an origin")
    same(server.request("GET", "/readyz")[0], 200, "ready after all of it")


def check_drain(program, model):
    """SIGTERM under load: streams end with an error event within the bound; idle, at once."""
    server = Server(program, model, "--drain", "0.5")
    with client(server).chat.completions.create(
            model=server.name, messages=HELLO, max_completion_tokens=4000, stream=True,
            extra_body={"ignore_eos": True}) as stream:
        next(iter(stream))
        began = time.monotonic()
        server.process.terminate()
        try:
            for _ in stream:
                pass
            expect(False, "a stream that was cut short ended as if whole")
        except openai.APIError as error:
            expect("shutting down" in str(error), f"the reason, not {error}")
    same(server.process.wait(20), 0, "the exit code")
    expect(time.monotonic() - began < 6, "the drain to keep its bound")
    idle = Server(program, model)
    code, seconds = idle.stop()
    same(code, 0, "the exit code")
    print(f"idle exit in {seconds:.2f} s")
    expect(seconds < 2, f"an idle server to end at once, not in {seconds:.1f} s")


def check_doors(program, model):
    """No keys, no way in from outside."""
    server = Server(program, model, host="0.0.0.0")
    same(server.port, None, "a port beyond loopback without keys")
    expect("--keys" in "".join(server.log), f"a hint in {server.log}")


def main(program):
    with serving(program, work_model("smollm2.gguf"), "--context", "2048") as server:
        check_models(server)
        check_chat(server, "Ada")
        check_mistakes(server)
        check_streams_equal_wholes(server, 6, seed=1)
    with serving(program, work_model("tiny-oss-o200k.gguf")) as server:
        check_models(server)
        check_chat(server)
        check_mistakes(server)
        check_streams_equal_wholes(server, 40, seed=2)
    check_drain(program, work_model("tiny-oss-o200k.gguf"))
    check_doors(program, work_model("tiny-oss-o200k.gguf"))
    print("chats are as the openai package wants them")


if __name__ == "__main__":
    main(sys.argv[1])

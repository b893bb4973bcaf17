# SPDX-License-Identifier: Apache-2.0
"""hearth serve on the mock driver beside one on the CPU: 60 cases of the official Python SDKs, with
grammars, log-probabilities, streams and requests that are given up, have the same replies; a stream
that the CPU began goes on at the GPU with the same events, and the other way round."""
import concurrent.futures
import http.client
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "server"))
from anthropic import Anthropic
from openai import OpenAI
from serving import expect, same, serving, work_model

NAME = "tiny-chatml"
CASES = 60
FLAGS = ("--confine", "off", "--kv-memory", "8MiB", "--context", "512", "--date",
         "2026-01-02")
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}, "ok": {"type": "boolean"}},
          "required": ["n", "ok"], "additionalProperties": False}
# What changes from time to time; which of two requests finds the other's work is a matter of time, too.
VOLATILE = {"id", "item_id", "created", "created_at", "completed_at", "_request_id", "service_tier",
            "cached_tokens", "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"}
hits = []  # tokens of prompts that were found in a cache
TEXTS = ["Tell me of a dog.", "one two three one two three one two", "Why?", "Count to ten, slowly, please."]


def plain(value):
    """A reply without what differs between any two servers."""
    if hasattr(value, "model_dump"):
        value = value.model_dump()
    if isinstance(value, dict):
        hits.extend(filter(None, (value.get("cached_tokens"), value.get("cache_read_input_tokens"))))
        return {key: plain(each) for key, each in value.items() if key not in VOLATILE}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value


def chat_settings(number):
    settings = {"temperature": (0, 0.8)[number // 5 % 2], "seed": number, "max_tokens": 3 + number % 6}
    if number % 3 == 1:
        settings["frequency_penalty"] = 0.5
    if number % 4 == 2:
        settings["top_p"] = 0.8
    if number % 4 == 3:
        settings["response_format"] = {"type": "json_schema", "json_schema": {
            "name": "answer", "strict": True, "schema": SCHEMA}}
        settings["max_tokens"] = 12
    return settings


def ask(clients, number):
    """One case: what an SDK makes of the reply."""
    openai, anthropic = clients
    text = TEXTS[number % len(TEXTS)] + f" {number // 7}"
    messages = [{"role": "user", "content": text}]
    kind = number % 5
    if kind == 0:
        return openai.chat.completions.create(model=NAME, messages=messages, **chat_settings(number))
    if kind == 1:
        stream = openai.chat.completions.create(model=NAME, messages=messages, stream=True,
                                                stream_options={"include_usage": True}, **chat_settings(number))
        return [plain(event) for event in stream]
    if kind == 2:
        return openai.completions.create(model=NAME, prompt=text, max_tokens=4, temperature=0.5, seed=number,
                                         logprobs=2)
    if kind == 3:
        return anthropic.messages.create(model=NAME, messages=messages, max_tokens=5,
                                         extra_body={"temperature": 0})
    return openai.responses.create(model=NAME, input=text, max_output_tokens=16, temperature=0, store=False)


def clients_of(server):
    return (OpenAI(base_url=server.address + "/v1", api_key="none", timeout=600, max_retries=0),
            Anthropic(base_url=server.address, api_key="none", timeout=600, max_retries=0))


def give_up(server):
    """A stream that nobody reads to its end."""
    body = {"messages": [{"role": "user", "content": "Go on and on."}], "max_tokens": 200, "min_tokens": 200,
            "temperature": 0, "stream": True}
    begin_stream(server, body, 2)


def run_cases(server):
    clients = clients_of(server)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        given_up = [pool.submit(give_up, server) for _ in range(4)]
        replies = list(pool.map(lambda number: plain(ask(clients, number)), range(CASES)))
        for each in given_up:
            each.result()
    return replies


def open_stream(server, body, last_id=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    headers = {"content-type": "application/json", **({"last-event-id": last_id} if last_id else {})}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
    response = connection.getresponse()
    expect(response.status == 200, f"a stream: {response.status} {response.read(500) if response.status != 200 else ''}")
    return connection, response


def events_from(response, most=None):
    """(id, data) of events, to the end or so many."""
    found, last_id = [], None
    for line in response:
        line = line.decode().rstrip("\n")
        if line.startswith("id: "):
            last_id = line[4:]
        elif line.startswith("data: "):
            found.append((last_id, line[6:]))
            if most is not None and len(found) >= most:
                break
    return found


def begin_stream(server, body, most):
    connection, response = open_stream(server, body)
    found = events_from(response, most)
    connection.close()
    return found


def texts(events):
    """What events say, in order."""
    said = [json.loads(data)["choices"] for _, data in events if data != "[DONE]"]
    return [choice["delta"].get("content") or "" for choices in said for choice in choices]


def check_move(first, second, seed):
    """A stream cut at one server and resumed at the other is the undisturbed one."""
    body = {"messages": [{"role": "user", "content": f"Tell a tale {seed}."}], "max_tokens": 24, "min_tokens": 24,
            "temperature": 0.9, "seed": seed, "stream": True}
    connection, response = open_stream(first, body)
    whole = events_from(response)
    connection.close()
    begun = begin_stream(first, body, 8)
    connection, response = open_stream(second, body, begun[-1][0])
    rest = events_from(response)
    connection.close()
    expect(len(rest) > 5, f"a rest to move: {len(rest)} events")
    same(texts(begun) + texts(rest), texts(whole), "the moved stream")


def main(program, mock):
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    if "CUDA: not built in" in version:
        print("SKIPPED LOUDLY: the program has no CUDA kernels, nvcc is missing (./dev setup cuda)")
        return
    model = work_model(NAME + ".gguf")
    env = {**os.environ, "LD_LIBRARY_PATH": str(mock)}
    with tempfile.TemporaryDirectory() as folder:
        secret = pathlib.Path(folder, "secret")
        secret.write_text("a secret that both servers have", encoding="utf-8")
        flags = (*FLAGS, "--cache-key", str(secret))
        with serving(program, model, "--device", "cpu", *flags) as cpu, \
                serving(program, model, "--device", "cuda:0", *flags, env=env) as gpu:
            wanted = run_cases(cpu)
            hits.clear()
            found = run_cases(gpu)
            expect(len(hits) > 5, f"prompts that were found in the GPU's cache: {hits}")
            for number, (one, other) in enumerate(zip(wanted, found)):
                same(other, one, f"case {number}")
            print(f"{len(found)} cases of the SDKs: the GPU's replies are the CPU's")
            for seed in range(3):
                check_move(cpu, gpu, seed)
                check_move(gpu, cpu, 10 + seed)
            print("6 streams moved between CPU and GPU")


if __name__ == "__main__":
    main(sys.argv[1], pathlib.Path(sys.argv[2]))

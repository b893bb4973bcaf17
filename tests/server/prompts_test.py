# SPDX-License-Identifier: Apache-2.0
"""What is asked of a prompt instead of a reply: log-probabilities of its tokens and embeddings, by
the openai package, against a float64 computation that shares no code with the server."""
import base64
import json
import pathlib
import struct
import sys

import numpy as np
import openai
from openai.types import CreateEmbeddingResponse

from serving import expect, same, serving, work_model
from strict import strictly

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "oracle"))
import reference  # noqa: E402

TEXT = "The quick brown fox jumps over the lazy dog; it is 9 o'clock."
CHAT = [{"role": "user", "content": "Say hello to Ada, please."}]


def client(server):
    return openai.OpenAI(base_url=server.address + "/v1", api_key="none", max_retries=0,
                         timeout=300)


def post(server, path, body, status=200):
    found, headers, data = server.request("POST", path, body)
    same(found, status, f"{path} {str(body)[:200]}: {data[:300]}")
    return json.loads(data), headers


def tokens_of(server, **what):
    return post(server, "/tokenize", what)[0]["tokens"]


class Oracle:
    """What the model thinks of some tokens, in float64."""

    def __init__(self, path, tokens):
        self.tokens = tokens
        self.states = reference.states(path, np.array(tokens))
        logits = reference.head(path, self.states)
        top = logits.max(axis=1, keepdims=True)
        self.logprobs = logits - top - np.log(np.exp(logits - top).sum(axis=1, keepdims=True))

    def check(self, position, token, logprob, what, near):
        wanted = self.logprobs[position - 1][token]
        expect(abs(logprob - wanted) < near, f"{what}: token {position} has {logprob}, not {wanted}")

    def embedding(self):
        mean = self.states.mean(axis=0)
        return mean / np.linalg.norm(mean)


def check_echo(server, oracle, near):
    api = client(server)
    asked = {"model": server.name, "prompt": TEXT, "echo": True, "temperature": 0}
    read = api.completions.create(**asked, logprobs=5, max_tokens=0)
    choice = read.choices[0]
    same((choice.text, choice.finish_reason), (TEXT, "length"), "an echo and nothing else")
    same(read.usage.completion_tokens, 0, "tokens of the reply")
    lists = choice.logprobs
    same(len(lists.tokens), len(oracle.tokens), "tokens of the prompt")
    same((lists.token_logprobs[0], lists.top_logprobs[0]), (None, None), "of the first token")
    same(lists.text_offset[0], 0, "the first offset")
    for i in range(1, len(oracle.tokens)):
        oracle.check(i, oracle.tokens[i], lists.token_logprobs[i], "echo", near)
        expect(len(lists.top_logprobs[i]) <= 5, "5 others at most")
        likeliest = max(lists.top_logprobs[i].values())
        expect(abs(likeliest - oracle.logprobs[i - 1].max()) < near, f"the likeliest at {i}")
    raw = TEXT.encode()
    ends = lists.text_offset[1:] + [len(raw)]
    for piece, begin, end in zip(lists.tokens, lists.text_offset, ends):
        if end > begin:  # a first token of the model's own is no part of the text
            same(raw[begin:end].decode(), piece, "a token's place in the text")
    longer = api.completions.create(**asked, logprobs=2, max_tokens=6)
    plain = api.completions.create(model=server.name, prompt=TEXT, temperature=0, max_tokens=6,
                                   logprobs=2)
    same(longer.choices[0].text, TEXT + plain.choices[0].text, "an echo before a reply")
    same(longer.choices[0].logprobs.token_logprobs,
         lists.token_logprobs + plain.choices[0].logprobs.token_logprobs, "both parts' logprobs")
    same(api.completions.create(**asked, max_tokens=6).choices[0].text, longer.choices[0].text,
         "an echo without logprobs")
    text, values = "", []
    for chunk in api.completions.create(**asked, logprobs=2, max_tokens=6, stream=True):
        for piece in chunk.choices:
            text += piece.text
            values += piece.logprobs.token_logprobs if piece.logprobs else []
    same((text, values), (longer.choices[0].text, longer.choices[0].logprobs.token_logprobs),
         "streamed and whole")
    by_ids = api.completions.create(model=server.name, prompt=[oracle.tokens, oracle.tokens[:9]],
                                    echo=True, logprobs=2, max_tokens=0, n=2)
    same([len(c.logprobs.tokens) for c in by_ids.choices],
         [len(oracle.tokens)] * 2 + [9] * 2, "choices of two prompts")
    for one in by_ids.choices:
        same(one.logprobs.token_logprobs, lists.token_logprobs[:len(one.logprobs.tokens)],
             "the same tokens in a batch")


def check_prompt_logprobs(server, oracle, path, near):
    api = client(server)
    body = {"model": server.name, "prompt": TEXT, "max_tokens": 2, "prompt_logprobs": 20}
    choice = api.completions.create(model=server.name, prompt=TEXT, max_tokens=2,
                                    extra_body={"prompt_logprobs": 20}).choices[0]
    rows = choice.model_extra["prompt_logprobs"]
    same((len(rows), rows[0]), (len(oracle.tokens), None), "a row per token")
    for i in range(1, len(rows)):
        own = rows[i][str(oracle.tokens[i])]
        expect(20 <= len(rows[i]) <= 21, f"{len(rows[i])} entries")
        for token, entry in rows[i].items():
            oracle.check(i, int(token), entry["logprob"], "prompt_logprobs", near)
        ranks = sorted(entry["rank"] for entry in rows[i].values())
        same(ranks[:20], list(range(1, 21)), "ranks")
        above = int((oracle.logprobs[i - 1] > own["logprob"] + near).sum())
        below = int((oracle.logprobs[i - 1] > own["logprob"] - near).sum())
        expect(above < own["rank"] <= below + 1, f"rank {own['rank']} within {above}, {below}")
    again, headers = post(server, "/v1/completions", body)
    same(again["choices"][0]["prompt_logprobs"], rows, "the same once it is cached")
    same((headers["x-hearth-cached-tokens"], headers["x-hearth-cache-miss"][:8]), ("0", "not used"),
         "the cache, which it does not use")
    chat = Oracle(path, tokens_of(server, messages=CHAT))
    reply, _ = post(server, "/v1/chat/completions",
                    {"messages": CHAT, "max_tokens": 3, "prompt_logprobs": 1, "n": 2})
    rows = reply["prompt_logprobs"]
    same((len(rows), rows[0]), (len(chat.tokens), None), "a row per token of a chat")
    for i in range(1, len(rows)):
        chat.check(i, chat.tokens[i], rows[i][str(chat.tokens[i])]["logprob"], "chat", near)


def check_refusals(server):
    for path, body, param in (
            ("chat/completions", {"messages": CHAT, "prompt_logprobs": 1, "stream": True},
             "prompt_logprobs"),
            ("chat/completions", {"messages": CHAT, "max_tokens": 0}, "max_tokens"),
            ("completions", {"prompt": TEXT, "prompt_logprobs": 21}, "prompt_logprobs"),
            ("completions", {"prompt": [7] * 7000, "n": 16, "prompt_logprobs": 2},
             "prompt_logprobs"),
            ("completions", {"prompt": [7] * 7000, "n": 16, "echo": True, "logprobs": 20},
             "logprobs"),
            ("embeddings", {"input": TEXT, "dimensions": 16}, "dimensions"),
            ("embeddings", {"input": ""}, "input"),
            ("embeddings", {"input": []}, "input"),
            ("embeddings", {"input": [{}]}, "input"),
            ("embeddings", {}, "input"),
            ("embeddings", {"input": TEXT, "encoding_format": "hex"}, "encoding_format"),
            ("embeddings", {"input": [1 << 28]}, "input")):
        answer, _ = post(server, "/v1/" + path, body, 400)
        same(answer["error"]["param"], param, f"what is blamed in {str(body)[:100]}")


def check_embeddings(server, oracle, path):
    api = client(server)
    answer = api.embeddings.create(model=server.name, input=TEXT)  # asks for base64, reads it back
    vector = answer.data[0].embedding
    wanted = oracle.embedding()
    same(len(vector), len(wanted), "numbers in an embedding")
    expect(abs(np.linalg.norm(vector) - 1) < 1e-5, "an embedding of length 1")
    cosine = float(np.dot(vector, wanted))
    expect(cosine > 0.9995, f"a cosine of {cosine} with the mean of the oracle's states")
    same((answer.usage.prompt_tokens, answer.usage.total_tokens), (len(oracle.tokens),) * 2, "usage")
    raw = server.request("POST", "/v1/embeddings", {"input": TEXT, "encoding_format": "float"})[2]
    typed = strictly(CreateEmbeddingResponse, raw)
    same(np.float32(typed.data[0].embedding).tolist(), np.float32(vector).tolist(),
         "both encodings")
    coded, _ = post(server, "/v1/embeddings", {"input": TEXT, "encoding_format": "base64"})
    numbers = base64.b64decode(coded["data"][0]["embedding"], validate=True)
    same(list(struct.unpack(f"<{len(vector)}f", numbers)), np.float32(vector).tolist(), "base64")
    others = [f"{i} " * (1 + 37 * i % 90) for i in range(24)]
    many = api.embeddings.create(model=server.name, input=others + [TEXT])
    same([one.index for one in many.data], list(range(25)), "an embedding per input, in order")
    same(many.data[-1].embedding, vector, "the same text in a batch")
    for i in (0, 5):
        alone = api.embeddings.create(model=server.name, input=tokens_of(server, prompt=others[i]))
        same(alone.data[0].embedding, many.data[i].embedding, "the same text by its tokens, alone")
    wanted = Oracle(path, tokens_of(server, prompt=others[5])).embedding()
    cosine = float(np.dot(many.data[5].embedding, wanted))
    expect(cosine > 0.9995, f"a cosine of {cosine} in a batch")


def main():
    program = sys.argv[1]
    for name, near in (("tiny-oss-o200k.gguf", 0.15), ("smollm2.gguf", 0.15)):
        path = work_model(name)
        with serving(program, path) as server:
            oracle = Oracle(path, tokens_of(server, prompt=TEXT))
            check_echo(server, oracle, near)
            check_prompt_logprobs(server, oracle, path, near)
            check_embeddings(server, oracle, path)
            check_refusals(server)
        print(f"{name}: echo, prompt_logprobs and embeddings as in float64")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""What ollama_test.py must be refused: by the package's own exception, with the status and the words
that say what to change."""
import ollama

from ollama_asking import refused
from serving import expect

HELLO = [{"role": "user", "content": "Hello."}]
IMAGE = "iVBORw0KGgo="


def mistakes(*rows):
    """One case of several requests to /api/chat or /api/generate: (status, words, members)."""
    def run(h):
        for status, words, members in rows:
            ask = h.api.generate if "prompt" in members else h.api.chat
            given = {"model": h.model, **members}
            if "prompt" not in given:
                given.setdefault("messages", HELLO)
            for stream in (False, True):
                refused(status, words, ask, **given, stream=stream)
    return run


def models(h):
    for ask in (h.api.chat, h.api.generate, h.api.show, h.api.embeddings):
        refused(404, 'model "llama3.2" not found', ask, "llama3.2")
    refused(404, "not found", h.api.embed, "llama3.2", "x")
    refused(404, "not found", h.api.chat, h.model + ":8b", HELLO)


def long_prompts(h):
    words = "maximum context length is .* tokens"
    long = "owl " * 9000
    refused(400, words, h.api.chat, h.model, [{"role": "user", "content": long}])
    refused(400, words, h.api.generate, h.model, long, stream=True)
    refused(400, words, h.api.embed, h.model, ["x", long])
    refused(400, words, h.api.chat, h.model, HELLO, options={"num_predict": 100000})


def embeddings(h):
    refused(400, "input: must not be empty", h.api.embed, h.model, ["a", ""])
    refused(400, "dimensions: not supported", h.api.embed, h.model, "x", dimensions=8)
    refused(400, "at most 2048 entries", h.api.embed, h.model, ["x"] * 2049)
    refused(400, 'Unknown field "options.num_cxt"', h.api.embed, h.model, "x",
            options={"num_cxt": 1})


def keys(h):
    stranger = ollama.Client(h.server.address)
    refused(401, "an API key is required", stranger.list)
    refused(401, "an API key is required", stranger.chat, h.model, HELLO)
    wrong = ollama.Client(h.server.address, headers={"Authorization": "Bearer no"})
    refused(401, "invalid API key", wrong.chat, h.model, HELLO, stream=True)
    expect(h.api.chat(h.model, HELLO, options={"num_predict": 3}).done, "a reply with the key")
    expect(h.api.list().models, "models with the key")


CASES = [
    ("error.model", models, "both"),
    ("error.context_length", long_prompts, "both"),
    ("error.embeddings", embeddings, "tiny"),
    ("error.keys", keys, "keyed"),
    ("error.unknown_option", mistakes(
        (400, 'Unknown field "options.temprature"; did you mean "temperature"', {"options": {"temprature": 1}})), "both"),
    ("error.option_type", mistakes(
        (400, "options.temperature: must be of type number", {"options": {"temperature": "hot"}}),
        (400, "options.seed: must be of type integer", {"options": {"seed": 1.5}}),
        (400, "options.stop: must be a string", {"options": {"stop": 3}})), "both"),
    ("error.option_range", mistakes(
        (400, "options.top_p: its value must be between 0 and 1", {"options": {"top_p": 2}}),
        (400, "options.temperature: its value", {"options": {"temperature": -1}}),
        (400, "options.repeat_penalty: its value", {"options": {"repeat_penalty": 0}})), "both"),
    ("error.samplers", mistakes(
        (400, "options.mirostat: not supported: use", {"options": {"mirostat": 2}}),
        (400, "options.tfs_z: not supported: use", {"options": {"tfs_z": 0.5}})), "tiny"),
    ("error.images", mistakes(
        (400, r"messages\[0\].images: not supported: the models read only text",
         {"messages": [{**HELLO[0], "images": [IMAGE]}]}),
        (400, "images: not supported", {"prompt": "x", "images": [IMAGE]})), "both"),
    ("error.generate_only", mistakes(
        (400, "suffix: not supported: fill-in-the-middle", {"prompt": "x", "suffix": "y"}),
        (400, "template: not supported: the model's own", {"prompt": "x", "template": "{{ . }}"}),
        (400, "context: not supported: send the conversation", {"prompt": "x", "context": [1]}),
        (400, "width: not supported", {"prompt": "x", "width": 64})), "both"),
    ("error.raw", mistakes(
        (400, "system: not supported with raw", {"prompt": "x", "raw": True, "system": "s"})),
     "tiny"),
    ("error.think", mistakes(
        (400, 'think: must be true, false, "low"', {"think": "much"})), "both"),
    ("error.schema", mistakes(
        (400, "format", {"format": {"type": "strnig"}}),
        (400, "format", {"prompt": "x", "format": {"type": "strnig"}})), "both"),
    ("error.messages", mistakes(
        (400, r"messages\[0\].role", {"messages": [{"role": "robot", "content": "x"}]}),
        (400, r"messages\[1\].tool_name: is missing",
         {"messages": [*HELLO, {"role": "tool", "content": "x"}]})), "both"),
    ("error.logprobs", mistakes(
        (400, "top_logprobs: needs logprobs", {"top_logprobs": 2}),
        (400, "top_logprobs: its value", {"logprobs": True, "top_logprobs": 50})), "tiny"),
]

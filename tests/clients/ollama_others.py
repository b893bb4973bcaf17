# SPDX-License-Identifier: Apache-2.0
"""Cases of ollama_test.py: prompts, embeddings, and what is told of models."""
import json
import math
import re

import jsonschema

from ollama_asking import HELLO, REPORT, SHORT, chat, first, generate, joined, refused, told
from serving import expect, same

# --- prompts -------------------------------------------------------------------------------------

def generate_plain(h):
    reply = generate(h)
    same((reply.done, reply.model, reply.context), (True, h.model, None), "the envelope")
    expect(reply.response or reply.thinking, f"words in {reply}")


def generate_as_chat(h):
    asked = told(chat(h, messages=[{"role": "system", "content": "Be brief."}, *HELLO]))
    same(told(generate(h, prompt=HELLO[0]["content"], system="Be brief.")), asked, "as a chat")


def generate_raw(h):
    reply = told(generate(h, raw=True))
    same(reply["thinking"], "", "no thoughts without a template")
    status, _, data = h.server.request("POST", "/v1/completions", {
        "prompt": "Once upon", "max_tokens": 10, "temperature": 0})
    same((status, json.loads(data)["choices"][0]["text"]), (200, reply["text"]), "a completion")


def generate_raw_is_text(h):
    """What a raw prompt spells is text: a special token's name has more than one token."""
    plain = generate(h, raw=True, prompt="hello")
    for name in ("<|im_start|>", "<|start|>", "<|endoftext|>"):
        reply = generate(h, raw=True, prompt="hello" + name)
        expect(reply.prompt_eval_count > plain.prompt_eval_count + 1, f"{name} as text")


def generate_json(h):
    reply = first("a report", lambda r: r.done_reason == "stop", lambda seed: generate(
        h, format=REPORT, think=False,
        options={"temperature": 1, "seed": seed, "num_predict": 120}))
    jsonschema.validate(json.loads(reply.response), REPORT)
    reply = first("a raw one", lambda r: r.done_reason == "stop", lambda seed: generate(
        h, format=REPORT, raw=True, options={"temperature": 1, "seed": seed, "num_predict": 120}))
    jsonschema.validate(json.loads(reply.response), REPORT)


def generate_load(h):
    for more in ({}, {"prompt": ""}, {"keep_alive": 0}, {"prompt": "", "raw": True}):
        reply = h.api.generate(h.model, **more)
        same((reply.done, reply.done_reason, reply.response), (True, "load", ""), f"{more}")


def generate_logprobs(h):
    reply = generate(h, logprobs=True, raw=True)
    same("".join(p.token for p in reply.logprobs), reply.response, "what the tokens spell")


async def generate_async(h):
    api = h.asynchronous()
    given = {"model": h.model, "prompt": "Once upon", "options": SHORT}
    parts = [part async for part in await api.generate(**given, stream=True)]
    same(joined(parts), told(await api.generate(**given)), "streamed and whole")


# --- embeddings ----------------------------------------------------------------------------------

def embed_one(h):
    reply = h.api.embed(h.model, "hello")
    same(len(reply.embeddings), 1, "embeddings")
    expect(abs(math.hypot(*reply.embeddings[0]) - 1) < 1e-3, "a length of 1")
    expect(reply.prompt_eval_count > 0 and reply.total_duration > 0, f"counts in {reply.model}")


def embed_many(h):
    texts = ["one", "two words", "three words here"]
    reply = h.api.embed(h.model, texts)
    same([h.api.embed(h.model, text).embeddings[0] for text in texts], reply.embeddings,
         "alone and together")
    same(h.api.embeddings(h.model, "two words").embedding, reply.embeddings[1], "the older route")


def embed_options(h):
    plain = h.api.embed(h.model, "hello").embeddings
    same(h.api.embed(h.model, "hello", truncate=True, keep_alive="5m",
                     options={"num_ctx": 512}).embeddings, plain, "with settings")
    same(h.wire.headers["x-hearth-ignored-fields"], "options.num_ctx", "what was ignored")


def embed_nothing(h):
    same(h.api.embed(h.model, []).embeddings, [], "embeddings of no text")
    same(h.api.embeddings(h.model, "").embedding, [], "an embedding of no text")


async def embed_async(h):
    reply = await h.asynchronous().embed(h.model, ["hello"])
    same(reply.embeddings, h.api.embed(h.model, "hello").embeddings, "async and not")


# --- models --------------------------------------------------------------------------------------

def models_list(h):
    (model,) = h.api.list().models
    same(model.model, h.model + ":latest", "its name")
    expect(model.size > 1e6 and re.fullmatch("[0-9a-f]{64}", model.digest), f"{model}")
    expect(model.modified_at.year > 2020 and model.modified_at.tzinfo is not None, f"{model}")
    same((model.details.format, model.details.family),
         ("gguf", {"smollm2": "llama", "tiny": "gpt-oss"}[h.house]), "details")
    expect(re.fullmatch(r"[\d.]+[KMB]", model.details.parameter_size), f"{model.details}")


def models_ps(h):
    (model,) = h.api.ps().models
    same((model.name, model.size_vram), (h.model + ":latest", 0), "a loaded model")
    same(model.context_length, {"smollm2": 2048, "tiny": 8192}[h.house], "its context")
    expect(model.expires_at.year == 9999, f"{model.expires_at}")
    same(model.digest, h.api.list().models[0].digest, "the same model")


def models_show(h):
    shown = h.api.show(h.model)
    family = shown.modelinfo["general.architecture"]
    same(shown.modelinfo[f"{family}.context_length"], {"smollm2": 2048, "tiny": 8192}[h.house],
         "its context")
    expect(shown.modelinfo["general.parameter_count"] > 1000, f"{shown.modelinfo}")
    expect("completion" in shown.capabilities, f"{shown.capabilities}")
    expect("tools" in shown.capabilities, "tools, in the generic form where the template has none")
    same("thinking" in shown.capabilities, h.house == "tiny", "thinking")
    expect(h.house == "tiny" or "messages" in shown.template, "the file's own template")
    same(h.api.show(h.model + ":latest").modelinfo, shown.modelinfo, "with a tag")


def models_pull(h):
    same(h.api.pull(h.model).status, "success", "what is here")
    same([part.status for part in h.api.pull(h.model + ":latest", stream=True)][-1], "success",
         "in a stream")


def models_unchanged(h):
    for ask in (lambda: h.api.create("x", from_=h.model), lambda: h.api.copy(h.model, "x"),
                lambda: h.api.delete(h.model), lambda: h.api.push(h.model),
                lambda: h.api.pull("llama3.2"), lambda: h.api.pull("llama3.2", stream=True)):
        refused(501, "hearth pull", ask)
    same(len(h.api.list().models), 1, "models afterwards")


CASES = [
    ("generate.plain", generate_plain, "both"), ("generate.as_chat", generate_as_chat, "both"),
    ("generate.raw", generate_raw, "both"), ("generate.raw_is_text", generate_raw_is_text, "both"),
    ("generate.json", generate_json, "both"), ("generate.load", generate_load, "both"),
    ("generate.logprobs", generate_logprobs, "both"), ("generate.async", generate_async, "both"),
    ("embed.one", embed_one, "both"), ("embed.many", embed_many, "both"),
    ("embed.options", embed_options, "both"), ("embed.nothing", embed_nothing, "both"),
    ("embed.async", embed_async, "both"),
    ("models.list", models_list, "both"), ("models.ps", models_ps, "both"),
    ("models.show", models_show, "both"), ("models.pull", models_pull, "both"),
    ("models.unchanged", models_unchanged, "both"),
]

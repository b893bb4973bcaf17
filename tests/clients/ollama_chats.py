# SPDX-License-Identifier: Apache-2.0
"""Cases of ollama_test.py: /api/chat."""
import asyncio
import json
import re
import time

import jsonschema
import ollama

from ollama_asking import HELLO, REPORT, SHORT, both_ways, chat, first, joined, refused, told
from serving import expect, same


def chat_plain(h):
    reply = chat(h)
    same((reply.message.role, reply.done, reply.model), ("assistant", True, h.model), "the envelope")
    expect(0 < reply.eval_count <= 10 and reply.prompt_eval_count > 8, f"counts in {reply}")
    expect(h.wire.looks > 1, "strict bodies")


def chat_many_turns(h):
    said, last = [{"role": "system", "content": "Be brief."}], 0
    for word in ("My name is Ada.", "What is my name?", "Again?"):
        said.append({"role": "user", "content": word})
        reply = chat(h, messages=said)
        expect(reply.prompt_eval_count > last, "a longer prompt")
        last = reply.prompt_eval_count
        said.append(reply.message)  # the package's own type goes back as it came


def chat_continued(h):
    """A last message of the assistant's: the reply is what follows it, as in the other dialects."""
    said = [*HELLO, {"role": "assistant", "content": "Hello, my dear"}]
    reply = chat(h, messages=said)
    expect(reply.prompt_eval_count > chat(h).prompt_eval_count, "a longer prompt")
    status, _, body = h.server.request("POST", "/v1/chat/completions", {
        "model": h.model, "messages": said, "temperature": 0, "max_tokens": 10})
    same(status, 200, body)
    same(reply.message.content, json.loads(body)["choices"][0]["message"]["content"],
         "what the chat completions say")


def chat_objects(h):
    same(told(chat(h, messages=[ollama.Message(role="user", content=HELLO[0]["content"])])),
         told(chat(h)), "a message as the package's type")


def chat_options_object(h):
    options = ollama.Options(num_predict=10, temperature=0.0)
    whole = h.api.chat(h.model, HELLO, options=options)
    same(told(whole), told(chat(h)), "options as the package's type")


def chat_seed(h):
    warm = {"temperature": 1.5, "num_predict": 12}
    replies = [told(chat(h, options={**warm, "seed": seed})) for seed in (1, 1, 2, 3)]
    same(replies[0], replies[1], "the same seed")
    expect(len({r["text"] + r["thinking"] for r in replies}) > 1, f"other seeds: {replies}")


def chat_random(h):
    warm = {"temperature": 2, "num_predict": 12, "seed": -1}
    replies = [told(h.api.chat(h.model, HELLO, options=warm)) for _ in range(10)]
    found = {reply["text"] + reply["thinking"] for reply in replies}
    expect(len(found) > 1, f"a seed below 0 to draw afresh: {found}")


def chat_length(h):
    reply = chat(h, options={"num_predict": 3})
    same((reply.eval_count, reply.done_reason), (3, "length"), "a reply of three tokens")


def chat_stop(h):
    text = told(chat(h, think=False, options={"num_predict": 16}))["text"]
    word = text[len(text) // 2]
    cut = chat(h, think=False, options={"num_predict": 16, "stop": [word]})
    same(told(cut)["text"], text[:text.index(word)], "the text before the stop string")
    same(cut.done_reason, "stop", "why")
    same(told(chat(h, think=False, options={"num_predict": 16, "stop": word})), told(cut), "a string")


def chat_sampling(h):
    every = {"top_k": 20, "top_p": 0.9, "min_p": 0.05, "typical_p": 0.7, "repeat_last_n": 33,
             "temperature": 0.8, "repeat_penalty": 1.2, "presence_penalty": 1.5,
             "frequency_penalty": 1.0, "seed": 42, "num_predict": 12}
    expect(chat(h, options=every).eval_count > 0, "tokens")
    narrow = told(chat(h, options={"temperature": 1.5, "top_k": 1, "seed": 9}))
    same(narrow, told(chat(h)), "top_k 1 is greedy")


def chat_machine_options(h):
    machine = {"numa": False, "num_ctx": 1024, "num_batch": 2, "num_gpu": 1, "main_gpu": 0,
               "low_vram": False, "use_mmap": True, "use_mlock": False, "num_thread": 8,
               "num_keep": 5, "mirostat": 0, "mirostat_tau": 0.8, "penalize_newline": True}
    reply = told(chat(h, options=machine))
    named = h.wire.headers["x-hearth-ignored-fields"].split(", ")
    expect("options.num_gpu" in named and "options.temperature" not in named, f"{named}")
    same(reply, told(chat(h)), "the reply without them")
    expect("x-hearth-ignored-fields" not in h.wire.headers, "no such header without them")


def chat_json(h):
    reply = first("an object", lambda r: r.done_reason == "stop", lambda seed: chat(
        h, format="json", think=False,
        options={"temperature": 1, "seed": seed, "num_predict": 120}))
    expect(isinstance(json.loads(reply.message.content), dict), f"an object: {reply}")


def chat_schema(h):
    reply = first("a report", lambda r: r.done_reason == "stop", lambda seed: chat(
        h, format=REPORT, think=False,
        options={"temperature": 1, "seed": seed, "num_predict": 120}))
    jsonschema.validate(json.loads(reply.message.content), REPORT)


def chat_think(h):
    if h.house == "smollm2":
        refused(400, "does not support thinking", h.api.chat, h.model, HELLO, think=True)
        return refused(400, "does not support thinking", h.api.chat, h.model, HELLO, think="low",
                       stream=True)
    first("thoughts", lambda r: r.message.thinking, lambda seed: chat(
        h, think=True, options={"temperature": 1, "seed": seed, "num_predict": 20}))


def chat_think_levels(h):
    prompts = set()
    for level in ("low", "medium", "high"):
        prompts.add(json.dumps(told(chat(h, think=level, options={"num_predict": 12}))))
    expect(len(prompts) > 1, "levels that the prompt shows")
    same(h.api.chat(h.model, HELLO, options=SHORT).prompt_eval_count,
         h.api.chat(h.model, HELLO, think="medium", options=SHORT).prompt_eval_count, "medium")


def chat_no_thoughts(h):
    for seed in range(4):
        reply = chat(h, think=False, options={"seed": seed, "temperature": 1, "num_predict": 30})
        expect(not reply.message.thinking, f"no thoughts in {reply}")


def get_weather(city: str, days: int = 1) -> str:
    """
    The weather of a city.

    Args:
      city: whose weather
      days: how many

    Returns:
      str: what it is like
    """
    return f"{days} sunny days in {city}"


def calls(h, tools, **more):
    return first("a call", lambda r: r.message.tool_calls, lambda seed: chat(
        h, tools=tools, think=False, **more,
        options={"temperature": 1, "seed": seed, "num_predict": 200}))


def chat_tools_function(h):
    made = calls(h, [get_weather]).message.tool_calls
    for call in made:
        same(call.function.name, "get_weather", "whom it calls")
        expect(isinstance(call.function.arguments, dict), f"an object in {call}")
        expect(isinstance(call.function.arguments["city"], str), f"a city in {call}")


def chat_tools_schema(h):
    tool = {"type": "function", "function": {"name": "report", "parameters": REPORT}}
    for call in calls(h, [tool]).message.tool_calls:
        jsonschema.validate({k: v for k, v in call.function.arguments.items()}, {
            "type": "object", "required": ["city"],
            "properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}}})


def chat_tool_loop(h):
    """A call, its result, and the answer: as the package's examples do it."""
    reply = calls(h, [get_weather])
    messages = [*HELLO, reply.message]
    for call in reply.message.tool_calls:
        messages.append({"role": "tool", "tool_name": call.function.name, "content": "Sunny."})
    after = chat(h, messages=messages, tools=[get_weather])
    expect(after.prompt_eval_count > reply.prompt_eval_count, "a longer prompt")


def chat_tool_results(h):
    """Results that name their tool as older clients do, or not at all."""
    call = {"function": {"name": "get_weather", "arguments": {"city": "Visby"}}}
    counts = set()
    for named in ({"tool_name": "get_weather"}, {"name": "get_weather"}, {}):
        result = {"role": "tool", "content": "Sunny.", **named}
        said = [*HELLO, {"role": "assistant", "content": "", "tool_calls": [call]}, result]
        counts.add(chat(h, messages=said, tools=[get_weather]).prompt_eval_count)
    same(len(counts), 1, "prompts of the same length")


def chat_logprobs(h):
    reply = chat(h, logprobs=True, top_logprobs=3, think=False)
    same("".join(p.token for p in reply.logprobs), reply.message.content, "what the tokens spell")
    for place in reply.logprobs:
        same(len(place.top_logprobs), 3, "alternatives")
        expect(place.logprob <= 0, f"{place}")
    expect(chat(h, think=False).logprobs is None, "none unless asked for")


def chat_latest(h):
    reply = both_ways(h.api.chat, model=h.model + ":latest", messages=HELLO, options=SHORT)
    same(reply.model, h.model + ":latest", "the name as asked for")
    same(told(reply), told(chat(h)), "the same model")


def chat_times(h):
    began = time.time()
    reply = chat(h)
    passed = (time.time() - began) * 1e9
    expect(0 < reply.eval_duration + reply.prompt_eval_duration <= reply.total_duration * 1.05
           and reply.total_duration < passed, f"times in {reply}")
    same(reply.load_duration, 0, "the model is loaded")
    expect(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", reply.created_at),
           reply.created_at)


def chat_load(h):
    for more in ({}, {"messages": []}, {"keep_alive": 0}, {"keep_alive": "10m"}):
        reply = h.api.chat(h.model, **more)
        same((reply.done, reply.done_reason, reply.message.content), (True, "load", ""), f"{more}")


def chat_keep_alive(h):
    for alive in (0, -1, 300, "5m", "24h", 1.5):
        same(told(chat(h, keep_alive=alive)), told(chat(h)), f"keep_alive {alive}")


async def chat_async(h):
    api = h.asynchronous()
    whole = await api.chat(h.model, HELLO, options=SHORT)
    parts = [part async for part in await api.chat(h.model, HELLO, options=SHORT, stream=True)]
    same(joined(parts), told(whole), "streamed and whole")
    same(told(whole), told(h.api.chat(h.model, HELLO, options=SHORT)), "async and not")


async def chat_at_once(h):
    api = h.asynchronous()
    ask = lambda seed: api.chat(h.model, HELLO, options={"seed": seed, "num_predict": 12,
                                                         "temperature": 1})
    alone = [told(await ask(seed)) for seed in range(4)]
    same([told(r) for r in await asyncio.gather(*map(ask, range(4)))], alone, "alone and together")


def chat_leave(h):
    """A client that stops reading ends its request; the server goes on."""
    stream = h.direct.chat(h.model, HELLO, stream=True, options={"num_predict": 1500})
    next(iter(stream))
    stream.close()
    for _ in range(200):
        page = h.server.request("GET", "/metrics?names=hearth")[2].decode()
        if re.search(r"^hearth_requests_running 0$", page, re.MULTILINE):
            break
        time.sleep(0.05)
    else:
        expect(False, "the work of a client that left to end")
    chat(h)


CASES = [
    ("chat.plain", chat_plain, "both"), ("chat.many_turns", chat_many_turns, "both"),
    ("chat.objects", chat_objects, "both"), ("chat.continued", chat_continued, "both"),
    ("chat.options_object", chat_options_object, "both"),
    ("chat.seed", chat_seed, "both"), ("chat.random", chat_random, "tiny"),
    ("chat.length", chat_length, "both"), ("chat.stop", chat_stop, "both"),
    ("chat.sampling", chat_sampling, "both"), ("chat.machine", chat_machine_options, "both"),
    ("chat.json", chat_json, "tiny"), ("chat.schema", chat_schema, "both"),
    ("chat.think", chat_think, "both"), ("chat.think_levels", chat_think_levels, "tiny"),
    ("chat.no_thoughts", chat_no_thoughts, "both"),
    ("chat.tools_function", chat_tools_function, "tiny"),
    ("chat.tools_schema", chat_tools_schema, "tiny"), ("chat.tool_loop", chat_tool_loop, "tiny"),
    ("chat.tool_results", chat_tool_results, "tiny"), ("chat.logprobs", chat_logprobs, "both"),
    ("chat.latest", chat_latest, "both"), ("chat.times", chat_times, "both"),
    ("chat.load", chat_load, "both"), ("chat.keep_alive", chat_keep_alive, "tiny"),
    ("chat.async", chat_async, "both"), ("chat.at_once", chat_at_once, "both"),
    ("chat.leave", chat_leave, "both"),
]

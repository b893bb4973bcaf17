# SPDX-License-Identifier: Apache-2.0
"""The official openai-harmony package as oracle, and how a client's request maps to its messages.

The mapping is stated here a second time, apart from the C++ code, so that either can be wrong.
"""
import json
import os


def work_dir():
    return os.environ.get("HEARTH_WORK") or os.path.expanduser("~/.cache/hearth")


def ranks_path():
    return os.path.join(work_dir(), "o200k_base.tiktoken")


def load():
    if not os.path.exists(ranks_path()):
        raise SystemExit(f"missing {ranks_path()}: run ./dev model o200k")
    os.environ["TIKTOKEN_ENCODINGS_BASE"] = work_dir()
    import openai_harmony
    return openai_harmony.load_harmony_encoding("HarmonyGptOss")


def text_of(content):
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content)


def system_message(request, date):
    effort = request.get("reasoning_effort") or "medium"
    content = {"type": "system_content",
               "model_identity": "You are ChatGPT, a large language model trained by OpenAI.",
               "knowledge_cutoff": "2024-06", "reasoning_effort": effort.capitalize(),
               "channel_config": {"valid_channels": ["analysis", "commentary", "final"],
                                  "channel_required": True}}
    if date:
        content["conversation_start_date"] = date
    return {"role": "system", "content": [content]}


def developer_message(instructions, tools):
    content = {"type": "developer_content"}
    if instructions:
        content["instructions"] = instructions
    if tools:
        described = []
        for tool in tools:
            function = tool["function"]
            described.append({"name": function["name"],
                              "description": function.get("description") or "",
                              "parameters": function.get("parameters")})
        content["tools"] = {"functions": {"name": "functions", "description": None,
                                          "tools": described}}
    return {"role": "developer", "content": [content]}


def assistant_messages(message):
    base = {"role": "assistant"}
    if message.get("name"):
        base["name"] = message["name"]
    reasoning = message.get("reasoning") or message.get("reasoning_content")
    content = text_of(message.get("content"))
    calls = message.get("tool_calls") or []
    out = []
    if reasoning:
        out.append({**base, "channel": "analysis", "content": reasoning})
    if content or not (calls or reasoning):
        out.append({**base, "channel": "commentary" if calls else "final", "content": content})
    for call in calls:
        out.append({**base, "channel": "commentary", "content_type": "<|constrain|>json",
                    "recipient": "functions." + call["function"]["name"],
                    "content": call["function"]["arguments"]})
    return out


def messages_of(request, date):
    """Everything the request says, before any reasoning is left out."""
    out = [system_message(request, date)]
    messages = request["messages"]
    opening = 0
    while opening < len(messages) and messages[opening]["role"] in ("system", "developer"):
        opening += 1
    texts = [text_of(m["content"]) for m in messages[:opening]]
    instructions = "\n\n".join(text for text in texts if text)
    if instructions or request.get("tools"):
        out.append(developer_message(instructions, request.get("tools")))
    calls = {}
    for message in messages[opening:]:
        role = message["role"]
        text = text_of(message.get("content"))
        if role in ("system", "developer"):
            if text:
                out.append(developer_message(text, None))
        elif role == "user":
            user = {"role": "user", "content": text}
            if message.get("name"):
                user["name"] = message["name"]
            out.append(user)
        elif role == "assistant":
            out += assistant_messages(message)
            for call in message.get("tool_calls") or []:
                calls[call["id"]] = call["function"]["name"]
        else:
            out.append({"role": "tool", "name": "functions." + calls[message["tool_call_id"]],
                        "recipient": "assistant", "channel": "commentary", "content": text})
    return out


def dropped_by_hearth(messages):
    """Reasoning of every turn up to the last one that ended in a final answer."""
    finished = None
    turns = []
    for index, message in enumerate(messages):
        if message["role"] == "user" or not turns:
            turns.append([])
        if message["role"] == "assistant":
            turns[-1].append(index)
    for turn in turns:
        if turn and messages[turn[-1]]["channel"] == "final":
            finished = turn[-1]
    if finished is None:
        return set()
    return {i for i in range(finished) if messages[i].get("channel") == "analysis"}


def dropped_by_official(messages):
    """Reasoning before the first final answer, if the last assistant message is one."""
    assistant = [m for m in messages if m["role"] == "assistant"]
    if not assistant or assistant[-1]["channel"] != "final":
        return set()
    first = next(i for i, m in enumerate(messages) if m.get("channel") == "final")
    return {i for i in range(first) if messages[i].get("channel") == "analysis"}


def render(encoding, messages, drops):
    # The package's Python classes would lose `null` inside schemas on the way to its Rust part,
    # so the JSON goes there directly.
    return list(encoding._inner.render_conversation_for_completion(
        conversation_json=json.dumps({"messages": messages}), next_turn_role="assistant",
        config={"auto_drop_analysis": drops}))

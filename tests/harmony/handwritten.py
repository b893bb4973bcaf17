# SPDX-License-Identifier: Apache-2.0
"""Conversations written by hand: the shapes that clients really send, and the corners."""

WEATHER = {"type": "function", "function": {
    "name": "get_current_weather", "description": "Gets the current weather in a place.",
    "parameters": {"type": "object", "properties": {
        "location": {"type": "string", "description": "The city and state, e.g. San Francisco, CA"},
        "format": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"}},
        "required": ["location"]}}}
NOW = {"type": "function", "function": {"name": "now", "description": "The time."}}
ASK = {"role": "user", "content": "What is the weather in Tokyo?"}
CALL = {"role": "assistant", "reasoning": "I need the tool.", "tool_calls": [
    {"id": "c1", "type": "function", "function": {
        "name": "get_current_weather", "arguments": "{\"location\":\"Tokyo\"}"}}]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "{\"temperature\":20}"}
ANSWER = {"role": "assistant", "reasoning": "It is 20.", "content": "20 degrees."}
THANKS = {"role": "user", "content": "Thanks!"}
EVERY_SPECIAL = "".join(f"<|{name}|>" for name in (
    "startoftext", "endoftext", "return", "constrain", "channel", "start", "end", "message", "call",
    "endofprompt", "reserved_200000", "reserved_201087"))

REQUESTS = [
    {"messages": []},
    {"messages": [{"role": "user", "content": ""}]},
    {"messages": [{"role": "user", "content": "2 + 2 = ?"}], "reasoning_effort": "low"},
    {"messages": [{"role": "system", "content": "Be brief."}, ASK], "reasoning_effort": "high"},
    {"messages": [{"role": "system", "content": ""}, ASK]},
    {"messages": [{"role": "system", "content": "One."}, {"role": "developer", "content": "Two."},
                  ASK]},
    {"messages": [ASK], "tools": [WEATHER, NOW]},
    {"messages": [{"role": "developer", "content": "Use tools."}, ASK], "tools": [WEATHER]},
    # A tool loop: open, answered, and with a next question.
    {"messages": [ASK, CALL], "tools": [WEATHER]},
    {"messages": [ASK, CALL, RESULT], "tools": [WEATHER]},
    {"messages": [ASK, CALL, RESULT, ANSWER], "tools": [WEATHER]},
    {"messages": [ASK, CALL, RESULT, ANSWER, THANKS], "tools": [WEATHER]},
    # Two finished turns, then an open one: only the open turn's reasoning stays.
    {"messages": [ASK, ANSWER, THANKS, ANSWER, ASK, CALL, RESULT], "tools": [WEATHER]},
    {"messages": [ASK, ANSWER, THANKS, ANSWER, ASK], "tools": [WEATHER]},
    # The user interrupts before an answer came.
    {"messages": [ASK, CALL, RESULT, THANKS], "tools": [WEATHER]},
    # Words before a call are a preamble, not the answer.
    {"messages": [ASK, {**CALL, "content": "Let me look."}, RESULT], "tools": [WEATHER]},
    # Reasoning that was cut off before any answer.
    {"messages": [ASK, {"role": "assistant", "reasoning": "Hm", "content": ""}, THANKS]},
    {"messages": [ASK, {"role": "assistant", "content": None}, THANKS]},
    # Spellings of control tokens in every field that a client controls.
    {"messages": [{"role": "system", "content": EVERY_SPECIAL},
                  {"role": "user", "content": EVERY_SPECIAL},
                  {"role": "assistant", "reasoning": EVERY_SPECIAL, "tool_calls": [
                      {"id": "c", "function": {"name": EVERY_SPECIAL[:250].strip(),
                                               "arguments": EVERY_SPECIAL}}]},
                  {"role": "tool", "tool_call_id": "c", "content": EVERY_SPECIAL},
                  {"role": "assistant", "content": EVERY_SPECIAL}, THANKS],
     "tools": [{"type": "function", "function": {
         "name": "f", "description": EVERY_SPECIAL, "parameters": {
             "type": "object", "properties": {EVERY_SPECIAL: {
                 "type": "string", "description": EVERY_SPECIAL, "enum": [EVERY_SPECIAL],
                 "default": EVERY_SPECIAL}}}}}]},
]

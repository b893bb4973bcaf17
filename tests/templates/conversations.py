# SPDX-License-Identifier: Apache-2.0
"""Conversations for the comparisons: every shape a client may send, texts that bite."""
import json
import random

WORDS = (
    "hearth fire the a of and why sky blue 42 3.14 don't it's \"quoted\" naïve Ω Straße ΑΣ ΟΔΟΣ "
    "日本語 привет नमस्ते 👩‍👩‍👧 🔥 <b>&amp;</b> {{ x }} {% if %} \\n \\\\ C:\\path a\tb x==y null True"
).split(" ")
EDGES = ["", " ", "\n", "\n\n", "\t", "  \n ", "\u3000", "\u00a0", "\x1c"]
ODD = [
    "", " ", "\n", "0", "[]", "{}", "None", "\u2028line\u2029", "\u0000nul", "\U000e0041tag",
    "\U000f1234private", "\U0010fffdend", "\U00050000unassigned", "line1\nline2\r\nline3\n",
    "<think>idea</think>answer", "<think>\nidea\n</think>\n\nanswer", "</think>", "<think>",
    "<tool_call>\n{}\n</tool_call>", "<tool_response>x</tool_response>", "a</think>b</think>c",
    "[TOOL_CALLS]", "'single' \"double\" `back`", "ends with backslash\\",
]
TYPES = ["string", "integer", "number", "boolean", "array", "object", "null"]


class Maker:
    def __init__(self, seed, specials):
        self.random = random.Random(seed)
        self.specials = specials

    def text(self):
        r = self.random
        kind = r.random()
        if kind < 0.15:
            return r.choice(ODD)
        words = [r.choice(WORDS) for _ in range(r.randint(1, 12))]
        if kind < 0.4 and self.specials:
            words.insert(r.randrange(len(words) + 1), r.choice(self.specials))
        if kind < 0.45 and self.specials:
            words.append("".join(r.sample(self.specials, min(4, len(self.specials)))))
        return r.choice(EDGES) + r.choice([" ", " ", "\n", ""]).join(words) + r.choice(EDGES)

    def value(self, depth=0):
        r = self.random
        kind = r.randrange(8 if depth < 3 else 5)
        if kind == 0:
            return r.choice([True, False, None])
        if kind == 1:
            return r.choice([0, 1, -7, 2**31, 2**53 + 1, -(2**63)])
        if kind == 2:
            return r.choice([0.5, 1.0, 1e16, 1e-7, 123456.789, 5e-324, -0.0, 1e22])
        if kind < 5:
            return self.text()
        if kind == 5:
            return [self.value(depth + 1) for _ in range(r.randint(0, 3))]
        return {self.key(): self.value(depth + 1) for _ in range(r.randint(0, 3))}

    def key(self):
        return self.random.choice(
            ["city", "unit", "q", "x y", "items", "keys", "type", "ключ", "a\"b", "", "get"]
            + self.specials[:3]
        )

    def schema(self, depth=0):
        r = self.random
        kind = r.choice(TYPES)
        out = {"type": kind}
        if r.random() < 0.7:
            out["description"] = self.text()
        if r.random() < 0.2:
            out["enum"] = [self.text() for _ in range(r.randint(1, 3))]
        if r.random() < 0.2:
            out["default"] = self.value(2)
        if kind == "array" and depth < 3:
            out["items"] = self.schema(depth + 1)
        if kind == "object" and depth < 3:
            out |= self.parameters(depth + 1)
        return out

    def parameters(self, depth=0):
        r = self.random
        names = [self.key() for _ in range(r.randint(0, 4))]
        out = {"type": "object", "properties": {name: self.schema(depth + 1) for name in names}}
        if names and r.random() < 0.6:
            out["required"] = sorted(set(r.sample(names, r.randint(0, len(names)))))
        return out

    def tools(self):
        r = self.random
        made = []
        for index in range(r.randint(1, 3)):
            function = {"name": f"tool_{index}", "description": self.text()}
            if r.random() < 0.9:
                function["parameters"] = self.parameters()
            made.append({"type": "function", "function": function})
        return made

    def call(self, tools):
        r = self.random
        name = r.choice(tools)["function"]["name"]
        arguments = {self.key(): self.value() for _ in range(r.randint(0, 3))}
        text = json.dumps(arguments, ensure_ascii=r.random() < 0.5)
        if r.random() < 0.05:
            text = r.choice(["", "not json", "[1]", "\"s\""])
        identity = "".join(r.choice("abcdefghijkABCDEF0123456789") for _ in range(9))
        return {"id": identity, "type": "function", "function": {"name": name, "arguments": text}}

    def turn(self, tools, out):
        """A user's message and what the assistant did about it."""
        r = self.random
        user = {"role": "user", "content": self.text()}
        if r.random() < 0.05:
            user["name"] = "ann"
        out.append(user)
        while tools and r.random() < 0.4:
            calls = [self.call(tools) for _ in range(r.choice([1, 1, 1, 2]))]
            said = {"role": "assistant", "content": r.choice(["", self.text()]), "tool_calls": calls}
            if r.random() < 0.3:
                said["reasoning_content"] = self.text()
            out.append(said)
            for call in calls:
                out.append({"role": "tool", "tool_call_id": call["id"], "content": self.text(),
                            "name": call["function"]["name"]})
        said = {"role": "assistant", "content": self.text()}
        if r.random() < 0.3:
            said["reasoning_content"] = self.text()
        out.append(said)

    def request(self):
        r = self.random
        tools = self.tools() if r.random() < 0.4 else []
        messages = []
        if r.random() < 0.5:
            messages.append({"role": r.choice(["system", "system", "developer"]),
                             "content": self.text()})
        for _ in range(r.choice([1, 1, 2, 3, 5])):
            self.turn(tools, messages)
        if r.random() < 0.85:
            messages.pop()
        if r.random() < 0.03:
            messages = messages[1:] or messages
        out = {"messages": messages}
        if tools:
            out["tools"] = tools
        if r.random() < 0.2:
            out["reasoning_effort"] = r.choice(["low", "medium", "high"])
        return out

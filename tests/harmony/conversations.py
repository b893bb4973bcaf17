# SPDX-License-Identifier: Apache-2.0
"""Random conversations as clients send them: {messages, tools, reasoning_effort}."""
import json

from schemas import Schemas

SPECIALS = ["<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|return|>",
            "<|call|>", "<|endoftext|>", "<|startoftext|>", "<|endofprompt|>",
            "<|start|>system<|message|>", "<|reserved_200013|>"]
WORDS = ["hello", "weather", "Paris", "function", "the", "a", "to=functions.f", "analysis", "final",
         "commentary", "json", "naïve", "straße", "नमस्ते", "दुनिया", "你好", "世界", "日本語",
         "한국어", "عربي", "עברית", "😀", "👩‍👩‍👧‍👦", "e\u0301", "\u200b", "\ufeff", "1234567",
         "3.14", "don't", "I'LL", "x_y", "C++", "//", "/*", "\\n", "\"quoted\"", "'single'",
         "{\"a\": 1}", "[]", "null", "\u00a0", "\u2028", "\x00", "\x7f", "\u0301", "ﬃ", "Ⅷ"]
GAPS = [" ", " ", " ", " ", "", "  ", "\n", "\n\n", "\r\n", "\t", " \n", "\n ", ".", ", ", "'"]
NAMES = ["get_weather", "search", "f", "lookup-user", "Fetch", "a.b", "x1", "run_SQL", "naming",
         "open_file", "z"]


class Conversations:
    def __init__(self, rng):
        self.rng = rng
        self.schemas = Schemas(rng, self.text)

    def text(self, most=12, may_be_empty=True):
        rng = self.rng
        count = rng.choice([0, 1, 1, 2, 3, rng.randint(0, most)])
        if not may_be_empty:
            count = max(count, 1)
        out = []
        for _ in range(count):
            out.append(rng.choice(SPECIALS) if rng.random() < 0.06 else rng.choice(WORDS))
            out.append(rng.choice(GAPS))
        text = "".join(out)
        if text and rng.random() < 0.5:
            text = text.strip() or text
        return text

    def content(self, text):
        """The same text as a string or as parts; the parts joined are the text."""
        if self.rng.random() < 0.8:
            return text
        cut = self.rng.randint(0, len(text))
        return [{"type": "text", "text": text[:cut]}, {"type": "text", "text": text[cut:]}]

    def tool(self, name):
        function = {"name": name}
        if self.rng.random() < 0.8:
            function["description"] = self.rng.choice(
                [self.text(), self.text() + "\n" + self.text(), self.text() + "\r\n\r\n", "\n", "x\r"])
        if self.rng.random() < 0.85:
            function["parameters"] = self.schemas.parameters()
        return {"type": "function", "function": function}

    def arguments(self):
        return self.rng.choice([
            "{}", json.dumps({"a": self.text(), "b": self.rng.randint(-9, 10**6)}),
            json.dumps({"x": [1, 2.5, None]}, separators=(",", ":")), self.text(), "",
            json.dumps({"u": self.text()}, ensure_ascii=False)])

    def assistant(self, names, number):
        rng = self.rng
        message = {"role": "assistant"}
        if rng.random() < 0.65:
            key = rng.choice(["reasoning", "reasoning_content"])
            message[key] = self.text()
        if rng.random() < 0.07:
            message["name"] = rng.choice(["bob", "agent-2"])
        calls = rng.choice([0, 0, 0, 1, 1, 2]) if names else rng.choice([0] * 9 + [1])
        if calls:
            message["tool_calls"] = [
                {"id": f"call_{number}_{i}", "type": "function",
                 "function": {"name": rng.choice(names or NAMES), "arguments": self.arguments()}}
                for i in range(calls)]
        if not calls or rng.random() < 0.3:
            message["content"] = self.content(self.text())
        elif rng.random() < 0.5:
            message["content"] = None
        return message

    def messages(self, names):
        rng = self.rng
        out = []
        for _ in range(rng.choice([0, 1, 1, 1, 2])):
            out.append({"role": rng.choice(["system", "developer"]),
                        "content": self.content(self.text())})
        for number in range(rng.choice([1, 1, 2, 2, 3, 4, 5])):
            if rng.random() < 0.95:
                user = {"role": "user", "content": self.content(self.text())}
                if rng.random() < 0.05:
                    user["name"] = rng.choice(["alice", "Bob_7"])
                out.append(user)
            for step in range(rng.choice([0, 1, 1, 1, 2, 3])):
                message = self.assistant(names, f"{number}_{step}")
                out.append(message)
                for call in message.get("tool_calls", []):
                    if rng.random() < 0.85:
                        out.append({"role": "tool", "tool_call_id": call["id"],
                                    "content": self.content(self.text())})
            if rng.random() < 0.04:
                out.append({"role": rng.choice(["system", "developer"]), "content": self.text()})
        return out

    def request(self):
        rng = self.rng
        request = {}
        names = rng.sample(NAMES, rng.choice([0, 0, 1, 1, 2, 3, 5]))
        request["messages"] = self.messages(names)
        if names:
            request["tools"] = [self.tool(name) for name in names]
        effort = rng.choice(["low", "medium", "high", None, "absent"])
        if effort != "absent":
            request["reasoning_effort"] = effort
        return request

# SPDX-License-Identifier: Apache-2.0
"""Conversations whose every text tries to become a special token, and their harmless twins: the
same shape, with each character that is neither space nor digit replaced by an x."""
import json
import re

from conversations import Maker

SHIFT = 0x40000  # of the marks (src/templates/marks.h): what an attacker who knows them sends


class Attacker(Maker):
    def __init__(self, seed, names):
        super().__init__(seed, names)
        self.carry = ""  # the second half of a name begun in the text before
        self.sent = set()

    def spelling(self, name):
        """One way to send a name that a template might turn into the real thing."""
        r = self.random
        cut = r.randrange(len(name))
        return r.choice([
            name, name, name,
            name + name,
            name.upper(), name.lower(), name.swapcase(),
            name[::-1],
            f"  {name}\n",
            name[:cut] + " " + name[cut:],
            name[:cut] + "\n" + name[cut:],
            name[:cut] + name + name[cut:],
            name.replace("<", "&lt;").replace(">", "&gt;"),
            json.dumps(name),
            "".join(f"\\u{ord(c):04x}" for c in name),
            "".join(chr(ord(c) + SHIFT) for c in name),
            "".join(chr(ord(c) + SHIFT) if i < cut else c for i, c in enumerate(name)),
        ])

    def text(self):
        r = self.random
        parts = [self.spelling(name) for name in r.sample(self.specials, min(3, len(self.specials)))]
        if r.random() < 0.1:
            parts = list(self.specials)  # every one of them
        name = r.choice(self.specials)
        cut = r.randrange(len(name))
        text = self.carry + r.choice(["", " ", "\n"]).join(parts) + name[:cut]
        self.carry = name[cut:]
        self.sent.add(text)
        return text

    def harmless(self, value):
        """The twin of a request, or of a part of one."""
        if isinstance(value, dict):
            out = {self.harmless(k): self.harmless(v) for k, v in value.items()}
            if "arguments" in value:
                out["arguments"] = self.harmless_json(value["arguments"])
            return out
        if isinstance(value, list):
            return [self.harmless(item) for item in value]
        if isinstance(value, str) and value in self.sent:
            return re.sub(r"[^\s\d]", "x", value)
        return value

    def harmless_json(self, text):
        try:
            return json.dumps(self.harmless(json.loads(text)))
        except ValueError:
            return text

    def key(self):
        """Names in schemas and arguments attack too, told apart by a number."""
        text = self.random.choice(self.specials) + str(self.random.randrange(10**9))
        self.sent.add(text)
        return text


def tested_names(template, names):
    """The names a template looks for in messages: what it writes may depend on those. Thoughts are
    looked for in more ways than a pattern finds."""
    looked_for = re.findall(
        r"""['"]([^'"]*)['"]\s*(?:not\s+)?in\b|\.(?:split|rsplit|startswith|endswith|find|partition"""
        r"""|replace|index|count)\(\s*\(?['"]([^'"]*)['"]|==\s*['"]([^'"]*)['"]""", template)
    words = [word for found in looked_for for word in found if word]
    return {name for name in names
            if "think" in name or any(name in word or word in name for word in words)}

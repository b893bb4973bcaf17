# SPDX-License-Identifier: Apache-2.0
"""HarmonyParser against the official parser: the same messages from every valid stream.

usage: parse_test.py READ_REPLIES [--count N] [--seed S]
"""
import argparse
import json
import random
import subprocess
import sys
import time

import official
from conversations import Conversations

START, CHANNEL, CONSTRAIN, MESSAGE = 200006, 200005, 200003, 200008
END, CALL, RETURN = 200007, 200012, 200002

# Streams the official parser accepts and reads in a way not copied, each with both readings as
# (channel, recipient, content type, content): docs/harmony.md says why. Run live, so the list
# stays true.
QUIRKS = [
    ("<|channel|>final <|constrain|>json<|message|>{}<|return|>",
     ("final", "<|constrain|>json", None, "{}"), ("final", None, "<|constrain|>json", "{}")),
    ("<|channel|>final json<|message|>{}<|return|>",
     ("final", "json", None, "{}"), ("final", None, "json", "{}")),
    ("<|channel|>commentary<|channel|>analysis<|message|>x<|end|>",
     ("commentary", "<|channel|>analysis", None, "x"), ("analysis", None, None, "x")),
    ("<|channel|>commentary to=assistant<|channel|>final<|message|>x<|return|>",
     ("commentary", "assistant<|channel|>final", None, "x"), ("final", "assistant", None, "x")),
    ("<|channel|>commentary?<|message|>x<|end|>",
     ("commentary?", None, None, "x"), ("commentary", None, None, "x")),
    ("<|channel|>thoughts<|message|>x<|end|>",
     ("thoughts", None, None, "x"), ("final", None, None, "x")),
    ("<|message|>x<|return|>", (None, None, None, "x"), ("final", None, None, "x")),
    ("<|channel|>final<|message|>a<|constrain|>b<|message|>c<|return|>",
     ("final", None, None, "a<|constrain|>b<|message|>c"), ("final", None, None, "abc")),
    ("<|channel|>final<|message|>a<|start|>assistant<|channel|>final<|message|>b<|return|>",
     ("final", None, None, "a<|start|>assistant<|channel|>final<|message|>b"),
     ("final", None, None, "a")),
]


class Reader:
    def __init__(self, program):
        self.process = subprocess.Popen([program, official.ranks_path()], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def read(self, ids):
        self.process.stdin.write(json.dumps(ids).encode() + b"\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert answer["accounted"] == len(ids), "a token is not accounted for"
        for message in answer["messages"]:
            message["content"] = bytes.fromhex(message.pop("content_hex")).decode(errors="replace")
            message.pop("end")
        return answer["messages"], answer["repairs"]

    def close(self):
        self.process.stdin.close()
        return self.process.wait()


def official_messages(encoding, ids, role):
    raw = json.loads(encoding._inner.parse_messages_from_completion_tokens(ids, role, True))
    out = []
    for message in raw:
        content = message["content"]
        if not isinstance(content, str):
            content = "".join(part["text"] for part in content)
        kept = {k: message[k] for k in ("role", "name", "channel", "recipient", "content_type")
                if message.get(k)}
        out.append({**kept, "content": content})
    return out


class Replies:
    """Valid streams as a model writes them, after `<|start|>assistant`."""

    def __init__(self, rng, encoding):
        self.rng = rng
        self.encoding = encoding
        self.conversations = Conversations(rng)

    def encode(self, text):
        return self.encoding.encode(text, disallowed_special=())

    def content(self):
        rng = self.rng
        if rng.random() < 0.3:  # any tokens: their bytes may not be UTF-8
            return [rng.randrange(199998) for _ in range(rng.randint(0, 12))]
        return self.encode(self.conversations.text())

    def message(self, may_call):
        rng = self.rng
        channel = rng.choice(["analysis", "commentary", "final"])
        recipient = None
        if may_call and rng.random() < 0.5:
            recipient = rng.choice(["functions.f", "functions.web-browsing", "python", "browser.open",
                                    "functions.get_weather", "container.exec", "functions.naïve"])
        in_role = rng.random() < 0.5
        ids = self.encode(f" to={recipient}") if recipient and in_role else []
        ids.append(CHANNEL)
        ids += self.encode(channel)
        if recipient and not in_role:
            ids += self.encode(f" to={recipient}")
        kind = rng.randint(0, 3) if recipient else 0
        if kind == 1:
            ids += self.encode(rng.choice([" ", ""])) + [CONSTRAIN] + self.encode("json")
        elif kind == 2:
            ids += self.encode(rng.choice([" json", " code", " text/plain"]))
        return ids + [MESSAGE] + self.content(), recipient

    def stream(self):
        rng = self.rng
        count = rng.choice([1, 1, 2, 3, 4])
        ids = []
        for i in range(count):
            piece, recipient = self.message(True)
            if i > 0:
                ids += [START] + self.encode("assistant")
            ids += piece
            last = i == count - 1
            ids.append(CALL if recipient else rng.choice([END, RETURN]) if last else END)
        if rng.random() < 0.1:
            ids.pop()  # cut off before its end
        return ids


def without_names(request):
    for message in request["messages"]:
        if message["role"] in ("user", "assistant"):
            message.pop("name", None)  # "user:ann" is written by the official package, not read
        for call in message.get("tool_calls", []):
            call["function"]["name"] = call["function"]["name"].replace("<|", "")
    return request


def check_quirks(encoding, reader):
    for text, theirs, ours in QUIRKS:
        ids = encoding.encode(text, allowed_special="all")
        for expected, messages in ((theirs, official_messages(encoding, ids, "assistant")),
                                   (ours, reader.read(ids)[0])):
            got = tuple(messages[0].get(key)
                        for key in ("channel", "recipient", "content_type", "content"))
            if got != expected:
                sys.exit(f"{text}: expected {expected}, read {got}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("read_replies")
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    encoding = official.load()
    reader = Reader(options.read_replies)
    check_quirks(encoding, reader)
    rng = random.Random(options.seed)
    replies = Replies(rng, encoding)
    conversations = Conversations(rng)
    begin = time.time()
    differing = total = messages = 0
    for number in range(options.count):
        if number % 3 == 0:  # a whole prompt, up to where the assistant would go on
            request = without_names(conversations.request())
            ids = official.render(encoding, official.messages_of(request, None), False)[:-2]
            role = None
        else:
            ids, role = replies.stream(), "assistant"
        theirs = official_messages(encoding, ids, role)
        ours, repairs = reader.read(ids)
        total += 1
        messages += len(theirs)
        if ours != theirs or repairs:
            differing += 1
            if differing <= 5:
                print("DIFFERS:", repr(encoding.decode(ids)), f"({repairs} repairs)")
                pair = next(((a, b) for a, b in zip(ours, theirs) if a != b), (ours, theirs))
                print("  ours:  ", pair[0])
                print("  theirs:", pair[1])
    code = reader.close()
    print(f"{total} streams, {messages} messages, {differing} read differently; "
          f"{len(QUIRKS)} quirks as documented ({time.time() - begin:.1f} s)")
    sys.exit(1 if differing or code or messages < options.count else 0)


if __name__ == "__main__":
    main()

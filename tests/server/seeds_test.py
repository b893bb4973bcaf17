# SPDX-License-Identifier: Apache-2.0
"""What one key sees of a server tells it nothing of another key. The published attack (of two streams of one's own
the seeds of everybody, and with them their replies) is shown to work on ids and seeds as they once were made, and
not on those of a real server; then everything that is a name, and every head and body, is looked at."""
import base64
import contextlib
import hmac
import json
import pathlib
import re
import secrets
import struct
import sys
import tempfile
import time

from serving import expect, new_key, same, serving, work_model

CHAT = "/v1/chat/completions"
GOLDEN, MASK = 0x9E3779B97F4A7C15, (1 << 64) - 1
PROMPT = {"messages": [{"role": "user", "content": "Make up a random password"}], "max_tokens": 24, "temperature": 1}
# A reply that is long enough to be worth a guess, whatever the model makes of it.
TEXT, LONG = "/v1/completions", {"prompt": "Make up a random password", "max_tokens": 24, "temperature": 1, "ignore_eos": True}


# --- the attack -------------------------------------------------------------------------------------

class Attack:
    """Finds two numbers of one counter that were multiplied and mixed with a number of the process, wherever in two
    texts they are."""

    def __init__(self, counters=20_000, others=8):
        self.differences = {}
        for counter in range(1, counters):
            for step in range(1, others + 1):
                self.differences[(counter * GOLDEN & MASK) ^ ((counter + step) * GOLDEN & MASK)] = (counter, step)

    def solve(self, one, two):
        """[(counter of the first, requests since then, the process's number)]"""
        found = []
        for a, b in zip(numbers_in(one), numbers_in(two)):
            if a != b and (hit := self.differences.get(a ^ b)):
                found.append((*hit, a ^ (hit[0] * GOLDEN & MASK)))
        return found

    @staticmethod
    def seed(found, steps):
        """Of the request that came so many after the first."""
        counter, _, number = found
        return number ^ ((counter + steps) * GOLDEN & MASK)


def numbers_in(data):
    """Every eight bytes of it in a row."""
    return [int.from_bytes(data[i:i + 8], "little") for i in range(len(data) - 7)]


class OldNames:
    """Ids and seeds as they once were: an id authenticated and readable, a seed a counter times a constant."""

    def __init__(self):
        self.number, self.counter, self.key = secrets.randbits(64), 0, secrets.token_bytes(32)

    def next(self, tenant):
        self.counter += 1
        seed = self.number ^ (self.counter * GOLDEN & MASK)
        plain = b"\1" + secrets.token_bytes(12) + struct.pack("<QQ", int(time.time()), seed) + bytes(range(24))
        return plain + hmac.digest(self.key, f"{len(tenant)}:{tenant}".encode() + plain, "sha256")[:16], seed


def check_attack_is_one(attack):
    old = OldNames()
    for _ in range(37):
        old.next("alice")
    mine, _ = old.next("bob")
    _, theirs = old.next("alice")
    again, _ = old.next("bob")
    found = attack.solve(mine, again)
    same([each[:2] for each in found], [(38, 2)], "how many requests there were")
    same(attack.seed(found[0], 1), theirs, "the other key's seed")
    same(attack.seed(found[0], 3), old.next("alice")[1], "and the next one")


# --- a server with two keys -------------------------------------------------------------------------

class Keys:
    """A server and what each of its keys asks it."""

    def __init__(self, server, keys):
        self.server, self.keys = server, keys

    def ask(self, name, method, path, body=None, headers=None):
        return self.server.request(method, path, body, {"authorization": f"Bearer {self.keys[name]}", **(headers or {})})

    def said(self, name, **more):
        status, _, data = self.ask(name, "POST", TEXT, {**LONG, **more})
        same(status, 200, f"a reply to {name}: {data[:300]}")
        return json.loads(data)["choices"][0]["text"]

    def stream_ids(self, name, **more):
        status, _, data = self.ask(name, "POST", TEXT, {**LONG, "max_tokens": 3, "stream": True, **more})
        same(status, 200, f"a stream to {name}: {data[:300]}")
        return re.findall(r"^id: (\S+)$", data.decode(), re.M)


@contextlib.contextmanager
def two_keys(program, *flags):
    keys, entries = {}, []
    for name in ("alice", "bob"):
        keys[name], entry = new_key(program, name)
        entries.append(entry)
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "keys.json")
        file.write_text(json.dumps({"keys": entries}), encoding="utf-8")
        cache_key = pathlib.Path(folder, "cache-key")
        cache_key.write_text(secrets.token_hex(32), encoding="utf-8")
        given = [str(cache_key) if each == "CACHE_KEY" else each for each in flags]
        with serving(program, work_model("tiny-oss-o200k.gguf"), "--keys", str(file), "--context", "2048",
                     "--batches", folder + "/batches.db", *given) as server:
            yield Keys(server, keys)


def bytes_of(event_id):
    """What is encoded in it; once, counts followed in clear."""
    event_id = event_id.split(".")[0]
    return base64.b64decode(event_id + "=" * (-len(event_id) % 4))


def check_seeds(both, attack):
    """The attack as it was published, then with every guess that an id allows."""
    for i in range(5):
        both.said("alice", max_tokens=1, prompt=f"x{i}")
    # Who knows a seed has the reply: that is what there is to win.
    same(both.said("bob", seed=77), both.said("alice", seed=77), "the reply to a known seed")
    mine = bytes_of(both.stream_ids("bob")[0])
    secret = both.said("alice")
    again = bytes_of(both.stream_ids("bob")[0])
    same(attack.solve(mine, again), [], "what the ids of two streams give away")
    # Signed, as the field is. Those of its own ids, and the ones beside them by the old step.
    guesses = numbers_in(mine) + numbers_in(again)
    guesses += [each ^ GOLDEN for each in guesses[::8]]
    for guess in guesses:
        signed = guess - (1 << 64) if guess >> 63 else guess
        expect(both.said("bob", seed=signed) != secret, f"a guess that is right: {signed}")
    expect(len(secret) > 8, f"a reply that is worth a guess: {secret!r}")
    return len(guesses)


def check_ids(both):
    """Of one length, alike only where the event is, and read by nobody but the server for the key that got them."""
    body = {**LONG, "stream": True}
    status, _, data = both.ask("bob", "POST", TEXT, body)
    same(status, 200, "a stream")
    ids = re.findall(r"^id: (\S+)$", data.decode(), re.M)
    expect(len(ids) > 8, f"ids of events: {ids}")
    same(len({len(each) for each in ids}), 1, "lengths of ids")
    same(len(set(ids)), len(ids), "ids that are alike")
    for each in ids:
        expect(re.fullmatch(r"[A-Za-z0-9+/]+", each), f"an id without a count in it: {each}")

    def resume(event_id, who="bob"):
        found, _, text = both.ask(who, "POST", TEXT, body, {"last-event-id": event_id})
        return found if found != 400 else json.loads(text)["error"]["code"]

    same(resume(ids[3]), 200, "the rest of a stream")
    wrong = [resume(ids[3], "alice"), resume(ids[3] + ".2147483647"), resume(ids[3] + ".4"), resume(ids[3][:-4])]
    # As earlier versions wrote them.
    old, _ = OldNames().next("bob")
    wrong += [resume(base64.b64encode(old + bytes(-len(old) % 3)).decode() + ".4"),
              resume(base64.b64encode(old).decode()[:92] + ".4.60"), resume("1"), resume("A" * len(ids[0]))]
    raw = bytes_of(ids[3])
    for bit in range(0, 8 * len(raw), 5):
        changed = bytearray(raw)
        changed[bit // 8] ^= 1 << bit % 8
        wrong.append(resume(base64.b64encode(changed).decode()))
    # Halves of two ids that are both its own.
    wrong += [resume(ids[3][:at] + ids[5][at:]) for at in range(4, len(ids[3]), 4)]
    same(set(wrong), {"invalid_event_id"}, "the answers to forged ids")
    return len(wrong)


# --- everything else that is shown ------------------------------------------------------------------

# Names that the server makes up, by what they are of; of a response's items the digits after its own are counts
# within it.
NAMED = {"request": r"(?<=x-request-id: )[0-9a-f]{24}", "chat": r"chatcmpl-([0-9a-f]{24})",
         "text": r"cmpl-([0-9a-f]{24})", "message": r'"id":"msg_([0-9a-f]{24})"', "response": r"resp_([0-9a-f]{24})",
         "file": r"file-([0-9a-f]{24})", "batch": r"batch_([0-9a-f]{24})"}


def upload(both, who):
    mark = "part"
    line = {"custom_id": "a", "method": "POST", "url": CHAT, "body": {**PROMPT, "max_tokens": 1}}
    head = (f'--{mark}\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--{mark}\r\n'
            f'content-disposition: form-data; name="file"; filename="a.jsonl"\r\n\r\n')
    return both.ask(who, "POST", "/v1/files", head + json.dumps(line) + f"\n\r\n--{mark}--\r\n",
                    {"content-type": f"multipart/form-data; boundary={mark}"})


def collect(both, who, found):
    """One of each name there is, for one key."""
    said = [both.ask(who, "POST", CHAT, {**PROMPT, "max_tokens": 1}),
            both.ask(who, "POST", TEXT, {"prompt": "x", "max_tokens": 1}),
            both.ask(who, "POST", "/v1/messages", {**PROMPT, "max_tokens": 1}),
            both.ask(who, "POST", "/v1/responses", {"input": "x", "max_output_tokens": 16, "store": False}),
            both.ask(who, "POST", "/api/chat", {"model": both.server.name, "messages": PROMPT["messages"], "stream": False,
                                        "options": {"num_predict": 1}}),
            upload(both, who)]
    made = json.loads(said[-1][2])
    said.append(both.ask(who, "POST", "/v1/batches", {"input_file_id": made["id"], "endpoint": CHAT,
                                                      "completion_window": "24h"}))
    text = ""
    for status, headers, data in said:
        same(status, 200, f"{data[:300]}")
        expect("traceparent" not in headers, "no trace where none was asked for")
        text += "".join(f"{name}: {value}\n" for name, value in headers.items()) + data.decode()
    for kind, pattern in NAMED.items():
        names = re.findall(pattern, text)
        expect(names, f"a name of a {kind} in {text}")
        found.setdefault((who, kind), []).append(bytes.fromhex(names[0]))


def check_names(both, attack, rounds):
    """No name is a count or near to another one: not of its own key's, not of the other's."""
    found = {}
    for _ in range(rounds):
        for who in ("alice", "bob"):
            collect(both, who, found)
    everything = [name for names in found.values() for name in names]
    # A reply is named as its request.
    own = [name for (_, kind), names in found.items() if kind in ("request", "file", "batch") for name in names]
    same(len(set(own)), len(own), "names that are two things'")
    for names in found.values():
        for one, two in zip(names, names[1:]):
            same(attack.solve(one, two), [], "numbers of a counter in names")
            for at in (0, 4, 8):
                step = int.from_bytes(two[at:at + 4], "big") - int.from_bytes(one[at:at + 4], "big")
                expect(abs(step) > 64 or rounds > 1000, f"names that count: {one.hex()} {two.hex()}")
    count = len(everything)
    for bit in range(96):
        ones = sum(name[bit // 8] >> bit % 8 & 1 for name in everything)
        expect(abs(2 * ones - count) < 6 * count ** 0.5, f"bit {bit} of names: {ones} of {count}")
    return count


# What may differ between two answers to one question: names, times, how long it took, and with that how many digits
# this has, and how many guesses of the reply there was time to compute.
CHANGING = [(r"[0-9a-f]{24}", "NAME"), (r"^date: .*$", "date"), (r'"(created(_at)?|completed_at)":\d+', "created"),
            (r'"[a-z_]+_duration":\d+', "duration"), (r"^(content-length|x-hearth-computed-tokens): \d+$", "length"),
            (r'"created_at":"[^"]*"', "created"),
            (r'"(modified_at|expires_at)":"[^"]*"', "time")]


def seen_by(both, who):
    """All that a key is shown in answer to fixed questions."""
    text = ""
    for method, path, body in [
            ("POST", CHAT, {**PROMPT, "seed": 5}), ("POST", TEXT, {"prompt": "x", "seed": 5, "max_tokens": 4}),
            ("POST", "/v1/messages", {**PROMPT, "seed": 5}),
            ("POST", "/v1/responses", {"input": "x", "seed": 5, "max_output_tokens": 16, "store": False}),
            ("POST", "/api/chat", {"model": both.server.name, "messages": PROMPT["messages"], "stream": False,
                                  "options": {"seed": 5, "num_predict": 4}}),
            ("POST", CHAT, {"messages": 7}), ("GET", "/v1/models", None), ("GET", "/api/ps", None), ("GET", "/api/tags", None),
            ("GET", "/v1/files", None), ("GET", "/v1/batches", None), ("GET", "/v1/responses/resp_x", None),
            ("GET", "/livez", None), ("GET", "/readyz", None), ("GET", "/metrics", None), ("GET", "/status", None)]:
        status, headers, data = both.ask(who, method, path, body)
        text += f"{method} {path} {status}\n" + "".join(f"{k}: {v}\n" for k, v in sorted(headers.items())) + data.decode() + "\n"
    for pattern, word in CHANGING:
        text = re.sub(pattern, word, text, flags=re.M)
    return text


def check_shown(both, requests):
    """What bob sees is the same before and after alice's requests, batches and files."""
    seen_by(both, "bob")  # what it computes of its prompts is cached from then on
    before = seen_by(both, "bob")
    found = {}
    for i in range(requests):
        both.said("alice", prompt=f"something else {i}", max_tokens=2)
    collect(both, "alice", found)
    after = seen_by(both, "bob")
    for one, two in zip(before.splitlines(), after.splitlines()):
        same(two, one, "what one key is shown after another's requests")
    same(after, before, "all of it")
    return len(before.splitlines())


def main():
    program = sys.argv[1]
    attack = Attack()
    check_attack_is_one(attack)
    with two_keys(program) as both:
        guesses = check_seeds(both, attack)
        forged = check_ids(both)
        lines = check_shown(both, 30)
        names = check_names(both, attack, 30)
    with two_keys(program, "--cache-key", "CACHE_KEY") as both:
        guesses += check_seeds(both, attack)
    print(f"{guesses} guesses of seeds and {forged} forged ids in vain; {names} names and {lines} lines tell nothing")


if __name__ == "__main__":
    main()

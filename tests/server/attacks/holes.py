# SPDX-License-Identifier: Apache-2.0
"""The attacks that once worked, each with what it did then."""
import contextlib
import itertools
import json
import random
import socket
import time

from attack_rig import head_of, send, together
from serving import expect, same

CHAT = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 1}


def tool_of(count):
    """As many required names as properties, none in common."""
    return {"type": "function", "function": {"name": "f", "parameters": {
        "type": "object", "properties": {f"a{i:06d}": {} for i in range(count)},
        "required": [f"b{i:06d}" for i in range(count)]}}}


def quadratic_tools(a):
    """16 s for one request of 1.4 MB, before any limit was looked at."""
    body = json.dumps({**CHAT, "tools": [tool_of(60000)]}, separators=(",", ":")).encode()
    before = a.used_s()
    status, _, reply = a.ask("POST", "/v1/chat/completions", body)
    same(status, 400, "a schema beyond its limits")
    expect(b"too many properties" in reply, reply[:200])
    expect(a.used_s() - before < 1.5, f"{a.used_s() - before} s of processor time")
    # As a prompt alone there is no limit, and no square either.
    times = []
    for count in (10000, 20000):
        before = a.used_s()
        body_of = {"messages": CHAT["messages"], "tools": [tool_of(count)]}
        same(a.ask("POST", "/tokenize", body_of)[0], 200, "tools as a prompt")
        times.append(a.used_s() - before)
    expect(times[1] < 3 * times[0] + 0.1, f"twice the tools: {times} s")
    prompt = json.dumps({"messages": CHAT["messages"], "tools": [tool_of(40000)]}, separators=(",", ":")).encode()
    turns = itertools.cycle([("/v1/chat/completions", body, 400), ("/tokenize", prompt, 200)])

    def work():
        path, sent, meant = next(turns)
        status, _, reply = a.ask("POST", path, sent)
        expect(status in (meant, 429, 503), f"{path}: {status} {reply[:200]}")
        return status

    a.shows("rendered", a.count_of(200))
    a.shows("refused", a.count_of(400))
    a.storm(work)


def quadratic_schemas(a):
    """A long name was part of the path of everything below it."""
    body = {"prompt": "x", "max_tokens": 1,
            "guided_json": {"properties": {"k" * 120000: {f"z{i}": 1 for i in range(14000)}}}}
    before = a.used_s()
    status, _, reply = a.ask("POST", "/v1/completions", body)
    same(status, 200, f"compiled, and a reply under it: {reply[:200]}")
    expect(a.used_s() - before < 1.5, f"{a.used_s() - before} s of processor time")
    a.showed("compiled", 1)


def many_namespaces(a):
    tools = [{"type": "namespace", "name": f"n{i}",
              "tools": [{"type": "function", "name": f"f{j}"} for j in range(100)]} for i in range(20)]
    status, _, reply = a.ask("POST", "/v1/responses", {"input": "x", "max_output_tokens": 1, "tools": tools})
    same(status, 400, "2,000 tools in 20 namespaces")
    expect(b"more than 128 tools" in reply, reply[:200])
    status, _, _ = a.ask("POST", "/v1/responses", {"input": "x", "max_output_tokens": 1, "tools": tools[:1]})
    same(status, 200, "100 tools in one")
    before = a.tokens("prompt")()
    tools[0]["tools"] += [{"type": "function", "name": f"more{j}"} for j in range(28)]
    same(a.ask("POST", "/v1/responses", {"input": "x", "max_output_tokens": 1, "tools": tools[:1]})[0], 200, "and 128")
    a.showed("tokens of prompt", a.tokens("prompt")() - before, least=128)


def gone_clients(a):
    """Requests of clients that have left were read all the same."""
    text = "".join(chr(33 + (i * i) % 90) for i in range(500_000))
    body = json.dumps({"prompt": text * 7}).encode()
    before = a.used_s()
    same(a.ask("POST", "/tokenize", body)[0], 200, "a dear request")
    took = a.used_s() - before
    before = a.used_s()
    # The first ones keep the readers busy while the others wait, and while all of them leave.
    count = 12
    for connection in [send(a.port, "/tokenize", a.keys["mallory"], body) for _ in range(count)]:
        connection.close()
    began = time.monotonic()
    while a.metric("hearth_account_bytes", 'kind="body"') > 0 and time.monotonic() - began < 60:
        time.sleep(0.05)
    same(a.metric("hearth_account_bytes", 'kind="body"'), 0.0, "no body of theirs is left")
    used = a.used_s() - before
    expect(used <= count / 2 * took, f"{used:.2f} s for {count}, {took:.2f} s for one that waits")

    def leave(_stop):
        with contextlib.suppress(OSError):  # refused, or cut
            send(a.port, "/tokenize", a.keys["mallory"], body).close()
            a.replied("left")

    # More than sockets hold: the server took most of each from them.
    a.shows("whole bodies of clients that left", a.count_of("left"), least=2)

    a.beside("gone", leave)


def stored_responses(a):
    """Stored responses were read and parsed on the thread of all sockets."""
    status, _, reply = a.ask("POST", "/v1/responses", {
        "input": "x", "max_output_tokens": 600, "top_logprobs": 20, "temperature": 1.5,
        "include": ["message.output_text.logprobs"], "reasoning": {"effort": "none"}}, timeout=300)
    same(status, 200, "a long response")
    path = "/v1/responses/" + json.loads(reply)["id"]
    status, headers, again = a.ask("GET", path)
    same((status, headers["content-type"]), (200, "application/json"), "read back")
    expect(json.loads(again) == json.loads(reply), "the same, read back")
    same(a.ask("GET", path, key="victim")[0], 404, "another's")

    def fetch(stop):
        def one():
            while not stop.is_set():
                a.replied(a.ask("GET", path)[0])
        together(4, one)

    a.shows("times read", a.count_of(200), least=2, a_second=5)
    a.beside("stored", fetch)
    same(a.ask("DELETE", path)[0], 200, "forgotten")
    same(a.ask("GET", path)[0], 404, "and gone")


def large_answers(a):
    """An answer with log-probabilities had more values than we read: stored, and unreadable."""
    ask = {"input": "hello", "max_output_tokens": 3000, "top_logprobs": 20, "temperature": 1.5,
           "include": ["message.output_text.logprobs"], "reasoning": {"effort": "none"}}
    status, headers, reply = a.ask("POST", "/v1/responses", ask, timeout=300)
    same(status, 200, "a long answer")
    first = json.loads(reply)
    status, _, again = a.ask("GET", "/v1/responses/" + first["id"])
    same(status, 200, "it can be read")
    same(json.loads(again)["output"][0]["content"][0]["text"], first["output"][0]["content"][0]["text"],
         "with its text")
    if headers.get("x-hearth-warning") != "logprobs_not_stored":
        same(json.loads(again), first, "all of it")
    status, _, reply = a.ask("POST", "/v1/responses", {"input": "and?", "max_output_tokens": 1,
                                                       "previous_response_id": first["id"]})
    expect(status in (200, 400), f"built upon: {status} {reply[:200]}")
    a.shows("tokens of answers", a.tokens("generated"), least=500, a_second=100)
    a.storm(lambda: a.ask("POST", "/v1/responses", {**ask, "max_output_tokens": 500})[0], threads=1)


def slow_readers(a):
    """Forty answers of 28 MB that nobody read held 1.1 GiB."""
    _, _, reply = a.ask("POST", "/tokenize", {"prompt": " " * 4000, "return_token_strs": True})
    told = json.loads(reply)
    longest = max(zip(told["token_strs"], told["tokens"]), key=lambda pair: len(pair[0]))[1]
    body = json.dumps({"tokens": [longest] * 190_000}).encode()
    refused, cut = a.metric("hearth_account_refused_total", 'reason="share"'), a.metric("hearth_account_cut_total")
    readers, before, most = [], [], [0.0]

    def fill(_stop):
        before.append(a.resident_mib())  # the first counts: the victim alone has warmed the server up
        while len(readers) < 40:
            readers.append(send(a.port, "/detokenize", a.keys["mallory"], body, read_buffer=4096))
        time.sleep(0.2)

    def held_mib():
        most[0] = max(most[0], a.resident_mib())
        return most[0]

    a.shows("MiB more resident", held_mib, least=20)
    a.beside("readers", fill)
    until = time.monotonic() + 40
    while time.monotonic() < until:
        told = (a.metric("hearth_account_refused_total", 'reason="share"') - refused,
                a.metric("hearth_account_cut_total") - cut)
        if sum(told) > 0:
            break
        time.sleep(0.2)
    budget = a.metric("hearth_account_budget_bytes")
    held = a.metric("hearth_account_bytes")
    expect(held <= budget, f"{held} bytes held, {budget} allowed")
    grown = a.resident_mib() - before[0]
    # The budget, what the allocator adds, and the cache that the victim fills meanwhile: it was 1.1 GiB.
    expect(grown <= 384, f"resident memory grew by {grown:.0f} MiB")
    expect(sum(told) > 0, f"refused and cut: {told}")
    for reader in readers:
        reader.close()
    # Of 603 MiB 530 stayed, and of 389 here 280, which was 176 before.
    bound = before[0] + max(32, 0.15 * before[0])
    until = time.monotonic() + 30
    while a.resident_mib() > bound and time.monotonic() < until:
        time.sleep(0.2)
    print(f"slow readers: {before[0]:.0f} MiB before, up to {most[0]:.0f}, and {a.resident_mib():.0f} after them")
    expect(a.resident_mib() <= bound, f"{a.resident_mib():.0f} MiB stayed, {before[0]:.0f} before")


def fresh_grammars(a):
    """Each is compiled, and kept in case that it comes again: by their number and texts alone that was 140 MiB. A grammar
    that is part of the prompt fills the cache of prompts besides, as planned; these are not."""
    def compiled(count):
        for _ in range(count):
            schema = {"enum": [f"{random.random()} {i}" for i in range(1500)]}
            status, _, reply = a.ask("POST", "/v1/completions", {"prompt": "x", "max_tokens": 1, "guided_json": schema})
            same(status, 200, f"a fresh grammar: {reply[:200]}")
        return a.resident_mib()

    # At 1.1 MiB each, more than have room; then as many again, and more.
    first = compiled(60)
    more = 1000 if a.is_strict else 90
    later = compiled(more)
    print(f"fresh grammars: {first:.0f} MiB after 60, {later:.0f} after {60 + more}")
    a.showed("grammars compiled", 60 + more)
    expect(later - first <= 32, f"{later - first:.0f} MiB more for grammars that nobody asks for again")


def unfinished_bodies(a):
    """Two hundred bodies without their last byte held 765 MiB, for over an hour."""
    body = b'{"prompt":"' + b"a" * 4_000_000 + b'"}'
    a.calm()
    before, senders = a.resident_mib(), []

    def send_all():
        for _ in range(60):
            connection = socket.create_connection(("127.0.0.1", a.port), timeout=10)
            senders.append(connection)
            try:
                connection.sendall(head_of("POST", "/tokenize", a.keys["mallory"], len(body)) + body[:-1])
            except OSError:
                pass  # refused before it had sent everything

    def close_all():
        while senders:
            senders.pop().close()

    began = time.monotonic()
    send_all()
    held = a.metric("hearth_account_bytes", 'kind="body"')
    share = a.metric("hearth_account_budget_bytes") / 2
    expect(held <= share, f"{held} bytes of bodies, {share} allowed")
    expect(a.resident_mib() - before <= 256, f"{a.resident_mib() - before:.0f} MiB more")
    expect(a.metric("hearth_account_refused_total", 'reason="share"') > 0, "some are refused")
    answers = []
    for connection in senders:
        connection.settimeout(0.01)
        try:
            answers.append(connection.recv(4096))
        except OSError:
            pass
    expect(any(b" 429 " in each and b"retry-after: " in each for each in answers),
           f"told to come back: {answers[:2]}")
    while a.metric("hearth_account_bytes", 'kind="body"') > 0 and time.monotonic() - began < 40:
        time.sleep(0.5)
    took = time.monotonic() - began
    expect(took < 30, f"closed {took:.0f} s after their last byte")
    close_all()

    def again(stop):
        send_all()
        stop.wait(5)
        close_all()

    most = [0.0]

    def held_bytes():
        most[0] = max(most[0], a.metric("hearth_account_bytes", 'kind="body"'))
        return most[0]

    a.shows("bytes held", held_bytes, least=8_000_000)
    a.beside("bodies", again)


def logprob_streams(a):
    """A stream kept the log-probabilities that it had told: 13 to 75 KiB a token."""
    for path, more in (("/v1/chat/completions", {"messages": CHAT["messages"], "logprobs": True, "top_logprobs": 20,
                                                 "reasoning_effort": "none"}),
                       ("/v1/completions", {"prompt": "x", "logprobs": 20})):
        tokens = 1500
        body = {**more, "max_tokens": tokens, "stream": True, "ignore_eos": True, "temperature": 1.2}
        a.ask("POST", path, {**body, "max_tokens": 50})
        before = a.resident_mib()
        status, _, reply = a.ask("POST", path, body, timeout=300)
        same(status, 200, path)
        kib = (a.resident_mib() - before) * 1024 / tokens
        a.showed("log-probabilities told", reply.count(b'"logprob'), least=0.9 * tokens)
        expect(kib < 8, f"{path}: {kib:.1f} KiB a token")


def others_store(a):
    """Seventy long responses pushed out another key's. Spaces: many in one token of the prompt."""
    spaces = " " * (3_900_000 if a.is_strict else 100_000)
    status, _, reply = a.ask("POST", "/v1/responses", {"input": "x", "max_output_tokens": 1}, key="victim")
    same(status, 200, "the victim's")
    path = "/v1/responses/" + json.loads(reply)["id"]
    # As many as the store of 256 MiB has no room for, where there is time.
    stored = 0
    for _ in range(70 if a.is_strict else 2):
        status, _, _ = a.ask("POST", "/v1/responses", {
            "input": "x", "max_output_tokens": 1, "instructions": spaces})
        expect(status in (200, 429), f"stored: {status}")
        stored += len(spaces) if status == 200 else 0
    a.showed("bytes stored", stored, least=260 << 20 if a.is_strict else len(spaces))
    same(a.ask("GET", path, key="victim")[0], 200, "still there")


def background_slots(a):
    ids, status = [], 200
    while status == 200 and len(ids) < 70:
        status, _, reply = a.ask("POST", "/v1/responses", {"input": "x", "background": True,
                                                           "max_output_tokens": 20_000})
        if status == 200:
            ids.append(json.loads(reply)["id"])
    same((status, len(ids)), (429, 32), "half of the places")
    a.showed("begun", len(ids), least=32)
    status, _, reply = a.ask("POST", "/v1/responses", {"input": "x", "background": True, "max_output_tokens": 1},
                             key="victim")
    same(status, 200, f"the victim's: {reply[:200]}")
    for each in ids:
        a.ask("POST", f"/v1/responses/{each}/cancel", {})


def dear_masks(a):
    """Regular expressions whose masks took longer than everybody's step."""
    body = {"prompt": "x", "max_tokens": 40, "temperature": 1.5,
            "guided_regex": "(\\p{L}|\\p{N}|\\s){1,1000}"}

    def work():
        status, _, reply = a.ask("POST", "/v1/completions", body)
        expect(status in (200, 429, 503), f"a mask: {status} {reply[:200]}")
        return status

    a.shows("replies under a mask", a.count_of(200), least=2, a_second=1)
    a.shows("their tokens", a.tokens("generated"), least=40, a_second=40)
    a.storm(work, threads=12)


ATTACKS = [quadratic_tools, quadratic_schemas, many_namespaces, gone_clients, stored_responses, large_answers,
           slow_readers, fresh_grammars, unfinished_bodies, logprob_streams, others_store, background_slots, dear_masks]

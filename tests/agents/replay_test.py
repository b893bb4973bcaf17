# SPDX-License-Identifier: Apache-2.0
"""What agents were seen to send, sent again with words of ours in place of theirs: the same fields,
tools, items and sizes, turn by turn, to the real server with a script for a model. Every reply is
of the SDK's types, has the events that the agent got, and finds its prefix in the cache.

    replay_test.py SCRIPTED_SERVE RECORDS
"""
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "server"))
from agents_test import OTHERWISE, TASK, answer, call, check_cache
from recorder import Exchange
from serving import expect, same, serving, work_model
from shapes import reply_shape, strict_events

TOOL = {"codex": lambda: call("Hm.", "exec_command", cmd="true"),
        "opencode": lambda: call("Hm.", "bash", command="true")}
WORDS = "the quick brown fox jumps over a lazy dog and sleeps by the warm hearth till noon".split()


def words(count, salt):
    """So many characters; the same ones for the same salt."""
    start = int(salt or "0", 16)
    text = ""
    for index in range(count):
        if len(text) >= count:
            break
        text += f"{WORDS[(start >> index % 24) % len(WORDS)]}{(start + index) % 97} "
    return text[:count]


def filled(value, sealed):
    if isinstance(value, list):
        return [filled(each, sealed) for each in value]
    if not isinstance(value, dict):
        return value
    if "$task" in value:
        return TASK
    if "$text" in value:
        return words(value["$text"], value.get("$hash"))
    if "$sealed" in value:
        return sealed.pop(0)
    return {name: filled(each, sealed) for name, each in value.items()}


def bodies(rows):
    """The bodies of a record, with what was as before put in again; still shapes."""
    before = {}
    for row in rows:
        body = dict(row["request"]["body"])
        kind = "tools" in body
        list_name = "input" if "input" in body else "messages"
        start = body[list_name][0]
        if "$as_before" in start:
            body[list_name] = [*before[kind][list_name][:start["$as_before"]], *body[list_name][1:]]
        for name, value in body.items():
            if isinstance(value, dict) and value.get("$as_before") is True:
                body[name] = before[kind][name]
        before[kind] = body
        yield body


def send(server, row, body):
    request = row["request"]
    headers = request["headers"] if isinstance(request["headers"], dict) else {}
    given = {name: words(value["$text"], "0").strip() if isinstance(value, dict) else value
             for name, value in headers.items()
             if name not in ("content-length", "connection", "accept-encoding")}
    kept = Exchange(request["method"], request["path"], given, json.dumps(body).encode())
    kept.status, kept.reply_headers, kept.reply = server.request(
        kept.method, kept.path, body, given)
    return kept


def thoughts_of(exchange):
    """Sealed thoughts in a reply, for the requests that follow."""
    return [data["item"]["encrypted_content"] for name, data in exchange.events()
            if name == "response.output_item.done" and data["item"]["type"] == "reasoning"]


def check(program, path, folder):
    record = json.loads(path.read_text())
    rows = record["exchanges"]
    num_turns = sum("tools" in row["request"]["body"] for row in rows)
    expect(num_turns >= 4, f"{path.name} has at least three round trips")
    script = pathlib.Path(folder) / f"{record['agent']}.json"
    turns = [TOOL[record["agent"]]() for _ in range(num_turns - 1)]
    script.write_text(json.dumps({"task": TASK[:30], "otherwise": OTHERWISE,
                                  "turns": [*turns, answer("Done.", "All is well.")]}))
    main, sealed = [], []
    with serving(program, work_model("tiny-oss-o200k.gguf"), "--script", str(script)) as server:
        for row, body in zip(rows, bodies(rows)):
            exchange = send(server, row, filled(body, list(sealed)))
            same(exchange.status, 200, f"{exchange.reply[:600]}")
            strict_events(exchange)
            found = reply_shape(exchange)
            same([kind for kind, _ in found["events"]],
                 [kind for kind, _ in row["reply"]["events"]], "events, in order")
            same(found["headers"], row["reply"]["headers"], "headers of the reply")
            if "tools" in body:
                main.append(exchange)
                sealed += thoughts_of(exchange)
    print(f"{record['agent']}: {len(rows)} requests")
    check_cache(record["agent"], main)


def check_sealed_thoughts(program, folder):
    """A client that nothing is stored for sends the thoughts back sealed, and is understood exactly
    as one that names the response; a changed seal is refused."""
    script = pathlib.Path(folder) / "sealed.json"
    turns = [call("A long thought about owls.", "look", what="owls"), answer("So.", "Owls.")]
    script.write_text(json.dumps({"task": TASK, "turns": turns, "otherwise": OTHERWISE}))
    tool = {"type": "function", "name": "look", "strict": True, "parameters": {
        "type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"],
        "additionalProperties": False}}
    given = {"tools": [tool], "include": ["reasoning.encrypted_content"]}

    def ask(**more):
        status, _, data = server.request("POST", "/v1/responses", {**given, **more})
        return status, json.loads(data)

    with serving(program, work_model("tiny-oss-o200k.gguf"), "--script", str(script)) as server:
        _, first = ask(input=TASK)
        thought, made = first["output"]
        same((thought["type"], made["type"]), ("reasoning", "function_call"), "the first reply")
        same(thought.pop("content")[0]["text"], "A long thought about owls.", "the thought")
        expect("owls" not in thought["encrypted_content"], "it is sealed")
        result = {"type": "function_call_output", "call_id": made["call_id"], "output": "Two."}
        _, by_name = ask(input=[result], previous_response_id=first["id"])
        items = [{"role": "user", "content": TASK}, thought, made, result]
        _, by_hand = ask(input=items, store=False)
        same(by_hand["usage"]["input_tokens"], by_name["usage"]["input_tokens"], "prompt tokens")
        expect(by_hand["usage"]["input_tokens_details"]["cached_tokens"]
               >= by_hand["usage"]["input_tokens"] - 16, f"the same prompt: {by_hand['usage']}")
        same(by_hand["output"][-1]["content"][0]["text"], "Owls.", "the answer")
        thought["encrypted_content"] = thought["encrypted_content"][:-8] + "AAAAAAA="
        status, refused = ask(input=items, store=False)
        same((status, refused["error"]["code"]), (400, "invalid_encrypted_content"), "a changed one")


def main(program, records):
    found = sorted(pathlib.Path(records).glob("*.json"))
    same([path.stem for path in found], ["codex", "opencode"], "records")
    with tempfile.TemporaryDirectory() as folder:
        for path in found:
            check(program, path, folder)
        check_sealed_thoughts(program, folder)


if __name__ == "__main__":
    main(*sys.argv[1:])

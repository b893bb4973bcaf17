# SPDX-License-Identifier: Apache-2.0
"""Ollama's API byte by byte: what its clients hide, from lines and headers to the form of errors.
The clients themselves are in tests/clients."""
import http.client
import json
import pathlib
import signal
import socket
import sys
import tempfile
import time

from serving import expect, new_key, same, serving, work_model

HELLO = [{"role": "user", "content": "Hello."}]
ENDS = ("done_reason", "total_duration", "load_duration", "prompt_eval_count",
        "prompt_eval_duration", "eval_count", "eval_duration")


def post(server, path, body, headers=None):
    status, got, data = server.request("POST", path, body, headers)
    return status, got, data.decode()


def lines(text):
    """Every line is JSON: no comment, no empty line, an end after the last."""
    expect(text.endswith("}\n"), f"a whole last line in {text[-80:]!r}")
    return [json.loads(line) for line in text[:-1].split("\n")]


def asked(server, **more):
    return {"model": server.name, "messages": HELLO, **more,
            "options": {"num_predict": 12, "seed": 1, **more.get("options", {})}}


def check_stream(server):
    """Nothing is said of `stream`, so it is one."""
    status, headers, text = post(server, "/api/chat", asked(server))
    same((status, headers["content-type"]), (200, "application/x-ndjson"), "a stream")
    parts = lines(text)
    expect(len(parts) > 2, f"pieces in {text}")
    for part in parts[:-1]:
        same(set(part), {"model", "created_at", "message", "done"}, "members of a piece")
        same((part["done"], part["message"]["role"]), (False, "assistant"), "a piece")
    same(set(parts[-1]), {"model", "created_at", "message", "done", *ENDS}, "of the last")
    expect(all(isinstance(parts[-1][name], int) for name in ENDS[1:]), f"{parts[-1]}")
    status, headers, text = post(server, "/api/chat", asked(server, stream=False))
    same((status, headers["content-type"]), (200, "application/json"), "a whole answer")
    whole = json.loads(text)
    same(set(whole), set(parts[-1]), "members of a whole answer")
    for name in ("content", "thinking"):
        same("".join(p["message"].get(name, "") for p in parts), whole["message"].get(name, ""),
             f"streamed and whole {name}")
    expect("x-request-id" in headers and "x-hearth-cached-tokens" in headers, f"{headers}")
    parts = lines(post(server, "/api/generate", {"model": server.name, "prompt": "Hello.",
                                                 "options": {"num_predict": 6}})[2])
    same(set(parts[-1]), {"model", "created_at", "response", "done", *ENDS}, "a prompt's last")


def check_front(server):
    for path in ("/", "/api/tags", "/api/version", "/api/ps"):
        status, headers, data = server.request("GET", path)
        same(status, 200, path)
        same(server.request("HEAD", path)[::2], (200, b""), f"HEAD {path}")
    expect("is running" in server.request("GET", "/")[2].decode(), "who looks for that")
    version = json.loads(server.request("GET", "/api/version")[2])
    same(set(version), {"version", "hearth"}, "versions")


def check_curl(server):
    """`curl -d` says nothing of JSON; neither does a script without headers."""
    for kind in ("application/x-www-form-urlencoded", "text/plain", "application/json"):
        status, _, text = post(server, "/api/generate", {"model": server.name, "prompt": "Hi.",
                                                         "stream": False}
                               | {"options": {"num_predict": 2}}, {"content-type": kind})
        same(status, 200, f"{kind}: {text}")
    same(post(server, "/api/chat", asked(server), {"content-type": "text/plain",
                                                   "referer": "http://localhost/"})[0],
         415, "a web page's form")


def check_names(server):
    for name in (server.name, server.name + ":latest"):
        part = lines(post(server, "/api/chat", asked(server, model=name))[2])[0]
        same(part["model"], name, "the name as it was asked for")
        same(post(server, "/api/show", {"name": name})[0], 200, "the older member")
        same(post(server, "/api/pull", {"name": name})[2], '{"status":"success"}', "a pull")
    for name in ("x", server.name + ":8b", "", server.name + ":latest:latest"):
        same(post(server, "/api/chat", asked(server, model=name))[0], 404 if name else 400, name)
    # The other APIs know the tag as well.
    same(post(server, "/v1/chat/completions", {"model": server.name + ":latest", "max_tokens": 2,
                                               "messages": HELLO})[0], 200, "OpenAI's form")


def check_errors(server):
    """{"error": "..."} and nothing else, whatever it is that went wrong."""
    wrong = [
        ("POST", "/api/chat", "{", 400), ("POST", "/api/chat", "[]", 400),
        ("POST", "/api/chat", "", 400), ("POST", "/api/chat", b"\xff", 400),
        ("POST", "/api/chat", {"messages": HELLO}, 400),
        ("POST", "/api/chat", asked(server, colour="red"), 400),
        ("POST", "/api/chat", asked(server, messages="hi"), 400),
        ("POST", "/api/chat", asked(server, stream="yes"), 400),
        ("POST", "/api/chat", asked(server, tools=[{"type": "web_search"}]), 400),
        ("POST", "/api/chat", asked(server, keep_alive=True), 400),
        ("POST", "/api/chat", asked(server) | {"options": []}, 400),
        ("POST", "/api/generate", {"model": server.name, "prompt": ["a"]}, 400),
        ("POST", "/api/generate", {"model": server.name, "prompt": "a", "raw": 1}, 400),
        ("POST", "/api/embed", {"model": server.name, "input": 3}, 400),
        ("POST", "/api/embed", {"model": server.name, "input": [1 << 28]}, 400),
        ("POST", "/api/embeddings", {"model": server.name, "prompt": 3}, 400),
        ("POST", "/api/show", {}, 400), ("POST", "/api/show", {"model": "x"}, 404),
        ("POST", "/api/pull", {"model": "x"}, 501), ("POST", "/api/pull", {"model": 1}, 400),
        ("POST", "/api/create", {"model": "x"}, 501), ("POST", "/api/push", {"model": "x"}, 501),
        ("POST", "/api/copy", {"source": "x"}, 501), ("DELETE", "/api/delete", {"name": "x"}, 501),
        ("POST", "/api/blobs/sha256:0", "x", 501),
        ("GET", "/api/chat", None, 405), ("POST", "/api/tags", {}, 405),
        ("GET", "/api/chat/old", None, 404),
    ]
    for method, path, body, wanted in wrong:
        status, headers, data = server.request(method, path, body)
        same((status, headers["content-type"]), (wanted, "application/json"), f"{path} {body}")
        error = json.loads(data)
        expect(set(error) == {"error"} and isinstance(error["error"], str), f"{path}: {error}")


def check_schema_errors(server):
    """What is wrong with a schema is blamed on `format`, however the reply is written."""
    schema = {"type": "string", "pattern": "^[a-z]*a[a-z]{15}1$", "minLength": 2000}
    for more in ({"raw": True}, {"raw": False}):
        body = {"model": server.name, "prompt": "x", "format": schema, **more}
        status, _, text = post(server, "/api/generate", body)
        error = json.loads(text)["error"]
        same(status, 400, error)
        expect(error.startswith("format: "), f"the field in {error}")


def check_late_error(program):
    """What goes wrong after the first byte is a last line with the error, and without `done`."""
    with serving(program, work_model("tiny-oss-o200k.gguf"), "--drain", "0.1") as server:
        endless = {"model": server.name, "prompt": "x", "raw": True,
                   "format": {"type": "array", "minItems": 1000,
                              "items": {"type": "string", "minLength": 1000}}}
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.request("POST", "/api/generate", json.dumps(endless))
        response = connection.getresponse()
        same(response.status, 200, "a stream that begins")
        text = response.readline().decode()
        server.process.send_signal(signal.SIGTERM)
        parts = lines(text + response.read().decode())
        same(parts[-1], {"error": "the server is shutting down"}, "the last line")
        expect(len(parts) > 1 and not any(part.get("done") for part in parts), "no end before it")
        same(server.process.wait(60), 0, "a clean end")


def check_ignored(server):
    options = {"num_gpu": 1, "num_ctx": 4096, "use_mmap": True}
    for stream in (False, True):
        _, headers, _ = post(server, "/api/chat", asked(server, stream=stream, options=options))
        same(headers.get("x-hearth-ignored-fields"),
             "options.num_ctx, options.num_gpu, options.use_mmap", "what was ignored")
    expect("x-hearth-ignored-fields" not in post(server, "/api/chat", asked(server))[1], "nothing")


def check_disconnect(server):
    """A client that hangs up in the middle of a stream; others are served as before."""
    body = json.dumps(asked(server, options={"num_predict": 4000, "temperature": 1}))
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", server.port)) as sock:
            sock.sendall(f"POST /api/chat HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}"
                         f"\r\n\r\n{body}".encode())
            got = b""
            while b'"done":false' not in got:
                got += sock.recv(4096)
    for _ in range(200):
        page = server.request("GET", "/metrics?names=hearth")[2].decode()
        if "\nhearth_requests_running 0\n" in page:
            break
        time.sleep(0.05)
    expect("\nhearth_requests_running 0\n" in page, "their work to end")
    check_stream(server)


def check_log(server, path):
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    expect(any(row.get("dialect") == "ollama" for row in rows), f"its name in {rows[:2]}")
    expect("Hello." not in path.read_text(), "no text of anybody")


def check_keys(program):
    key, entry = new_key(program, "ada", "--requests-per-minute", "2")
    with tempfile.TemporaryDirectory() as folder:
        keys = pathlib.Path(folder) / "keys.json"
        keys.write_text(json.dumps({"keys": [entry]}))
        with serving(program, work_model("tiny-oss-o200k.gguf"), "--keys", str(keys)) as server:
            for path in ("/api/tags", "/api/ps", "/api/version"):
                status, _, data = server.request("GET", path)
                same((status, list(json.loads(data))), (401, ["error"]), path)
            allowed = {"authorization": f"Bearer {key}"}
            # Looking at models is no request of a model.
            for _ in range(8):
                same(server.request("GET", "/api/tags", headers=allowed)[0], 200, "the list")
            found = [post(server, "/api/chat", asked(server), allowed) for _ in range(4)]
            same([status for status, _, _ in found], [200, 200, 429, 429], "two a minute")
            expect(int(found[-1][1]["retry-after"]) > 0, "when to come back")
            same(list(json.loads(found[-1][2])), ["error"], "the form of a refusal")


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log"
        with serving(program, work_model("tiny-oss-o200k.gguf"), "--log", str(log)) as server:
            check_stream(server)
            check_front(server)
            check_curl(server)
            check_names(server)
            check_errors(server)
            check_schema_errors(server)
            check_ignored(server)
            check_disconnect(server)
        check_log(server, log)
    check_late_error(program)
    check_keys(program)
    print("Ollama's API is as its clients expect it, byte by byte")


if __name__ == "__main__":
    main(sys.argv[1])

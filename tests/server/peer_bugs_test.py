# SPDX-License-Identifier: Apache-2.0
"""docs/peer-bugs.md names a test for every bug that other servers had; this checks that each of
them exists, and holds the ones that fit nowhere else."""
import json
import os
import pathlib
import re
import socket
import sys
import tempfile

from serving import expect, new_key, same, serving, work_model

ROOT = pathlib.Path(__file__).resolve().parents[2]
TALK = [{"role": "user", "content": "hi"}]
CHAT = {"messages": TALK, "max_tokens": 1}


def exists(path, name):
    file = ROOT / path
    if not file.exists():
        return False
    text = file.read_text(encoding="utf-8")
    if path.endswith("_test.cc"):
        suite, _, case = name.partition(".")
        return re.search(rf"^TEST(_F|_P)?\({suite},\s*{case}\)", text, re.MULTILINE) is not None
    return re.search(rf'(^|\W|"){re.escape(name)}', text) is not None


def check_page():
    """Every row names tests that exist, or says why there is none."""
    page = (ROOT / "docs/peer-bugs.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in page.splitlines() if line.startswith("| ") and "elsewhere" not in line]
    tests = set()
    for row in rows:
        same(len(row), 5, f"cells of {row}")
        named = re.findall(r"`([\w/]+\.(?:cc|py)):([\w.]+)`", row[3])
        expect(named or row[3].strip().startswith("does not apply"), f"a test or a reason in {row}")
        for path, name in named:
            expect(exists(path, name), f"{path} has no {name}: {row[1]}")
        tests.update(named)
    expect(not exists("src/http/head_check_test.cc", "HeadCheck.NoSuchTest"), "what is not there not to be found")
    expect(len(rows) >= 45 and len(tests) >= 60, f"a full page, not {len(rows)} rows and {len(tests)} tests")
    print(f"{len(rows)} rows, {len(tests)} tests, all there")


def check_paths_of_others(server):
    """What other servers let anybody do, no route here does: models are not made, moved or tuned."""
    for path in ("/invocations", "/pause", "/resume", "/update_weights", "/load_lora_adapter", "/reset_prefix_cache", "/sleep",
                 "/collective_rpc", "/slots", "/slots/0?action=save", "/props", "/lora-adapters", "/api/create",
                 "/api/push", "/api/pull", "/api/copy", "/api/blobs/sha256:..%2f..", "/infill", "/score", "/flush_cache",
                 "/get_server_info", "/start_profile", "/v1/files", "/v1/models/load", "/debug", "/docs", "/static/../../etc/passwd"):
        for method in ("GET", "POST", "DELETE", "PUT"):
            body = {"filename": "../../x", "model": "x", "name": "x"} if method == "POST" else None
            status, _, data = server.request(method, path, body)
            right = (400, 404, 405, 501) if path == "/api/pull" else (404, 405, 501)
            expect(status in right, f"{method} {path}: {status} {data[:200]}")


def check_fields_of_others(server):
    """Fields that were dangerous elsewhere are refused by their names, not ignored."""
    for field, value in (("n_discard", -1), ("n_keep", -(1 << 31)), ("prompt_embeds", "gASVAAAA"), ("best_of", 1 << 20),
                         ("chat_template", "{{ x }}"), ("grammar", "root ::= ("),
                         ("media_io_kwargs", {}), ("mm_processor_kwargs", {}), ("lora", [{"id": -1}]), ("allowed_token_ids", [-1]),
                         ("logits_processors", ["os.system"]), ("vllm_xargs", {}), ("kv_transfer_params", {"remote_host": "x"})):
        status, _, data = server.request("POST", "/v1/chat/completions", CHAT | {field: value})
        error = json.loads(data).get("error", {})
        expect(status == 400 and field in json.dumps(error), f"{field}: {status} {data[:300]}")
    for harmless in ({"cache_prompt": True}, {"id_slot": -5}):  # there are no slots to spoil
        status, _, data = server.request("POST", "/v1/chat/completions", CHAT | harmless)
        expect(status == 200, f"{harmless}: {status} {data[:300]}")


def check_empty_prompts(server):
    for path, body in (("/v1/completions", {"prompt": ""}), ("/v1/completions", {"prompt": []}), ("/v1/completions", {"prompt": [""]}),
                       ("/v1/completions", {"prompt": [[]]}), ("/v1/completions", {"prompt": [-1]}), ("/v1/completions", {"prompt": [1 << 31]}),
                       ("/v1/chat/completions", {"messages": [{"role": "user", "content": ""}]}),
                       ("/v1/chat/completions", {"messages": [{"role": "user", "content": []}]}),
                       ("/v1/responses", {"input": ""}), ("/v1/responses", {"input": []}), ("/detokenize", {"tokens": []}),
                       ("/tokenize", {"prompt": ""}), ("/v1/messages", {"messages": [{"role": "user", "content": ""}]})):
        limit = {"/v1/responses": {"max_output_tokens": 1}, "/tokenize": {}, "/detokenize": {}}.get(path, {"max_tokens": 1})
        status, _, data = server.request("POST", path, body | limit)
        expect(status in (200, 400), f"{path} {body}: {status} {data[:300]}")


def check_brackets(server):
    """60,000 of them, in every place where somebody recursed."""
    many = "(" * 60_000
    nested = {"a": 1}
    for _ in range(60):
        nested = {"anyOf": [nested]}
    for part in ({"guided_grammar": "start: " + many}, {"guided_regex": many}, {"guided_regex": "(" * 4000 + ")" * 4000},
                 {"guided_json": {"type": "string", "pattern": many}}, {"guided_json": nested}, {"guided_grammar": 'start: ""'},
                 {"guided_json": json.dumps({"type": "string", "pattern": "[" * 30_000})}, {"guided_choice": [many]},
                 {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": {"pattern": many}}}}}]}):
        status, _, data = server.request("POST", "/v1/chat/completions", CHAT | part)
        expect(status in (200, 400), f"{str(part)[:60]}: {status} {data[:300]}")


def check_messages(server):
    """No message names a file, a folder or a line of ours."""
    bodies = [b"", b"{", b"[]", json.dumps(CHAT | {"n": -1}).encode(), json.dumps(CHAT | {"guided_regex": "("}).encode(),
              json.dumps(CHAT | {"model": "x"}).encode(), json.dumps({"messages": [{"role": "tool"}]}).encode(),
              json.dumps(CHAT | {"guided_grammar": "start: x"}).encode(), json.dumps({"messages": TALK, "max_tokens": 1 << 26}).encode()]
    for path in ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/nowhere"):
        for body in bodies:
            status, headers, data = server.request("POST", path, body)
            expect(400 <= status < 500, f"{path} {body[:60]}: {status} {data[:200]}")
            found = re.search(rb"[\w/]+\.(cc|h|rs|gguf)\b|/(work|root|home|usr|tmp)/|0x[0-9a-f]{6}|hearth::|boost|panicked", data)
            expect(not found, f"{path} {body[:60]}: {found} in {data[:400]}")
            expect("server" not in headers, f"no name of the program in {headers}")


def check_browsers(server):
    """A page of somebody else gets no answer and no permission."""
    for headers in ({"origin": "http://evil.example"}, {"origin": "null"}, {"host": "evil.example"},
                    {"origin": "http://localhost.evil.example"}, {"host": "localhost.evil.example"}):
        for method, path, body in (("GET", "/v1/models", None), ("POST", "/v1/chat/completions", CHAT)):
            status, answered, data = server.request(method, path, body, headers)
            expect(status == 403, f"{method} {path} with {headers}: {status} {data[:200]}")
            expect(not any(h.startswith("access-control") for h in answered), f"no permission in {answered}")
    status, answered, _ = server.request("OPTIONS", "/v1/chat/completions", None, {
        "origin": "http://evil.example", "access-control-request-method": "POST"})
    expect(status in (403, 405) and not any(h.startswith("access-control") for h in answered), f"{status} {answered}")
    status, answered, _ = server.request("POST", "/v1/chat/completions", json.dumps(CHAT), {
        "content-type": "text/plain", "sec-fetch-site": "cross-site"})
    same(status, 415, "a form of a page without a question beforehand")
    status, answered, _ = server.request("GET", "/v1/models")
    expect(status == 200 and not any(h.startswith("access-control") for h in answered), f"{status} {answered}")


def check_bypasses(program, model):
    """However a path is written, either it is another one or a key is asked for."""
    key, entry = new_key(program, "ada")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "keys.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"keys": [entry]}, file)
        with serving(program, model, "--threads", "1", "--keys", path) as server:
            same(server.request("GET", "/v1/models", None, {"x-api-key": key})[0], 200, "with a key")
            heads = ["Authorization: Bearer " + key[:-1], "Authorization: bearer", "Authorization: Basic " + key,
                     "X-Api-Key: ", "X-Api-Key: null", "X-Forwarded-For: 127.0.0.1", "X-Original-URL: /livez", "X-Rewrite-URL: /livez"]
            for target in ("/v1/models", "//v1/models", "/v1//models", "/v1/models/", "/v1/./models", "/livez/../v1/models", "/v1/models?/livez",
                           "/v1/%6dodels", "/V1/models", "/v1/models;x=/livez", "/livez?x=/v1/models", "/livez%2f..%2fv1/models",
                           "/v1/models%00", "/v1/models%3f", "\\v1\\models", "/v1/models/tiny-oss-o200k", "/metrics", "/v1/responses/x"):
                for extra in heads:
                    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as sock:
                        sock.sendall(f"GET {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{extra}\r\n\r\n".encode())
                        got = b""
                        while piece := sock.recv(65536):
                            got += piece
                    status = int(got[9:12])
                    is_health = target.startswith("/livez?")
                    expect(status == 200 if is_health else status in (400, 401, 403, 404), f"{target} {extra}: {got[:300]}")
                    expect(b"tiny-oss" not in got, f"{target} {extra}: nothing of ours in {got[:300]}")


def main(program):
    model = work_model("tiny-oss-o200k.gguf")
    check_page()
    with serving(program, model, "--threads", "1", "--context", "2048") as server:
        check_paths_of_others(server)
        check_fields_of_others(server)
        check_empty_prompts(server)
        check_brackets(server)
        check_messages(server)
        check_browsers(server)
        same(server.request("GET", "/readyz")[0], 200, "ready after all of it")
    check_bypasses(program, model)
    print("none of it happens here")


if __name__ == "__main__":
    main(sys.argv[1])

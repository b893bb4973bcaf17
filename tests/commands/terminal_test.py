#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files, folders and servers that say commands to a terminal, and every command of the program over them:
standard output and error have no byte that a terminal obeys, in a pipe and on a terminal, and JSON stays
JSON. terminal_test.py HEARTH"""
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from checking import expect, work_model
from hostile_gguf import Gguf, string, strings
from on_terminal import OnTerminal

PROGRAM = sys.argv[1]
# The title, the screen, colours in three encodings, the direction of text, lines, the line written again.
OBEYED = "\x1b]0;owned\x07\x1b[2J\x1b[31mevil\u009b31m\u202e\u2066\u2028\u2029\r\x08\x7f"
RAW = OBEYED.encode() + b"\x9b31m\xff\x00"
IN_A_NAME = "ev\x1b[31mil\u009b2J\u202e\r"  # without the slash and zero that no name of a file has

# What may stand in front of a terminal beside text: styles, and a line or a screen written again.
OWN = re.compile(rb"\x1b\[(?:[0-9;]*m|[0-9;?]*[HJKhlA])|\r")
FORBIDDEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\u2028-\u202e\u2066-\u2069]")
counted = {"runs": 0, "shown": 0}


def check(where, out, has_own_codes=False):
    """No byte that a terminal obeys, and all of it text."""
    counted["runs"] += 1
    for begin in (b"\x1b[31mev", b"\x1b[2J\x1b[31m", b"\x1b]0;"):
        expect(begin not in out, f"{where}: commands the terminal: {out[:2000]!r}")
    if has_own_codes:
        out = OWN.sub(b"", out)
    try:
        found = FORBIDDEN.search(out.decode("utf-8"))
    except UnicodeDecodeError as wrong:
        expect(False, f"{where}: bytes that are no text, {wrong}: {out[:2000]!r}")
    expect(not found, f"{where}: has {found and found.group(0)!r}: {out[:2000]!r}")
    counted["shown"] += b"\\x1b" in out or b"\\u001b" in out


class Place:
    """A home of its own, and the commands run there."""

    def __init__(self, folder):
        self.home = folder
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(("HEARTH_", "HF_"))}
        self.env.update(HOME=str(folder), XDG_CONFIG_HOME=str(folder / "config"), XDG_DATA_HOME=str(folder / "data"),
                        OLLAMA_MODELS=str(folder / "none"), HF_HOME=str(folder / "none"),
                        HEARTH_MODELS=str(folder / "models"), LC_ALL="C.UTF-8")

    def run(self, *args, stdin=b"", is_json=False, is_data=False, codes=None, **variables):
        """In pipes. `is_data`: standard output is what was asked for, byte for byte."""
        where = f"hearth {' '.join(map(repr, args))}"
        done = subprocess.run([PROGRAM, *args], input=stdin, capture_output=True, timeout=120, check=False,
                              env={**self.env, **variables})
        if not is_data:
            check(f"{where}: standard output", done.stdout)
        check(f"{where}: standard error", done.stderr)
        if is_json and done.returncode == 0:
            for line in [done.stdout] if done.stdout.startswith((b"{\n", b"[\n")) else done.stdout.splitlines():
                json.loads(line)
        if codes is not None:
            expect(done.returncode in codes, f"{where}: exit code {done.returncode}: {done.stderr!r}")
        return done.stdout

    def on_terminal(self, *args, seconds=30, ends_at=None):
        out, end = b"", time.monotonic() + seconds
        with OnTerminal([PROGRAM, *args], 120, 40, self.env) as terminal:
            while time.monotonic() < end:
                piece = terminal.piece(0.2)
                out += piece
                if (not piece and terminal.process.poll() is not None) or (ends_at and ends_at in out):
                    break
        out = out.replace(b"\r\n", b"\n")
        expect(out, f"{args}: something on the terminal")
        check(f"hearth {' '.join(map(repr, args))} on a terminal", out, has_own_codes=True)


def make_models(folder):
    """{what is hostile: path of a model}."""
    base = Gguf(work_model("tiny-chatml.gguf"))
    kind = base.values["general.architecture"]
    tokens = base.strings("tokenizer.ggml.tokens")
    evil_tokens = list(tokens)
    for i in range(5, 13):  # special ones, which no merge makes
        evil_tokens[i] = OBEYED.encode() + str(i).encode()
    folder.mkdir()
    made = {}
    for what, values in {
            "name": {"general__name": string(OBEYED)},
            "raw name": {"general__name": string(RAW)},
            "architecture": {"general__architecture": string(OBEYED)},
            "quantised by": {"general__quantized_by": string(OBEYED), "general__license": string(OBEYED),
                             "general__author": string(OBEYED)},
            "tokenizer": {"tokenizer__ggml__model": string(OBEYED)},
            "pre-tokenizer": {"tokenizer__ggml__pre": string(OBEYED)},
            "template": {"tokenizer__chat_template": string("{{ " + OBEYED + " }}")},
            "template that raises": {"tokenizer__chat_template":
                                     string("{{ raise_exception('" + OBEYED.replace("\r", "") + "') }}")},
            "template that says": {"tokenizer__chat_template": string(OBEYED + "{{ messages[0].content }}")},
            "tokens": {"tokenizer__ggml__tokens": strings(evil_tokens)},
            "rope": {kind[12:].decode() + "__rope__scaling__type": string(OBEYED)},
    }.items():
        made[what] = base.write(folder / f"{what.replace(' ', '-')}.gguf", **values)
    made["file name"] = shutil.copy(work_model("tiny-chatml.gguf"), folder / f"{IN_A_NAME}.gguf")
    nested = folder / f"folder {IN_A_NAME}"
    nested.mkdir()
    made["folder name"] = shutil.copy(work_model("tiny-chatml.gguf"), nested / "m.gguf")
    made["config"] = str(folder / "config")
    os.mkdir(made["config"])
    pathlib.Path(made["config"], "config.json").write_text(json.dumps(
        {"architectures": [OBEYED], "model_type": OBEYED, "hidden_act": OBEYED}))
    made["broken"] = str(folder / f"broken {IN_A_NAME}.gguf")
    pathlib.Path(made["broken"]).write_bytes(b"GGUF" + RAW)
    return made


def check_models(place, models):
    """Whatever each command makes of them."""
    chat = json.dumps({"messages": [{"role": "user", "content": "hi"}]}).encode() + b"\n"
    out = place.home / f"out {IN_A_NAME}"
    words = place.home / "words.txt"
    words.write_text("one two three " * 20)
    for what, path in models.items():
        place.run("inspect", path)
        place.run("inspect", path, "--json", is_json=True)
        place.run("plan", path, "--json", is_json=True)
        place.run("doctor", path, "--quick", "--json", is_json=True)
        place.run("tokenize", "--model", path, stdin=b'"hi"\n', is_json=True)
        place.run("render", "--model", path, stdin=chat)
        place.run("render", "--text", "--model", path, stdin=chat, is_data=True)
        place.run("run", path, "hi", "--max-tokens", "3", is_data=True)
        if what in ("name", "file name", "folder name", "architecture", "broken"):
            place.run("plan", path)
            place.run("doctor", path, "--quick")
            place.run("quantize", path, str(out), "--to", "int8")
            place.run("pack", path, str(out))
            place.run("bench", path, "--decode", "1", "--batch", "1", "--prefill", "0")
            place.run("eval", "perplexity", "--model", path, "--text", str(words))
            place.run("gpu", "list")
    tokens = json.dumps(list(range(0, 400))).encode()
    shown = place.run("tokenize", "--decode", "--model", models["tokens"], stdin=tokens + b"\n", is_json=True)
    expect(shown, "tokens decoded")
    place.run("inspect", models["name"], codes=(0,))
    for name in ("name", "tokens"):
        place.on_terminal("inspect", models[name])
        place.on_terminal("run", models[name], "hi", "--max-tokens", "20")
    place.on_terminal("doctor", models["name"], "--quick")
    place.on_terminal("quantize", models["file name"], str(place.home / "q"), "--to", "int8")
    print(f"{len(models)} hostile models, {counted['runs']} outputs")


def check_store(place, models):
    for args in (("list",), ("list", "--all"), ("show", "name"), ("show", IN_A_NAME), ("rm", "none" + OBEYED.replace("\0", "")),
                 ("show", OBEYED), ("run", OBEYED), ("inspect", OBEYED), ("plan", OBEYED), ("pull", OBEYED)):
        place.run(*args)
    place.run("list", "--json", is_json=True, codes=(0,))
    folder = place.home / "data/hearth/models/planted"
    folder.mkdir(parents=True)
    shutil.copy(models["name"], folder / "m.gguf")
    manifest = {"format": 1, "name": "planted", "url": "https://box.example/" + OBEYED, "licence": OBEYED,
                "complete": True, "directory": False, "files": [{"name": "m.gguf", "bytes": 1, "digest": OBEYED}]}
    for text in (json.dumps(manifest), json.dumps({**manifest, OBEYED: 1}), OBEYED):
        (folder / "hearth.json").write_text(text)
        place.run("list")
        place.run("show", "planted")
        place.run("show", "planted", "--json", is_json=True)
    place.on_terminal("list")


def check_words(place):
    """What the user, a file or a variable says wrong."""
    for args in ((OBEYED,), ("serve", "--" + OBEYED), ("serve", "--port", OBEYED), ("run", "m", "--json-schema", OBEYED),
                 ("config", "check", OBEYED), ("config", "show", OBEYED), ("key", OBEYED),
                 ("serve", "--trace-endpoint", OBEYED), ("top", "--url", OBEYED), ("top", "--url", "http://" + OBEYED),
                 ("run", "--server", "http://127.0.0.1:1/" + OBEYED, "hi"), ("cache", "info", OBEYED),
                 ("serve", "--keys", OBEYED, "--model", "m"), ("bench", "load", "--url", OBEYED),
                 ("serve", "--model", "m", "--cache-redis", OBEYED), ("tokenize", "--model", OBEYED)):
        place.run(*args)
    config = place.home / f"hearth {IN_A_NAME}.toml"
    toml = json.dumps(OBEYED)
    for text in (f"[serve]\nport = {toml}\n", f"[serve]\n{toml} = 1\n", f"[{toml}]\n", f"[serve]\nname = {toml}\n", OBEYED,
                 f"[serve]\nmodel = {toml}\ncache-redis = {toml}\n"):
        config.write_text(text)
        for args in (("config", "check"), ("config", "show", "serve"), ("doctor", "--quick"), ("serve",)):
            place.run("--config", str(config), *args)
    place.run("list", **{"HEARTH_" + IN_A_NAME: "1", "HF_ENDPOINT": OBEYED})
    place.run("pull", "x/y", HF_ENDPOINT=OBEYED)


def use(place, api, control):
    """What others ask a server, and what they are shown."""
    for args in (("top", "--once"), ("top", "--once", "--json")):
        place.run(*args, "--control-port", control, is_json="--json" in args)
    request = {"messages": [{"role": "user", "content": OBEYED}], "max_tokens": 2, OBEYED: 1}
    done = subprocess.run(["curl", "-s", f"http://127.0.0.1:{api}/v1/chat/completions", "-H",
                           "content-type: application/json", "-d", json.dumps(request)],
                          capture_output=True, timeout=60, check=False)
    json.loads(done.stdout)
    place.run("run", "--server", f"http://127.0.0.1:{api}", "hi", "--max-tokens", "2", is_data=True)


def check_serve(place, models):
    """Start lines, warnings and the log of a server."""
    num_served = 0
    for what in ("name", "file name", "raw name", "template that raises", "folder name", "tokens"):
        log, errors = place.home / "log", place.home / "errors"
        with errors.open("wb") as out:
            server = subprocess.Popen([PROGRAM, "serve", "--model", models[what], "--port", "0", "--log", str(log),
                                       "--control-port", "0", "--unknown-fields", "warn", "--threads", "1"],
                                      stderr=out, env=place.env)
        try:
            end, found = time.monotonic() + 60, None
            while not found and server.poll() is None and time.monotonic() < end:
                time.sleep(0.05)
                found = re.search(rb"control on http://127.0.0.1:(\d+)\n(?:.*\n)*?.*127.0.0.1:(\d+)/v1", errors.read_bytes())
            if found:
                use(place, found.group(2).decode(), found.group(1).decode())
                num_served += 1
        finally:
            server.terminate()
            server.wait(60)
        lines = errors.read_bytes()
        expect(lines, f"{what}: a server that says something")
        check(f"serve, {what}", lines)
        if log.exists():
            check(f"the log, {what}", log.read_bytes())
            for line in log.read_bytes().splitlines():
                json.loads(line)
            log.unlink()
    expect(num_served >= 4, f"servers that start in spite of their names: {num_served}")
    print("servers of hostile models: start lines, log, top and run")


class Liar(http.server.BaseHTTPRequestHandler):
    """A server that says OBEYED wherever a text can be."""
    protocol_version = "HTTP/1.1"

    def answer(self, status, body, kind="application/json"):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path.startswith("/v1/models"):
            rows = [{"id": OBEYED, "object": "model", "max_model_len": 1000}]
            return self.answer(200, json.dumps({"object": "list", "data": rows}, ensure_ascii=False).encode())
        if self.path.startswith("/status"):
            status = {"hearth": OBEYED, "model": OBEYED, "state": OBEYED, "now": OBEYED,
                      "requests": [{"id": OBEYED, "key": OBEYED, "state": OBEYED}]}
            return self.answer(200, json.dumps(status, ensure_ascii=False).encode())
        return self.answer(403, json.dumps({"error": {"message": OBEYED}, "hearth": OBEYED}).encode())

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        if self.server.refuses:
            return self.answer(400, json.dumps({"error": {"message": OBEYED, "code": OBEYED}}).encode())
        delta = json.dumps({"choices": [{"index": 0, "delta": {"content": OBEYED, "reasoning_content": OBEYED}}]})
        tail = json.dumps({"error": {"message": OBEYED}})
        self.answer(200, f"data: {delta}\n\ndata: {tail}\n\n".encode(), "text/event-stream")

    def log_message(self, *_):
        pass


def check_liar(place):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Liar)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    for server.refuses in (False, True):
        place.run("run", "--server", url, "hi", is_data=True)
        place.run("run", "--server", url, "--model", "other", "hi", is_data=True)
        place.on_terminal("run", "--server", url, "hi")
        place.run("bench", "load", "--url", url, "--users", "1", "--duration", "1")
    for args in (("top", "--once"), ("top", "--once", "--json"), ("doctor", "--quick"), ("doctor", "--quick", "--json")):
        place.run(*args, "--url", url, is_json="--json" in args)
    place.on_terminal("top", "--once", "--url", url)
    place.run("pull", "owner/repo", HF_ENDPOINT=url)
    place.run("pull", url + "/m.gguf")
    server.shutdown()
    print("a server that commands terminals: run, top, doctor, pull, bench load")


def main():
    with tempfile.TemporaryDirectory() as folder:
        place = Place(pathlib.Path(folder))
        models = make_models(place.home / "models")
        for one in (lambda: check_words(place), lambda: check_models(place, models), lambda: check_store(place, models),
                    lambda: check_serve(place, models), lambda: check_liar(place)):
            one()
    # Else nothing hostile was shown anywhere, and the test saw nothing.
    expect(counted["shown"] > 40, f"outputs that show what was disarmed: {counted}")
    print(f"{counted['runs']} outputs without a byte that a terminal obeys; {counted['shown']} of them show what was")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hearth top beside a server under load: its figures are those of /metrics, it tells no texts, it
leaves the terminal as it was, and what goes wrong is one line."""
import contextlib
import http.server
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

from control_test import value
from serving import expect, new_key, same, serving, work_model
from terminal import Terminal

SECRET = "xylophone"
STREAMS = 6


def make_keys(program, folder):
    """(path of the keys file, {id: key})."""
    entries, keys = [], {}
    for name, flags in (("ada", []), ("bob", []), ("root", ["--admin"])):
        keys[name], entry = new_key(program, name, *flags)
        entries.append(entry)
    path = pathlib.Path(folder) / "keys.json"
    path.write_text(json.dumps({"keys": entries}))
    return str(path), keys


def get(url, key=None):
    request = urllib.request.Request(url, headers={"authorization": f"Bearer {key}"} if key else {})
    return urllib.request.urlopen(request, timeout=20).read().decode()


@contextlib.contextmanager
def load(server, keys):
    """Streams of two tenants that go on until told otherwise."""
    stop = threading.Event()
    failed = []

    def stream(index):
        key = keys["ada" if index % 2 == 0 else "bob"]
        body = {"messages": [{"role": "user", "content": f"{SECRET} {index}"}], "stream": True,
                "max_tokens": 2000, "ignore_eos": True}
        request = urllib.request.Request(
            server.address + "/v1/chat/completions", json.dumps(body).encode(),
            {"authorization": f"Bearer {key}", "content-type": "application/json"})
        try:
            while not stop.is_set():
                with urllib.request.urlopen(request, timeout=60) as answer:
                    for _ in answer:
                        if stop.is_set():
                            break
        except OSError as error:
            failed.append(repr(error))

    threads = [threading.Thread(target=stream, args=(i,)) for i in range(STREAMS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    expect(not failed, f"the load went through: {failed}")


def top(program, *flags, key=None, timeout=20):
    done = subprocess.run([program, "top", *flags], capture_output=True, text=True, timeout=timeout,
                          env={"HEARTH_API_KEY": key or "", "LC_ALL": "C.UTF-8"}, check=False)
    return done.returncode, done.stdout, done.stderr


def status_of(program, *flags, key=None):
    code, out, err = top(program, "--once", "--json", *flags, key=key)
    same((code, err), (0, ""), "hearth top --json")
    same(len(out.splitlines()), 1, "one line")
    return json.loads(out)


def wait_for(what, why, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return
        time.sleep(0.1)
    expect(False, why)


def check_under_load(program, server, control, keys):
    flag = ["--control-port", control]
    wait_for(lambda: status_of(program, *flag)["requests"]["running"] >= STREAMS - 1,
             "the load runs")
    status = status_of(program, *flag)
    expect(SECRET not in json.dumps(status), "no text of anybody")
    running = [row for row in status["sequences"] if row["state"] in ("prefill", "decode")]
    expect(len(running) >= STREAMS - 2, f"rows of those that run: {status['sequences']}")
    named = {row["key"] for row in status["sequences"]} - {""}
    same(named, {"ada", "bob"}, "whose they are")
    expect(any(row["tokens_per_s"] > 0 and row["generated_tokens"] > 1 for row in running), "rates")
    expect(any(re.fullmatch("[0-9a-f]{24}", row["request_id"]) for row in running), "request ids")
    expect(status["tokens"]["decode_per_s"] > 0 and status["steps"]["mean_ms"] > 0, "speeds")
    expect(status["steps"]["mean_tokens"] >= 1, "tokens of a step")
    times = []
    for _ in range(40):
        began = time.monotonic()
        get(f"http://127.0.0.1:{control}/status")
        times.append(time.monotonic() - began)
    median = sorted(times)[20] * 1000
    expect(median < 50, f"/status under load took {median:.1f} ms")
    code, frame, err = top(program, "--once", *flag)
    same((code, err), (0, ""), "hearth top --once")
    lines = frame.splitlines()
    expect(server.name in lines[0] and "ready" in lines[0], f"the head: {lines[0]!r}")
    expect("\x1b" not in frame and SECRET not in frame, "plain text, nobody's")
    expect(all(len(line) <= 80 for line in lines), "80 columns")
    expect(re.search(r"^ running +[3-6] of 64 ", frame, re.MULTILINE), frame)
    expect(re.search(r"^ [0-9a-f]{11}~  ada +(decode|prefill)", frame, re.MULTILINE), frame)
    same(status_of(program, "--url", server.address, key=keys["root"])["model"], server.name,
         "beside the API with an admin's key")
    return median


def check_figures(program, control):
    """With nothing under way both pages must say the same."""
    flag = ["--control-port", control]
    wait_for(lambda: status_of(program, *flag)["requests"]["running"] == 0, "the load ends")
    time.sleep(0.5)  # the last ends are still being counted
    page = get(f"http://127.0.0.1:{control}/metrics?names=hearth")
    status = status_of(program, *flag)
    full = status["kv"][0]
    pairs = [
        (status["requests"]["admitted"], "hearth_requests_admitted_total"),
        (status["requests"]["refused"], "hearth_requests_refused_total"),
        (status["requests"]["finished"]["cancelled"],
         'hearth_requests_finished_total{reason="cancelled"}'),
        (status["requests"]["preemptions"], "hearth_preemptions_total"),
        (status["steps"]["count"], "hearth_steps_total"),
        (status["tokens"]["prefill"], "hearth_prefill_tokens_total"),
        (status["tokens"]["decode"], "hearth_decode_tokens_total"),
        (status["tokens"]["prompt"], "hearth_prompt_tokens_total"),
        (status["tokens"]["cached"], "hearth_cached_tokens_total"),
        (full["total"], 'hearth_kv_capacity_blocks{group="full"}'),
        (full["cached"], 'hearth_kv_blocks{group="full",state="cached"}'),
        (full["free"], 'hearth_kv_blocks{group="full",state="free"}'),
    ]
    for turn in status["turns"]:
        series = f'hearth_turns_total{{status="{turn["status"]}",code="{turn["code"]}"}}'
        pairs.append((turn["count"], series))
    for said, series in pairs:
        same(said, value(page, series), series)
    same(full["held"], 0, "blocks held when nobody asks")
    expect(full["block_bytes"] > 0 and status["tokens"]["decode"] > 0, "bytes and tokens")
    codes = {turn["code"] for turn in status["turns"]}
    expect({"cancelled", "unknown_parameter"} <= codes, f"errors by code: {codes}")
    resident = value(page, "process_resident_memory_bytes")
    expect(abs(status["resident_bytes"] / resident - 1) < 0.2, "resident memory")


def refused(program, *flags, key=None):
    code, out, err = top(program, "--once", *flags, key=key)
    same((code, out, len(err.splitlines())), (1, "", 1), f"one line of error for {flags}: {err}")
    return err


def check_doors(program, server, keys, folder):
    url = ["--url", server.address]
    expect("an admin key is required: pass --key-file" in refused(program, *url), "no key")
    expect("the key was rejected" in refused(program, *url, key="hk-nobody"), "a wrong key")
    expect("an admin key is required" in refused(program, *url, key=keys["ada"]), "a tenant's key")
    path = pathlib.Path(folder) / "key"
    path.write_text(keys["root"] + "\n")
    same(top(program, "--once", *url, "--key-file", str(path))[0], 0, "a key from a file")
    expect("no answer" in refused(program, "--url", "http://127.0.0.1:1"), "nobody there")
    expect(str(path) + "x" in refused(program, *url, "--key-file", str(path) + "x"), "no such file")

    class Stranger(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>welcome</html>")

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Stranger) as stranger:
        threading.Thread(target=stranger.serve_forever, daemon=True).start()
        said = refused(program, "--url", f"http://127.0.0.1:{stranger.server_port}")
        expect("of a Hearth server" in said, said)
        stranger.shutdown()
    for flags in (["--interval", "0"], ["--bogus"], ["--url", "x", "--control-port", "8"]):
        same(top(program, *flags)[0], 2, f"wrong usage: {flags}")


def check_terminal(program, control):
    """Every way out leaves the terminal as it was."""
    command = [program, "top", "--control-port", control, "--interval", "0.2"]
    for leave in (b"q", b"\x03", signal.SIGTERM, signal.SIGINT):
        with Terminal(command, columns=80, rows=24) as terminal:
            before = terminal.modes_before
            terminal.read_until("q quits")
            expect(terminal.modes() != before, "keys come one by one")
            expect("\x1b[32mready" in terminal.text, "colours on a terminal")
            terminal.send(leave)
            same(terminal.wait(), 0, f"the end after {leave}")
            same(terminal.modes(), before, f"the terminal's modes after {leave}")
            expect(terminal.text.startswith("\x1b[?1049h\x1b[?25l"), "another screen")
            expect(terminal.text.endswith("\x1b[?25h\x1b[?1049l"), repr(terminal.text[-80:]))
    with Terminal(command, columns=80, rows=24, env={"NO_COLOR": "1"}) as terminal:
        terminal.read_until("q quits")
        expect(not re.search(r"\x1b\[[0-9;]*m", terminal.text), "no colours with NO_COLOR")
        same(len(terminal.frame()[0]), 80, "80 columns are used")
        same(len(terminal.frame()), 24, "24 rows are used")
        terminal.resize(columns=120, rows=40)
        wait_for(lambda: terminal.drain(0.1) and len(terminal.frame()) == 40, "40 rows are used")
        same(len(terminal.frame()[0]), 120, "120 columns are used")
        terminal.send(b"xyz\x1b[A")  # keys that mean nothing
        terminal.read_until("q quits")
        terminal.send(b"q")
        same(terminal.wait(), 0, "the end")


def check_server_gone(program, server, control):
    command = [program, "top", "--control-port", control, "--interval", "0.2"]
    with Terminal(command, columns=100, rows=30) as terminal:
        terminal.read_until("q quits")
        server.stop()
        terminal.read_until("without an answer: ")
        expect(server.name in "".join(terminal.frame()), "the last figures stay")
        terminal.send(b"q")
        same(terminal.wait(), 0, "the end")


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        path, keys = make_keys(program, folder)
        with serving(program, work_model("tiny-oss-o200k.gguf"), "--control-port", "0", "--keys",
                     path) as server:
            control = re.search(r"control on \S+:(\d+)", "".join(server.log)).group(1)
            body = {"messages": [{"role": "user", "content": "x"}], "wrong": 1}
            same(server.request("POST", "/v1/chat/completions", body,
                                {"authorization": f"Bearer {keys['ada']}"})[0], 400, "a mistake")
            with load(server, keys):
                median = check_under_load(program, server, control, keys)
            check_figures(program, control)
            check_doors(program, server, keys, folder)
            check_terminal(program, control)
            check_server_gone(program, server, control)
    with serving(program, work_model("tiny-oss-o200k.gguf")) as server:
        same(status_of(program, "--url", server.address)["model"], server.name, "without keys")
    print(f"hearth top agrees with /metrics; /status under load: median {median:.1f} ms")


if __name__ == "__main__":
    main(sys.argv[1])

# SPDX-License-Identifier: Apache-2.0
"""What a balancer needs of one replica: the agent check's line, readiness that ends before requests
are refused, the session key, the tokens of a prompt, the metrics that endpoint pickers read."""
import json
import re
import signal
import socket
import sys
import threading

from serving import Server, expect, same, serving, work_model

CHAT = "/v1/chat/completions"


def agent_port(server):
    """The port of the agent check, which is told after the address."""
    while line := server.process.stderr.readline():
        server.log.append(line)
        if found := re.search(r"agent check on port (\d+)", line):
            return int(found.group(1))
    raise AssertionError("".join(server.log))


def agent_says(port):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
        got = b""
        while piece := sock.recv(100):
            got += piece
    return got.decode()


def wait_until(what, check):
    """Until it is so; the test's own time limit is the bound."""
    pause = threading.Event()
    while not check():
        pause.wait(0.02)
    return what


def chat(**members):
    return {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 3, "temperature": 0,
            **members}


def check_agent(program, model):
    flags = ("--agent-check", "127.0.0.1:0", "--max-sequences", "8")
    with serving(program, model, *flags, "--slow-start", "0") as server:
        same(agent_says(agent_port(server)), "up ready 100% maxconn:16\n", "the line at rest")
    with serving(program, model, *flags, "--slow-start", "3600") as server:
        same(agent_says(agent_port(server)), "up ready 25% maxconn:16\n", "the line after a start")
    taken = socket.create_server(("127.0.0.1", 0))
    server = Server(program, model, "--agent-check", f"127.0.0.1:{taken.getsockname()[1]}")
    expect(server.port is None and "--agent-check: cannot listen" in "".join(server.log),
           f"a port that is taken: {server.log}")
    taken.close()
    server.process.stderr.close()


def check_notice(program, model):
    """Between the signal and the drain a replica is not ready and still serves."""
    server = Server(program, model, "--agent-check", "127.0.0.1:0", "--drain-notice", "3000",
                    "--slow-start", "0")
    agent = agent_port(server)
    same(server.request("GET", "/readyz")[0], 200, "ready")
    server.process.send_signal(signal.SIGTERM)
    wait_until("not ready", lambda: server.request("GET", "/readyz")[0] == 503)
    same(agent_says(agent), "drain\n", "the agent's word")
    same(server.request("POST", CHAT, chat())[0], 200, "a request that came all the same")
    while "second signal" not in (line := server.process.stderr.readline()):
        expect(line, "a line about the second signal")
    server.process.send_signal(signal.SIGTERM)
    same(server.process.wait(60), -signal.SIGTERM, "whoever asks twice does not wait")
    server.process.stderr.close()
    server = Server(program, model, "--drain-notice", "0.2")
    same(server.stop()[0], 0, "the exit code after notice and drain")


def check_session(server):
    def key(headers=None, **members):
        status, got, _ = server.request("POST", CHAT, chat(**members), headers)
        same(status, 200, "a reply")
        return got["x-session-affinity"]

    same(key({"x-session-affinity": "abc"}, user="u"), "abc", "as it came")
    same(key(user="u"), "4a61e2a8f2179a0d", "the user's, on every replica")
    first = chat()["messages"]
    opening = key()
    later = first + [{"role": "assistant", "content": "hi"}, {"role": "user", "content": "and?"}]
    same(key(messages=later), opening, "the same conversation later")
    expect(key(messages=[{"role": "user", "content": "other"}]) != opening, "another conversation")
    same(key({"x-session-affinity": "abc"}, stream=True), "abc", "in a stream's head")


def check_render(server):
    body = chat(tools=[{"type": "function", "function": {"name": "now", "parameters": {
        "type": "object", "properties": {}}}}])
    status, _, data = server.request("POST", CHAT + "/render", body)
    same(status, 200, "rendered")
    rendered = json.loads(data)
    reply = json.loads(server.request("POST", CHAT, body)[2])
    same(len(rendered["token_ids"]), reply["usage"]["prompt_tokens"], "as many as the prompt has")
    same(rendered["count"], len(rendered["token_ids"]), "the count")
    plain = {"prompt": "Once upon a time", "max_tokens": 2, "temperature": 0}
    tokens = json.loads(server.request("POST", "/v1/completions/render", plain)[2])["token_ids"]
    by_text = json.loads(server.request("POST", "/v1/completions", plain)[2])
    by_ids = json.loads(server.request("POST", "/v1/completions", {**plain, "prompt": tokens})[2])
    same(by_ids["choices"], by_text["choices"], "the reply to the tokens")
    same(by_ids["usage"], {**by_text["usage"], "prompt_tokens_details": by_ids["usage"][
        "prompt_tokens_details"]}, "the same prompt")
    for path, wrong, word in [
            (CHAT + "/render", chat(messages=[]), "messages"),
            (CHAT + "/render", chat(wrong=1), "wrong"),
            ("/v1/completions/render", {"prompt": ["a", "b"]}, "one prompt"),
            ("/v1/completions/render", {}, "prompt")]:
        status, _, data = server.request("POST", path, wrong)
        same(status, 400, f"{wrong}")
        expect(word in data.decode(), f"{word} in {data}")


def check_metrics(server):
    page = server.request("GET", "/metrics")[2].decode()
    for name in ("vllm:num_requests_waiting", "vllm:num_requests_running",
                 "vllm:kv_cache_usage_perc", "vllm:cache_config_info", "vllm:lora_requests_info"):
        expect(re.search(rf"^{name}{{.*}} [0-9.e+-]+$", page, re.MULTILINE), f"{name}:\n{page}")
    expect("\nhearth_predicted_wait_seconds 0\n" in page, "no wait at rest")


def check_overload(program, model):
    """A full replica answers as it was told to, and says when to come back."""
    with serving(program, model, "--max-sequences", "1", "--max-queued", "1", "--overload-status",
                 "503") as server:
        held = []
        for number in range(2):  # one runs, one waits
            sock = socket.create_connection(("127.0.0.1", server.port), timeout=60)
            body = json.dumps(chat(max_tokens=3000, ignore_eos=True, stream=True)).encode()
            sock.sendall(f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-type: "
                         f"application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
            got = b""
            while (b"data: " if number == 0 else b": accepted") not in got:
                piece = sock.recv(65536)
                expect(piece, f"stream {number} goes on after {got[-2000:]}")
                got += piece
            held.append(sock)
            # The head of a reply comes while it still waits: only when the first runs there is room to wait for one.
            wait_until("it runs", lambda: json.loads(server.request("GET", "/status")[2])["requests"]["running"] == 1)
        status, headers, data = server.request("POST", CHAT, chat())
        same(status, 503, f"the operator's status: {data}")
        same(json.loads(data)["error"]["code"], "overloaded", "its code")
        expect(int(headers["retry-after"]) >= 1, "a time to come back")
        for sock in held:
            sock.close()


def main(program):
    model = work_model("tiny-oss-o200k.gguf")
    check_agent(program, model)
    check_notice(program, model)
    with serving(program, model) as server:
        check_session(server)
        check_render(server)
        check_metrics(server)
    check_overload(program, model)
    print("a balancer can trust it")


if __name__ == "__main__":
    main(sys.argv[1])

# SPDX-License-Identifier: Apache-2.0
"""How things end and who is let in: SIGTERM under load in every dialect, slow clients, too many
connections, TLS and plain bytes on each other's ports, the Unix socket, and a control port that
answers while the engine reads a long prompt."""
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

from serving import Server, expect, same, serving, work_model

TALK = [{"role": "user", "content": "Tell me everything."}]
# path -> (body of an endless reply, what its error event looks like, what only a whole reply ends with)
DIALECTS = {
    "/v1/chat/completions": ({"messages": TALK, "max_tokens": 100_000, "ignore_eos": True}, b'{"error":', b"[DONE]"),
    "/v1/completions": ({"prompt": "Once", "max_tokens": 100_000, "ignore_eos": True}, b'{"error":', b"[DONE]"),
    "/v1/responses": ({"input": "Tell me.", "store": False, "ignore_eos": True}, b"event: response.failed", b"response.completed"),
    "/v1/messages": ({"messages": TALK, "max_tokens": 100_000, "ignore_eos": True, "thinking": {"type": "enabled", "budget_tokens": 90_000}},
                     b"event: error", b"message_stop"),
}


def open_stream(server, path, body):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    connection.request("POST", path, json.dumps({**body, "stream": True}), {"content-type": "application/json"})
    response = connection.getresponse()
    if response.status == 400 and b"ignore_eos" in (data := response.read()):
        return open_stream(server, path, {k: v for k, v in body.items() if k != "ignore_eos"})
    same(response.status, 200, f"{path}: {response.status}")
    return connection, response


def check_sigterm(program, model):
    """Running streams of every dialect end with their own error within the bound; whole answers with
    503; new clients find no door."""
    drain = 1.0
    server = Server(program, model, "--threads", "1", "--drain", str(drain))
    streams = {path: open_stream(server, path, body) for path, (body, _, _) in DIALECTS.items()}
    for path, (_, response) in streams.items():
        while not response.readline().startswith(b"data: "):
            pass
    waiting = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    waiting.request("POST", "/v1/chat/completions", json.dumps(DIALECTS["/v1/chat/completions"][0]),
                    {"content-type": "application/json"})
    idle = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    time.sleep(0.3)
    began = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    for path, (_, response) in streams.items():
        rest = response.read()  # a cut stream would raise IncompleteRead here
        _, error, whole = DIALECTS[path]
        expect(error in rest and b"shutting down" in rest, f"{path}: an error event in {rest[-400:]}")
        expect(whole not in rest, f"{path}: no end as if it were whole in {rest[-400:]}")
    answer = waiting.getresponse()
    same(answer.status, 503, "an answer that could not be finished")
    expect(answer.getheader("retry-after"), "when to try again")
    code = server.process.wait(60)
    seconds = time.monotonic() - began
    same(code, 0, "the exit code")
    expect(seconds < drain + 5, f"an end within {drain} s and a moment, not {seconds:.1f} s")
    same(idle.recv(10), b"", "a connection without a request")
    print(f"SIGTERM with {len(streams) + 1} replies running: gone after {seconds:.2f} s of {drain} s")


def check_idle_exit(program, model):
    """Nobody is waited for; the best of three, for machines that do something else meanwhile."""
    times = []
    for _ in range(3):
        server = Server(program, model, "--threads", "1")
        held = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(5)]
        same(server.request("GET", "/livez")[0], 200, "alive")
        code, seconds = server.stop()
        same((code, len(held)), (0, 5), "the exit code")
        times.append(seconds)
    expect(min(times) < 0.5, f"an idle server to go at once, not after {times}")
    print(f"idle exit after {min(times) * 1000:.0f} ms")


def closed_after(sock, began):
    sock.settimeout(40)
    try:
        got = sock.recv(1000)
    except ConnectionResetError:
        got = b""
    same(got, b"", "nothing for a slow client")
    return time.monotonic() - began


def check_slow(server):
    """A head has 10 s, a body 5 s and then 1 KiB/s, whatever drips in."""
    head = b"POST /tokenize HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    starts = {"head": head[:30], "body": head + b"content-length: 100000\r\n\r\n", "chunk": head + b"transfer-encoding: chunked\r\n\r\nffff\r\n"}
    began, ends = time.monotonic(), {}

    def drip(name, start):
        with socket.create_connection(("127.0.0.1", server.port)) as sock:
            sock.sendall(start)
            sock.setblocking(False)
            while True:
                time.sleep(0.2)
                try:
                    if not sock.recv(1000):
                        break
                except BlockingIOError:
                    pass
                except ConnectionResetError:
                    break
                try:
                    sock.send(b"a")
                except OSError:
                    break
                expect(time.monotonic() - began < 60, f"an end of the slow {name}")
        ends[name] = time.monotonic() - began

    threads = [threading.Thread(target=drip, args=item) for item in starts.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    same(sorted(ends), sorted(starts), "slow clients that were ended")
    expect(8 < ends["head"] < 20 and 4 < ends["body"] < 15 and 4 < ends["chunk"] < 15, f"their times, not {ends}")
    print("slow clients ended after", {k: round(v, 1) for k, v in ends.items()})


def check_peer_cap(server):
    """256 connections of one peer; the next one is closed, and there is room again later."""
    held = [socket.create_connection(("127.0.0.1", server.port), timeout=20) for _ in range(256)]
    extra = socket.create_connection(("127.0.0.1", server.port), timeout=20)
    closed_after(extra, 0)
    for sock in held:
        sock.close()
    for _ in range(100):
        try:
            same(server.request("GET", "/livez")[0], 200, "room again")
            return
        except (ConnectionError, http.client.HTTPException):
            time.sleep(0.05)
    expect(False, "room after the others left")


def check_tls(program, model):
    """Only TLS on the TLS port; garbage and plain HTTP there end without harm."""
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = os.path.join(folder, "c.pem"), os.path.join(folder, "k.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
                        "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
                       check=True, capture_output=True)
        with serving(program, model, "--threads", "1", "--tls-certificate", certificate, "--tls-key", key) as server:
            for junk in (b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n", os.urandom(3000), b"\x16\x03\x01\xff\xff" + b"\0" * 500,
                         bytes.fromhex("1603010200010001fc0303"), b"\x80\x2e\x01\x00\x02", b"\0"):
                with socket.create_connection(("127.0.0.1", server.port), timeout=30) as sock:
                    sock.sendall(junk)
                    sock.shutdown(socket.SHUT_WR)
                    got = b""
                    try:
                        while piece := sock.recv(1000):
                            got += piece
                    except ConnectionResetError:
                        pass
                    expect(b"HTTP/1.1 2" not in got and b"alive" not in got, f"no answer in clear: {got}")
                    if junk.startswith(b"GET"):
                        head, _, body = got.partition(b"\r\n\r\n")
                        expect(head.startswith(b"HTTP/1.1 400") and b"https://" in body, f"the reason, not {got}")
                        expect(f"content-length: {len(body)}\r\n".encode() in head, f"its length, not {head}")
            context = ssl.create_default_context(cafile=certificate)
            connection = http.client.HTTPSConnection("localhost", server.port, context=context, timeout=60)
            for _ in range(2):
                connection.request("GET", "/livez")
                same(connection.getresponse().read(), b"alive\n", "an answer over TLS")
            with socket.create_connection(("127.0.0.1", server.port), timeout=60) as sock:
                old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
                old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
                try:
                    old.set_ciphers("DEFAULT@SECLEVEL=0")
                    old.wrap_socket(sock)
                    expect(False, "TLS 1.1 to be refused")
                except (ssl.SSLError, ConnectionError):
                    pass


def check_unix(program, model):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s")
        process = subprocess.Popen([program, "serve", "--model", model, "--threads", "1", "--unix", path],
                                   stderr=subprocess.PIPE, text=True)
        for line in process.stderr:
            if f" at {path}" in line:
                break
        same(os.stat(path).st_mode & 0o777, 0o600, "who may connect")
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(path)
            body = json.dumps({"messages": TALK, "max_tokens": 2}).encode()
            sock.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
                         b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
            got = b""
            while piece := sock.recv(65536):
                got += piece
        expect(got.startswith(b"HTTP/1.1 200"), f"an answer on the Unix socket, not {got[:200]}")
        process.send_signal(signal.SIGTERM)
        same(process.wait(30), 0, "the exit code")
        expect(not os.path.exists(path), "the socket to be gone")


def check_control(program, model):
    """Health and metrics in milliseconds while a long prompt is read and streams run."""
    with serving(program, model, "--threads", "1", "--control-port", "0") as server:
        control = int(re.search(r"control on \S+:(\d+)", "".join(server.log)).group(1))
        prompt = {"messages": [{"role": "user", "content": "a long way to go " * 12_000}], "max_tokens": 100}
        connections = [open_stream(server, "/v1/chat/completions", prompt) for _ in range(2)]
        times = []
        for i in range(60):
            began = time.monotonic()
            connection = http.client.HTTPConnection("127.0.0.1", control, timeout=30)
            connection.request("GET", ("/livez", "/readyz", "/metrics")[i % 3])
            response = connection.getresponse()
            response.read()
            times.append(time.monotonic() - began)
            same(response.status, 200, "control while busy")
            connection.close()
        for connection, response in connections:
            response.close()
            connection.close()
        times.sort()
        print(f"control beside long prompts: {times[30] * 1000:.1f} ms, at most {times[-1] * 1000:.0f} ms")
        expect(times[30] < 0.1, f"answers in milliseconds, not {times[30] * 1000:.0f}")


def main(program):
    model = work_model("tiny-oss-o200k.gguf")
    check_sigterm(program, model)
    check_idle_exit(program, model)
    check_control(program, model)
    check_tls(program, model)
    check_unix(program, model)
    with serving(program, model, "--threads", "1") as server:
        check_peer_cap(server)
        check_slow(server)
    print("ends are clean and doors hold")


if __name__ == "__main__":
    main(sys.argv[1])

# SPDX-License-Identifier: Apache-2.0
"""The end of a server, on real sockets: who waits for nothing is let go at once, who is served is
served to the end, and what does not fit into the time ends as what it is: not whole."""
import json
import select
import signal
import socket
import sys
import threading
import time

from serving import Server, expect, same, work_model

NUM_IDLE = 100
GET = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n"


def connect(server):
    return socket.create_connection(("127.0.0.1", server.port), timeout=60)


def read_until(sock, end):
    got = b""
    while end not in got:
        piece = sock.recv(65536)
        if not piece:
            break
        got += piece
    return got


def read_all(sock):
    return read_until(sock, b"\0 never")


def idle_clients(server):
    """Connections that wait for nothing: half of them have had an answer, half never asked."""
    sockets = [connect(server) for _ in range(NUM_IDLE)]
    for sock in sockets[::2]:
        sock.sendall(GET)
        expect(b"alive" in read_until(sock, b"alive\n"), "an answer")
    return sockets


def all_closed(sockets, bound):
    """Whether every one of them is closed within `bound` seconds."""
    end = time.monotonic() + bound
    for sock in sockets:
        ready, _, _ = select.select([sock], [], [], max(0, end - time.monotonic()))
        if not ready or sock.recv(10) != b"":
            return False
    return True


def post(server, **members):
    body = json.dumps({"messages": [{"role": "user", "content": "go on"}], "ignore_eos": True,
                       **members}).encode()
    sock = connect(server)
    sock.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n"
                 b"content-type: application/json\r\n"
                 + f"content-length: {len(body)}\r\n\r\n".encode() + body)
    return sock


def check_idle(program, model):
    """A server that nobody uses is gone in half a second, however many are connected. One of three
    tries is enough: the machine may be busy with something else."""
    took = []
    for _ in range(3):
        server = Server(program, model)
        sockets = idle_clients(server)
        code, seconds = server.stop()
        same(code, 0, "the exit code")
        expect(all_closed(sockets, 5), "all connections closed")
        took.append(seconds)
        if seconds < 0.5:
            break
    print(f"idle, {NUM_IDLE} connections: gone after {min(took):.3f} s")
    expect(min(took) < 0.5, f"less than 0.5 s, not {took}")


def check_busy(program, model):
    """Beside a request that runs, idle connections go at once; it is answered, and is the last on
    its own."""
    server = Server(program, model, "--drain", "60")
    sockets = idle_clients(server)
    whole = post(server, max_tokens=600)
    stream = post(server, max_tokens=600, stream=True)
    read_until(stream, b"data: ")
    began = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    expect(all_closed(sockets, 10), "idle connections closed while others are served")
    print(f"beside work: idle connections closed after {time.monotonic() - began:.3f} s")
    got = read_all(whole)
    head, body = got.split(b"\r\n\r\n", 1)
    expect(head.startswith(b"HTTP/1.1 200") and b"\r\nconnection: close" in head, f"{head}")
    same(json.loads(body)["usage"]["completion_tokens"], 600, "all of the answer")
    expect(b"data: [DONE]" in read_all(stream), "all of the stream")
    same(server.process.wait(60), 0, "the exit code")
    server.process.stderr.close()


def check_twice(program, model):
    """Whoever asks twice does not wait."""
    server = Server(program, model, "--drain", "60")
    stream = post(server, max_tokens=3000, stream=True)
    read_until(stream, b"data: ")
    server.process.send_signal(signal.SIGINT)
    while "second signal" not in (line := server.process.stderr.readline()):
        expect(line, "a line about the second signal")
    began = time.monotonic()
    server.process.send_signal(signal.SIGINT)
    same(server.process.wait(60), -signal.SIGINT, "the exit code")
    expect(time.monotonic() - began < 5, "an end at once")
    server.process.stderr.close()


def check_bound(program, model):
    """What takes longer than --drain ends within it, and says that it is not whole."""
    server = Server(program, model, "--drain", "1")
    streams = [post(server, max_tokens=3000, stream=True) for _ in range(16)]
    wholes = [post(server, max_tokens=3000) for _ in range(8)]
    for sock in streams:
        read_until(sock, b": accepted")
    read_until(streams[0], b"data: ")
    time.sleep(0.3)
    got = {}

    def read(sock):
        got[sock] = read_all(sock)

    threads = [threading.Thread(target=read, args=(sock,)) for sock in streams + wholes]
    for thread in threads:
        thread.start()
    code, seconds = server.stop(30)
    for thread in threads:
        thread.join()
    same(code, 0, "the exit code")
    print(f"with {len(threads)} requests running and --drain 1: gone after {seconds:.1f} s")
    expect(0.9 < seconds < 6, f"the bound, and a moment; not {seconds:.1f} s")
    for sock in streams:
        text = got[sock]
        expect(b"shutting down" in text and b"[DONE]" not in text, f"an error event: {text[-300:]}")
        expect(text.endswith(b"0\r\n\r\n"), "the stream's framing to be whole")
    for sock in wholes:
        head, body = got[sock].split(b"\r\n\r\n", 1)
        expect(head.startswith(b"HTTP/1.1 503") and b"retry-after" in head
               and b"connection: close" in head, f"503: {head}")
        same(json.loads(body)["error"]["code"], "shutdown", "its code")


def main(program):
    model = work_model("tiny-oss-o200k.gguf")
    check_idle(program, model)
    check_busy(program, model)
    check_twice(program, model)
    check_bound(program, model)
    print("the server ends well")


if __name__ == "__main__":
    main(sys.argv[1])

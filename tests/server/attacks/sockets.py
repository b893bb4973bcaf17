# SPDX-License-Identifier: Apache-2.0
"""Connections that are slow, many, or no HTTP."""
import contextlib
import json
import socket
import ssl
import time

from attack_rig import head_of, send, unchecked
from serving import expect

STREAM = json.dumps({"prompt": "x", "max_tokens": 2000, "stream": True, "ignore_eos": True}).encode()


def connect(a, number=0):
    """From addresses of its own: 250 connections of each."""
    connection = socket.socket()
    connection.settimeout(30)
    connection.bind((f"127.0.{1 + number // 250}.9", 0))
    connection.connect(("127.0.0.1", a.port))
    return connection


def held(a, count, begin, go_on):
    """So many connections at once, each begun and then kept going."""
    connections = []
    try:
        for number in range(count):
            connection = connect(a, number)
            connections.append(connection)
            begin(connection)

        def all_of_them(_stop):
            for connection in connections:
                with contextlib.suppress(OSError):
                    go_on(connection)
            time.sleep(0.05)

        a.beside(a.name, all_of_them)
    finally:
        for connection in connections:
            connection.close()


def slow_heads(a):
    held(a, 200, lambda c: c.sendall(b"POST /v1/completions HTTP/1.1\r\nx: "), lambda c: c.send(b"y"))


def slow_bodies(a):
    head = head_of("POST", "/v1/completions", a.keys["mallory"], 3_000_000)
    held(a, 200, lambda c: c.sendall(head + b'{"prompt":"'), lambda c: c.send(b"y" * 60))


def tiny_chunks(a):
    head = head_of("POST", "/tokenize", a.keys["mallory"], 0).replace(b"content-length: 0", b"transfer-encoding: chunked")

    def work():
        with connect(a) as connection:
            connection.sendall(head + b"1\r\n \r\n" * 20_000)
            connection.recv(1000)

    a.storm(work)


def slow_stream_readers(a):
    def begin(connection):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        connection.sendall(head_of("POST", "/v1/completions", a.keys["mallory"], len(STREAM)) + STREAM)

    held(a, 40, begin, lambda c: c.recv(20))


def ollama_readers(a):
    body = json.dumps({"model": "tiny-oss-o200k", "prompt": "x", "options": {"num_predict": 2000}}).encode()

    def begin(connection):
        connection.sendall(head_of("POST", "/api/generate", a.keys["mallory"], len(body)) + body)

    held(a, 40, begin, lambda c: c.recv(20))


def ten_thousand_connections(a):
    """With nothing said on them; in CI as many as take a second."""
    held(a, 10_000 if a.is_strict else 1_500, lambda c: None, lambda c: None)


def connect_and_go(a):
    a.storm(lambda: connect(a).close(), threads=4)


def pipelining(a):
    request = b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer " + a.keys["mallory"].encode() + b"\r\n\r\n"

    def work():
        with connect(a) as connection:
            connection.sendall(request * 400)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass

    a.storm(work, threads=2)


def cancel_storm(a):
    a.storm(lambda: send(a.port, "/v1/completions", a.keys["mallory"], STREAM).close(), threads=4)


def upgrade_nonsense(a):
    def work():
        with connect(a) as connection:
            connection.sendall(b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\n"
                               b"connection: upgrade\r\nsec-websocket-key: x\r\n\r\n" + b"\x81\x05hello" * 100)
            expect(b" 101 " not in connection.recv(1000), "no upgrade")

    a.storm(work)


def no_http(a):
    junk = [b"\x00" * 65_000, b"GET " + b"/" * 65_000, b"\r\n" * 30_000, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01" * 9]

    def work():
        for each in junk:
            with connect(a) as connection:
                connection.sendall(each)
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1000)

    a.storm(work)


def long_heads(a):
    head = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n" + b"".join(b"x-%d: y\r\n" % i for i in range(5_000)) + b"\r\n"

    def work():
        with connect(a) as connection:
            connection.sendall(head)
            connection.recv(1000)

    a.storm(work)


def refused_bodies(a):
    """Megabytes behind a refusal, which are read and thrown away."""
    head = head_of("POST", "/nowhere", a.keys["mallory"], 30_000_000)

    def work():
        with connect(a) as connection:
            connection.sendall(head + b"x" * 8_000_000)

    a.storm(work)


def tls_handshakes(a):
    context = unchecked()

    def work():
        connection = connect(a)
        with contextlib.suppress(ssl.SSLError):
            connection = context.wrap_socket(connection)
        connection.close()

    a.storm(work, threads=6)


tls_handshakes.flags = "tls"


def tls_silence(a):
    """Handshakes that are begun, and left at that."""
    held(a, 200, lambda c: c.sendall(b"\x16\x03\x01\x02\x00"), lambda c: None)


tls_silence.flags = "tls"

ATTACKS = [slow_heads, slow_bodies, tiny_chunks, slow_stream_readers, ollama_readers, ten_thousand_connections,
           connect_and_go, pipelining, cancel_storm, upgrade_nonsense, no_http, long_heads, refused_bodies,
           tls_handshakes, tls_silence]

# SPDX-License-Identifier: Apache-2.0
"""Connections that are slow, many, or no HTTP."""
import contextlib
import http.client
import itertools
import json
import multiprocessing
import random
import select
import socket
import ssl
import time

from attack_rig import VICTIM, head_of, live_once, send, together, unchecked
from serving import expect

STREAM = json.dumps({"prompt": "x", "max_tokens": 2000, "stream": True, "ignore_eos": True}).encode()


def connect(a, number=0):
    """From addresses of its own: 250 connections of each."""
    connection = socket.socket()
    connection.settimeout(30)
    connection.bind((f"127.0.{1 + number // 250}.9", 0))
    connection.connect(("127.0.0.1", a.port))
    return connection


def has_ended(connection):
    """Whether the server closed it, without waiting."""
    poll = select.poll()  # select() takes no descriptors beyond 1,024
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0)) and not connection.recv(1, socket.MSG_PEEK)


def held(a, count, begin, go_on):
    """So many connections at once, each begun and then kept going; one that the server ended is begun anew."""
    connections = [None] * count

    def renew(number):
        if connections[number] is not None:
            connections[number].close()
        connections[number] = connect(a, number)
        begin(connections[number])

    def open_ones():
        """Those that were open all at once, at the least, whenever it was asked."""
        return a.metric("hearth_http_open_connections", 'listener="api"')

    try:
        for number in range(count):
            renew(number)
        most = [0.0]

        def all_of_them(_stop):
            for number, connection in enumerate(connections):
                try:
                    go_on(connection)
                    is_over = has_ended(connection)
                except OSError:
                    is_over = True
                if is_over:
                    with contextlib.suppress(OSError):
                        renew(number)
            most[0] = max(most[0], open_ones())
            time.sleep(0.05)

        a.shows("connections at once", lambda: most[0], least=0.9 * count)
        a.beside(a.name, all_of_them)
    finally:
        for connection in connections:
            if connection is not None:
                connection.close()


def slow_heads(a):
    held(a, 200, lambda c: c.sendall(b"POST /v1/completions HTTP/1.1\r\nx: "), lambda c: c.send(b"y"))


def slow_bodies(a):
    head = head_of("POST", "/v1/completions", a.keys["mallory"], 3_000_000)
    most = [0.0]

    def go_on(connection):
        connection.send(b"y" * 60)

    def held_bytes():
        most[0] = max(most[0], a.metric("hearth_account_bytes", 'kind="body"'))
        return most[0]

    a.shows("bytes of bodies held", held_bytes, least=2000)
    held(a, 200, lambda c: c.sendall(head + b'{"prompt":"'), go_on)


def status_of(connection):
    """Of the reply, if there is one."""
    reply = connection.recv(1000)
    return int(reply.split()[1]) if reply.startswith(b"HTTP/1.1 ") else None


def tiny_chunks(a):
    """A whole body, a byte at a time."""
    count = 400_000 if a.is_strict else 20_000
    head = head_of("POST", "/tokenize", a.keys["mallory"], 0).replace(b"content-length: 0", b"transfer-encoding: chunked")
    body = b'{"prompt":"' + b" " * count + b'"}'
    sent = head + b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"

    def work():
        with connect(a) as connection:
            connection.sendall(sent)
            return status_of(connection)

    a.shows("bodies read", a.count_of(200), least=1, a_second=0.5)
    a.storm(work)


def slow_stream_readers(a):
    def begin(connection):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        connection.sendall(head_of("POST", "/v1/completions", a.keys["mallory"], len(STREAM)) + STREAM)

    # Beside the victim's forty a time; what a key is charged comes when a reply ends, which these do not soon.
    a.shows("tokens computed one at a time", a.counter("hearth_decode_tokens_total"), least=1000, a_second=40)
    held(a, 40, begin, lambda c: c.recv(20))


def ollama_readers(a):
    body = json.dumps({"model": "tiny-oss-o200k", "prompt": "x", "options": {"num_predict": 2000}}).encode()

    def begin(connection):
        connection.sendall(head_of("POST", "/api/generate", a.keys["mallory"], len(body)) + body)

    # Beside the victim's forty a time; what a key is charged comes when a reply ends, which these do not soon.
    a.shows("tokens computed one at a time", a.counter("hearth_decode_tokens_total"), least=1000, a_second=40)
    held(a, 40, begin, lambda c: c.recv(20))


def ten_thousand_connections(a):
    """With nothing said on them; in CI as many as take a second."""
    held(a, 10_000 if a.is_strict else 1_500, lambda c: None, lambda c: None)


def connect_and_go(a):
    a.shows("connections taken", a.counter("hearth_http_connections_total", 'listener="api"'), least=50, a_second=500)
    a.storm(lambda: connect(a).close(), threads=4)


def pipelining(a):
    request = b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer " + a.keys["mallory"].encode() + b"\r\n\r\n"

    def work():
        with connect(a) as connection:
            connection.sendall(request * 400)
            connection.shutdown(socket.SHUT_WR)
            answered, tail = 0, b""
            while data := connection.recv(65536):
                answered += (tail + data).count(b"HTTP/1.1 200 ")
                tail = (tail + data)[-12:]  # a byte less than what is looked for
            expect(answered == 400, f"{answered} of 400 answered")
            return 200

    a.shows("requests read", a.counter("hearth_http_requests_total", 'listener="api"'), least=800, a_second=400)
    a.shows("connections answered whole", a.count_of(200), least=2)
    a.storm(work, threads=2)


def cancel_storm(a):
    """Streams whose clients go without a word, at once or when it began."""
    begin = itertools.cycle([False, False, False, True])

    def work():
        with contextlib.closing(send(a.port, "/v1/completions", a.keys["mallory"], STREAM)) as connection:
            return status_of(connection) if next(begin) else None

    a.shows("requests read", a.counter("hearth_http_requests_total", 'listener="api"'), least=50, a_second=200)
    a.shows("let in and cancelled", a.counter("hearth_requests_finished_total", 'reason="cancelled"'), least=5, a_second=10)
    a.storm(work, threads=4)


def upgrade_nonsense(a):
    def work():
        with connect(a) as connection:
            connection.sendall(b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\n"
                               b"authorization: Bearer " + a.keys["mallory"].encode() + b"\r\n"
                               b"connection: upgrade\r\nsec-websocket-key: x\r\n\r\n" + b"\x81\x05hello" * 100)
            status = status_of(connection)
            expect(status != 101, "no upgrade")
            return status

    a.shows("replies of 200", a.count_of(200), least=2, a_second=20)
    a.storm(work)


def no_http(a):
    junk = [b"\x00" * 65_000, b"GET " + b"/" * 65_000, b"\r\n" * 30_000, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01" * 9]

    def work():
        for each in junk:
            with connect(a) as connection:
                connection.sendall(each)
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1000)

    a.shows("refused", a.counter("hearth_http_refusals_total", 'listener="api"'), least=4, a_second=50)
    a.storm(work)


def long_heads(a):
    """One that is just short enough, and one of 5,000 fields."""
    def head(fields):
        return b"GET /livez HTTP/1.1\r\nhost: localhost\r\n" + b"".join(
            b"x-%d: y\r\n" % i for i in range(fields)) + b"\r\n"

    turns = itertools.cycle([head(60), head(5_000)])

    def work():
        with connect(a) as connection:
            connection.sendall(next(turns))
            return status_of(connection)

    a.shows("answered", a.count_of(200), least=2, a_second=20)
    a.shows("refused for length", a.count_of(431), least=1)
    a.storm(work)


def refused_bodies(a):
    """Megabytes behind a refusal, which are read and thrown away."""
    size = 3_900_000
    head = head_of("POST", "/nowhere", a.keys["mallory"], size)
    sent = itertools.count()

    def work():
        with connect(a) as connection:
            connection.sendall(head + b"x" * size)
            status = status_of(connection)
            next(sent)
            return status

    a.shows("refused", a.count_of(404), least=2, a_second=2)
    a.storm(work)


def tls_handshakes(a):
    context = unchecked()

    def work():
        connection = connect(a)
        with contextlib.closing(context.wrap_socket(connection)) as secure:
            secure.sendall(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n")
            return status_of(secure)

    a.shows("handshakes, and a reply after each", a.count_of(200), least=4, a_second=20)
    a.storm(work, threads=6)


tls_handshakes.flags = "tls"


def handshakes_of_many(port, is_over, count):
    """From a hundred addresses, sixteen at once, each thrown away when it is made."""
    context = unchecked()

    def one():
        while not is_over.is_set():
            with contextlib.suppress(OSError), socket.socket() as connection:
                connection.settimeout(10)
                connection.bind((f"127.0.2.{random.randrange(1, 101)}", 0))
                connection.connect(("127.0.0.1", port))
                context.wrap_socket(connection).close()
                with count.get_lock():
                    count.value += 1

    together(16, one)


def live_times(a, connection, count):
    """Seconds for /livez on a new connection, and on one that was there before."""
    new, kept = [], []
    for _ in range(count):
        new.append(live_once(a.port, a.tls))
        began = time.monotonic()
        connection.request("GET", "/livez")
        connection.getresponse().read()
        kept.append(time.monotonic() - began)
    return sorted(new), sorted(kept)


def tls_storm(a):
    """What a turn of each address leaves to those whose connection is made: nearly all of the thread. Who comes anew
    waits for a turn of each address in line, some 3 ms; it was 51 ms for 16 of them."""
    connection = http.client.HTTPSConnection("127.0.0.1", a.port, timeout=60, source_address=(VICTIM, 0), context=a.tls)
    quiet = live_times(a, connection, 30)
    made, is_over = multiprocessing.Value("i", 0), multiprocessing.Event()
    process = multiprocessing.Process(target=handshakes_of_many, args=(a.port, is_over, made))
    process.start()
    try:
        until = time.monotonic() + 30
        while made.value < 50 and time.monotonic() < until:
            time.sleep(0.05)
        before, used, began = made.value, a.used_s(), time.monotonic()
        loud = live_times(a, connection, 300 if a.is_strict else 60)
        took, used = time.monotonic() - began, a.used_s() - used
    finally:
        is_over.set()
        process.join()
    half = [[1000 * values[len(values) // 2] for values in times] for times in (quiet, loud)]
    rate = (made.value - before) / took
    print(f"{rate:.0f} handshakes a second beside it: /livez, new {half[0][0]:.1f} -> {half[1][0]:.1f} ms, kept "
          f"{half[0][1]:.1f} -> {half[1][1]:.1f} ms (medians); {used / took:.2f} processors")
    a.showed("handshakes of a hundred addresses", made.value - before, least=50)
    # A quarter of one thread for them, and what connections and the victim cost besides.
    expect(used / took < 0.6, f"{used / took:.2f} of a processor")
    expect(half[1][1] < half[0][1] + (10 if a.is_strict else 1000), f"a kept connection waits {half[1][1]:.1f} ms")
    expect(half[1][0] < half[0][0] + (100 if a.is_strict else 3000), f"a new one waits {half[1][0]:.1f} ms")


tls_storm.flags = "tls"


def tls_silence(a):
    """Handshakes that are begun, and left at that."""
    held(a, 200, lambda c: c.sendall(b"\x16\x03\x01\x02\x00"), lambda c: None)


tls_silence.flags = "tls"

ATTACKS = [slow_heads, slow_bodies, tiny_chunks, slow_stream_readers, ollama_readers, ten_thousand_connections,
           connect_and_go, pipelining, cancel_storm, upgrade_nonsense, no_http, long_heads, refused_bodies,
           tls_handshakes, tls_storm, tls_silence]

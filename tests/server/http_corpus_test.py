# SPDX-License-Identifier: Apache-2.0
"""Malformed HTTP, byte by byte over real sockets. Each case names what must come back; a head that
two readers could understand differently gets one error and a closed connection, never an answer to
a second request that was smuggled behind it."""
import socket
import sys
import time

from serving import expect, same, serving, work_model

JSON = b'{"prompt": "hi"}'
PATH = b"POST /tokenize HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
GET = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n"
LENGTH = b"content-length: %d\r\n" % len(JSON)
CHUNKED = PATH + b"transfer-encoding: chunked\r\n\r\n"
SMUGGLED = b"GET /livez HTTP/1.1\r\nhost: localhost\r\nx: "


def post(*lines, body=JSON):
    return PATH + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body


def get(*lines):
    return b"GET /livez HTTP/1.1\r\nhost: localhost\r\n" + b"".join(l + b"\r\n" for l in lines) + b"\r\n"


# name -> (bytes, the statuses that come back one after the other). Whatever ends in an error ends
# the connection; 200s leave it open.
REFUSED = {
    # who ends where: lengths against encodings
    "cl_te": (post(LENGTH[:-2], b"transfer-encoding: chunked", body=b"0\r\n\r\n" + SMUGGLED), [400]),
    "te_cl": (post(b"transfer-encoding: chunked", b"content-length: 4", body=b"5c\r\n" + SMUGGLED), [400]),
    "te_te_hidden": (post(b"transfer-encoding: chunked", b"transfer-encoding: cow", body=b"0\r\n\r\n"), [400, 501]),
    "te_te_same": (post(b"transfer-encoding: chunked", b"transfer-encoding: chunked", body=b"0\r\n\r\n"), [400]),
    "te_xchunked": (post(b"transfer-encoding: xchunked", body=b"0\r\n\r\n"), [501]),
    "te_list": (post(b"transfer-encoding: gzip, chunked", body=b"0\r\n\r\n"), [501]),
    "te_chunked_first": (post(b"transfer-encoding: chunked, identity", body=b"0\r\n\r\n"), [501]),
    "te_identity": (post(b"transfer-encoding: identity", LENGTH[:-2]), [400, 501]),
    "te_empty": (post(b"transfer-encoding:", body=b"0\r\n\r\n"), [501]),
    "te_quoted": (post(b'transfer-encoding: "chunked"', body=b"0\r\n\r\n"), [501]),
    "te_vertical_tab": (post(b"transfer-encoding: \x0bchunked", body=b"0\r\n\r\n"), [400]),
    "te_blank_colon": (post(b"transfer-encoding : chunked", body=b"0\r\n\r\n"), [400]),
    "te_in_1_0": (b"POST /tokenize HTTP/1.0\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", [400]),
    "length_twice_equal": (post(LENGTH[:-2], LENGTH[:-2]), [400]),
    "length_twice_different": (post(b"content-length: 5", LENGTH[:-2]), [400]),
    "length_list": (post(b"content-length: 16, 16"), [400]),
    "length_plus": (post(b"content-length: +16"), [400]),
    "length_minus": (post(b"content-length: -1"), [400]),
    "length_hex": (post(b"content-length: 0x10"), [400]),
    "length_empty": (post(b"content-length:"), [400]),
    "length_blank_inside": (post(b"content-length: 1 6"), [400]),
    "length_float": (post(b"content-length: 16.0"), [400]),
    "length_exponent": (post(b"content-length: 1e1"), [400]),
    "length_wraps_64_bits": (post(b"content-length: 18446744073709551632"), [400]),
    "length_too_large": (post(b"content-length: 4194305", body=b""), [413]),
    "length_nul": (post(b"content-length: 16\x00"), [400]),
    "length_blank_colon": (post(b"content-length : 16"), [400]),
    "length_folded": (post(b"content-length:\r\n 16"), [400]),
    # chunks
    "chunk_negative": (CHUNKED + b"-2\r\nab\r\n0\r\n\r\n", [400]),
    "chunk_plus": (CHUNKED + b"+2\r\nab\r\n0\r\n\r\n", [400]),
    "chunk_0x": (CHUNKED + b"0x2\r\nab\r\n0\r\n\r\n", [400]),
    "chunk_empty_size": (CHUNKED + b"\r\nab\r\n0\r\n\r\n", [400]),
    "chunk_no_hex": (CHUNKED + b"zz\r\nab\r\n0\r\n\r\n", [400]),
    "chunk_wraps_64_bits": (CHUNKED + b"10000000000000002\r\nab\r\n0\r\n\r\n", [400]),
    "chunk_oversized": (CHUNKED + b"7fffffff\r\nab\r\n", [413]),
    "chunks_oversized_together": (CHUNKED + (b"200000\r\n" + b" " * 0x200000 + b"\r\n") * 3, [413]),
    "chunk_extension": (CHUNKED + b"2;a=b\r\nab\r\n0\r\n\r\n", [400]),
    "chunk_extension_quoted": (CHUNKED + b'2;a="\r\n"\r\nab\r\n0\r\n\r\n', [400]),
    "chunk_extension_last": (CHUNKED + b"0;a\r\n\r\n", [400]),
    "chunk_blank_after_size": (CHUNKED + b"2 \r\nab\r\n0\r\n\r\n", [400]),
    "chunk_bare_lf": (CHUNKED + b"2\nab\r\n0\r\n\r\n", [400]),
    "chunk_bare_cr": (CHUNKED + b"2\rab\r\n0\r\n\r\n", [400]),
    "chunk_data_too_long": (CHUNKED + b"2\r\nabc\r\n0\r\n\r\n", [400]),
    "chunk_end_without_cr": (CHUNKED + b"2\r\nab\n0\r\n\r\n", [400]),
    "chunk_size_without_end": (CHUNKED + b"0" * 300_000, [400]),
    "chunk_trailer_without_end": (CHUNKED + b"0\r\n" + b"x: y\r\n" * 50_000, [400]),
    "chunk_trailer_malformed": (CHUNKED + b"0\r\nno colon\r\n\r\n", [400]),
    "chunk_trailer_length": (CHUNKED + b"0\r\ncontent-length: 5\r\n\r\n", [400]),
    "chunks_too_many": (CHUNKED + b"1\r\n \r\n" * 65_537 + b"0\r\n\r\n", [400]),
    # lines
    "bare_lf_everywhere": (b"GET /livez HTTP/1.1\nhost: localhost\n\n\r\n\r\n", [400]),
    "bare_lf_one_header": (b"GET /livez HTTP/1.1\r\nhost: localhost\nx: y\r\n\r\n", [400]),
    "bare_cr_in_value": (get(b"x: a\rcontent-length: 5"), [400]),
    "cr_cr_lf": (b"GET /livez HTTP/1.1\r\r\nhost: localhost\r\n\r\n", [400]),
    "folded_value": (get(b"x: a", b" b"), [400]),
    "folded_with_tab": (get(b"x: a", b"\tb"), [400]),
    "folded_first_line": (b"GET /livez HTTP/1.1\r\n host: localhost\r\n\r\n", [400]),
    "nul_in_value": (get(b"x: a\x00b"), [400]),
    "nul_in_name": (get(b"x\x00y: a"), [400]),
    "nul_in_target": (b"GET /livez\x00 HTTP/1.1\r\nhost: localhost\r\n\r\n", [400]),
    "del_in_value": (get(b"x: a\x7f"), [400]),
    "blank_before_colon": (get(b"x : a"), [400]),
    "empty_name": (get(b": a"), [400]),
    "no_colon": (get(b"nonsense"), [400]),
    "utf8_name": (get("é: a".encode()), [400]),
    "headers_65": (get(*[b"x: y"] * 64), [431]),
    "headers_10000": (get(*[b"x: y"] * 10_000), [431]),
    "head_33_kib": (get(b"x: " + b"a" * (33 << 10)), [431]),
    "line_1_mib": (b"GET /" + b"a" * (1 << 20), [431]),
    # request lines
    "target_too_long": (b"GET /" + b"a" * 2048 + b" HTTP/1.1\r\nhost: localhost\r\n\r\n", [414]),
    "target_absolute": (b"GET http://localhost/livez HTTP/1.1\r\nhost: localhost\r\n\r\n", [400]),
    "target_authority": (b"CONNECT localhost:80 HTTP/1.1\r\nhost: localhost\r\n\r\n", [400]),
    "target_asterisk": (b"OPTIONS * HTTP/1.1\r\nhost: localhost\r\n\r\n", [400]),
    "target_fragment": (b"GET /livez#x HTTP/1.1\r\nhost: localhost\r\n\r\n", [400]),
    "target_blank": (b"GET /livez x HTTP/1.1\r\nhost: localhost\r\n\r\n", [400]),
    "target_raw_utf8": ("GET /é HTTP/1.1\r\nhost: localhost\r\n\r\n".encode(), [400]),
    "target_encoded_slash": (b"GET /%2flivez HTTP/1.1\r\nhost: localhost\r\n\r\n", [404]),
    "target_encoded_newline": (b"GET /livez%0d%0ax: HTTP/1.1\r\nhost: localhost\r\n\r\n", [404]),
    "target_dots": (b"GET /v1/../livez HTTP/1.1\r\nhost: localhost\r\n\r\n", [404]),
    "target_double_slash": (b"GET //livez HTTP/1.1\r\nhost: localhost\r\n\r\n", [404]),
    "method_unknown": (b"BREW /livez HTTP/1.1\r\nhost: localhost\r\n\r\n", [405]),
    "method_lower_case": (b"get /livez HTTP/1.1\r\nhost: localhost\r\n\r\n", [405]),
    "method_with_bytes": (b"G\x00T /livez HTTP/1.1\r\nhost: localhost\r\n\r\n", [400]),
    "method_too_long": (b"A" * 17 + b" /livez HTTP/1.1\r\nhost: localhost\r\n\r\n", [400]),
    "method_trace": (b"TRACE /livez HTTP/1.1\r\nhost: localhost\r\n\r\n", [405]),
    "version_0_9": (b"GET /livez\r\n\r\n", [400]),
    "version_2_preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", [505]),
    "version_1_2": (b"GET /livez HTTP/1.2\r\nhost: localhost\r\n\r\n", [505]),
    "version_lower_case": (b"GET /livez http/1.1\r\nhost: localhost\r\n\r\n", [400]),
    "host_missing": (b"GET /livez HTTP/1.1\r\n\r\n", [400]),
    "host_twice": (get(b"host: localhost"), [400]),
    "host_of_others": (b"GET /livez HTTP/1.1\r\nhost: evil.example\r\n\r\n", [403]),
    "origin_of_others": (get(b"origin: http://evil.example"), [403]),
    "expect_unknown": (post(LENGTH[:-2], b"expect: coffee"), [417]),
    "only_newlines": (b"\r\n\r\n", [400]),
    "tls_hello": (bytes.fromhex("16030100c8010000c40303") + b"\x00" * 180 + b"\r\n\r\n", [400]),
    "garbage": (bytes(range(256)) * 4 + b"\r\n\r\n", [400]),
    "content_type_missing_in_a_browser": (b"POST /tokenize HTTP/1.1\r\nhost: localhost\r\nsec-fetch-site: same-site\r\n" + LENGTH + b"\r\n" + JSON, [415]),
    # something good first, something bad behind it
    "good_then_bad": (GET + b"GET /livez HTTP/1.1\nhost: x\r\n\r\n", [200, 400]),
    "good_then_bytes_too_many": (post(b"content-length: 16", body=JSON + b"0\r\n\r\n"), [200, 400]),
    "good_then_smuggled": (post(b"transfer-encoding: chunked", body=b"10\r\n" + JSON + b"\r\n0\r\n\r\nX" + GET), [200, 405]),
}
TAKEN = {
    "content_type_missing": (b"POST /tokenize HTTP/1.1\r\nhost: localhost\r\n" + LENGTH + b"\r\n" + JSON, [200]),
    "plain": (GET, [200]),
    "pipelined": (GET * 5, [200] * 5),
    "pipelined_posts": (post(LENGTH[:-2]) * 3, [200] * 3),
    "chunked_body": (CHUNKED + b"4\r\n" + JSON[:4] + b"\r\nC\r\n" + JSON[4:] + b"\r\n0\r\n\r\n", [200]),
    "chunked_then_get": (CHUNKED + b"10\r\n" + JSON + b"\r\n0\r\n\r\n" + GET, [200, 200]),
    "headers_63": (get(*[b"x: y"] * 63), [200]),
    "expect_continue": (post(LENGTH[:-2], b"expect: 100-continue"), [100, 200]),
    "encoding_in_capitals": (post(b"Transfer-Encoding: CHUNKED", body=b"10\r\n" + JSON + b"\r\n0\r\n\r\n"), [200]),
    "length_zeros": (post(b"content-length: 0000000016"), [200]),
    "query": (b"GET /livez?a=b%0d%0a HTTP/1.1\r\nhost: localhost\r\n\r\n", [200]),
}


def answers(data):
    """The statuses of complete answers in `data`."""
    found = []
    while data:
        head, _, rest = data.partition(b"\r\n\r\n")
        expect(head.startswith(b"HTTP/1.1 "), f"an answer, not {data[:200]!r}")
        found.append(int(head[9:12]))
        lengths = [l for l in head.lower().split(b"\r\n") if l.startswith(b"content-length: ")]
        length = int(lengths[0][16:]) if lengths else 0
        expect(len(rest) >= length, f"a whole answer, not {data[:200]!r}")
        data = rest[length:]
    return found


def exchange(server, data, wanted, closes):
    """(statuses, whether the server closed) of one connection that is sent `data`."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as sock:
        got = b""
        try:
            sock.sendall(data)
        except OSError:
            pass  # refused before the last byte
        while True:
            if not closes and got.count(b"HTTP/1.1 ") >= wanted and got.endswith((b"}", b"\n", b"alive\n")):
                sock.settimeout(0.2)  # nothing more may come
            try:
                piece = sock.recv(65536)
            except TimeoutError:
                return answers(got), False
            except ConnectionResetError:
                return answers(got), True
            if not piece:
                return answers(got), True
            got += piece


def check_corpus(server):
    for name, (data, statuses) in REFUSED.items():
        found, closed = exchange(server, data, len(statuses), True)
        # Two statuses of one request: either is right, by which line is looked at first.
        either = statuses[0] >= 400 and len(statuses) > 1
        wanted = [found] if either and len(found) == 1 and found[0] in statuses else [statuses]
        expect((found in wanted) and closed, f"{name}: {statuses} and an end, not {found}, {closed}")
    for name, (data, statuses) in TAKEN.items():
        found, closed = exchange(server, data, len(statuses), False)
        same((found, closed), (statuses, False), name)
    print(f"{len(REFUSED)} malformed and {len(TAKEN)} odd requests")
    expect(len(REFUSED) + len(TAKEN) >= 60, "enough cases")


def check_half_close(server):
    """A client that stops sending has gone, unless its answer is there at once; half a request asks
    for nothing."""
    for data, wanted in ((GET, [200]), (post(LENGTH[:-2]), []), (post(b"content-length: 99"), [])):
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as sock:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
            got = b""
            try:
                while piece := sock.recv(65536):
                    got += piece
            except ConnectionResetError:
                pass
        # A worker may be quicker than the look at the connection.
        expect(answers(got) in (wanted, [200] if data == post(LENGTH[:-2]) else wanted), f"{data[:60]}: {got}")


def check_byte_by_byte(server):
    """How a request is cut into packets does not matter."""
    data = CHUNKED + b"4\r\n" + JSON[:4] + b"\r\nc\r\n" + JSON[4:] + b"\r\n0\r\n\r\n" + GET
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(len(data)):
            sock.sendall(data[i:i + 1])
        got = b""
        while not got.endswith(b"alive\n"):
            got += sock.recv(65536)
    same(answers(got), [200, 200], "answers to single bytes")


def main(program):
    with serving(program, work_model("tiny-oss-o200k.gguf"), "--threads", "1") as server:
        began = time.monotonic()
        check_corpus(server)
        check_half_close(server)
        check_byte_by_byte(server)
        same(server.request("GET", "/readyz")[0], 200, "ready after all of it")
        print(f"{time.monotonic() - began:.1f} s")
    print("malformed requests are refused, each with its word")


if __name__ == "__main__":
    main(sys.argv[1])

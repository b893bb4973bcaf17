# SPDX-License-Identifier: Apache-2.0
"""Ten thousand connections at once, of many addresses of the loopback, most of them idle and some in the middle
of a head or a body: the server's memory stays within its plan and 256 MiB, and others are answered. Fewer where
the limit of open files says so, which is told. connections_test.py HEARTH [--count N]"""
import argparse
import resource
import socket

from attack_rig import arena, head_of
from serving import expect, record, same

PER_ADDRESS = 200  # below the server's own limit of 256


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=10_000)
    args = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    count = min(args.count, most - 200)
    if count < args.count:
        print(f"NOTICE: {most} open files are allowed here: {count} connections")
    with arena(args.program) as a:
        kinds = [b"", b"GET /livez HTTP/1.1\r\n", head_of("POST", "/tokenize", a.keys["mallory"], 100) + b'{"content"']
        held = []
        for i in range(count):
            sock = socket.socket()
            sock.bind((f"127.0.1.{1 + i // PER_ADDRESS}", 0))
            sock.connect(("127.0.0.1", a.port))
            sock.sendall(kinds[2 if i % 50 == 0 else 1 if i % 10 == 0 else 0])
            held.append(sock)
        same(a.ask("POST", "/v1/completions", {"prompt": "x", "max_tokens": 2}, key="victim")[0], 200, "beside them")
        open_now = a.metric("hearth_http_open_connections", 'listener="api"')
        expect(open_now >= count, f"all of them open, not {open_now:.0f}")
        resident = a.check_memory()
        # The last ones, which have not waited long: idle ones are still served.
        answered = 0
        for sock in held[-999::50]:
            sock.settimeout(60)
            sock.sendall(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n")
            answered += sock.recv(100).startswith(b"HTTP/1.1 200")
        for sock in held:
            sock.close()
        same(a.ask("POST", "/v1/completions", {"prompt": "x", "max_tokens": 2}, key="victim")[0], 200, "afterwards")
    print(f"{count} connections, {open_now:.0f} open at the end, {resident:.0f} MiB resident, {a.planned_mib:.0f} planned; "
          f"{answered} of {len(held[-999::50])} asked later were answered")
    same(answered, len(held[-999::50]), "idle connections that are served")
    record("connections", count, connections=count, resident_mib=round(resident), planned_mib=round(a.planned_mib),
           answered=answered, asked=len(held[-999::50]))


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""The shared cache over TLS with a real Redis and certificates of a CA made here: what one server stored
another fetches. A certificate of another CA, for another host, or of yesterday is refused with a line that
says which, nothing is stored there, and replies are the same."""
import argparse
import contextlib
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading

from disk_cache_test import ask
from serving import expect, same, serving, work_model
from shared_cache_test import SLOW, connected, redis, shared_of, stored, wait_for


def openssl(*args):
    done = subprocess.run(["openssl", *args], capture_output=True, text=True)
    same(done.returncode, 0, f"openssl {args}: {done.stderr}")


def authority(folder, name):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj",
            f"/CN={name}", "-keyout", str(folder / f"{name}.key"), "-out", str(folder / f"{name}.pem"))
    return folder / f"{name}.pem"


def certificate(folder, name, names, days=30):
    """Of the authority `ca`, for these names."""
    key, request, extra = (str(folder / f"{name}.{end}") for end in ("key", "csr", "ext"))
    pathlib.Path(extra).write_text(f"subjectAltName={names}\n")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}", "-keyout",
            key, "-out", request)
    openssl("x509", "-req", "-in", request, "-CA", str(folder / "ca.pem"), "-CAkey", str(folder / "ca.key"),
            "-CAcreateserial", "-days", str(days), "-extfile", extra, "-out", str(folder / f"{name}.pem"))


@contextlib.contextmanager
def redis_tls(folder, name):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with redis(folder, "--tls-port", str(port), "--tls-cert-file", str(folder / f"{name}.pem"), "--tls-key-file",
               str(folder / f"{name}.key"), "--tls-ca-cert-file", str(folder / "ca.pem"), "--tls-auth-clients",
               "no") as process:
        process.tls_port = port
        yield process


def num_keys(process):
    with socket.create_connection(("127.0.0.1", process.port)) as link:
        link.sendall(b"DBSIZE\r\n")
        return int(link.recv(100)[1:])


class Following:
    """Reads on in a server's log while it runs; stands in for its stderr until it ends."""

    def __init__(self, server):
        self.stream = server.process.stderr
        self.thread = threading.Thread(target=lambda: server.log.extend(iter(self.stream.readline, "")))
        self.thread.start()
        server.process.stderr = self

    def readlines(self):
        self.thread.join()
        return []

    def close(self):
        self.stream.close()


def check(program, model, folder):
    authority(folder, "ca")
    other = authority(folder, "other")
    certificate(folder, "good", "IP:127.0.0.1,DNS:localhost")
    certificate(folder, "elsewhere", "DNS:cache.example")
    certificate(folder, "old", "IP:127.0.0.1,DNS:localhost", days=-1)
    secret = folder / "secret"
    secret.write_text("a secret that all servers share\n")

    def flags(servers, ca="ca.pem"):
        return (*SLOW, "--cache-redis", servers, "--cache-key", str(secret), "--cache-redis-ca", str(folder / ca))

    with serving(program, model, *SLOW) as server:
        plain = ask(server, 0, 2)
    with redis_tls(folder, "good") as good, redis_tls(folder, "elsewhere") as elsewhere, \
            redis_tls(folder, "old") as old:
        by_number, by_name = f"rediss://127.0.0.1:{good.tls_port}", f"rediss://localhost:{good.tls_port}"
        with serving(program, model, *flags(by_number)) as server:
            ask(connected(server), 0, 2)
            stored(server)
        expect(num_keys(good) > 0, "blocks in Redis")
        with serving(program, model, *flags(by_name)) as server:
            warm = ask(connected(server), 0, 2)
        same(warm[:2], plain[:2], "the reply with what came over TLS")
        expect(warm[2] > 50, "a server by its name finds what one by its number stored")
        refused = {"CA": (good, "127.0.0.1", "other.pem", ("self-signed", "self signed", "issuer")),
                   "host": (elsewhere, "localhost", "ca.pem", ("hostname mismatch",)),
                   "number": (elsewhere, "127.0.0.1", "ca.pem", ("IP address mismatch",)),
                   "date": (old, "127.0.0.1", "ca.pem", ("expired",))}
        for wrong, (process, host, ca, why) in refused.items():
            with serving(program, model, *flags(f"rediss://{host}:{process.tls_port}", ca)) as server:
                Following(server)
                wait_for(f"a line about a wrong {wrong}",
                         lambda: any("certificate is not accepted" in line for line in server.log))
                expect(not shared_of(server)["reads"], f"/status tells of a wrong {wrong}")
                same(ask(server, 0, 2)[:2], plain[:2], f"the reply beside a wrong {wrong}")
            said = [line for line in server.log if "certificate is not accepted" in line]
            same(len(said), 1, f"lines about a wrong {wrong}: {server.log}")
            expect(any(each in said[0] for each in why), f"a wrong {wrong}: {said[0]}")
        same([num_keys(elsewhere), num_keys(old)], [0, 0], "blocks where the certificate is wrong")
    # A file that has no certificates: told at the start, and served without.
    with serving(program, model, *flags("rediss://127.0.0.1:1", "secret")) as server:
        expect(any("no shared cache" in line for line in server.log), f"a line about the CA's file: {server.log}")
        same(ask(server, 0, 2)[:2], plain[:2], "the reply without a CA")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        check(args.program, work_model("tiny-oss-o200k.gguf"), pathlib.Path(folder))
    print("TLS to Redis: one CA accepted; another, other hosts and an expired certificate refused")


if __name__ == "__main__":
    sys.exit(main())

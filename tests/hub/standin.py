# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the Hub on the loopback: the listing, redirects to a second server that has the
files, ranges, and any fault that a test plans for a request."""
import collections
import hashlib
import http.server
import json
import os
import re
import socket
import struct
import threading
import time
import urllib.parse

COMMIT = "c" * 40


def git_blob(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Request:
    """One request as a server saw it."""

    def __init__(self, server, path, span, authorization):
        self.server, self.path, self.span = server, path, span
        self.authorization, self.bytes_sent, self.fault = authorization, 0, None


class Fault:
    """What to do wrong: `kind`, and where in the answer."""

    def __init__(self, kind, at=0, retry_after=None):
        self.kind, self.at, self.retry_after = kind, at, retry_after


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # A status line and headers in one packet, and no waiting for more.
    wbufsize = 65536
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer(False)

    def do_GET(self):
        self.answer(True)

    def answer(self, has_body):
        hub, role = self.server.hub, self.server.role
        span = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        span = (int(span.group(1)), int(span.group(2)) + 1) if span else None
        request = Request(role, self.path, span, self.headers.get("Authorization"))
        with hub.lock:
            hub.requests.append(request)
            request.fault = hub.plan(request) if hub.plan else None
        try:
            if request.fault and self.misbehave(request):
                return
            if role == "hub":
                self.answer_hub(request, has_body)
            else:
                self.answer_file(request, has_body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def misbehave(self, request):
        """Whether the fault was the whole answer."""
        fault = request.fault
        if fault.kind == "reset":
            self.hang_up()
            return True
        if fault.kind == "silent":
            time.sleep(self.server.hub.stall)
            self.hang_up()
            return True
        if fault.kind == "status":
            headers = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
            self.send(fault.at, b"busy", headers)
            return True
        return False

    def hang_up(self):
        self.close_connection = True
        # A reset, not an end: the client must not take it for the file's end.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def send(self, status, body, headers=None):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()

    def answer_hub(self, request, has_body):
        hub = self.server.hub
        url = urllib.parse.urlsplit(self.path)
        listing = re.fullmatch(r"/api/models/([^/]+/[^/]+)/revision/([^/]+)", url.path)
        if listing and listing.group(1) in hub.repos and listing.group(2) in ("main", "v1", COMMIT):
            body = hub.listing(listing.group(1))
            if request.fault and request.fault.kind == "junk":
                body = b"<html>" + body
            return self.send(200, body)
        file = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", url.path)
        content = file and hub.repos.get(file.group(1), {}).get(urllib.parse.unquote(file.group(3)))
        if content is None:
            return self.send(404, b"not found")
        where = f"{hub.files_address}/{urllib.parse.quote(file.group(1))}/{file.group(3)}?signed=1"
        headers = {"Location": where, "x-linked-size": str(len(content)),
                   "x-linked-etag": f'"{hashlib.sha256(content).hexdigest()}"'}
        return self.send(302, b"", headers)

    def answer_file(self, request, has_body):
        hub = self.server.hub
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)[1:]
        owner, repo, name = path.split("/", 2)
        content = hub.repos.get(f"{owner}/{repo}", {}).get(name)
        if content is None:
            return self.send(404, b"not found")
        fault, total = request.fault, len(content)
        kind = fault.kind if fault else ""
        begin, end = request.span or (0, total)
        if kind == "norange" or request.span is None:
            begin, end = 0, total
            status, headers = 200, {}
        elif begin >= total:
            return self.send(416, b"")
        else:
            end = min(end, total)
            told = (begin + (7 if kind == "shift" else 0), total + (1 if kind == "total" else 0))
            status, headers = 206, {"Content-Range": f"bytes {told[0]}-{end - 1}/{told[1]}"}
        body = content[begin:end]
        if kind == "short":
            body = body[:fault.at % len(body)]
        if kind == "long":
            body = body + b"x" * 100
        self.send_response(status)
        for header, value in headers.items():
            self.send_header(header, value)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", '"%s"' % hashlib.md5(content[:64]).hexdigest())
        self.end_headers()
        if has_body:
            self.write_body(request, body)
        self.wfile.flush()

    def write_body(self, request, body):
        fault = request.fault
        kind = fault.kind if fault else ""
        if kind == "flip" and body:
            at = fault.at % len(body)
            body = body[:at] + bytes([body[at] ^ 1]) + body[at + 1:]
        stop = fault.at % (len(body) + 1) if kind in ("drop", "stall") else len(body)
        pace = self.server.hub.bytes_per_second
        for at in range(0, stop, 16384):
            piece = body[at:min(at + 16384, stop)]
            self.wfile.write(piece)
            request.bytes_sent += len(piece)
            if pace:
                self.wfile.flush()
                time.sleep(len(piece) / pace)
        self.wfile.flush()
        if kind == "stall":
            time.sleep(self.server.hub.stall)
        if kind in ("drop", "stall"):
            self.hang_up()


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request, client_address):
        pass  # clients that are killed hang up in the middle


class Hub:
    """Two servers: the Hub, and the one that has the files. `plan` gives each request its fault."""

    def __init__(self):
        self.repos = collections.defaultdict(dict)  # "owner/repo" to {path: bytes}
        self.requests, self.lock, self.plan = [], threading.Lock(), None
        self.stall, self.bytes_per_second = 5.0, 0
        self.servers = []
        for role in ("hub", "files"):
            server = Server(("127.0.0.1", 0), Handler)
            server.hub, server.role = self, role
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.servers.append(server)
        self.address, self.files_address = (
            f"http://127.0.0.1:{server.server_address[1]}" for server in self.servers)

    def listing(self, repo):
        siblings = []
        for path, content in sorted(self.repos[repo].items()):
            entry = {"rfilename": path, "size": len(content), "blobId": git_blob(content)}
            if path.endswith((".gguf", ".safetensors")):
                entry["lfs"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content),
                                "pointerSize": 134}
            siblings.append(entry)
        return json.dumps({"id": repo, "sha": COMMIT, "gated": False, "tags": ["license:apache-2.0"],
                           "siblings": siblings}).encode()

    def environment(self, folder, **more):
        """A clean one: no proxies, no stores of this machine, models below `folder`."""
        kept = {name: value for name, value in os.environ.items()
                if not re.match(r"(?i).*_proxy$|HF_|OLLAMA_|XDG_|HEARTH_", name)}
        return {**kept, "HOME": str(folder / "home"), "HEARTH_MODELS": str(folder / "models"),
                "HF_ENDPOINT": self.address, **more}

    def close(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()

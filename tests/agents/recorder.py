# SPDX-License-Identifier: Apache-2.0
"""A proxy on the loopback between an agent and the server, which keeps what both said. It passes
bytes on as they come, so that streams stay streams."""
import http.client
import http.server
import json
import threading
import time


class Exchange:
    """One request and its reply, as they went over the wire."""

    def __init__(self, method, path, headers, body):
        self.method, self.path, self.headers, self.body = method, path, headers, body
        self.status, self.reply_headers, self.reply = None, {}, b""
        self.began = time.monotonic()
        self.seconds = None

    def json(self):
        return json.loads(self.body) if self.body else None

    def events(self):
        """The events of a stream, as (name or None, data)."""
        found = []
        for block in self.reply.decode("utf-8", "replace").split("\n\n"):
            name, data = None, None
            for line in block.split("\n"):
                if line.startswith("event: "):
                    name = line[7:]
                elif line.startswith("data: "):
                    data = line[6:]
            if data is not None:
                found.append((name, data if data == "[DONE]" else json.loads(data)))
        return found

    def comments(self):
        return [line[2:] for line in self.reply.decode("utf-8", "replace").split("\n")
                if line.startswith(": ")]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length)
        kept = Exchange(self.command, self.path, dict(self.headers.items()), body)
        self.server.kept.append(kept)
        upstream = http.client.HTTPConnection("127.0.0.1", self.server.upstream, timeout=600)
        headers = {name: value for name, value in self.headers.items()
                   if name.lower() not in ("host", "connection", "accept-encoding")}
        try:
            upstream.request(self.command, self.path, body, headers)
            self.pass_on(upstream.getresponse(), kept)
        except OSError as error:
            kept.reply_headers["x-recorder"] = str(error)
            self.close_connection = True
        finally:
            kept.seconds = time.monotonic() - kept.began
            upstream.close()

    def pass_on(self, reply, kept):
        kept.status = reply.status
        kept.reply_headers = {name.lower(): value for name, value in reply.getheaders()}
        self.send_response(reply.status)
        for name, value in reply.getheaders():
            if name.lower() not in ("connection", "transfer-encoding"):
                self.send_header(name, value)
        if "content-length" not in kept.reply_headers:
            self.send_header("connection", "close")
            self.close_connection = True
        self.end_headers()
        while True:
            piece = reply.read1(65536)
            if not piece:
                break
            kept.reply += piece
            self.wfile.write(piece)
            self.wfile.flush()

    do_GET = do_POST = do_DELETE = answer

    def log_message(self, *_):
        pass


class Recorder:
    """Listens until closed; `kept` grows by one Exchange per request, in order of arrival."""

    def __init__(self, upstream):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.upstream = upstream
        self.kept = self.server.kept = []
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

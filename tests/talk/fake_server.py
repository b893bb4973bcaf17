# SPDX-License-Identifier: Apache-2.0
"""A server whose replies are written in the test: what it says, how slowly, and how it fails."""
import http.server
import json
import threading
import time

MODELS = ("quill", "pen")


def words(text, delay=0.0):
    """A reply of one answer, word by word."""
    return [(delay, {"content": piece}) for piece in text.replace(" ", " \0").split("\0")]


class FakeServer:
    """`script` maps a user's message to the events of its reply: (seconds before it, delta), or a
    text. A number is an HTTP status to refuse with; an event None breaks the connection off."""

    def __init__(self, script=None):
        self.script = script or {}
        self.bodies = []  # of the requests, in order
        self.gone = threading.Event()  # a client left before its reply was complete
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                rows = [{"id": name, "object": "model", "max_model_len": 1000} for name in MODELS]
                self.answer(200, {"object": "list", "data": rows})

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                owner.bodies.append(body)
                owner.reply(self, body)

            def answer(self, status, value):
                data = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def reply(self, handler, body):
        messages = body["messages"]
        asked = messages[-1]["content"]
        events = self.script.get(asked, f"You said: {asked}")
        if isinstance(events, int):
            return handler.answer(events, {"error": {"message": f"refused with {events}"}})
        if isinstance(events, str):
            events = words(events)
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("connection", "close")
        handler.end_headers()
        try:
            for delay, delta in events:
                time.sleep(delay)
                if delta is None:
                    return None
                self.event(handler, {"choices": [{"index": 0, "delta": delta,
                                                  "finish_reason": None}]})
            self.event(handler, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
            usage = {"prompt_tokens": 10 * len(messages), "completion_tokens": len(events),
                     "prompt_tokens_details": {"cached_tokens": 10 * (len(messages) - 1)}}
            self.event(handler, {"choices": [], "usage": usage})
            handler.wfile.write(b"data: [DONE]\n\n")
        except OSError:
            self.gone.set()
        return None

    @staticmethod
    def event(handler, value):
        handler.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")
        handler.wfile.flush()

    def last(self, field="messages"):
        return self.bodies[-1].get(field)

    def said(self):
        """The last request's conversation as (role, content)."""
        return [(message["role"], message["content"]) for message in self.last()]

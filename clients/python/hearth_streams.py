# SPDX-License-Identifier: Apache-2.0
"""Streams that survive: a transport for the official OpenAI and Anthropic clients which resumes a
broken stream of `hearth serve` by itself (docs/streams.md).

    from openai import OpenAI
    from hearth_streams import resuming_client

    client = OpenAI(base_url="http://127.0.0.1:8080/v1", api_key="none",
                    http_client=resuming_client())

Everything else stays as it is. A lost connection, a restarted server, one that hangs, another replica
at the same address: the SDK sees one stream, without a lost and without a doubled event.
"""
import re
import time
import uuid

try:  # what the SDKs of today import
    import httpx2 as httpx
except ImportError:
    import httpx

RETRIED = (429, 502, 503, 504)  # the server is there, but not now
MAX_IDLE_TRIES = 20
ASKS_FOR_STREAM = re.compile(rb'"stream"\s*:\s*true')


def without_comments(events):
    """OpenAI's parser takes the empty line after a comment for an event once it saw an id."""
    blocks = (b"".join(line + b"\n" for line in block.split(b"\n") if not line.startswith(b":"))
              for block in events.split(b"\n\n"))
    return b"".join(block + b"\n" for block in blocks if block.strip())


class Events:
    """Cuts what arrives into whole events and remembers the last id. A part of an event is not
    passed on: after a break it comes again, whole."""

    def __init__(self):
        self.rest = b""
        self.last_id = None

    def add(self, chunk):
        self.rest += chunk
        end = self.rest.rfind(b"\n\n")
        if end < 0:
            return b""
        whole, self.rest = self.rest[:end + 2], self.rest[end + 2:]
        at = whole.rfind(b"\nid: ")
        if at >= 0 or whole.startswith(b"id: "):
            start = at + 5 if at >= 0 else 4
            self.last_id = whole[start:whole.index(b"\n", start)].decode("ascii")
        return without_comments(whole)

    def lose(self):
        self.rest = b""


class ResumingStream(httpx.SyncByteStream):
    def __init__(self, transport, request, body, response):
        self.transport, self.request, self.body = transport, request, body
        self.response = response

    def __iter__(self):
        events = Events()
        idle_tries = 0  # breaks in a row without an event between them
        while True:
            try:
                for chunk in self.response.stream:
                    whole = events.add(chunk)
                    if whole:
                        idle_tries = 0
                        yield whole
                if events.rest:
                    yield events.rest
                return
            except httpx.TransportError as error:
                idle_tries += 1
                if idle_tries > MAX_IDLE_TRIES:
                    raise
                events.lose()
                self.response.close()
                self.response = self.transport.again(self.request, self.body, events.last_id, error)

    def close(self):
        self.response.close()


class ResumingTransport(httpx.BaseTransport):
    """`patience`: seconds to go on trying after a break, until the first answer. `gap`: seconds without
    any byte after which a stream counts as broken; a server that is well sends a ping every ten."""

    def __init__(self, inner=None, patience=60.0, gap=45.0):
        self.inner = inner or httpx.HTTPTransport()
        self.patience, self.gap = patience, gap

    def handle_request(self, request):
        if request.method != "POST":
            return self.inner.handle_request(request)
        body = request.read()
        # The same key in every try: if an answer is lost before its first event, the next try
        # gets the same reply.
        request.headers.setdefault("idempotency-key", f"hearth-{uuid.uuid4()}")
        try:
            response = self.inner.handle_request(self.copy(request, body, None))
        except httpx.TransportError as error:
            response = self.again(request, body, None, error)
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            return response
        stream = ResumingStream(self, request, body, response)
        return httpx.Response(response.status_code, headers=response.headers, stream=stream,
                              extensions=response.extensions)

    def again(self, request, body, last_id, error):
        """A new answer to the same request, from where the old one broke."""
        until = time.monotonic() + self.patience
        pause = 0.05
        while time.monotonic() < until:
            time.sleep(pause)
            pause = min(1.0, pause * 1.5)
            try:
                response = self.inner.handle_request(self.copy(request, body, last_id))
            except httpx.TransportError as newer:
                error = newer
                continue
            if response.status_code == 200 or (last_id is None
                                               and response.status_code not in RETRIED):
                return response
            text = response.read().decode("utf-8", "replace")
            response.close()
            error = httpx.RemoteProtocolError(
                f"the stream broke, and resuming it was answered {response.status_code}: {text}")
            if response.status_code not in RETRIED:
                break
        raise error

    def copy(self, request, body, last_id):
        headers = request.headers.copy()
        if last_id is not None:
            headers["last-event-id"] = last_id
        extensions = dict(request.extensions)
        if ASKS_FOR_STREAM.search(body):
            # A stream's head is sent at once, so the gap bounds the wait for it as well.
            timeout = dict(extensions.get("timeout") or {})
            timeout["read"] = min(timeout.get("read") or self.gap, self.gap)
            extensions["timeout"] = timeout
        return httpx.Request(request.method, request.url, headers=headers, content=body,
                             extensions=extensions)

    def close(self):
        self.inner.close()


def resuming_client(patience=60.0, gap=45.0, **options):
    """For the `http_client` of OpenAI(...) and Anthropic(...)."""
    options.setdefault("timeout", httpx.Timeout(600.0, connect=10.0))
    return httpx.Client(transport=ResumingTransport(patience=patience, gap=gap),
                        follow_redirects=True, **options)

# SPDX-License-Identifier: Apache-2.0
"""An OTLP/HTTP receiver for tests and `./dev bench traces`: what is posted, as JSON or as protobuf, is read into
OpenTelemetry's own message types (package opentelemetry-proto) and kept."""
import base64
import http.server
import json
import threading

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from serving import expect, same


def as_message(kind, body):
    """OTLP's JSON has ids in hexadecimal; protobuf's reader wants bytes in base64."""
    if kind == "application/x-protobuf":
        return ExportTraceServiceRequest.FromString(body)
    same(kind, "application/json", "the type")
    tree = json.loads(body)
    for resource in tree["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for name in ("traceId", "spanId", "parentSpanId"):
                    if name in span:
                        span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    return json_format.ParseDict(tree, ExportTraceServiceRequest())  # unknown names are refused


def value_of(value):
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [value_of(each) for each in value.array_value.values]
    return getattr(value, kind)


def attributes(thing):
    return {each.key: value_of(each.value) for each in thing.attributes}


class SpanReceiver:
    """Keeps the spans that come, and refuses them while `status` says so. `reads=False`: counts them as bytes
    alone, which costs next to nothing."""

    def __init__(self, reads=True):
        self.spans, self.resources, self.changed, self.status = [], [], threading.Condition(), 200
        self.batches = self.bytes = 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                same(self.path, "/v1/traces", "the path")
                message = as_message(self.headers["content-type"], body) if reads else None
                with outer.changed:
                    outer.batches += 1
                    outer.bytes += len(body)
                    if outer.status == 200 and message:
                        outer.keep(message)
                    outer.changed.notify_all()
                self.send_response(outer.status)
                self.send_header("content-type", self.headers["content-type"])
                answer = b"" if "protobuf" in self.headers["content-type"] else b"{}"
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def keep(self, message):
        for resource in message.resource_spans:
            self.resources.append(attributes(resource.resource))
            for scope in resource.scope_spans:
                self.spans += scope.spans

    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    def trace(self, trace, timeout=60):
        """(root, parts) of one request, once its last part is here."""
        wanted = bytes.fromhex(trace)
        with self.changed:
            def complete():
                return any(s.trace_id == wanted and s.name == "write" for s in self.spans)
            expect(self.changed.wait_for(complete, timeout), f"the spans of {trace} come")
            spans = [s for s in self.spans if s.trace_id == wanted]
        roots = [s for s in spans if s.kind == s.SPAN_KIND_SERVER]
        same(len(roots), 1, "spans of kind SERVER")
        return roots[0], [s for s in spans if s.kind != s.SPAN_KIND_SERVER]

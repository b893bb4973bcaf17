#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hearth serve --trace-endpoint against an OTLP/HTTP receiver: what is posted is read into OpenTelemetry's own
message types (package opentelemetry-proto), a request's parts add up to its whole, a client's decision to sample is
kept, and a collector that is away costs spans, not requests."""
import base64
import contextlib
import http.server
import json
import sys
import threading
import time

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from serving import expect, same, serving, work_model

PROGRAM = sys.argv[1]
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARTS = ["read", "queue", "tiers", "prefill", "decode", "write"]


def as_message(body):
    """OTLP's JSON has ids in hexadecimal; protobuf's reader wants bytes in base64."""
    tree = json.loads(body)
    for resource in tree["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for name in ("traceId", "spanId", "parentSpanId"):
                    if name in span:
                        span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    return json_format.ParseDict(tree, ExportTraceServiceRequest())  # unknown names are refused


class Collector:
    """Keeps the spans that come, and refuses them while `status` says so."""

    def __init__(self):
        self.spans, self.resources, self.changed, self.status = [], [], threading.Condition(), 200
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                same(self.headers["content-type"], "application/json", "the type")
                same(self.path, "/v1/traces", "the path")
                message = as_message(body)
                with outer.changed:
                    if outer.status == 200:
                        for resource in message.resource_spans:
                            outer.resources.append(attributes(resource.resource))
                            for scope in resource.scope_spans:
                                outer.spans += scope.spans
                    outer.changed.notify_all()
                self.send_response(outer.status)
                self.send_header("content-length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

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


def value_of(value):
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [value_of(each) for each in value.array_value.values]
    return getattr(value, kind)


def attributes(thing):
    return {each.key: value_of(each.value) for each in thing.attributes}


def ask(server, traceparent=None, **more):
    """The reply, and how long its client waited for it."""
    headers = {"traceparent": traceparent} if traceparent else {}
    body = {"model": server.name, "temperature": 0, "max_tokens": 24, "ignore_eos": True,
            "messages": [{"role": "user", "content": "Tell me about the sea."}], **more}
    began = time.monotonic()
    status, found, data = server.request("POST", "/v1/chat/completions", body, headers)
    return status, found, data, time.monotonic() - began


def metric(server, name):
    _, _, page = server.request("GET", "/metrics")
    for line in page.decode().splitlines():
        if line.startswith(name + " "):
            return float(line.split()[1])
    return None


def parent(trace, sampled):
    return f"00-{trace}-{SPAN}-0{int(sampled)}"


def check_whole(root, parts, waited):
    length = root.end_time_unix_nano - root.start_time_unix_nano
    total = sum(s.end_time_unix_nano - s.start_time_unix_nano for s in parts)
    expect(abs(total - length) <= 0.02 * length, f"parts of {total} ns add up to {length} ns")
    # The client's clock runs around the server's: connecting and reading are not in the span.
    expect(length <= 1e9 * waited, f"a span of {length} ns within the {waited} s of its client")
    at = root.start_time_unix_nano
    for part in parts:
        same(part.parent_span_id, root.span_id, f"the parent of {part.name}")
        same(part.start_time_unix_nano, at, f"{part.name} begins where the one before ended")
        at = part.end_time_unix_nano
    names = [part.name for part in parts]
    same(names, [name for name in PARTS if name in names], "the parts in their order")
    for name in ("read", "prefill", "decode", "write"):
        expect(name in names, f"{name} among {names}")


def check_spans(server, collector):
    status, headers, data, waited = ask(server, parent(TRACE, True))
    same(status, 200, "the status")
    same(headers["traceparent"], parent(TRACE, True), "the header comes back")
    usage = json.loads(data)["usage"]
    root, parts = collector.trace(TRACE)
    same(root.parent_span_id.hex(), SPAN, "the client's span is the parent")
    check_whole(root, parts, waited)
    found = attributes(root)
    same(root.name, f"chat {server.name}", "the name")
    same(found["gen_ai.operation.name"], "chat", "the operation")
    same(found["gen_ai.request.model"], server.name, "the model")
    same(found["gen_ai.usage.input_tokens"], usage["prompt_tokens"], "input tokens")
    same(found["gen_ai.usage.output_tokens"], usage["completion_tokens"], "output tokens")
    same(found["gen_ai.response.finish_reasons"], ["length"], "why it ended")
    same(found["http.response.status_code"], 200, "the status")
    expect(b"sea" not in root.SerializeToString(), "nothing that anybody wrote")
    same(collector.resources[-1]["service.name"], "hearth", "the service")
    for stream in (False, True):
        trace = f"{int(stream) + 1:032x}"
        *_, waited = ask(server, parent(trace, True), stream=stream)
        check_whole(*collector.trace(trace), waited)


def check_choices(server, collector):
    # The client said no; after that one that said yes, so that both were looked at.
    ask(server, parent("a" * 32, False))
    ask(server, parent("b" * 32, True))
    collector.trace("b" * 32)
    expect(not any(s.trace_id.hex() == "a" * 32 for s in collector.spans), "no trace of the first")
    # Without a header the share decides: all of them.
    with collector.changed:
        before = {s.trace_id for s in collector.spans}
    status, headers, *_ = ask(server)
    same(status, 200, "the status")
    expect("traceparent" not in headers, "no header that nobody sent")
    with collector.changed:
        expect(collector.changed.wait_for(
            lambda: {s.trace_id for s in collector.spans} - before, 60), "a trace of its own")
    # A mistake is a span with its error.
    status, *_ = ask(server, parent("c" * 32, True), max_tokens=-1)
    same(status, 400, "a mistake")
    with collector.changed:
        expect(collector.changed.wait_for(
            lambda: any(s.trace_id.hex() == "c" * 32 for s in collector.spans), 60), "its span")
        root = [s for s in collector.spans if s.trace_id.hex() == "c" * 32][0]
    same(attributes(root)["http.response.status_code"], 400, "its status")
    same(root.status.code, root.status.STATUS_CODE_ERROR, "its error")


def check_refusing(server, collector):
    sent = metric(server, "hearth_trace_spans_sent_total")
    expect(sent > 0, f"spans were sent: {sent}")
    same(metric(server, "hearth_trace_spans_dropped_total"), 0, "none was dropped")
    collector.status = 503
    status, *_ = ask(server, parent("d" * 32, True))
    same(status, 200, "a request while the collector refuses")
    deadline = time.monotonic() + 60
    while metric(server, "hearth_trace_spans_dropped_total") == 0:
        expect(time.monotonic() < deadline, "what was refused is counted")
        time.sleep(0.05)
    collector.status = 200
    ask(server, parent("e" * 32, True))
    collector.trace("e" * 32)


def check_away():
    with serving(PROGRAM, work_model("tiny-chatml.gguf"), "--trace-endpoint", "http://127.0.0.1:9") as server:
        status, *_ = ask(server)
        same(status, 200, "a request without a collector")
    log = "".join(server.log)
    same(log.count("spans are dropped"), 1, f"one warning: {log}")


def check_off():
    with serving(PROGRAM, work_model("tiny-chatml.gguf")) as server:
        ask(server, parent(TRACE, True))
        same(metric(server, "hearth_trace_spans_sent_total"), None, "no metric without traces")


def main():
    collector = Collector()
    # All that is queued goes out at the end, too.
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(
            serving(PROGRAM, work_model("tiny-chatml.gguf"), "--trace-endpoint", collector.url()))
        check_spans(server, collector)
        check_choices(server, collector)
        check_refusing(server, collector)
        ask(server, parent("f" * 32, True))
    collector.trace("f" * 32, timeout=1)
    check_away()
    check_off()
    print("traces: ok")


if __name__ == "__main__":
    main()

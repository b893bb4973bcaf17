#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hearth serve --trace-endpoint against an OTLP/HTTP receiver: what is posted is read into OpenTelemetry's own
message types (package opentelemetry-proto), a request's parts add up to its whole, a client's decision to sample is
kept, and a collector that is away costs spans, not requests."""
import contextlib
import json
import sys
import time

from serving import expect, same, serving, work_model
from span_receiver import SpanReceiver, attributes

PROGRAM = sys.argv[1]
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARTS = ["read", "queue", "tiers", "prefill", "decode", "write"]


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


def check_wall(server, collector):
    """A long reply's span is its client's wall time within 2 %. What the client adds (connecting, being scheduled on
    a busy machine) is in its clock too, so the best of a few rounds counts."""
    shares = []
    while max(shares, default=0) < 0.98:
        trace = f"{0x100 + len(shares):032x}"
        status, _, _, waited = ask(server, parent(trace, True), max_tokens=4000)
        same(status, 200, "the status")
        root, parts = collector.trace(trace)
        check_whole(root, parts, waited)
        shares.append((root.end_time_unix_nano - root.start_time_unix_nano) / (1e9 * waited))
        expect(len(shares) < 6 or max(shares) >= 0.98, f"spans of 98 % of their clients' wall times: {shares}")


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
    collector = SpanReceiver()
    # All that is queued goes out at the end, too.
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(
            serving(PROGRAM, work_model("tiny-chatml.gguf"), "--trace-endpoint", collector.url()))
        check_spans(server, collector)
        check_wall(server, collector)
        check_choices(server, collector)
        check_refusing(server, collector)
        ask(server, parent("f" * 32, True))
    collector.trace("f" * 32, timeout=1)
    check_away()
    check_off()
    print("traces: ok")


if __name__ == "__main__":
    main()

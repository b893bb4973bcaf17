#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hearth serve --trace-endpoint against the OpenTelemetry Collector itself (`./dev collector` builds it): Hearth's spans
go through its OTLP receiver, and what its OTLP exporter sends on, as protobuf, is what Hearth said."""
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

import traces_test
from serving import expect, same, serving, work_model
from span_receiver import SpanReceiver, attributes

PROGRAM = sys.argv[1]
WORK = pathlib.Path(os.environ.get("HEARTH_WORK", pathlib.Path.home() / ".cache/hearth"))
COLLECTOR = WORK / "collector" / "otelcol"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def collecting(receiver):
    """The collector between Hearth and `receiver`; its URL, and its process."""
    if not COLLECTOR.exists():
        sys.exit(f"{COLLECTOR} is missing; get it with: ./dev collector")
    port = free_port()
    config = {"receivers": {"otlp": {"protocols": {"http": {"endpoint": f"127.0.0.1:{port}"}}}},
              "exporters": {"otlphttp": {"endpoint": receiver.url(), "compression": "none",
                                         "sending_queue": {"enabled": False}}},
              "service": {"telemetry": {"metrics": {"level": "none"}},
                          "pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["otlphttp"]}}}}
    process = subprocess.Popen([COLLECTOR, "--config", f"yaml:{json.dumps(config)}"], stderr=subprocess.PIPE, text=True)
    log = []
    try:
        for line in process.stderr:
            log.append(line)
            if "Everything is ready" in line:
                break
        else:
            expect(False, f"the collector starts: {''.join(log)}")
        yield f"http://127.0.0.1:{port}", process
    finally:
        process.terminate()
        process.wait(30)


def check_through(server, receiver):
    traces_test.check_spans(server, receiver)
    traces_test.check_wall(server, receiver)
    traces_test.check_choices(server, receiver)
    # The receiver's collector says what it did not understand by leaving it out, and Hearth counts what is refused.
    same(traces_test.metric(server, "hearth_trace_spans_dropped_total"), 0, "none was dropped")
    names = {span.name for span in receiver.spans}
    expect({"read", "prefill", "decode", "write"} <= names, f"parts among {names}")
    same(attributes(receiver.spans[-1]).keys() & {"prompt", "content"}, set(), "nothing that anybody wrote")


def check_gone(server, process):
    """The collector goes: requests are answered, spans counted as dropped."""
    process.terminate()
    process.wait(30)
    status, *_ = traces_test.ask(server, traces_test.parent("d" * 32, True))
    same(status, 200, "a request without a collector")
    deadline = time.monotonic() + 60
    while traces_test.metric(server, "hearth_trace_spans_dropped_total") == 0:
        expect(time.monotonic() < deadline, "what nobody took is counted")
        time.sleep(0.05)


def main():
    receiver = SpanReceiver()
    with collecting(receiver) as (url, process), \
            serving(PROGRAM, work_model("tiny-chatml.gguf"), "--trace-endpoint", url) as server:
        check_through(server, receiver)
        check_gone(server, process)
    print("traces through the collector: ok")


if __name__ == "__main__":
    main()

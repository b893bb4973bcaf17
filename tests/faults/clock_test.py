# SPDX-License-Identifier: Apache-2.0
"""The clock on the wall jumps forward and back under a server that runs, and between two that follow each
other: no batch and no file ends, stored responses are neither deleted nor hidden, limits per minute and what a
refusal says of them keep to the time that passes, and streams, connections and health notice nothing. A disk
that is full refuses what cannot be stored, and loses nothing. clock_test.py HEARTH LIBRARY"""
import errno
import http.client
import json
import os
import pathlib
import sys
import tempfile
import time

from faults import CALLS, SYSTEM_CALLS, expect, failing_server, work_model
from serving import new_key, same

DAY = 24 * 3600
JUMPS = {"forty days on": 40 * DAY, "ten years on": 3650 * DAY, "an hour back": -3600, "to 1970": -20_000 * DAY,
         "to 2100": 27_000 * DAY, "three days on": 3 * DAY, "three days back": -3 * DAY,
         "twelve years on": 4383 * DAY, "twelve years back": -4383 * DAY}
# The runner of batches looks twice a second.
LOOKS_S = 1.2


class Clock:
    """A server, two of its keys, and the date that it believes."""

    def __init__(self, rig, keys):
        self.rig, self.server, self.keys = rig, rig.server, keys

    def jump(self, seconds):
        self.rig.faults.page.clock_offset_s = seconds

    def ask(self, method, path, body=None, key="free"):
        return self.server.request(method, path, body, {"authorization": "Bearer " + self.keys[key]})

    def store(self):
        status, _, data = self.ask("POST", "/v1/responses", {"input": "keep", "max_output_tokens": 16})
        same(status, 200, f"a stored response: {data[:300]}")
        return json.loads(data)["id"], json.loads(data)["created_at"]


def check_responses(clock):
    kept, real = clock.store()
    others = []
    for name, seconds in JUMPS.items():
        clock.jump(seconds)
        new, created = clock.store()
        expect(abs(created - real - seconds) < 3600, f"{name}: a clock that jumped, not {created}")
        others.append(new)
        same(clock.ask("GET", f"/v1/responses/{kept}")[0], 200, f"{name}: a response of before")
        same(clock.ask("GET", f"/v1/responses/{new}")[0], 200, f"{name}: what was stored just now")
        clock.jump(0)
        same(clock.ask("GET", f"/v1/responses/{kept}")[0], 200, f"{name} and back: a response of before")
    clock.jump(0)
    same([clock.ask("GET", f"/v1/responses/{each}")[0] for each in others], [200] * len(JUMPS),
         "responses that were stored under other dates")
    return kept


def upload(clock, content, **fields):
    parts = {"purpose": "batch", **fields}
    text = "".join(f'--XX\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
                   for name, value in parts.items())
    text += f'--XX\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n{content}\r\n--XX--\r\n'
    return clock.server.request("POST", "/v1/files", text.encode(), {
        "authorization": "Bearer " + clock.keys["free"], "content-type": "multipart/form-data; boundary=XX"})


def a_file(clock, content="x", **fields):
    status, _, data = upload(clock, content, **fields)
    same(status, 200, f"an upload: {data[:300]}")
    return json.loads(data)["id"]


def a_batch(clock, lines):
    content = "\n".join(json.dumps({
        "custom_id": f"c{i}", "method": "POST", "url": "/v1/completions",
        "body": {"prompt": "x", "max_tokens": 400, "ignore_eos": True}}) for i in range(lines))
    status, _, data = clock.ask("POST", "/v1/batches", {
        "input_file_id": a_file(clock, content), "endpoint": "/v1/completions", "completion_window": "24h"})
    same(status, 200, f"a batch: {data[:300]}")
    return json.loads(data)["id"]


def expect_running(clock, batch, file, what):
    status = json.loads(clock.ask("GET", f"/v1/batches/{batch}")[2])
    same((status["status"], status["request_counts"]["failed"]), ("in_progress", 0), f"{what}: the batch")
    same(clock.ask("GET", f"/v1/files/{file}")[0], 200, f"{what}: a file that ends in a day")
    same(clock.ask("GET", f"/v1/files/{file}/content")[2], b"x", f"{what}: its content")


def check_batches(clock):
    """A batch and a file that both end in a day, under dates that say it is over."""
    file = a_file(clock, **{"expires_after[anchor]": "created_at", "expires_after[seconds]": DAY})
    batch = a_batch(clock, 4000)  # more than all this test runs
    time.sleep(LOOKS_S)
    for name, seconds in JUMPS.items():
        clock.jump(seconds)
        time.sleep(LOOKS_S)
        expect_running(clock, batch, file, name)
        clock.jump(0)
        expect_running(clock, batch, file, f"{name} and back")
    time.sleep(LOOKS_S)
    expect_running(clock, batch, file, "all jumps")
    return batch, file


def wait_for_metric(clock, line):
    end = time.monotonic() + 60
    while True:
        status, _, page = clock.server.request("GET", "/metrics")
        same(status, 200, "the metrics")
        if line in page.decode().splitlines():
            return
        expect(time.monotonic() < end, f"{line} in time")
        time.sleep(0.1)


def check_full_disk(clock):
    """Nothing can be written: what cannot be stored is refused as that, and the batch that runs waits."""
    given = a_file(clock)
    faults = clock.rig.faults
    faults.arm(SYSTEM_CALLS, 127, 1 << CALLS.index("pwrite"), 0, errno.ENOSPC, repeat=1 << 30)
    body = {"input_file_id": given, "endpoint": "/v1/completions", "completion_window": "24h"}
    for status, _, data in [upload(clock, "y" * 100_000), clock.ask("POST", "/v1/batches", body)]:
        error = json.loads(data)["error"]
        same((status, error["type"], error["code"]), (507, "insufficient_storage_error", "disk_full"),
             f"on a full disk: {data[:300]}")
    wait_for_metric(clock, "hearth_batch_held 1")
    before = faults.page.failed
    time.sleep(2)
    expect(faults.page.failed - before < 300, f"tried now and then, not {faults.page.failed - before} times in 2 s")
    expect(faults.disarm(), "the fault came")
    wait_for_metric(clock, "hearth_batch_held 0")
    a_file(clock, "y" * 100_000)


def check_next_process(clock, batch, file, response):
    """The date was set while nobody ran."""
    time.sleep(LOOKS_S)
    expect_running(clock, batch, file, "another process, twelve years on")
    same(clock.ask("GET", f"/v1/responses/{response}")[0], 200, "another process: a response of before")
    clock.jump(0)
    time.sleep(LOOKS_S)
    expect_running(clock, batch, file, "another process, and back")


def check_rates(clock):
    body = {"prompt": "x", "max_tokens": 1}
    same(clock.ask("POST", "/v1/completions", body, "few")[0], 200, "one of one a minute")
    began = time.monotonic()
    for name, seconds in {"now": 0, **JUMPS}.items():
        clock.jump(seconds)
        status, headers, _ = clock.ask("POST", "/v1/completions", body, "few")
        if time.monotonic() - began > 50:
            break  # so slow a machine that the minute may be over
        same(status, 429, f"{name}: the second within a minute")
        expect(1 <= int(headers["retry-after"]) <= 60, f"{name}: retry-after within the minute, not {headers}")
    clock.jump(0)


def check_streams(clock):
    """One connection and one stream over all jumps."""
    connection = http.client.HTTPConnection("127.0.0.1", clock.server.port, timeout=60)
    headers = {"authorization": "Bearer " + clock.keys["free"], "content-type": "application/json"}
    body = json.dumps({"prompt": "x", "max_tokens": 200, "stream": True, "ignore_eos": True})
    for name, seconds in JUMPS.items():
        connection.request("POST", "/v1/completions", body, headers)
        reply = connection.getresponse()
        first = reply.read(64)
        clock.jump(seconds)
        expect((first + reply.read()).endswith(b"data: [DONE]\n\n"), f"{name}: a whole stream")
        same(clock.server.request("GET", "/livez")[0], 200, f"{name}: /livez")
        same(clock.server.request("GET", "/readyz")[0], 200, f"{name}: /readyz")
        clock.jump(0)
    connection.close()


def main():
    program, library = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        keys, entries = {}, []
        for name in ("free", "few"):
            keys[name], entry = new_key(program, name)
            entries.append({**entry, "limits": {"requests_per_minute": 1}} if name == "few" else entry)
        path = pathlib.Path(folder, "keys.json")
        path.write_text(json.dumps({"keys": entries}), encoding="utf-8")
        flags = (program, library, work_model("tiny-chatml.gguf"), "--keys", str(path), "--responses",
                 os.path.join(folder, "responses"), "--batches", os.path.join(folder, "batches"),
                 "--served-name", "any", "--public-metrics")
        with failing_server(*flags) as rig:
            clock = Clock(rig, keys)
            response = check_responses(clock)
            check_rates(clock)
            check_streams(clock)
            batch, file = check_batches(clock)
            check_full_disk(clock)
            rig.expect_alive("all jumps")
        with failing_server(*flags, clock_offset_s=JUMPS["twelve years on"]) as rig:
            check_next_process(Clock(rig, keys), batch, file, response)
    print(f"{len(JUMPS)} jumps of the clock and back, one between two processes: no batch, file or response "
          "lost, limits as ever; a full disk refused and held")


if __name__ == "__main__":
    main()

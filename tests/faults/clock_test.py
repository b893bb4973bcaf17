# SPDX-License-Identifier: Apache-2.0
"""The clock on the wall jumps forward and back under a server that runs: stored responses are there when it
is right again, limits per minute and what a refusal says of them keep to the time that passes, and streams,
connections and health notice nothing. clock_test.py HEARTH LIBRARY"""
import http.client
import json
import os
import pathlib
import sys
import tempfile
import time

from faults import expect, failing_server, work_model
from serving import new_key, same

DAY = 24 * 3600
JUMPS = {"forty days on": 40 * DAY, "ten years on": 3650 * DAY, "an hour back": -3600, "to 1970": -20_000 * DAY,
         "to 2100": 27_000 * DAY}


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
        clock.ask("GET", f"/v1/responses/{kept}")  # what is too old by that date may be hidden
        same(clock.ask("GET", f"/v1/responses/{new}")[0], 200, f"{name}: what was stored just now")
        clock.jump(0)
        same(clock.ask("GET", f"/v1/responses/{kept}")[0], 200, f"{name} and back: a response of before")
    clock.jump(0)
    # By today's date the one of 1970 is older than thirty days; none of the others is.
    found = [clock.ask("GET", f"/v1/responses/{each}")[0] for each in others]
    same([status for name, status in zip(JUMPS, found) if name != "to 1970"], [200] * (len(JUMPS) - 1),
         "responses that were stored under other dates")


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
        with failing_server(program, library, work_model("tiny-chatml.gguf"), "--keys", str(path), "--responses",
                            os.path.join(folder, "responses")) as rig:
            clock = Clock(rig, keys)
            check_responses(clock)
            check_rates(clock)
            check_streams(clock)
            rig.expect_alive("all jumps")
    print(f"{len(JUMPS)} jumps of the clock and back: no response lost, limits as ever")


if __name__ == "__main__":
    main()

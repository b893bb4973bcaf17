# SPDX-License-Identifier: Apache-2.0
"""hearth serve watched: its control port, its metrics under load, its log lines without texts."""
import json
import pathlib
import re
import sys
import tempfile
import urllib.error
import urllib.request

from metrics_test import promtool
from serving import expect, same, serving, work_model

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
SECRET = "xylophone"


def value(page, series):
    found = re.search(rf"^{re.escape(series)} (\S+)$", page, re.MULTILINE)
    expect(found, f"{series} on the page")
    return float(found.group(1))


def check_page(server, control):
    page = urllib.request.urlopen(f"{control}/metrics?names=hearth").read().decode()
    lint = promtool("check", "metrics", page=page)
    same(lint.returncode, 0, lint.stdout + lint.stderr)
    same(value(page, "hearth_time_to_first_token_seconds_count"), 3, "first tokens")
    same(value(page, 'hearth_requests_finished_total{reason="length"}'), 3, "ends")
    expect(value(page, "hearth_generated_tokens_total") == 24, "tokens")
    expect(value(page, "hearth_inter_token_seconds_count") == 21, "gaps between tokens")
    same(value(page, "hearth_ready"), 1, "ready")
    expect(value(page, 'hearth_http_requests_total{listener="api"}') >= 3, "requests")
    expect(f'model="{server.name}"' in page, "the model's name")
    for path in ("/livez", "/readyz"):
        same(urllib.request.urlopen(control + path).status, 200, path)


def check_doors(server, control):
    same(server.request("GET", "/metrics")[0], 200, "metrics beside the API, where nobody has a key")
    try:
        urllib.request.urlopen(control + "/v1/models")
        expect(False, "the API on the control port")
    except urllib.error.HTTPError as error:
        same(error.code, 404, "the API on the control port")
    request = urllib.request.Request(control + "/metrics", headers={"host": "evil.example"})
    try:
        urllib.request.urlopen(request)
        expect(False, "metrics for a page that rebinds its name")
    except urllib.error.HTTPError as error:
        same(error.code, 403, "another host's name")


def check_log(path):
    text = path.read_text()
    expect(SECRET not in text, "no text of a request in the log")
    lines = [json.loads(line) for line in text.splitlines()]
    same([line["status"] for line in lines], [200, 200, 200, 400], "a line per request")
    same(lines[0]["traceparent"], TRACE, "the trace")
    same([len(line["choices"]) for line in lines], [1, 1, 1, 0], "choices")
    same([line["choices"][0]["generated_tokens"] for line in lines[:3]], [8, 8, 8], "tokens")


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log"
        with serving(program, work_model("tiny-oss-o200k.gguf"), "--control-port", "0",
                     "--log", str(log)) as server:
            control = re.search(r"control on (\S+)", "".join(server.log)).group(1)
            body = {"messages": [{"role": "user", "content": SECRET}], "max_tokens": 8,
                    "ignore_eos": True}
            for _ in range(3):
                status, headers, _ = server.request("POST", "/v1/chat/completions", body,
                                                    {"traceparent": TRACE})
                same((status, headers["traceparent"]), (200, TRACE), "the trace comes back")
            status, headers, _ = server.request("POST", "/v1/chat/completions",
                                                {**body, "n": SECRET}, {"traceparent": TRACE})
            same((status, headers["traceparent"]), (400, TRACE), "the trace of a refusal")
            check_page(server, control)
            check_doors(server, control)
        check_log(log)
    print("the server can be watched")


if __name__ == "__main__":
    main(sys.argv[1])

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The metrics page as a real Prometheus reads it, and the shipped rules and dashboard against it."""
import argparse
import contextlib
import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
# vLLM's own faults of naming, which its names bring along; for our names there is no excuse.
THEIR_FAULTS = ("metric names should not contain ':'", "counters should end", "gpu_cache_usage",
                "metric names should not contain abbreviated units")


def get(url, timeout=10):
    with urllib.request.urlopen(url, timeout=timeout) as answer:
        return answer.read().decode()


@contextlib.contextmanager
def probe(program, *args):
    process = subprocess.Popen([program, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               text=True)
    try:
        yield f"127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.stdin.close()
        if process.wait(timeout=20) != 0:
            raise RuntimeError("the probe failed")


def promtool(*args, page=None):
    return subprocess.run(["promtool", *args], input=page, capture_output=True, text=True)


def names_of(page):
    """Every name a query can use."""
    names = set()
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", page, re.MULTILINE):
        names |= {f"{name}_{end}" for end in ("bucket", "sum", "count")} if kind == "histogram" \
            else {name}
    return names


def names_used(text):
    """In queries; what stands in quotes or braces is labels."""
    text = re.sub(r'"[^"]*"|\{[^}]*\}', "", text)
    return set(re.findall(r"\b(?:hearth|process)_\w+", text))


def check_page(target):
    ours = get(f"http://{target}/metrics?names=hearth")
    both = get(f"http://{target}/metrics")
    lint = promtool("check", "metrics", page=ours)
    assert lint.returncode == 0, f"promtool on our names:\n{lint.stdout}{lint.stderr}"
    complaints = [line for line in promtool("check", "metrics", page=both).stderr.splitlines()
                  if not (line.startswith("vllm:") and any(fault in line for fault in THEIR_FAULTS))]
    assert not complaints, "promtool on both sets of names:\n" + "\n".join(complaints)
    wanted = {"num_requests_running", "num_requests_waiting", "kv_cache_usage_perc",
              "gpu_cache_usage_perc", "time_to_first_token_seconds_bucket",
              "inter_token_latency_seconds_bucket", "time_per_output_token_seconds_bucket",
              "e2e_request_latency_seconds_bucket", "prompt_tokens_total",
              "generation_tokens_total", "prefix_cache_queries_total", "prefix_cache_hits_total",
              "request_success_total", "cache_config_info"}
    missing = {f"vllm:{name}" for name in wanted} - names_of(both)
    assert not missing, f"missing: {missing}"
    return names_of(ours)


def check_shipped(names):
    rules = ROOT / "deploy/prometheus/hearth.rules.yml"
    checked = promtool("check", "rules", str(rules))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    config = promtool("check", "config", str(ROOT / "deploy/prometheus/prometheus.yml"))
    assert config.returncode == 0, config.stdout + config.stderr
    text = "\n".join(line for line in rules.read_text().splitlines() if "alert:" not in line)
    unknown = names_used(text) - names
    assert not unknown, f"rules use {unknown}"
    alerts = re.findall(r"alert: (\w+)", rules.read_text())
    runbook = (ROOT / "docs/runbook.md").read_text()
    sections = re.findall(r"^## (\w+)$", runbook, re.MULTILINE)
    assert alerts == sections, f"alerts {alerts}, sections of docs/runbook.md {sections}"
    unknown = names_used(runbook) - names
    assert not unknown, f"the runbook tells of {unknown}"
    dashboard = json.loads((ROOT / "deploy/grafana/hearth.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    used = set().union(*map(names_used, queries))
    assert len(used) > 20, f"only {len(used)} names found: the check itself is broken"
    assert not used - names, f"the dashboard uses {used - names}"
    return queries


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def prometheus(target):
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "prometheus.yml"
        config.write_text(f"""global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ["{ROOT}/deploy/prometheus/hearth.rules.yml"]
scrape_configs:
  - job_name: hearth
    static_configs: [{{targets: ["{target}"]}}]
""")
        port = free_port()
        process = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address=127.0.0.1:{port}"], stderr=subprocess.DEVNULL)
        try:
            yield f"http://127.0.0.1:{port}/api/v1"
        finally:
            process.terminate()
            process.wait(timeout=20)


def query(api, text):
    answer = json.loads(get(f"{api}/query?" + urllib.parse.urlencode({"query": text})))
    assert answer["status"] == "success", answer
    return answer["data"]["result"]


def wait_for(what, seconds=40):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError, IndexError, AssertionError):
            if what():
                return
        time.sleep(0.5)
    raise AssertionError("Prometheus did not see it in time")


def check_scrapes(api, queries):
    wait_for(lambda: float(query(api, "count_over_time(up{job='hearth'}[1m])")[0]["value"][1]) >= 5)
    assert query(api, "up")[0]["value"][1] == "1"
    empty = []
    for text in queries:
        text = text.replace("$instance", ".*").replace("$__rate_interval", "30s")
        if not query(api, text):
            empty.append(text)
    assert not empty, "no data for:\n" + "\n".join(empty)
    p99 = float(query(api, "histogram_quantile(0.99, rate(hearth_inter_token_seconds_bucket[30s]))")
                [0]["value"][1])
    assert 0.0005 < p99 < 2.5, f"a step of a millisecond gave {p99} s between tokens"
    assert query(api, 'rate(vllm:generation_tokens_total{model_name="probe"}[30s]) > 10')


def check_stall(program):
    """The page answers in milliseconds while the engine hangs, and says that it hangs."""
    with probe(program, "stall") as target:
        wait_for(lambda: "\nhearth_stalled 1\n" in get(f"http://{target}/metrics"))
        times = []
        for _ in range(50):
            began = time.monotonic()
            page = get(f"http://{target}/metrics")
            times.append(time.monotonic() - began)
            assert "\nhearth_stalled 1\n" in page and "\nhearth_ready 0\n" in page
        median = sorted(times)[25] * 1000
        assert median < 50, f"{median:.1f} ms"
        print(f"while the engine hangs: median {median:.2f} ms, worst {max(times) * 1000:.2f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", help="metrics_probe")
    args = parser.parse_args()
    with probe(args.program) as target:
        time.sleep(0.5)
        names = check_page(target)
        queries = check_shipped(names)
        with prometheus(target) as api:
            check_scrapes(api, queries)
    check_stall(args.program)
    print(f"{len(names)} names, {len(queries)} queries of the dashboard answered by Prometheus")


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Small requests per second of the HTTP layer alone, beside nginx under the same wrk."""
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import urllib.request

from rig import Others, Row, milliseconds, rig

CONFIG = """
worker_processes 2;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  keepalive_requests 1000000000;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port} reuseport;
    location /livez {{ default_type text/plain; add_header cache-control no-store;
      return 200 "alive\\n"; }}
  }}
}}
"""


def program(name):
    found = shutil.which(name, path="/usr/local/bin:/usr/bin:/usr/sbin:/sbin")
    if found is None:
        raise SystemExit(f"{name} is missing: apt-get install nginx-light wrk")
    return found


class Nginx:
    """nginx with a fixed answer, for as long as the block lasts."""

    def __init__(self, port):
        self.folder = tempfile.TemporaryDirectory(prefix="hearth-nginx-")
        config = pathlib.Path(self.folder.name) / "nginx.conf"
        config.write_text(CONFIG.format(folder=self.folder.name, port=port), encoding="utf-8")
        self.process = subprocess.Popen([program("nginx"), "-c", str(config)],
                                        stderr=subprocess.DEVNULL)
        self.url = f"http://127.0.0.1:{port}/livez"

    def __enter__(self):
        for _ in range(50):
            try:
                with urllib.request.urlopen(self.url, timeout=5) as reply:
                    if reply.read() == b"alive\n":
                        return self
            except OSError:
                time.sleep(0.1)
        raise SystemExit("nginx did not start")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)
        self.folder.cleanup()


def wrk(url, connections, seconds):
    done = subprocess.run([program("wrk"), "-t1", f"-c{connections}", f"-d{seconds}", "--latency",
                           url], capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in done or "Socket errors" in done:
        raise SystemExit(f"wrk met errors: {done}")
    p99 = re.search(r"99%\s+([\d.]+)(us|ms|s)", done)
    scale = {"us": 1e-6, "ms": 1e-3, "s": 1}[p99.group(2)]
    return (float(re.search(r"Requests/sec:\s+([\d.]+)", done).group(1)),
            float(p99.group(1)) * scale)


def measure(program_, driver, model, *, seconds=5, rounds=3, connections=64):
    out = {"hearth": [], "nginx": [], "connections": connections}
    with rig(program_, driver, model) as under_load, Others(under_load.pid) as others, \
            Nginx(under_load.port + 1) as nginx:
        url = f"http://127.0.0.1:{under_load.port}/livez"
        wrk(url, connections, 1)
        for _ in range(rounds):
            out["hearth"].append(wrk(url, connections, seconds))
            out["nginx"].append(wrk(nginx.url, connections, seconds))
    out["others"] = others.share
    return out


def rows(out):
    ours, theirs = max(out["hearth"]), max(out["nginx"])
    listed = lambda rounds: ", ".join(f"{rate:,.0f}" for rate, _ in rounds)  # noqa: E731
    return [
        Row("Hearth, requests/s of each round", listed(out["hearth"])),
        Row("nginx, requests/s of each round", listed(out["nginx"])),
        Row("Hearth, best", f"{ours[0]:,.0f}/s, p99 {milliseconds(ours[1])}", ">= 20,000/s",
            ours[0] >= 20000),
        Row("nginx, best", f"{theirs[0]:,.0f}/s, p99 {milliseconds(theirs[1])}"),
        Row("Hearth / nginx", f"{ours[0] / theirs[0]:.2f}"),
    ]


def words(out):
    return (f"GET /livez, keep-alive, {out['connections']} connections of one wrk thread, which "
            "shares the two cores with the server it asks; Hearth with its one HTTP thread, nginx "
            "(Debian) with two workers, no access log and a fixed answer of the same bytes; rounds "
            f"take turns. Others, nginx among them, used {out['others']:.0%}.")

# SPDX-License-Identifier: Apache-2.0
"""What the parts of `./dev bench server` share: a server under load, its figures, the table."""
import contextlib
import dataclasses
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/server"))
from serving import Server  # noqa: E402  (the same start and stop as the tests)

TICKS = os.sysconf("SC_CLK_TCK")


def resident_mib(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return int(re.search(r"VmRSS:\s+(\d+) kB", file.read()).group(1)) / 1024


def busy_s():
    """Seconds that all processors worked for anybody, time taken by the host included."""
    with open("/proc/stat", encoding="utf-8") as file:
        user, nice, system, _, _, irq, soft, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + soft + steal) / TICKS


def used_s(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


@dataclasses.dataclass
class Row:
    """One line of the table: what was asked for, what was found, whether that is enough."""

    what: str
    found: str
    asked: str = ""
    is_met: bool = True


class Rig:
    """A server that load is put on; measures it from outside."""

    def __init__(self, program, driver, model, *flags):
        self.program, self.driver = str(program), str(driver)
        models = model if isinstance(model, list) else str(model)
        self.server = Server(self.program, models, "--control-port", "0", *flags)
        if self.server.port is None:
            raise SystemExit("no server: " + "".join(self.server.log))
        self.port = self.server.port
        self.pid = self.server.worker_pid()
        control = re.search(r"control on (http://\S+)", "".join(self.server.log))
        self.control = control.group(1)
        # Nobody else reads what the server says; a full pipe would stop it.
        threading.Thread(target=self.server.process.stderr.read, daemon=True).start()

    def metric(self, name):
        """Sum over the lines of one metric."""
        with urllib.request.urlopen(self.control + "/metrics?names=hearth", timeout=30) as reply:
            text = reply.read().decode()
        values = re.findall(rf"^{name}(?:\{{[^}}]*\}})? (\S+)$", text, re.M)
        if not values:
            raise SystemExit(f"no metric {name}")
        return sum(map(float, values))

    def clients(self, *words, timeout=900):
        """What became of the driver's clients."""
        # Clients are other machines in real life: they must not wait for the server's threads.
        nice = ["nice", "-n", "-10"] if os.geteuid() == 0 else []
        done = subprocess.run([*nice, self.driver, "clients", "--port", str(self.port),
                               *map(str, words)], capture_output=True, text=True, timeout=timeout,
                              check=False)
        if done.returncode != 0:
            raise SystemExit(f"the driver failed: {done.stderr}")
        return json.loads(done.stdout)

    def wait_until_idle(self, bound_s=300):
        end = time.monotonic() + bound_s
        while self.metric("hearth_requests_running") + self.metric("hearth_requests_waiting") > 0:
            if time.monotonic() > end:
                raise SystemExit(f"requests still run after {bound_s} s")
            time.sleep(0.2)

    def stop(self):
        if self.server.process.poll() is None:
            self.server.process.terminate()
            self.server.process.wait(90)
        return self.server.process.returncode


@contextlib.contextmanager
def rig(program, driver, model, *flags):
    under_load = Rig(program, driver, model, *flags)
    try:
        yield under_load
    finally:
        code = under_load.stop()
        if code != 0 and sys.exc_info()[0] is None:
            raise SystemExit(f"the server ended with {code}")


class Sampler:
    """Looks at the server a few times a second, from the control port, until it is stopped."""

    def __init__(self, under_load, every_s=0.25):
        self.rig, self.every_s = under_load, every_s
        self.most_resident, self.most_waiting, self.most_open = 0, 0, 0
        self.control_s = []
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.is_over.wait(self.every_s):
            began = time.monotonic()
            waiting = self.rig.metric("hearth_requests_waiting")
            self.control_s.append(time.monotonic() - began)
            self.most_waiting = max(self.most_waiting, waiting)
            self.most_open = max(self.most_open, self.rig.metric("hearth_http_open_connections"))
            self.most_resident = max(self.most_resident, resident_mib(self.rig.pid))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()


class Others:
    """The share of the machine that others used, server and driver not among them. A server that
    starts and ends meanwhile is known without its pid."""

    def __init__(self, pid=None):
        self.pid = pid

    def own(self):
        times = os.times()
        server = used_s(self.pid) if self.pid else 0
        return server + times.user + times.system + times.children_user + times.children_system

    def __enter__(self):
        self.began, self.busy, self.mine = time.monotonic(), busy_s(), self.own()
        return self

    def __exit__(self, *_):
        wall = (time.monotonic() - self.began) * len(os.sched_getaffinity(0))
        self.share = max(0.0, (busy_s() - self.busy - (self.own() - self.mine)) / wall)


def milliseconds(seconds):
    return f"{1000 * seconds:.1f} ms"


def table(rows):
    out = ["| | found | asked | |", "|---|---|---|---|"]
    for row in rows:
        mark = "" if not row.asked else "met" if row.is_met else "**missed**"
        out.append(f"| {row.what} | {row.found} | {row.asked} | {mark} |")
    return "\n".join(out) + "\n"


def write_page(name, title, words, rows, out_dir):
    text = f"# {title}\n\n{datetime.date.today()}. {words}\n\n{table(rows)}"
    print(text)
    if out_dir is not None:
        path = pathlib.Path(out_dir) / f"server-{name}.md"
        path.write_text(text, encoding="utf-8")
        print(f"written to {path}")
    return all(row.is_met for row in rows)

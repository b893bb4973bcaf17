# SPDX-License-Identifier: Apache-2.0
"""Replicas on the loopback and a real HAProxy in front of them, for tests."""
import atexit
import collections
import csv
import http.client
import io
import json
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "server"))
from serving import children, expect  # pylint: disable=wrong-import-position


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return sock.getsockname()[1]


def wait_until(check):
    """Until it is so; the test's own time limit is the bound."""
    pause = threading.Event()
    while not (found := check()):
        pause.wait(0.05)
    return found


def percentile(values, share):
    """Of 0.99 and a hundred values the largest but one; 0 of none."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else 0.0


class Replica:
    """One `hearth serve`, which can be killed and started again at the same address."""

    def __init__(self, program, model, *flags, host="127.0.0.1", port=0):
        self.program, self.model, self.flags = program, model, flags
        self.host, self.port, self.agent = host, port, 0
        self.start()

    def command(self):
        return [self.program, "serve", "--model", self.model, "--host", self.host, "--port", str(self.port),
                "--agent-check", f"{self.host}:{self.agent}", "--threads", "1", "--slow-start", "0",
                *self.flags]

    def start(self):
        self.process = subprocess.Popen(self.command(), stderr=subprocess.PIPE, text=True)
        self.log = log = collections.deque(maxlen=100)
        for line in self.process.stderr:
            log.append(line)
            if found := re.search(r" at http://[^ ]*:(\d+)/v1", line):
                self.port = int(found.group(1))
            if found := re.search(r"agent check on port (\d+)", line):
                self.agent = int(found.group(1))
                break
        expect(self.process.poll() is None and self.agent, f"a replica: {''.join(log)}")
        # What it says later must not fill the pipe, and tells why when something is wrong.
        threading.Thread(target=log.extend, args=(self.process.stderr,), daemon=True).start()

    @property
    def address(self):
        return f"{self.host}:{self.port}"

    def metric(self, name):
        page = get(self.port, "/metrics", self.host)[1]
        return float(re.search(rf"^{name} (\S+)$", page, re.MULTILINE).group(1))

    def signal(self, number):
        """To the supervisor and its worker, as the end of a machine reaches both."""
        for pid in [self.process.pid, *children(self.process.pid)]:
            subprocess.run(["kill", f"-{number}", str(pid)], check=False,
                           stderr=subprocess.DEVNULL)

    def kill(self):
        self.signal(int(signal.SIGKILL))
        self.process.wait()

    def leave(self):
        """SIGTERM, as a deployment sends it; returns when it is gone."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait()


def admitted(replicas):
    return [each.metric("hearth_requests_admitted_total") for each in replicas]


def admitted_since(before, replicas, count):
    """Requests that each replica has let in, once all `count` are counted."""
    def since():
        found = [now - was for now, was in zip(admitted(replicas), before)]
        return found if sum(found) >= count else None
    return wait_until(since)


class Haproxy:
    """The program with a configuration that `hearth fleet haproxy` prints."""

    def __init__(self, program, folder, replicas, *flags):
        self.port, self.stats = free_port(), free_port()
        self.replicas = replicas
        text = subprocess.run(
            [program, "fleet", "haproxy", "--replicas",
             ",".join(f"{each.address}@{each.agent}" for each in replicas),
             "--listen", f"127.0.0.1:{self.port}", "--stats", f"127.0.0.1:{self.stats}",
             "--max-connections", "500", *flags],
            capture_output=True, text=True, check=True).stdout
        path = pathlib.Path(folder) / f"haproxy-{self.port}.cfg"
        path.write_text(text, encoding="utf-8")
        checked = subprocess.run(["haproxy", "-c", "-f", path], capture_output=True, text=True,
                                 check=False)
        expect(checked.returncode == 0, f"a configuration that HAProxy takes: {checked.stderr}")
        expect("warning" not in checked.stderr.lower(), f"no warnings: {checked.stderr}")
        self.path, self.process = path, None
        atexit.register(self.stop)  # also when a check fails: whoever waits for our output would wait for it
        self.start()
        for replica in replicas:
            wait_until(lambda each=replica: self.row(each)["status"].startswith("UP"))

    def start(self, *flags):
        self.process = subprocess.Popen(["haproxy", "-db", "-f", self.path, *flags], stderr=subprocess.DEVNULL)
        wait_until(self.answers)

    def answers(self):
        expect(self.process.poll() is None, "HAProxy to run")
        try:
            return get(self.stats, "/;csv")[0] == 200
        except OSError:
            return False

    def row(self, replica):
        """What HAProxy says of a replica."""
        text = get(self.stats, "/;csv")[1].removeprefix("# ")
        for row in csv.DictReader(io.StringIO(text)):
            if row["pxname"] == "replicas" and row["svname"] == replica.address:
                return row
        raise AssertionError(text)

    def stop(self):
        if self.process is not None:
            self.process.terminate()
            self.process.wait()


def get(port, path, host="127.0.0.1"):
    connection = http.client.HTTPConnection(host, port, timeout=60)
    connection.request("GET", path)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, text


class Failed(Exception):
    """A request that a client would see fail."""


def ask(port, body, headers=None):
    """The reply as (message with log-probabilities, usage, headers). A stream gives no message's
    bits away: it is put together from its events."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(body),
                           {"content-type": "application/json", **(headers or {})})
        response = connection.getresponse()
        data = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise Failed(repr(error)) from error
    finally:
        connection.close()
    if response.status != 200:
        raise Failed(f"{response.status} {data[:300]}")
    got = {name.lower(): value for name, value in response.getheaders()}
    if not body.get("stream"):
        whole = json.loads(data)
        choice = whole["choices"][0]
        tokens = [[each["token"], each["logprob"]] for each in choice["logprobs"]["content"]]
        return (choice["message"]["content"], choice["message"].get("reasoning"), tokens), \
            whole["usage"], got
    return *read_stream(data), got


def read_stream(data):
    content, reasoning, tokens, usage = "", "", [], None
    events = [line[6:] for line in data.decode().splitlines() if line.startswith("data: ")]
    if not events or events[-1] != "[DONE]":
        raise Failed(f"a stream without its end: {data[-200:]}")
    for event in map(json.loads, events[:-1]):
        usage = event.get("usage") or usage
        for choice in event["choices"]:
            content += choice["delta"].get("content") or ""
            reasoning += choice["delta"].get("reasoning") or ""
            for each in (choice.get("logprobs") or {}).get("content") or []:
                tokens.append([each["token"], each["logprob"]])
    return (content, reasoning or None, tokens), usage

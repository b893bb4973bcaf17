# SPDX-License-Identifier: Apache-2.0
"""The real Envoy and the real endpoint picker with the files of deploy/envoy, for tests. Both come from
`./dev setup fleet`; without them a test fails."""
import atexit
import json
import os
import pathlib
import re
import socket
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools/fleet"))
import parts  # pylint: disable=wrong-import-position
from fleet import free_port, get, wait_until  # pylint: disable=wrong-import-position
from serving import expect  # pylint: disable=wrong-import-position

FILES = ROOT / "deploy/envoy"


def answers(port, path="/"):
    try:
        return get(port, path)[0]
    except OSError:
        return 0


def accepts(port, host="127.0.0.1"):
    try:
        socket.create_connection((host, port), timeout=5).close()
        return True
    except OSError:
        return False


class Program:
    """A process of the fleet, which ends with the test."""

    def __init__(self, folder, name, words, **env):
        self.log = pathlib.Path(folder) / f"{name}.log"
        self.name, self.words, self.env, self.folder = name, words, env, folder
        atexit.register(self.stop)
        self.start()

    def start(self):
        with open(self.log, "ab") as out:
            self.process = subprocess.Popen(self.words, cwd=self.folder, stdout=out, stderr=out,
                                            env={**os.environ, **self.env})

    def wait_for(self, check):
        def look():
            expect(self.process.poll() is None, f"{self.name} to run: {self.tail()}")
            return check()
        return wait_until(look)

    def tail(self):
        return self.log.read_text(encoding="utf-8", errors="replace")[-3000:]

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.kill()


class EnvoyFleet:
    """deploy/envoy as it is, on ports of our own: the list of replicas, the picker, Envoy. `pool`, `config` and
    `kubeconfig` are another picker's, which finds replicas in a real Kubernetes."""

    def __init__(self, folder, addresses, replica_port, pool="hearth", config=FILES / "picker.yaml",
                 kubeconfig="kubeconfig"):
        self.folder = pathlib.Path(folder)
        self.port, self.admin, self.pick, self.health, self.metrics, registry, inner = (
            free_port() for _ in range(7))
        self.list(addresses)
        self.registry = Program(folder, "endpoints", [
            sys.executable, str(FILES / "endpoints.py"), "endpoints.txt", "--port", str(replica_port),
            "--listen", str(registry), "--kubeconfig", "kubeconfig"])
        self.registry.wait_for(lambda: answers(registry, "/version") == 200)
        self.picker = Program(folder, "picker", [
            parts.find("epp"), "--pool-name", pool, "--pool-namespace", "default",
            "--config-file", str(config), "--grpc-port", str(self.pick),
            "--grpc-health-port", str(self.health), "--metrics-port", str(self.metrics),
            "--metrics-endpoint-auth=false", "--secure-serving=false", "--tracing=false"],
            KUBECONFIG=str(kubeconfig))
        self.picker.wait_for(lambda: accepts(self.pick))
        text = (FILES / "envoy.yaml").read_text(encoding="utf-8")
        for shipped, ours in ((9901, self.admin), (8080, self.port), (9002, self.pick), (8081, inner),
                              (9004, self.health)):
            text, count = re.subn(rf"port_value: {shipped}\b", f"port_value: {ours}", text)
            expect(count == 1 + (shipped == 8081), f"port {shipped} in envoy.yaml")
        # The replicas have a port that is free here on other addresses.
        text = text.replace("0.0.0.0", "127.0.0.1")
        (self.folder / "envoy.yaml").write_text(text, encoding="utf-8")
        self.envoy = Program(folder, "envoy", [parts.find("envoy"), "-c", "envoy.yaml",
                                               "--disable-hot-restart", "--concurrency", "1", "-l", "warn"])
        self.envoy.wait_for(lambda: answers(self.admin, "/ready") == 200)
        self.envoy.wait_for(lambda: len(self.healthy()) == len(addresses) and self.asks_picker())

    def list(self, addresses):
        (self.folder / "endpoints.txt").write_text("\n".join(addresses) + "\n", encoding="utf-8")

    def healthy(self):
        """The addresses that Envoy sends to."""
        return self.healthy_of("replicas")

    def asks_picker(self):
        return bool(self.healthy_of("picked"))

    def healthy_of(self, cluster):
        clusters = json.loads(get(self.admin, "/clusters?format=json")[1])
        hosts = next((each for each in clusters["cluster_statuses"] if each["name"] == cluster), {})
        return {each["address"]["socket_address"]["address"] for each in hosts.get("host_statuses", [])
                if each["health_status"].get("eds_health_status") == "HEALTHY"
                and not set(each["health_status"]) - {"eds_health_status"}}

    def stats(self, name):
        text = get(self.admin, "/stats")[1]
        return sum(int(value) for value in re.findall(rf"{name}: (\d+)$", text, re.MULTILINE))

    def stop(self):
        for each in (self.envoy, self.picker, self.registry):
            each.stop()

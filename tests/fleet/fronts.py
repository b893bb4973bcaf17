# SPDX-License-Identifier: Apache-2.0
"""The balancers of a test fleet behind one interface, and the programs beside it: Redis, Prometheus."""
import json
import pathlib
import shutil
import threading
import urllib.parse

from envoy import EnvoyFleet, Program, accepts, answers
from fleet import Haproxy, free_port, get, wait_until
from machines import PORT
from serving import expect, same

RULES = pathlib.Path(__file__).parents[2] / "deploy/prometheus/hearth.rules.yml"


class HaproxyFront(Haproxy):
    name = "haproxy"

    def __init__(self, program, folder, replicas):
        super().__init__(program, folder, replicas)
        self.scraped = f"127.0.0.1:{self.stats}", "/metrics"

    def flying(self, replica):
        return int(self.row(replica)["scur"])

    def is_up(self, replica):
        return self.row(replica)["status"].startswith("UP")

    def crash(self):
        self.process.kill()
        self.process.wait()

    def reload(self):
        """The new process takes the sockets over; the old one ends with its last request."""
        old = self.process
        self.start("-sf", str(old.pid))
        wait_until(lambda: old.poll() is not None)


class EnvoyFront(EnvoyFleet):
    name = "envoy"

    def __init__(self, _, folder, replicas):
        super().__init__(folder, [each.host for each in replicas], PORT)
        self.scraped = f"127.0.0.1:{self.admin}", "/stats/prometheus"

    def flying(self, replica):
        clusters = json.loads(get(self.admin, "/clusters?format=json")[1])["cluster_statuses"]
        hosts = next(each for each in clusters if each["name"] == "replicas")["host_statuses"]
        host = next(each for each in hosts if each["address"]["socket_address"]["address"] == replica.host)
        return sum(int(each.get("value", 0)) for each in host["stats"] if each["name"] == "rq_active")

    def is_up(self, replica):
        return replica.host in self.healthy()

    def crash(self):
        self.envoy.kill()

    def start(self):
        self.envoy.start()
        self.envoy.wait_for(lambda: answers(self.admin, "/ready") == 200)
        self.envoy.wait_for(self.asks_picker)

    def lose_picker(self):
        self.picker.kill()
        wait_until(lambda: not self.asks_picker())

    def start_picker(self):
        self.picker.start()
        wait_until(self.asks_picker)


class Redis(Program):
    def __init__(self, folder, address):
        self.address, self.port = address, free_port()
        super().__init__(folder, "redis", [
            "redis-server", "--bind", address, "--port", str(self.port), "--save", "", "--appendonly", "no",
            "--protected-mode", "no", "--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru"])
        self.wait_for(lambda: accepts(self.port, address))

    @property
    def url(self):
        return f"redis://{self.address}:{self.port}"


class Prometheus(Program):
    """Scrapes the replicas and the balancer, with the rules of deploy/prometheus."""

    def __init__(self, folder, replicas, balancer):
        self.port = free_port()
        self.count = len(replicas) + 1
        shutil.copy(RULES, folder)
        address, path = balancer.scraped
        text = json.dumps({  # which is YAML as well
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": [RULES.name],
            "scrape_configs": [
                {"job_name": "hearth", "static_configs": [{"targets": [each.address for each in replicas]}]},
                {"job_name": "balancer", "metrics_path": path, "static_configs": [{"targets": [address]}]}]})
        (pathlib.Path(folder) / "prometheus.yml").write_text(text, encoding="utf-8")
        super().__init__(folder, "prometheus", [
            "prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=prometheus",
            f"--web.listen-address=127.0.0.1:{self.port}"])
        self.wait_for(lambda: answers(self.port, "/-/ready") == 200)

    def ask(self, query):
        """The values, by instance."""
        status, text = get(self.port, "/api/v1/query?query=" + urllib.parse.quote(query))
        same(status, 200, f"{query}: {text}")
        return {each["metric"].get("instance", ""): float(each["value"][1])
                for each in json.loads(text)["data"]["result"]}

    def check(self):
        """Everybody is scraped again, and the rules are evaluated without mistakes."""
        for _ in range(200):
            up = self.ask("up")
            if list(up.values()) == [1.0] * self.count:
                break
            threading.Event().wait(0.1)
        targets = json.loads(get(self.port, "/api/v1/targets")[1])["data"]["activeTargets"]
        expect(list(up.values()) == [1.0] * self.count,
               f"all to be scraped: {[(each['scrapeUrl'], each['lastError']) for each in targets]}")
        groups = json.loads(get(self.port, "/api/v1/rules")[1])["data"]["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        expect(rules and all(rule["health"] == "ok" for rule in rules), f"rules that work: {rules}")
        firing = sorted({rule["name"] for rule in rules if rule.get("state") == "firing"})
        seen = self.ask("sum(hearth_requests_admitted_total) by (instance)")
        expect(len(seen) == self.count - 1 and sum(seen.values()) > 0, f"requests in Prometheus: {seen}")
        return firing

# SPDX-License-Identifier: Apache-2.0
"""A fleet as it is run, on one machine: six replicas, each in a network namespace with a link and a disk of
its own, behind the real HAProxy or the real Envoy with its endpoint picker, with a Redis that they share and a
Prometheus that scrapes all. Clients hold multi-turn chats while machines die, hang, lose their links and disks,
are replaced, and balancer, picker and Redis are lost. Every reply is a lone engine's; resuming clients lose
no token and get none twice; of plain ones no more requests fail than were in flight where the fault struck.
usage: real_fleet_test.py HEARTH [--front haproxy|envoy] [--minutes N]"""
import argparse
import concurrent.futures
import pathlib
import random
import tempfile
import time

from envoy import parts
from faults import PAUSE, balancer_restart, faults_of
from fleet import Replica
from fronts import EnvoyFront, HaproxyFront, Prometheus, Redis
from machines import Keys, Machine, Network, PlacedReplica
from serving import expect, record, work_model
from visitors import MODEL, Visitors, p99


class RealFleet:
    def __init__(self, options, folder):
        self.options, self.replicas = options, []
        self.network = network = Network()
        self.keys = Keys(options.program, folder)
        self.redis = Redis(folder, network.address)
        secret = pathlib.Path(folder) / "cache.key"
        secret.write_text("a secret of the whole fleet", encoding="utf-8")
        machines = [Machine(network, i, folder, is_far=i == 0) for i in range(options.replicas)]
        common = ("--keys", str(self.keys.path), "--public-metrics", "--host-name", "127.0.0.1", "--host-name",
                  "localhost", "--drain-notice", "1.5", "--overload-status", "503", "--cache-key", str(secret))
        model = work_model(f"{MODEL}.gguf")
        self.lone = Replica(options.program, model, "--keys", str(self.keys.path))
        with concurrent.futures.ThreadPoolExecutor() as pool:
            starts = [pool.submit(PlacedReplica, options.program, model, each, *common, "--host-name", each.address,
                                  "--cache-redis", self.redis.url, "--cache-dir", str(each.disk / "cache"),
                                  "--cache-disk", "16MiB")
                      for each in machines]
        self.replicas += [start.result() for start in starts]
        front = {"haproxy": HaproxyFront, "envoy": EnvoyFront}[options.front]
        self.front = front(options.program, folder, self.replicas)
        self.prometheus = Prometheus(folder, self.replicas, self.front)

    def stop(self):
        for each in [self.lone, *self.replicas]:
            each.kill()
        self.network.remove()


class Balance:
    """What each kind of fault cost, over all its times."""

    def __init__(self):
        self.rows = {}

    def add(self, name, **figures):
        row = self.rows.setdefault(name, {"times": 0, "requests": 0, "failed": 0, "allowed": 0, "resumed": 0,
                                          "p99": 0.0})
        row["times"] += 1
        for key, value in figures.items():
            row[key] = max(row[key], value) if key == "p99" else row[key] + value

    def show(self, quiet):
        print(f"{'fault':24} times  requests  failed  in flight  resumed  p99 added to {quiet * 1000:.0f} ms quiet")
        for name, row in self.rows.items():
            print(f"{name:24} {row['times']:5}  {row['requests']:8}  {row['failed']:6}  {row['allowed']:9}  "
                  f"{row['resumed']:7}  {max(0, row['p99'] - quiet) * 1000:8.0f} ms")


def strike(fleet, visitors, name, fault, balance):
    """One fault beside the load, and a moment after it for what it has slowed down."""
    began = time.monotonic()
    allowed = fault(fleet)
    PAUSE.wait(fleet.options.outage / 2)
    visitors.check()
    ended = time.monotonic()
    seen = visitors.between(began, ended)
    failed = [each for each in seen if each.trouble and not (fault is balancer_restart and each.is_again)]
    expect(len(failed) <= allowed, f"{name}: at most {allowed} failed requests, not {len(failed)}: "
                                   f"{[each.trouble for each in failed][:3]}")
    balance.add(name, requests=len(seen), failed=len(failed), allowed=allowed, p99=p99(seen),
                resumed=sum(each.breaks > 0 for each in seen))


def run(fleet):
    options = fleet.options
    visitors, balance = Visitors(fleet.front, fleet.lone, fleet.keys.headers, options), Balance()
    faults = list(faults_of(fleet.front).items())
    until = time.monotonic() + options.minutes * 60
    PAUSE.wait(2 if options.quick else 10)
    quiet = p99(visitors.between(0, time.monotonic()))
    draw = random.Random(options.seed)
    while True:
        for name, fault in faults:
            strike(fleet, visitors, name, fault, balance)
        if time.monotonic() >= until:
            break
        draw.shuffle(faults)
    visitors.finish()
    firing = fleet.prometheus.check()
    balance.show(quiet)
    replies = [each for each in visitors.visits if each.trouble is None]
    resumed = sum(each.breaks > 0 for each in replies)
    print(f"{fleet.front.name}: {len(replies)} replies of {options.replicas} replicas, each a lone engine's; "
          f"{resumed} streams broken and resumed, no token lost or doubled; alerts firing: {firing or 'none'}")
    expect(resumed > 0, "streams that were broken and resumed")
    record(f"fleet_{fleet.front.name}", len(replies), resumed=resumed, quiet_p99_s=round(quiet, 3), **{
        name.replace(" ", "_"): {**row, "p99": round(row["p99"], 3)} for name, row in balance.rows.items()})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--front", choices=("haproxy", "envoy"), default="haproxy")
    parser.add_argument("--replicas", type=int, default=6)
    parser.add_argument("--minutes", type=float, default=0, help="every fault once, and again until then")
    parser.add_argument("--plain", type=int, default=5)
    parser.add_argument("--resuming", type=int, default=5)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--reply", type=int, default=150)
    parser.add_argument("--gap", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.quick = options.minutes == 0
    options.outage = 1.0 if options.quick else 4.0
    if options.front == "envoy":
        for name in ("envoy", "epp"):
            parts.find(name)  # fails loudly before anything is started
    with tempfile.TemporaryDirectory() as folder:
        fleet = RealFleet(options, folder)
        try:
            run(fleet)
        finally:
            fleet.stop()


if __name__ == "__main__":
    main()

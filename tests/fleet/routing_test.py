# SPDX-License-Identifier: Apache-2.0
"""How much of the prompts a real fleet finds cached, by how requests are routed, beside what `hearth plan fleet`
simulates of the same chats: within five points for each policy, and at least 80 % with session hashing. Then the
tokens per second of the same fleet with more requests than it can answer.
usage: routing_test.py HEARTH [--requests N]"""
import argparse
import dataclasses
import tempfile

from chat_load import ChatSpec
from routed import HAPROXY, RoutedFleet
from serving import expect, record, work_model

POLICIES = {**HAPROXY, "precise": "precise"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--policy", choices=POLICIES, action="append")
    parser.add_argument("--replicas", type=int, default=4)
    parser.add_argument("--requests", type=int, default=800)
    parser.add_argument("--rate", type=float, default=10)
    parser.add_argument("--busy-rate", type=float, default=80, help="requests a second when it is overloaded")
    parser.add_argument("--share", type=float, default=0.35, help="processors of each replica")
    parser.add_argument("--kv-memory", default="8MiB")
    options = parser.parse_args()
    options.model, options.context, options.max_sequences = work_model("tiny-chatml.gguf"), 4096, 32
    options.first_token, options.last_token = 300, 700
    spec = ChatSpec(rate=options.rate, requests=options.requests, turns=6, message=40, reply=40, system=200,
                    apps=8, think=2)
    busy_spec = dataclasses.replace(spec, rate=options.busy_rate, think=0.02, requests=options.requests // 2, seed=2)
    found, busy = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        fleet = RoutedFleet(options, folder)
        bench = fleet.bench()
        for policy in options.policy or POLICIES:
            found[policy] = fleet.measure(policy, spec)
            busy[policy] = fleet.measure(policy, busy_spec)
        plan, busy_plan = fleet.plan(bench, spec), fleet.plan(bench, busy_spec)
    print(f"{options.replicas} replicas of {fleet.kv_tokens} tokens of KV cache, {spec.requests} requests\n"
          "policy          cached  planned  first token p50      p95   overloaded: tokens/s  planned")
    for policy, row in found.items():
        name = POLICIES[policy]
        print(f"{name:14} {100 * row['hit_share']:6.1f} % {100 * plan[name]['hit_share']:6.1f} % "
              f"{1000 * row['p50']:12.0f} ms {1000 * row['p95']:6.0f} ms {busy[policy]['tokens_per_second']:20.0f}  "
              f"{busy_plan[name]['tokens_per_second']:8.0f}")
    for policy, row in found.items():
        planned = plan[POLICIES[policy]]["hit_share"]
        expect(abs(row["hit_share"] - planned) <= 0.05, f"{policy}: {row['hit_share']:.3f} cached, "
                                                        f"{planned:.3f} simulated")
    if "session" in found:
        expect(found["session"]["hit_share"] >= 0.8, f"80 % cached: {found['session']}")
    record("fleet_routing", spec.requests, **{policy.replace("-", "_"): {
        "cached": round(row["hit_share"], 3), "planned": round(plan[POLICIES[policy]]["hit_share"], 3),
        "busy_tokens_per_second": round(busy[policy]["tokens_per_second"])} for policy, row in found.items()})


if __name__ == "__main__":
    main()

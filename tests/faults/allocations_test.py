# SPDX-License-Identifier: Apache-2.0
"""Allocation failure at every index of every scenario: the server answers rightly, says in the asker's
words that it cannot, or cuts the connection; it never dies, hangs, leaks or says something wrong.
allocations_test.py HEARTH LIBRARY [--each N: of a scenario, spread evenly; 0: every index]"""
import argparse
import collections
import time

from faults import (BOOKS, HTTP, MALLOC, MEMORY, NEW, TEXT, expect, failing_server, record, share_among,
                    work_model)
from scenarios import SCENARIOS, ask, judge, meaning


class Sweep:
    """One scenario after the other, with one failure after the other."""

    def __init__(self, rig, port):
        self.rig, self.port = rig, port
        self.kept = self.store()

    def store(self, **more):
        body = {"input": "keep", "max_output_tokens": 16, "temperature": 0, **more}
        status, data = ask(self.port, "POST", "/v1/responses", body)
        expect(status == 200, f"a stored response: {data}")
        return data.split(b'"id":"')[1].split(b'"')[0].decode()

    def ask(self, name):
        _, method, path, body = SCENARIOS[name]
        names = {"{kept}": self.kept, "{model}": "tiny-chatml"}
        if "{fresh}" in path:
            names["{fresh}"] = self.store()
        if "{streamed}" in path:
            names["{streamed}"] = self.store(background=True, stream=True)
        text = path
        for old, new in names.items():
            text = text.replace(old, new)
        if isinstance(body, dict):
            body = {k: names.get(v, v) if isinstance(v, str) else v for k, v in body.items()}
        return lambda: ask(self.port, method, text, body)

    def run(self, name, arm, indices):
        """Fails each of the indices; answers how many calls there were at most."""
        go = self.ask(name)
        self.ask(name)()
        wanted = meaning(name, go())
        seen = misses = 0
        for index in indices:
            go = self.ask(name)
            arm(index)
            reply = go()
            # A reply that came may have threads behind it that still tidy up.
            fired = self.rig.faults.disarm()
            seen = max(seen, self.rig.faults.page.seen)
            self.rig.expect_alive(f"{name}, index {index}")
            misses = 0 if fired else misses + 1
            if misses > 20:
                break
            try:
                outcome = judge(name, reply, wanted)
            except SystemExit as failure:
                where = self.rig.faults.where(self.rig.server.process.pid)
                raise SystemExit(f"{failure}\nat index {index} of {seen}, {where}") from failure
            if not fired and outcome == "error" and reply[0] == 429:
                # On a slow machine those before it may still run; a place that is lost is never free again.
                self.rig.expect_idle(1 << 20, name)
                outcome = judge(name, self.ask(name)(), wanted)
            expect(fired or outcome == "right", f"{name}: {outcome} without a fault: {reply}")
            self.rig.counts[outcome] += fired
            self.rig.counts["injected"] += fired
        go = self.ask(name)
        expect(judge(name, go(), wanted) == "right", f"{name} to be answered afterwards")
        return seen


def count(sweep, name, arm):
    """How many allocations a scenario has: none is failed."""
    most = 0
    for _ in range(2):
        go = sweep.ask(name)
        arm(1 << 60)
        go()
        sweep.rig.faults.disarm()
        most = max(most, sweep.rig.faults.page.seen)
    return most


def sweep_share(arguments, names):
    """One server, and its share of the scenarios."""
    least = arguments.least * len(names) / len(SCENARIOS)
    with failing_server(arguments.program, arguments.library, work_model("tiny-chatml.gguf")) as rig:
        sweep = Sweep(rig, rig.server.port)
        for name in names:
            sweep.ask(name)()
        time.sleep(0.1)
        descriptors = rig.descriptors() + 1
        for turn, name in enumerate(names * arguments.rounds):
            if turn >= len(names) and rig.counts["injected"] >= least > 0:
                break
            before = rig.counts.copy()

            def arm(index):
                rig.faults.arm(MEMORY, HTTP | TEXT | BOOKS, NEW | MALLOC, index)

            most = count(sweep, name, arm)
            step = max(1, most // arguments.each) if arguments.each else 1
            sweep.run(name, arm, range(0, most + 50, step))
            rig.expect_idle(descriptors, name)
            now = rig.counts - before
            print(f"{name:22} {most:6} allocations, {now['injected']:5} failed: {now['right']:5} right, "
                  f"{now['error']:5} errors, {now['cut']:4} cut", flush=True)
        return rig.counts


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("library")
    parser.add_argument("--each", type=int, default=60)
    parser.add_argument("--only", default="")
    parser.add_argument("--exact", default="")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--least", type=int, default=0, help="rounds after the first only until so many have failed")
    parser.add_argument("--servers", type=int, default=1, help="that share the scenarios")
    arguments = parser.parse_args()
    began = time.monotonic()
    names = [name for name in SCENARIOS if arguments.only in name and arguments.exact in ("", name)]
    found = share_among(arguments.servers, names, lambda share, _: sweep_share(arguments, share))
    total = dict(sum(found, collections.Counter()))
    took = time.monotonic() - began
    print(f"{total.get('injected', 0)} allocations failed in {len(names)} scenarios: {total}; {took:.0f} s")
    expect(arguments.only or arguments.exact or len(names) >= 30, "thirty scenarios")
    # Of streams that had begun, and of connections that had asked nothing yet. All others are answered.
    expect(total.get("cut", 0) <= 0.08 * total.get("injected", 0), f"few connections that are cut: {total}")
    record("allocation_failures", total.get("injected", 0), scenarios=len(names), **total)


if __name__ == "__main__":
    main()

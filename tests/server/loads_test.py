# SPDX-License-Identifier: Apache-2.0
"""Two models with memory for one. A key asks for both in turns on four connections; another key goes on with its own
model: what that costs it, and that the first one's loads are real and it is not starved."""
import argparse
import contextlib
import json
import pathlib
import re
import statistics
import tempfile
import time

from rivals import Rivals, Victim
from serving import expect, new_key, serving, work_model

MODELS = ("smollm2", "tiny-oss-o200k")
KV = ["--kv-memory", "64MiB"]


class Look:
    """/metrics and lists as an admin sees them."""

    def __init__(self, server, key):
        self.server, self.headers = server, {"authorization": "Bearer " + key}

    def metrics(self):
        """{series: value} of our own names."""
        data = self.server.request("GET", "/metrics?names=hearth", headers=self.headers)[2].decode()
        return {m[1]: float(m[2]) for m in re.finditer(r"^([^#\s]\S*(?: \S+=\S+)*) (\S+)$", data, re.M)}

    def of_models(self, name):
        return sum(value for series, value in self.metrics().items() if series.startswith(name + "{"))

    def planned(self):
        """Bytes of each model, known soon after the start."""
        until = time.monotonic() + 60
        while True:
            cards = json.loads(self.server.request("GET", "/v1/models", headers=self.headers)[2])["data"]
            if all("planned_bytes" in card for card in cards):
                return {card["id"]: card["planned_bytes"] for card in cards}
            expect(time.monotonic() < until, f"all models measured: {cards}")
            time.sleep(0.05)


def in_ms(seconds):
    return f"{1000 * seconds:.1f} ms"


def high(times, part):
    return sorted(times)[min(len(times) - 1, int(part * len(times)))]


def storm(server, keys, seconds):
    """The victim's times quiet and beside the storm; what the storm did."""
    look = Look(server, keys["root"])
    victim = Victim(server.port, keys["victim"], MODELS[0])
    victim.once()
    quiet = victim.measure(3, least=20)
    before = {name: look.of_models(name) for name in
              ("hearth_model_loads_total", "hearth_model_load_seconds_total", "hearth_model_taken_total")}
    plan = {"kind": "switched_model", "port": server.port, "key": keys["rival"], "connections": 4, "models": MODELS}
    most_deferred = [0.0]

    def peek():
        if len(peeks) % 5 == 0:
            deferred = look.metrics().get("hearth_models_deferred_requests", 0.0)
            most_deferred[0] = max(most_deferred[0], deferred)
        peeks.append(None)

    peeks = []
    with Rivals(plan) as rivals:
        loud, until = victim.measure(seconds, least=5, between=peek), time.monotonic() + 90
        # Where loads are slow the storm's turn comes later, and one turn must not be a tenth of what was measured.
        while time.monotonic() < until and (len(loud) < 80 or look.of_models("hearth_model_loads_total")
                                            < before["hearth_model_loads_total"] + 2):
            loud += victim.measure(1, between=peek)
        work = {name: look.of_models(name) - value for name, value in before.items()}
    victim.close()
    return quiet, loud, {"outcomes": rivals.outcomes, "deferred": most_deferred[0], **work}


def check_storm(quiet, loud, work):
    loads = work["hearth_model_loads_total"]
    load_s = work["hearth_model_load_seconds_total"] / max(1, loads)
    print(f"victim quiet p50 {in_ms(statistics.median(quiet))}, p90 {in_ms(high(quiet, .9))}; beside the storm "
          f"p50 {in_ms(statistics.median(loud))}, p90 {in_ms(high(loud, .9))}, p99 {in_ms(high(loud, .99))}, longest "
          f"{in_ms(max(loud))} (n={len(loud)}); {loads:.0f} loads of {load_s:.2f} s, {work}", flush=True)
    # The attack is one: both models come and go for it.
    expect(loads >= 2, f"the storm has models loaded: {work}")
    expect(work["outcomes"].get("200", 0) >= 4, f"the storm is served, too: {work}")
    expect(statistics.median(loud) < 2 * statistics.median(quiet) + 0.03, "the victim's median beside the storm")
    expect(high(loud, .9) < 2 * high(quiet, .9) + 0.05, "nine in ten of the victim's requests")
    # One load each way, and the patience with what is being said.
    expect(max(loud) < 5 * load_s + 4, "the longest")
    expect(work["deferred"] >= 1, "the storm waits in line")
    expect(work["hearth_model_taken_total"] >= 1, "and gets its turn")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=12)
    args = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        keys, entries = {}, []
        for name, flags in (("victim", []), ("rival", []), ("root", ["--admin"])):
            keys[name], entry = new_key(args.program, name, *flags)
            entries.append(entry)
        (folder / "keys.json").write_text(json.dumps({"keys": entries}), encoding="utf-8")
        paths = [work_model(name + ".gguf") for name in MODELS]
        flags = ["--keys", str(folder / "keys.json"), "--threads", "2", *KV]
        with serving(args.program, paths, *flags) as server:
            planned = Look(server, keys["root"]).planned()
        room = max(planned.values()) + min(planned.values()) // 2
        with serving(args.program, paths, "--memory", str(room), *flags) as server:
            check_storm(*storm(server, keys, args.seconds))


if __name__ == "__main__":
    main()

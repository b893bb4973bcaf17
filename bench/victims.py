# SPDX-License-Identifier: Apache-2.0
"""./dev bench victims: one key's small requests beside another key's large ones.

The victim asks for one token at a time. It is timed quiet and beside each attack in turns, on `hearth serve
--threads 2`; with --before on the other build, too, round by round. One layer's time is the 99th percentile of the
steps beside the attack over the model's layers. Afterwards the attackers' own work is timed alone: so much of it
from the first request to the last reply. Every run adds to $HEARTH_WORK/victims-MODEL.json until --fresh, so
that one can measure a few minutes at a time; --show draws the tables from what there is. Run it alone on the machine.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
for room in ("bench/server", "tests/server", "tests/support"):
    sys.path.insert(0, str(ROOT / room))

import victims_page as page  # noqa: E402
from checking import work_dir, work_model  # noqa: E402
from rig import Others, rig, used_s  # noqa: E402
from rivals import Rivals, Victim  # noqa: E402
from serving import new_key  # noqa: E402

# name -> what the rivals do, how many at once, at most so many a second of all of them together. Of streams
# that are left at once a Python client makes 5,000 a second with a whole processor, which the server then lacks.
ATTACKS = {
    "long_prompt": ("long_prompt", 1, 0),
    "long_prompts": ("long_prompt", 8, 0),
    "endless_streams": ("endless_stream", 32, 0),
    "cancel_storm": ("cancelled", 4, 500),
    "cache_busting": ("busted_cache", 4, 0),
    "model_storm": ("switched_model", 4, 0),
}
# Work that is timed alone.
ALONE = ("long_prompts", "endless_streams")
COUNTERS = {"prompt tokens": "hearth_prefill_tokens_total", "reply tokens": "hearth_decode_tokens_total",
            "steps": "hearth_steps_total"}
KV = ("--kv-memory", "1GiB")


def fetch(under_load, path):
    with urllib.request.urlopen(under_load.control + path, timeout=60) as reply:
        return json.loads(reply.read())


class Side:
    """One build's server while it runs, and what is done to it."""

    def __init__(self, arguments, shape, under_load, keys, name=None, models=None):
        self.arguments, self.shape, self.rig, self.keys = arguments, shape, under_load, keys
        self.name, self.models = name, models
        self.seed = int(time.time() * 1000) % 1_000_000  # no prompt is one that an earlier run asked for
        self.victim = Victim(under_load.port, keys["victim"], name)
        self.victim.measure(1, least=3, pause_s=0)

    def plan(self, attack, **more):
        kind, connections, rate = ATTACKS[attack]
        self.seed += 1
        room = fetch(self.rig, "/status")["max_context"] - 16
        return {"kind": kind, "port": self.rig.port, "key": self.keys["rival"], "connections": connections, "rate": rate,
                "prompt_tokens": min(self.arguments.prompt_tokens, room), "answer_tokens": min(4000, room),
                "vocab": self.shape["vocab_size"], "models": self.models, "seed": self.seed, **more}

    def counts(self):
        found = {name: self.rig.metric(metric) for name, metric in COUNTERS.items()}
        if self.models:
            found["loads"] = self.rig.metric("hearth_model_loads_total")
        return found

    def step_buckets(self):
        """How many steps took at most so many seconds."""
        with urllib.request.urlopen(self.rig.control + "/metrics?names=hearth", timeout=60) as reply:
            text = reply.read().decode()
        return {float(bound): float(count) for bound, count in
                re.findall(r'^hearth_step_seconds_bucket\{.*le="([^"]+)".*\} (\S+)$', text, re.M)}

    def wait_until_at_work(self, before, bound_s=120):
        """Until the attack's first step ended, or its first model was loaded."""
        what, until = "loads" if self.models else "steps", time.monotonic() + bound_s
        while self.counts()[what] <= before[what]:
            if time.monotonic() > until:
                raise SystemExit(f"no {what} of the attack within {bound_s} s")
            time.sleep(0.02)

    def beside(self, attack):
        """The victim quiet and then beside the attack, once."""
        arguments = self.arguments
        self.victim.once()  # its prompt is cached again, and its model there
        quiet = self.victim.measure(arguments.seconds / 2, arguments.least, pause_s=arguments.pause)
        before = self.counts()
        with Rivals(self.plan(attack)) as rivals:
            self.wait_until_at_work(before)
            began, start, steps = time.monotonic(), self.counts(), self.step_buckets()
            loud = self.victim.measure(arguments.seconds, arguments.least, pause_s=arguments.pause)
            seconds = time.monotonic() - began
            work = {name: (value - start[name]) / seconds for name, value in self.counts().items()}
            longest_ms = page.high_ms(steps, self.step_buckets())
        self.rig.wait_until_idle()
        mistaken = {each: count for each, count in rivals.outcomes.items() if each[:1] == "4" and each != "429"}
        if mistaken:
            raise SystemExit(f"{attack}: requests that the server refuses as mistaken are no attack: {rivals.outcomes}")
        return {"attack": attack, "quiet_ms": in_ms(quiet), "beside_ms": in_ms(loud), "a_second": work,
                "layer_ms": longest_ms / self.shape["layers"], "outcomes": rivals.outcomes,
                "client_share": round(rivals.processor_share, 3)}

    def alone(self, attack, sizes):
        """Tokens a second of so much of the attackers' work, without a victim."""
        plan, used = self.plan(attack, **sizes), used_s(self.rig.pid)
        with Rivals(plan) as rivals:
            rivals.wait()
        used = used_s(self.rig.pid) - used
        if rivals.outcomes != {"200": plan["requests"]}:
            raise SystemExit(f"{attack} alone: {rivals.outcomes}, not {plan['requests']} whole replies")
        each = plan["prompt_tokens"] + 1 if attack == "long_prompts" else plan["answer_tokens"] + 4
        self.rig.wait_until_idle()
        tokens = each * plan["requests"]
        return {"alone": attack, "tokens_a_second": tokens / rivals.seconds, "processor_us": 1e6 * used / tokens, **sizes}

    def sizes_alone(self, attack):
        """Work for about `--seconds`, by what a little of it takes: the same for all builds and rounds."""
        few = {"requests": ATTACKS[attack][1], "prompt_tokens": 128, "answer_tokens": 16}
        self.alone(attack, few)
        rate = self.alone(attack, few)["tokens_a_second"]
        each = rate * self.arguments.seconds / few["requests"]
        if attack == "long_prompts":
            longest = self.plan(attack)["prompt_tokens"]
            size = int(min(longest, max(256, each)))
            return {"requests": 8 * max(1, round(each / size)), "prompt_tokens": size}
        return {"requests": 32, "answer_tokens": int(min(self.plan(attack)["answer_tokens"], max(32, each)))}


def in_ms(seconds):
    return [round(1000 * each, 2) for each in seconds]


class Builds:
    """Both programs, one of which serves at a time, and what was measured of them."""

    def __init__(self, arguments, model, kept):
        self.arguments, self.model, self.kept = arguments, model, kept
        self.programs = {"now": arguments.hearth, **({"before": arguments.before} if arguments.before else {})}
        self.shape = inspected(arguments.hearth, model)
        self.sizes = kept.setdefault("sizes", {})

    def in_turns(self, number):
        """The builds in the order of this round."""
        return sorted(self.programs, reverse=number % 2 == 1)

    def serve(self, which, what, is_storm=False):
        """`what` of a server of that build, noting what else the machine did meanwhile."""
        program, arguments = self.programs[which], self.arguments
        with tempfile.TemporaryDirectory() as folder:
            keys, entries = {}, []
            for name in ("victim", "rival"):
                keys[name], entry = new_key(program, name)
                entries.append(entry)
            path = pathlib.Path(folder, "keys.json")
            path.write_text(json.dumps({"keys": entries}), encoding="utf-8")
            flags = ["--keys", str(path), "--threads", str(arguments.threads), *KV]
            models, names = str(self.model), None
            if is_storm:
                models, names, memory = self.of_storm(program, flags, keys["victim"])
                flags += ["--memory", str(memory)]
            with rig(program, "", models, *flags) as under_load, Others(under_load.pid) as others:
                side = Side(arguments, self.shape, under_load, keys, names and names[0], names)
                rows = list(what(side))
                side.victim.close()
        for row in rows:
            self.kept["runs"].append({"build": which, "others": round(others.share, 3), **row})

    def of_storm(self, program, flags, key):
        """(paths, names, memory in which either of two models has room, but not both)."""
        other = work_model("smollm2.gguf" if self.model.stem.startswith("tiny-oss") else "tiny-oss-o200k.gguf")
        paths = [str(self.model), other]
        with rig(program, "", paths, *flags) as under_load:
            cards, until = [], time.monotonic() + 120
            while not cards or any("planned_bytes" not in card for card in cards):
                if time.monotonic() > until:
                    raise SystemExit(f"no plans of the models: {cards}")
                time.sleep(0.05)
                told = under_load.server.request("GET", "/v1/models", headers={"authorization": "Bearer " + key})
                cards = json.loads(told[2])["data"]
        planned = {card["id"]: card["planned_bytes"] for card in cards}
        names = [next(name for name in planned if name == pathlib.Path(path).stem) for path in paths]
        return paths, names, max(planned.values()) + min(planned.values()) // 2

    def beside(self, number):
        attacks = [each for each in self.arguments.attack if each != "model_storm"]
        for which in self.in_turns(number):
            if attacks:
                self.serve(which, lambda side: [side.beside(attack) for attack in attacks])
            if "model_storm" in self.arguments.attack:
                self.serve(which, lambda side: [side.beside("model_storm")], is_storm=True)

    def alone(self, number):
        def timed(side):
            for attack in self.arguments.alone:
                if attack not in self.sizes:
                    self.sizes[attack] = side.sizes_alone(attack)
                yield side.alone(attack, self.sizes[attack])

        for which in self.in_turns(number):
            self.serve(which, timed)


def inspected(program, model):
    done = subprocess.run([program, "inspect", str(model), "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["shape"]


def parse(words):
    parser = argparse.ArgumentParser(prog="./dev bench victims", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="tiny-oss-o200k.gguf", help="a file, or its name in $HEARTH_WORK (%(default)s)")
    parser.add_argument("--attack", nargs="*", default=list(ATTACKS), choices=list(ATTACKS), metavar="NAME",
                        help=f"{', '.join(ATTACKS)} (all)")
    parser.add_argument("--alone", nargs="*", default=list(ALONE), choices=ALONE, metavar="NAME",
                        help=f"work that is timed alone: {', '.join(ALONE)} (both)")
    parser.add_argument("--before", type=pathlib.Path, help="another build's hearth, measured in turns")
    parser.add_argument("--hearth", type=pathlib.Path, default=ROOT / "build/release/bin/hearth")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10, help="beside an attack, twice as long as quiet (%(default)s)")
    parser.add_argument("--least", type=int, default=5, help="requests of the victim at any time (%(default)s)")
    parser.add_argument("--pause", type=float, default=0.02,
                        help="seconds that the victim rests between its requests, on the average (%(default)s)")
    parser.add_argument("--prompt-tokens", type=int, default=16000, help="of a long prompt, or the model's most (%(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="of the server (%(default)s)")
    parser.add_argument("--fresh", action="store_true", help="forget what earlier runs measured of this model")
    parser.add_argument("--show", action="store_true", help="measure nothing")
    parser.add_argument("--no-page", action="store_true", help="write nothing to bench/results")
    return parser.parse_args(words)


def measure(arguments, model, kept, path):
    builds = Builds(arguments, model, kept)
    for number in range(arguments.rounds):
        for part in (builds.beside, builds.alone):
            part(number)
            path.write_text(json.dumps(kept), encoding="utf-8")
        print(f"victims: round {number + 1} of {arguments.rounds} done", file=sys.stderr, flush=True)


def main(words):
    arguments = parse(words)
    model = pathlib.Path(arguments.model)
    if not model.exists():
        model = pathlib.Path(work_model(arguments.model))
    path = work_dir() / f"victims-{model.stem}.json"
    kept = {"runs": [], "pause_s": arguments.pause}
    if path.exists() and not arguments.fresh:
        kept.update(json.loads(path.read_text(encoding="utf-8")))
    if not arguments.show and kept["pause_s"] != arguments.pause:
        raise SystemExit(f"victims: earlier runs had a pause of {kept['pause_s']} s: --fresh forgets them")
    kept.update(model=model.name, date=str(datetime.date.today()), threads=arguments.threads)
    if not arguments.show:
        measure(arguments, model, kept, path)
    folder = None if arguments.no_page else ROOT / "bench/results"
    return 0 if page.write(kept, folder) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

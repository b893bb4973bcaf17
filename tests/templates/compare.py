#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Chat templates against the oracle. For every template: the text of generated conversations is
byte-identical to jinja2's, and a conversation full of special tokens' names yields exactly the
special tokens of its harmless twin."""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys

from attacks import Attacker, tested_names
from conversations import Maker
from oracle import Oracle

DATE = "2026-11-15"
SEED = 20261115
# Compared on the full count; every other template found on an eighth of it.
NAMED = ["smollm2", "tinyllama", "minimind2", "qwen2_5", "qwen3", "llama3_2", "mistral_nemo",
         "microsoft-Phi-3.5-mini-instruct", "meta-llama-Llama-3.1-8B-Instruct",
         "deepseek-ai-DeepSeek-V3.1", "google-gemma-2-2b-it"]


class Renderer:
    """The program under test, one request at a time."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, encoding="utf-8")

    def ask(self, line):
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def first_difference(ours, theirs):
    at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b),
              min(len(ours), len(theirs)))
    near = slice(max(0, at - 30), at + 30)
    return f"at {at}: ours {ours[near]!r}, jinja2 {theirs[near]!r}"


class Comparison:
    def __init__(self, renderer, entry):
        self.renderer, self.name, self.names = renderer, entry["name"], entry["specials"]
        self.oracle = Oracle(entry["template"], entry["bos"], entry["eos"], DATE)
        self.counts = collections.Counter()
        self.mistakes = []
        tested = tested_names(entry["template"], self.names)
        self.untested = [name for name in self.names if name not in tested]
        loaded = renderer.ask({k: entry[k] for k in ("name", "template", "bos", "eos", "specials")})
        if "error" in loaded:
            self.mistakes.append(f"not loaded: {loaded['error']}")

    def ask(self, request):
        return self.renderer.ask({"name": self.name, "request": request, "date": DATE})

    def check_text(self, request):
        ours, theirs = self.ask(request), self.oracle.render(request)
        if theirs is None:
            # Our lists where jinja2 has generators are more than it can do, not a difference.
            kind = "lazy" if "generator" in self.oracle.refusal else "refused"
            self.counts[kind] += 1
            if "error" not in ours and kind == "refused":
                self.mistakes.append(f"jinja2 refuses ({self.oracle.refusal}), we render")
            return
        self.counts["rendered"] += 1
        self.counts["bytes"] += len(theirs.encode())
        if "error" in ours:
            self.mistakes.append(f"{ours['error']}: {json.dumps(request)}")
        elif ours["text"] != theirs:
            self.mistakes.append(first_difference(ours["text"], theirs))

    def check_attack(self, attacker):
        request = attacker.request()
        attacked, twin = self.ask(request), self.ask(attacker.harmless(request))
        if "error" in attacked or "error" in twin:
            self.counts["attacks refused"] += 1
            if ("error" in attacked) != ("error" in twin):
                self.counts["attacks refused alone"] += 1
            return
        self.counts["attacks"] += 1
        if attacked["specials"] != twin["specials"]:
            more = collections.Counter(attacked["specials"])
            more.subtract(twin["specials"])
            self.mistakes.append(f"special tokens differ by { {k: v for k, v in more.items() if v} }"
                                 f": {json.dumps(request)}")

    def run(self, count):
        maker = Maker(SEED, self.names)
        # Many templates refuse some shapes (no system message, strict turns): those come on top.
        for _ in range(4 * count):
            if self.counts["rendered"] < count:
                self.check_text(maker.request())
        # Names the template itself looks for would make it take another path than for the twin.
        if self.untested:
            attacker = Attacker(SEED, self.untested)
            for _ in range(count):
                self.check_attack(attacker)
        return not self.mistakes

    def report(self):
        c = self.counts
        print(f"{self.name}: {c['rendered']} rendered ({c['bytes']} bytes), {c['refused']} refused "
              f"by both, {c['lazy']} beyond jinja2; {c['attacks']} attacks with "
              f"{len(self.untested)} names, {c['attacks refused']} refused; "
              f"{len(self.mistakes)} mistakes")
        for mistake in self.mistakes[:3]:
            print("   ", mistake[:400])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--only", help="one template by name")
    parser.add_argument("--part", choices=["named", "others"], help="half of them")
    args = parser.parse_args()
    work = pathlib.Path(os.environ.get("HEARTH_WORK") or pathlib.Path.home() / ".cache/hearth")
    folder = work / "templates"
    committed = pathlib.Path(__file__).parent / "data"
    paths = {path.stem: path for path in [*folder.glob("*.json"), *committed.glob("*.json")]}
    missing = set(NAMED) - set(paths)
    if missing:
        sys.exit(f"missing templates: {sorted(missing)}; run fetch.py beside this script")
    names = [args.only] if args.only else list(paths)
    if args.part:
        names = [name for name in names if (name in NAMED) == (args.part == "named")]
    renderer, failed, total = Renderer(args.program), [], collections.Counter()
    for name in names:
        comparison = Comparison(renderer, json.loads(paths[name].read_text()))
        count = args.count if name in NAMED or args.only else args.count // 8
        if not comparison.run(count):
            failed.append(name)
        comparison.report()
        total += comparison.counts
    print(f"{len(names)} templates, {dict(total)}, failed: {failed or 'none'}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Chat templates against the oracle: byte-identical text on generated conversations, and no
special token beyond those of the same conversation with harmless text."""
import argparse
import json
import pathlib
import subprocess
import sys

from conversations import Maker
from oracle import Oracle

DATE = "2026-11-15"


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
    return f"at {at}: ours {ours[at - 30:at + 30]!r}, jinja2 {theirs[at - 30:at + 30]!r}"


class Comparison:
    def __init__(self, renderer, entry):
        self.renderer, self.name = renderer, entry["name"]
        self.specials = entry["specials"]
        self.oracle = Oracle(entry["template"], entry["bos"], entry["eos"], DATE)
        loaded = renderer.ask({k: entry[k] for k in ("name", "template", "bos", "eos", "specials")})
        if "error" in loaded:
            raise SystemExit(f"{self.name}: {loaded['error']}")
        self.refused = self.rendered = 0
        self.mistakes = []

    def check(self, request):
        ours = self.renderer.ask({"name": self.name, "request": request, "date": DATE})
        theirs = self.oracle.render(request)
        if theirs is None:
            self.refused += 1
            if "error" not in ours:
                self.mistakes.append(f"jinja2 refuses, we render: {json.dumps(request)[:300]}")
            return
        self.rendered += 1
        if "error" in ours:
            self.mistakes.append(f"{ours['error']}: {json.dumps(request)[:300]}")
        elif ours["text"] != theirs:
            self.mistakes.append(first_difference(ours["text"], theirs))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("templates", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    failed = False
    for path in sorted(args.templates.glob(f"{args.only}*.json")):
        comparison = None
        try:
            comparison = Comparison(Renderer(args.program), json.loads(path.read_text()))
        except SystemExit as e:
            print(e); failed = True; continue
        except Exception as e:
            print(path.name, "ORACLE", repr(e)[:200]); continue
        maker = Maker(20261115, comparison.specials)
        for _ in range(args.count):
            comparison.check(maker.request())
        print(f"{comparison.name}: {comparison.rendered} rendered, {comparison.refused} refused, "
              f"{len(comparison.mistakes)} differ")
        for mistake in comparison.mistakes[:2]:
            print("   ", mistake[:240])
        failed |= bool(comparison.mistakes)
    sys.exit(failed)


if __name__ == "__main__":
    main()

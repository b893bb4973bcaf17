#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The counts a release is judged by, in chunks that a log remembers: replies of random weights at
temperature 2 under masks. A run that was stopped goes on where the log ends; --report adds it up.
"""
import argparse
import collections
import json
import os
import sys
import time

import replies
import schema_test
import tools_test

SCHEMAS = 2000
TOOL_SETS = 250
# name: (what it asks for, the vocabulary's name in replies.MODELS)
RUNS = {
    "schemas-o200k": (None, "o200k"),
    "tools-o200k": ("harmony", "o200k"),
    "schemas-chatml": (None, "tiny-chatml"),
    "tools-chatml": ("chatml", "tiny-chatml"),
    "schemas-smollm2": (None, "smollm2"),
    "tools-smollm2": ("chatml", "smollm2"),
}


def make_request(style, index):
    """Chunks of consecutive numbers go over all schemas and tool sets evenly."""
    if style is None:
        return schema_test.make_request(3, index % SCHEMAS, index // SCHEMAS)
    return tools_test.make_request(style, index, 1, TOOL_SETS)


def read_log(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as log:
        return [json.loads(line) for line in log if line.endswith("\n")]


def report(rows):
    totals = collections.defaultdict(collections.Counter)
    for row in rows:
        totals[row["run"]].update({key: value for key, value in row.items()
                                   if isinstance(value, (int, float)) and key != "first"})
    for run, counts in sorted(totals.items()):
        print(f"{run}: " + ", ".join(f"{value:g} {key}" for key, value in counts.items()))
    return any(counts["failed"] for counts in totals.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", help="a line of JSON is added per chunk")
    parser.add_argument("--program", help="generate_replies; a copy, if builds go on meanwhile")
    parser.add_argument("--run", choices=sorted(RUNS), action="append", default=[])
    parser.add_argument("--until", type=int, default=28000,
                        help="replies per run; of those with tools three in four must call one")
    parser.add_argument("--chunk", type=int, default=500)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--report", action="store_true", help="only add the log up")
    args = parser.parse_args()
    rows = read_log(args.log)
    if args.report:
        sys.exit(report(rows))
    for run in args.run:
        style, vocab = RUNS[run]
        done = {row["first"] for row in rows if row["run"] == run and row["chunk"] == args.chunk}
        for first in range(0, args.until, args.chunk):
            if first in done:
                continue
            start = time.monotonic()
            requests = [make_request(style, i) for i in range(first, first + args.chunk)]
            answers = replies.generate(args.program, vocab, requests, args.processes, True)
            counts = (schema_test if style is None else tools_test).tally(requests, answers)
            row = {"run": run, "first": first, "chunk": args.chunk, **counts,
                   "seconds": round(time.monotonic() - start)}
            with open(args.log, "a", encoding="utf-8") as log:
                log.write(json.dumps(row) + "\n")
            print(row, flush=True)
            rows.append(row)
    sys.exit(report([row for row in rows if row["run"] in args.run]))


if __name__ == "__main__":
    main()

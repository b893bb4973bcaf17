#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Noise under the mask of a generated schema is JSON of that schema, always, says jsonschema."""
import argparse
import collections
import json
import sys

import replies
import schemas


def make_request(seed, which, number):
    return {"kind": "schema", "schema": schemas.make(seed * 1_000_000 + which),
            "seed": number * 1_000_003 + which, "soft": 8 + (which * 7 + number * 13) % 80}


def tally(requests, answers):
    """What became of them: numbers of tokens, cut, refused and failed replies."""
    counts, refused = collections.Counter(), collections.Counter()
    for request, answer in zip(requests, answers):
        if "refused" in answer:
            refused[answer["refused"][:60]] += 1
            continue
        counts["tokens"] += answer["tokens"]
        if answer["cut"]:
            counts["cut"] += 1
            continue
        why = answer.get("error") or (not answer["finished"] and "did not end") or \
            replies.problem(request["schema"], answer["text"])
        counts["failed"] += bool(why)
        if why and counts["failed"] <= 5:
            print(f"FAILED: {why}\n  request {json.dumps(request)}\n  wrote "
                  f"{answer['text'][:1000]!r}")
    for reason, some in refused.most_common():
        print(f"refused {some}: {reason}")
    counts["refused"] = refused.total()
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--vocab", default="o200k")
    parser.add_argument("--schemas", type=int, default=1000)
    parser.add_argument("--each", type=int, default=1, help="generations per schema")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--weights", action="store_true", help="of a model, through the engine")
    args = parser.parse_args()
    requests = [make_request(args.seed, i, j) for i in range(args.schemas)
                for j in range(args.each)]
    answers = replies.generate(args.program, args.vocab, requests, has_weights=args.weights)
    counts = tally(requests, answers)
    print(f"{args.vocab}: {len(requests)} generations over {args.schemas} schemas, "
          f"{counts['tokens']} tokens, {counts['refused']} refused, {counts['cut']} cut by length, "
          f"{counts['failed']} failed")
    # A refusal is honest, but a generator that is mostly refused tests nothing.
    if counts["failed"] or counts["refused"] > len(requests) // 20:
        sys.exit(1)
    replies.require_few_cut(counts["cut"], len(requests), args.weights)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Noise under the mask of a generated schema is JSON of that schema, always, says jsonschema."""
import argparse
import json
import sys

import replies
import schemas


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--vocab", default="o200k")
    parser.add_argument("--schemas", type=int, default=1000)
    parser.add_argument("--each", type=int, default=1, help="generations per schema")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--weights", action="store_true", help="of a model, through the engine")
    parser.add_argument("--first", type=int, default=0, help="request to begin with")
    parser.add_argument("--count", type=int, default=None, help="requests, if not all")
    args = parser.parse_args()
    requests = [{"kind": "schema", "schema": schemas.make(args.seed * 1_000_000 + i),
                 "seed": j * 1_000_003 + i, "soft": 8 + (i * 7 + j * 13) % 80}
                for i in range(args.schemas) for j in range(args.each)]
    requests = requests[args.first:][:args.count]
    answers = replies.generate(args.program, args.vocab, requests, has_weights=args.weights)
    refused, failed, tokens, cut = {}, 0, 0, 0
    for request, answer in zip(requests, answers):
        if "refused" in answer:
            refused.setdefault(answer["refused"][:60], []).append(request)
            continue
        tokens += answer["tokens"]
        if args.weights and not answer["finished"] and not answer.get("error"):
            cut += 1  # by max_tokens: a beginning is all it can be
            continue
        why = answer.get("error") or (not answer["finished"] and "did not end") or \
            replies.problem(request["schema"], answer["text"])
        if why:
            failed += 1
            if failed <= 5:
                print(f"FAILED: {why}\n  request {json.dumps(request)}\n  wrote "
                      f"{answer['text'][:1000]!r}")
    total = sum(len(some) for some in refused.values())
    for reason, some in sorted(refused.items(), key=lambda item: -len(item[1])):
        print(f"refused {len(some)}: {reason}")
    print(f"{args.vocab}: {len(requests)} generations over {args.schemas} schemas, {tokens} tokens, "
          f"{total} refused, {cut} cut by length, {failed} failed")
    # A refusal is honest, but a generator that is mostly refused, or mostly cut, tests nothing.
    if failed or total > len(requests) // 20 or cut > len(requests) // 2:
        sys.exit(1)


if __name__ == "__main__":
    main()

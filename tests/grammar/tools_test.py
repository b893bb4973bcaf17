#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tool calls that noise writes under a mask: every reply parses without a repair, calls a tool that
exists, with arguments of that tool's schema, and reads the same streamed and whole."""
import argparse
import collections
import json
import sys

import replies
import schemas

CHOICES = ["required", "named", "auto", "none"]


def arguments_schema(tool):
    return tool["function"].get("parameters") or {"type": "object", "additionalProperties": False}


def judge(request, answer):
    """Why the reply is not what was asked for, or None."""
    if answer.get("error") or not answer["finished"]:
        return answer.get("error") or "did not end"
    if answer.get("repairs", 0):
        return "needed repairs"
    if not answer.get("same_streamed", True):
        return "reads differently when streamed"
    tools = {tool["function"]["name"]: tool for tool in request["tools"]}
    calls = [event for event in answer["events"] if event[0] == "call"]
    content = "".join(event[1] for event in answer["events"] if event[0] == "content")
    choice = request["tool_choice"]
    if choice in tools and any(call[1] != choice for call in calls):
        return "calls another tool than the named one"
    if choice not in ("auto", "none") and not calls:
        return "no call"
    if choice == "none" and calls:
        return "a call"
    if not request["parallel"] and len(calls) > 1:
        return f"{len(calls)} calls"
    if "reasoning_tokens" in request and request["reasoning_tokens"] == 0 and \
            any(event[0] == "reasoning" for event in answer["events"]):
        return "reasoning without a budget"
    for _, name, arguments in calls:
        if name not in tools:
            return f"no such tool: {name}"
        why = replies.problem(arguments_schema(tools[name]), arguments)
        if why:
            return f"{name}: {why}"
    if "answer" in request and not calls:
        return replies.problem(request["answer"], content)
    return None


def make_request(style, index, each, sets):
    which = index // each % sets
    tools = schemas.tool_set(which)
    choice = CHOICES[0 if index % 4 == 0 else 1 if index % 4 < 3 else 2 + index // 4 % 2]
    if choice == "named":
        choice = tools[index % len(tools)]["function"]["name"]
    request = {"kind": style, "messages": [{"role": "user", "content": "?"}], "tools": tools,
               "tool_choice": choice, "parallel": index % 3 != 0, "seed": index * 31 + 7,
               "soft": 10 + index % 50}
    if index % 5 == 0:
        request["answer"] = schemas.make(which)
    if style == "harmony" and index % 6 == 0:
        request["reasoning_tokens"] = index % 18
    return request


def tally(requests, answers):
    """What became of them: numbers of calls, tokens, cut, refused and failed replies."""
    counts = collections.Counter()
    for request, answer in zip(requests, answers):
        why = None
        if "refused" in answer:
            counts["refused"] += 1
            why = f"refused: {answer['refused']}"
        elif answer["cut"]:
            counts["cut"] += 1
        else:
            why = judge(request, answer)
            counts["must call"] += request["tool_choice"] not in ("auto", "none")
            counts["calls"] += sum(event[0] == "call" for event in answer["events"])
        counts["tokens"] += answer.get("tokens", 0)
        counts["failed"] += bool(why)
        if why and counts["failed"] <= 5:
            print(f"FAILED: {why}\n  request {json.dumps(request)[:3000]}\n  wrote "
                  f"{answer.get('text', '')[:1500]!r}")
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--style", default="harmony", choices=["harmony", "chatml", "llama3", "generic"])
    parser.add_argument("--vocab", default="o200k")
    parser.add_argument("--sets", type=int, default=200, help="tool sets")
    parser.add_argument("--each", type=int, default=4, help="generations per set")
    parser.add_argument("--weights", action="store_true", help="of a model, through the engine")
    args = parser.parse_args()
    requests = [make_request(args.style, i, args.each, args.sets)
                for i in range(args.sets * args.each)]
    answers = replies.generate(args.program, args.vocab, requests, has_weights=args.weights)
    counts = tally(requests, answers)
    print(f"{args.style}, {args.vocab}: {len(requests)} replies over {args.sets} tool sets, "
          f"{counts['calls']} calls, {counts['tokens']} tokens, {counts['cut']} cut by length, "
          f"{counts['failed']} failed")
    if counts["failed"] or counts["calls"] < len(requests) // 2:
        sys.exit(1)
    replies.require_few_cut(counts["cut"], len(requests), args.weights)


if __name__ == "__main__":
    main()

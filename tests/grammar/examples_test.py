#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the examples of docs/structured-output.md."""
import argparse
import json
import pathlib
import re
import sys

import replies


def request_of(example):
    if "schema" in example:
        return {"kind": "schema", "schema": example["schema"]}
    if "choice" in example:
        return {"kind": "choice", "choices": example["choice"]}
    kind = "regex" if "regex" in example else "lark"
    return {"kind": kind, "text": example[kind]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--vocab", default="o200k")
    args = parser.parse_args()
    page = pathlib.Path(__file__).resolve().parents[2] / "docs/structured-output.md"
    block = re.search(r"```examples\n(.*?)```", page.read_text(), re.DOTALL).group(1)
    examples = [json.loads(line) for line in block.splitlines()]
    requests = [dict(request_of(example), accepts=[example.get("pass", ""), example.get("fail", "")])
                for example in examples]
    failed = 0
    for example, answer in zip(examples, replies.generate(args.program, args.vocab, requests, 1)):
        if "refused" in example:
            good = example["refused"] in answer.get("refused", "")
        else:
            good = answer.get("accepts") == [True, False]
        if not good:
            failed += 1
            print(f"FAILED: {json.dumps(example)}\n  {answer}")
    print(f"{len(examples)} examples, {failed} failed")
    sys.exit(1 if failed or len(examples) < 10 else 0)


if __name__ == "__main__":
    main()

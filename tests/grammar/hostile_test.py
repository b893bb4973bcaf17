#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Schemas and grammars written to hurt: each is refused or compiled within 250 ms of CPU and 64 MiB,
and the same process goes on to serve an honest request."""
import argparse
import json
import subprocess
import sys

import replies

LIMIT_MS, LIMIT_KIB = 250, 64 * 1024
HONEST = {"kind": "schema", "schema": {"type": "object", "properties": {"a": {"type": "integer"}},
                                       "required": ["a"]}, "seed": 1, "soft": 5}


def nested(open_, middle, close, times):
    return open_ * times + middle + close * times


def schema(value):
    return {"kind": "schema_text", "text": json.dumps(value)}


def grammars():
    """Patterns and grammars; the first ones are those of public reports."""
    return {
        "60,000 parentheses in a grammar": {"kind": "lark", "text": "start: " + "(" * 60_000},
        "60,000 balanced parentheses in a grammar":
            {"kind": "lark", "text": "start: " + nested("(", '"a"', ")", 60_000)},
        "60,000 parentheses in a regex": {"kind": "regex", "text": "(" * 60_000},
        "60 balanced parentheses in a regex": {"kind": "regex", "text": nested("(", "a", ")", 60)},
        "60,000 brackets in a regex": {"kind": "regex", "text": "[" * 60_000},
        "1,000 stars": {"kind": "regex", "text": "a" + "*" * 1000},
        "foo**": {"kind": "regex", "text": "foo**"},
        "1,000 question marks in a grammar": {"kind": "lark", "text": "start: \"a\"" + "?" * 1000},
        "catastrophic pattern": schema({"type": "string", "pattern": "^(a+)+$"}),
        "catastrophic alternation": schema({"type": "string", "pattern": "^(a|a)*$"}),
        "nested counts": schema({"type": "string", "pattern": "^((a{1,100}){1,100}){1,100}$"}),
        "nested counts, a billion": {"kind": "regex", "text": "(((a{1000}){1000}){1000})"},
        "large count": {"kind": "regex", "text": "a{1000000}"},
        "states double": schema({"type": "string", "pattern": "(a|b)*a(a|b){20}$"}),
        "states double more": schema({"type": "string", "pattern": "(.*a.{900})"}),
        "unicode classes": {"kind": "regex", "text": "(\\p{L}|\\p{N}){1,500}" * 20},
        "intersections": {"kind": "lark", "text": "start: X\nX: " + " & ".join(
            f"/(?s:.*){c}(?s:.*)/" for c in "abcdefghijklmnopqrst")},
        "complement of a complement": {"kind": "lark", "text": "start: X\nX: " + "~" * 500 + "/a/"},
        "rules that call themselves": {"kind": "lark", "text": "start: a\na: a a | a"},
        "5,000 rules": {"kind": "lark", "text": "start: r0\n" + "".join(
            f"r{i}: \"x\" r{i + 1}?\n" for i in range(5000)) + "r5000: \"y\""},
        "ambiguous grammar": {"kind": "lark", "text": "start: e\ne: e e e | e e | \"a\""},
        "json nested in lark": {"kind": "lark",
                                "text": "start: %json " + nested("{\"not\":", "{}", "}", 5000)},
        "lark nested in lark": {"kind": "lark", "text": nested("start: %lark { ", "x", " }", 500)},
        "look-ahead": schema({"type": "string", "pattern": "(?=.*a)(?=.*b).*"}),
        "back-reference": schema({"type": "string", "pattern": "(a*)\\1"}),
    }


def combinations():
    """Few bytes that mean many alternatives."""
    any_of = lambda count, depth: {"type": "integer", "minimum": depth} if depth == 0 else {
        "anyOf": [any_of(count, depth - 1) for _ in range(count)]}
    objects = [{"type": "object", "properties": {f"p{i}": {"const": j} for i in range(12)}}
               for j in range(12)]
    doubling = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}, {"$ref": f"#/$defs/d{i + 1}"}]}
                for i in range(40)}
    doubling["d40"] = {"type": "null"}
    crossed = {f"c{i}": {"allOf": [{"$ref": f"#/$defs/c{i + 1}"}, {"$ref": f"#/$defs/c{i + 1}"}]}
               for i in range(40)}
    crossed["c40"] = {"type": "object", "properties": {"x": {"type": "string"}}}
    product = {f"m{i}": {"anyOf": [{"properties": {f"a{i}": {"const": j}}} for j in range(8)]}
               for i in range(30)}
    return {
        "anyOf, 6 deep, 6 each": schema(any_of(6, 6)),
        "anyOf, 3 deep, 15 each": schema(any_of(15, 3)),
        "anyOf through references": schema({"$defs": doubling, "$ref": "#/$defs/d0"}),
        "allOf through references": schema({"$defs": crossed, "$ref": "#/$defs/c0"}),
        "allOf of anyOf": schema({"allOf": [{"anyOf": objects} for _ in range(12)]}),
        "allOf of anyOf through references": schema(
            {"$defs": product, "allOf": [{"$ref": f"#/$defs/m{i}"} for i in range(30)]}),
        "$ref to itself": schema({"$ref": "#"}),
        "$ref in a ring": schema({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
                                  "$ref": "#/$defs/a"}),
        "allOf of itself": schema({"allOf": [{"$ref": "#"}, {"type": "object"}]}),
        "endless object": schema({"type": "object", "properties": {"a": {"$ref": "#"}},
                                  "required": ["a"]}),
    }


def many():
    """A lot of one thing."""
    return {
        "10,000 enum values": schema({"enum": [f"value {i}" for i in range(10_000)]}),
        "4,000 long enum values": schema({"enum": [f"{i} " + "x" * 50 for i in range(4_000)]}),
        "4,000 enum objects": schema({"enum": [{"a": i} for i in range(4_000)]}),
        "2,000 properties": schema({"type": "object", "properties": {
            f"p{i}": {"type": "string"} for i in range(2_000)}}),
        "2,000 open properties": schema({"type": "object", "additionalProperties": True,
                                         "properties": {f"p{i}": {} for i in range(2_000)}}),
        "20 enums of 4,000": schema({"anyOf": [{"enum": [f"{j} {i}" for i in range(4_000)]}
                                               for j in range(3)]}),
        "8 objects of 500": schema({"anyOf": [{"type": "object", "properties": {
            f"p{i}": {"type": "null"} for i in range(500)}, "required": [f"p{j}"]}
            for j in range(8)]}),
        "2 objects of 499": schema({"anyOf": [{"type": "object", "properties": {
            f"p{i}": {"type": "string", "format": "date-time"} for i in range(499)},
            "required": [f"p{j}"]} for j in range(2)]}),
        "800 URIs": schema({"anyOf": [{"type": "object", "required": [f"u{i}"], "properties": {
            f"u{i}": {"type": "string", "format": "uri", "minLength": i}}} for i in range(800)]}),
        "1,300 arrays": schema({"prefixItems": [{"type": "array", "minItems": i % 50, "maxItems": i,
                                                 "items": {"type": "integer", "minimum": i}}
                                                for i in range(1_300)]}),
        "3,500 rules of one letter": {"kind": "lark", "text": "start: r0\n" + "".join(
            f"r{i}:\"x\"" + ("\n" if i else " r1\n") for i in range(3_500))},
        "1,000 terminals": {"kind": "lark", "text": "start: (" + "|".join(
            f"A{i}" for i in range(1_000)) + ")*\n" + "".join(
            f"A{i}: /[a-z]+{i}/\n" for i in range(1_000))},
        "multipleOf 997": schema({"type": "integer", "multipleOf": 997}),
        "multipleOf 9.97": schema({"type": "number", "multipleOf": 9.97}),
    }


def counts():
    """Numbers, depths and sizes."""
    return {
        "4,000 patterns": schema({"anyOf": [{"type": "string", "pattern": f"^{i}[a-z]+$"}
                                            for i in range(4_000)]}),
        "patternProperties": schema({"patternProperties": {f"^{i}.*x": {} for i in range(300)}}),
        "depth 60": schema(json.loads(nested('{"properties":{"a":', "{}", "}}", 28))),
        "depth 5,000": {"kind": "schema_text", "text": nested('{"items":', "{}", "}", 5_000)},
        "arrays of arrays": schema(json.loads(nested('{"minItems":9,"maxItems":9,"items":', "{}",
                                                     "}", 20))),
        "minItems": schema({"type": "array", "minItems": 10_000}),
        "maxItems": schema({"type": "array", "maxItems": 10_000, "items": {"type": "object"}}),
        "a billion items": schema({"type": "array", "maxItems": 1_000_000_000}),
        "minLength": schema({"type": "string", "minLength": 10_000}),
        "minLength and a pattern": schema({"type": "string", "minLength": 9_000, "maxLength": 9_999,
                                           "pattern": "^(ab|cd)*$"}),
        "minProperties": schema({"type": "object", "minProperties": 5_000}),
        "maxProperties": schema({"type": "object", "maxProperties": 10_000,
                                 "properties": {f"p{i}": {} for i in range(100)}}),
        "multipleOf, many digits": schema({"type": "number", "multipleOf": 1e-300}),
        "multipleOf, a prime": schema({"type": "integer", "multipleOf": 999_983}),
        "multipleOf, many": schema({"allOf": [{"type": "integer", "multipleOf": p}
                                              for p in (97, 89, 83, 79, 73, 71)]}),
        "range": schema({"type": "number", "minimum": -1e300, "maximum": 1.7e308}),
        "range, many digits": schema({"type": "number", "minimum": 0.1234567890123456,
                                      "maximum": 0.1234567890123457}),
        "1 MB": {"kind": "schema_text", "text": '{"description":"' + "x" * 1_000_000 + '"}'},
        "200 KB of const": schema({"const": "x" * 200_000}),
        "4,000 choices": {"kind": "choice", "choices": [f"choice {i}" for i in range(4_000)]},
        "100,000 choices": {"kind": "choice", "choices": [str(i) for i in range(100_000)]},
        "orders to the engine": schema({"x-guidance": {"lenient": True}, "not": {}}),
        "not UTF-8's business": schema({"const": "\ud800"}),
    }


def hostile():
    """name -> request."""
    return {**grammars(), **combinations(), **many(), **counts()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--vocab", default="o200k")
    args = parser.parse_args()
    failed = 0
    worst = {key: ("", 0) for key in ("compile_ms", "peak_kib", "mask_ms")}
    program = subprocess.Popen([args.program, replies.vocabulary(args.vocab)], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")

    def ask(request):
        program.stdin.write(json.dumps(request) + "\n")
        program.stdin.flush()
        line = program.stdout.readline()
        if not line:
            sys.exit(f"FAILED: the process died of {json.dumps(request)[:200]}")
        return json.loads(line)

    ask(HONEST)
    for name, request in hostile().items():
        # The first masks cost too: a grammar that compiles must also be usable.
        answer = ask(dict(request, seed=1, soft=0, hard=4, measure=True))
        verdict = answer.get("refused") or f"compiled, {answer['tokens']} tokens"
        print(f"{answer['compile_ms']:7.1f} ms {answer['peak_kib'] / 1024:6.1f} MiB  masks "
              f"{answer.get('mask_ms', 0):5.1f} ms  {name}: "
              f"{verdict[:90]}")
        limits = {"compile_ms": LIMIT_MS, "peak_kib": LIMIT_KIB, "mask_ms": LIMIT_MS}
        for key, limit in limits.items():
            value = answer.get(key, 0)
            worst[key] = max(worst[key], (name, value), key=lambda pair: pair[1])
            if value > limit:
                failed += 1
                print(f"FAILED: {name}: {key} {value}, limit {limit}")
        honest = ask(HONEST)
        if not honest.get("finished") or replies.problem(HONEST["schema"], honest["text"]):
            sys.exit(f"FAILED: after {name} an honest request gets {honest}")
    program.stdin.close()
    program.wait()
    print(f"{len(hostile())} hostile grammars; worst {worst}; {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

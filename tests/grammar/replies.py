# SPDX-License-Identifier: Apache-2.0
"""Runs generate_replies over many requests, and judges what comes out."""
import datetime
import fractions
import ipaddress
import json
import os
import re
import subprocess
import sys
import threading
import uuid

import jsonschema


def work_dir():
    return os.environ.get("HEARTH_WORK") or os.path.expanduser("~/.cache/hearth")


VOCABULARIES = {"o200k": "o200k_base.tiktoken", "smollm2": "smollm2.gguf",
                "llama3": "llama3_tokenizer.json", "qwen3": "qwen3_tokenizer.json"}
# What --weights takes for a vocabulary.
MODELS = {"o200k": "tiny-oss-o200k.gguf", "smollm2": "smollm2.gguf",
          "tiny-chatml": "tiny-chatml.gguf"}


# What weights may write. Of what is cut a beginning is all that can be judged, so few may be.
MAX_TOKENS = 1500
CUT_PERCENT = 5


def vocabulary(name, has_weights=False):
    path = os.path.join(work_dir(), (MODELS if has_weights else VOCABULARIES)[name])
    if not os.path.exists(path):
        sys.exit(f"missing {path}: ./dev model fetches vocabularies and models")
    return path


def generate(program, vocab, requests, processes=2, has_weights=False):
    """Answers in the order of the requests; by noise, or by a model's weights."""
    if has_weights:
        requests = [{"hard": MAX_TOKENS, **request} for request in requests]
    shares = [requests[i::processes] for i in range(processes)]
    running = [subprocess.Popen([program, vocabulary(vocab, has_weights)] +
                                ["--weights"] * has_weights, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True, encoding="utf-8")
               for _ in shares]
    outputs = [None] * processes

    def feed(i):
        lines = "".join(json.dumps(request) + "\n" for request in shares[i])
        outputs[i] = running[i].communicate(lines)[0].split("\n")[:-1]

    threads = [threading.Thread(target=feed, args=(i,)) for i in range(processes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    answers = [None] * len(requests)
    for i, lines in enumerate(outputs):
        if running[i].returncode != 0 or len(lines) != len(shares[i]):
            raise SystemExit(f"generate_replies died (status {running[i].returncode}) after "
                             f"{len(lines)} of {len(shares[i])} requests")
        answers[i::processes] = [json.loads(line) for line in lines]
    for answer in answers:
        # Weights may write up to their max_tokens; noise without weights must always end.
        answer["cut"] = has_weights and answer.get("finished") is False and "error" not in answer
    return answers


def require_few_cut(cut, total, has_weights):
    if cut > total * (CUT_PERCENT if has_weights else 0) / 100:
        sys.exit(f"{cut} of {total} were cut by length: a mask that lets nothing end tests nothing")


checker = jsonschema.FormatChecker(formats=())


@checker.checks("date", raises=ValueError)
def is_date(text):
    return not isinstance(text, str) or bool(re.fullmatch(r"\d{4}-\d\d-\d\d", text)
                                             and datetime.date.fromisoformat(text))


@checker.checks("time", raises=ValueError)
def is_time(text):
    return not isinstance(text, str) or bool(datetime.time.fromisoformat(text) is not None)


@checker.checks("date-time", raises=ValueError)
def is_date_time(text):
    return not isinstance(text, str) or bool(datetime.datetime.fromisoformat(text))


@checker.checks("uuid", raises=ValueError)
def is_uuid(text):
    return not isinstance(text, str) or bool(uuid.UUID(text)) and text.count("-") == 4


@checker.checks("ipv4", raises=ValueError)
def is_ipv4(text):
    return not isinstance(text, str) or bool(ipaddress.IPv4Address(text) is not None)


@checker.checks("ipv6", raises=ValueError)
def is_ipv6(text):
    return not isinstance(text, str) or bool(ipaddress.IPv6Address(text) is not None)


@checker.checks("email")
def is_email(text):
    return not isinstance(text, str) or "@" in text


def multiple_of(validator, divisor, instance, schema):
    """jsonschema divides floats, which overflow on the long integers that weights like to write."""
    if not isinstance(instance, int) or isinstance(instance, bool):
        yield from jsonschema.Draft202012Validator.VALIDATORS["multipleOf"](
            validator, divisor, instance, schema)
    elif fractions.Fraction(instance) % fractions.Fraction(str(divisor)):
        yield jsonschema.ValidationError(f"{str(instance)[:50]} is no multiple of {divisor}")


def exact_when_large(text):
    """A float, or the whole number where floats end: Infinity is a multiple of nothing."""
    value = float(text)
    if value in (float("inf"), float("-inf")) and len(text.lower().partition("e")[2]) < 6:
        return round(fractions.Fraction(text))
    return value


def problem(schema, text, draft=None):
    """Why `text` is not JSON of `schema`, or None."""
    sys.set_int_max_str_digits(0)
    try:
        value = json.loads(text, parse_float=exact_when_large, parse_constant=lambda name: 1 / 0)
    except (ValueError, ZeroDivisionError) as error:
        return f"not JSON: {error}"
    kind = jsonschema.validators.validator_for(schema, default=draft or jsonschema.Draft202012Validator)
    kind = jsonschema.validators.extend(kind, {"multipleOf": multiple_of})
    error = next(iter(kind(schema, format_checker=checker).iter_errors(value)), None)
    return error and error.message[:200]

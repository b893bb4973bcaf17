# SPDX-License-Identifier: Apache-2.0
"""PyPI `ollama` against hearth serve: every route that the package has, each reply asked for whole
and streamed, sync and async, on two models.
usage: ollama_test.py HEARTH [WORD]   the cases whose name has WORD in it
       ollama_test.py --list"""
import asyncio
import json
import pathlib
import sys
import tempfile
import time
import traceback

import ollama_chats
import ollama_errors
import ollama_others
from ollama_asking import House
from serving import new_key, serving, work_model

HOUSES = {"smollm2": ("smollm2.gguf", "--context", "2048"),
          "tiny": ("tiny-oss-o200k.gguf", "--context", "8192")}
CASES = [(name, house, run)
         for name, run, houses in ollama_chats.CASES + ollama_others.CASES + ollama_errors.CASES
         for house in (HOUSES if houses == "both" else [houses])]


def run_house(program, house, cases):
    model, *flags = HOUSES.get(house, ("tiny-oss-o200k.gguf",))
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        key = None
        if house == "keyed":
            key, entry = new_key(program, "ada")
            keys = pathlib.Path(folder) / "keys.json"
            keys.write_text(json.dumps({"keys": [entry]}))
            flags = ["--keys", str(keys)]
        with serving(program, work_model(model), *flags) as server:
            for name, run in cases:
                began = time.monotonic()
                try:
                    result = run(House(server, house, key))
                    if asyncio.iscoroutine(result):
                        asyncio.run(result)
                    print(f"ok      {name} ({time.monotonic() - began:.2f} s)")
                except (Exception, SystemExit) as error:
                    failed.append(name)
                    text = str(error) if isinstance(error, SystemExit) else traceback.format_exc()
                    print(f"FAILED  {name}\n{text}")
    return failed


def main(program, word=""):
    failed, total = [], 0
    for house in dict.fromkeys(house for _, house, _ in CASES):
        chosen = [(f"ollama_python.{name} [{house}]", run) for name, where, run in CASES
                  if where == house and word in name]
        total += len(chosen)
        if chosen:
            failed += run_house(program, house, chosen)
    print(f"{total - len(failed)} of {total} cases of ollama for Python are right")
    sys.exit(1 if failed or not total else 0)


if __name__ == "__main__":
    if sys.argv[1] == "--list":
        print("\n".join(f"ollama_python.{name} [{house}]" for name, house, _ in CASES))
    else:
        main(*sys.argv[1:])

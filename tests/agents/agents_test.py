# SPDX-License-Identifier: Apache-2.0
"""Real agents finish a task on files of their own against the server. The model is a script; the
files, the commands, and everything between the model's tokens and the agent are real.

    agents_test.py SCRIPTED_SERVE [--record FOLDER] [AGENT...]
"""
import argparse
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "server"))
from agents import AGENTS, Place, run
from recorder import Recorder
from serving import expect, same, serving, work_model
from shapes import TASK, record, strict_events

CALC = "def add(a, b):\n    return a - b\n"
TEST = ("import unittest\n\nimport calc\n\n\nclass AddTest(unittest.TestCase):\n"
        "    def test_add(self):\n        self.assertEqual(calc.add(40, 2), 42)\n")
RUN_TEST = "python3 -m unittest test_calc"


def call(thought, tool, **arguments):
    return [{"channel": "analysis", "text": thought},
            {"channel": "commentary", "to": f"functions.{tool}", "text": json.dumps(arguments)}]


def answer(thought, text):
    return [{"channel": "analysis", "text": thought}, {"channel": "final", "text": text}]


def codex_turns(_):
    patch = ("*** Begin Patch\n*** Update File: calc.py\n@@\n def add(a, b):\n-    return a - b\n"
             "+    return a + b\n*** End Patch\n")
    return [
        call("First the file.", "exec_command", cmd="echo 'print(42)' > hello.py"),
        call("Does it run?", "exec_command", cmd="python3 hello.py"),
        call("Now the test.", "exec_command", cmd=RUN_TEST),
        call("It subtracts.", "exec_command", cmd=f"apply_patch <<'EOF'\n{patch}EOF\n"),
        call("Again.", "exec_command", cmd=RUN_TEST),
        answer("All is well.", "hello.py prints 42 and the test passes."),
    ]


def opencode_turns(work):
    calc = str(work / "calc.py")
    return [
        call("First the file.", "write", content="print(42)\n", filePath=str(work / "hello.py")),
        call("Does it run?", "bash", command="python3 hello.py"),
        call("Now the test.", "bash", command=RUN_TEST),
        call("What does it say?", "read", filePath=calc),
        call("It subtracts.", "edit", filePath=calc, oldString="a - b", newString="a + b"),
        call("Again.", "bash", command=RUN_TEST),
        answer("All is well.", "hello.py prints 42 and the test passes."),
    ]


TURNS = {"codex": codex_turns, "opencode": opencode_turns}
OTHERWISE = answer("A title, it seems.", "Forty-two")


def results_in(body):
    """What the agent says its tools gave, in order."""
    if "input" in body:
        found = [item["output"] for item in body["input"]
                 if item.get("type", "").endswith("_call_output")]
    else:
        found = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    return [text if isinstance(text, str) else json.dumps(text) for text in found]


def usage_of(exchange):
    for _, data in reversed(exchange.events()):
        usage = data != "[DONE]" and (data.get("usage") or data.get("response", {}).get("usage"))
        if usage:
            prompt = usage.get("input_tokens", usage.get("prompt_tokens"))
            details = usage.get("input_tokens_details") or usage.get("prompt_tokens_details")
            return prompt, details["cached_tokens"]
    return None


def check_cache(name, exchanges):
    """Every turn but the first finds what the one before it left."""
    rows = [usage_of(exchange) for exchange in exchanges]
    expect(all(rows), f"{name}: usage in every stream")
    for index, (prompt, cached) in enumerate(rows):
        print(f"  turn {index}: {prompt} prompt tokens, {cached} cached")
    for (before, _), (prompt, cached) in zip(rows, rows[1:]):
        expect(cached >= before - 32, f"{name}: {cached} of {prompt} cached, {before} were there")


def check(agent, program, folder):
    with Place() as place:
        (place.work / "calc.py").write_text(CALC)
        (place.work / "test_calc.py").write_text(TEST)
        turns = TURNS[agent.name](place.work)
        script = place.home / "script.json"
        script.write_text(json.dumps({"task": TASK[:30], "turns": turns, "otherwise": OTHERWISE}))
        with serving(program, work_model("tiny-oss-o200k.gguf"), "--script", str(script)) as server:
            with Recorder(server.port) as between:
                code, said = run(agent, place, server.name, between.port, TASK)
        print(f"{agent.name}: {len(between.kept)} requests, exit {code}")
        for exchange in between.kept:
            same(exchange.status, 200, f"{exchange.path}: {exchange.reply[:600]}")
            strict_events(exchange)
        same(code, 0, f"{agent.name} ends well: {said[-2000:]}")
        main = [exchange for exchange in between.kept if exchange.json().get("tools")]
        same(len(main), len(turns), "a request per turn")
        same((place.work / "hello.py").read_text(), "print(42)\n", "hello.py")
        same((place.work / "calc.py").read_text(), CALC.replace("-", "+"), "calc.py")
        checked = subprocess.run([sys.executable, "-m", "unittest", "test_calc"], cwd=place.work,
                                 capture_output=True)
        same(checked.returncode, 0, "the test in the agent's folder")
        results = results_in(main[-1].json())
        same(len(results), len(turns) - 1, "a result per call")
        expect("42" in results[1], f"hello.py ran: {results[1]}")
        expect("FAILED (failures=1)" in results[2], f"the test failed first: {results[2]}")
        expect("OK" in results[-1] and "FAILED" not in results[-1], f"and then not: {results[-1]}")
        expect("the test passes" in said, f"the answer is shown: {said[-500:]}")
        check_cache(agent.name, main)
        if folder:
            record(agent.name, between.kept, place, folder)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("agents", nargs="*", default=sorted(AGENTS))
    parser.add_argument("--record", help="folder for the shapes of what was said")
    given = parser.parse_args()
    for name in given.agents or sorted(AGENTS):
        check(AGENTS[name], given.program, given.record)


if __name__ == "__main__":
    main()

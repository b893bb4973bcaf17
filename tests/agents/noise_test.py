# SPDX-License-Identifier: Apache-2.0
"""Agents against models that cannot do their task: a small real one and one with noise for weights.
Nobody may crash or hang, whatever is said; refusals are the client's mistakes, never the server's.

    noise_test.py HEARTH
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "server"))
from agents import AGENTS, Place, run
from recorder import Recorder
from serving import expect, serving, work_model
from shapes import strict_events

# SmolLM2's context is too short for codex's prompt: the agent must hear so and end.
MODELS = [("smollm2.gguf", 8192), ("tiny-oss-o200k.gguf", 16384)]
BOUND = 420


def check(agent, program, model, context):
    flags = ("--context", str(context), "--max-sequences", "8")
    with Place() as place, serving(program, work_model(model), *flags) as server:
        with Recorder(server.port) as between:
            # What noise says is run by the agent: it may not write, and commands are refused.
            code, said = run(agent, place, server.name, between.port, "Say hello.", context,
                             may_write=False, bound=BOUND)
        statuses = [exchange.status for exchange in between.kept]
        print(f"{agent.name} on {server.name}: exit {code}, {len(statuses)} requests, "
              f"{sorted({str(status) for status in statuses})}")
        expect(statuses, f"it asked: {said[-1000:]}")
        for exchange in between.kept:
            expect(exchange.status is None or exchange.status < 500, f"{exchange.reply[:500]}")
            if exchange.status == 200:
                strict_events(exchange)
            elif exchange.status:
                expect(b"context_length_exceeded" in exchange.reply, f"{exchange.reply[:500]}")
        # A model may talk for as long as it likes, and an agent may ask it again and again: then
        # the agent is stopped here, and the server must not mind.
        expect(server.request("GET", "/livez")[0] == 200, "the server lives")
        expect(server.request("POST", "/v1/chat/completions", {
            "messages": [{"role": "user", "content": "hi"}], "max_tokens": 4})[0] == 200,
            "and answers")


def main(program):
    for model, context in MODELS:
        for agent in AGENTS.values():
            check(agent, program, model, context)


if __name__ == "__main__":
    main(sys.argv[1])

# SPDX-License-Identifier: Apache-2.0
"""PyPI `openai-agents` against hearth serve, through chat completions and through responses: runs,
streams, tools that it calls itself, typed outputs, sessions, handoffs. `--list` names the cases."""
import asyncio
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "server"))

import agents
import openai
import pydantic
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from serving import expect, same, serving, work_model
from strict import strictly

HELLO = "Say hello to Ada, please."
MODELS = {"smollm2": ("smollm2.gguf", "--context", "2048"), "tiny": ("tiny-oss-o200k.gguf",)}
KINDS = {"chat": (agents.OpenAIChatCompletionsModel, ChatCompletion),
         "responses": (agents.OpenAIResponsesModel, Response)}


class Report(pydantic.BaseModel):
    model_config = {"extra": "forbid"}
    wet: bool


# The framework takes an answer that was cut short for a failure, so free text is one of two.
GREETINGS = ["Hello, Ada.", "Hi, Ada."]
FORMAT = {"type": "json_schema", "name": "greeting", "schema": {"enum": GREETINGS}}
SHORT = {"chat": {"response_format": {"type": "json_schema", "json_schema": FORMAT}},
         "responses": {"text": {"format": FORMAT}}}


class House:
    """One model behind one API, with a look at every whole body on its way."""

    def __init__(self, server, kind):
        self.short = SHORT[kind]
        model, self.body_type = KINDS[kind]
        self.seen = 0
        hooks = {"response": [self.look]}
        client = openai.AsyncOpenAI(
            base_url=server.address + "/v1", api_key="none", max_retries=0,
            http_client=openai.DefaultAsyncHttpxClient(event_hooks=hooks, timeout=300))
        self.model = model(model=server.name, openai_client=client)

    async def look(self, response):
        if response.headers["content-type"] == "application/json" and response.status_code == 200:
            strictly(self.body_type, await response.aread())
            self.seen += 1

    def agent(self, **more):
        given = more.pop("settings", None)
        body = {"seed": more.pop("seed", 0), **({} if given else self.short)}
        settings = given or {"max_tokens": 40, "temperature": 0.0, "reasoning": {"effort": "none"}}
        return agents.Agent(name="Ada", model=self.model, instructions="Be brief.",
                            model_settings=agents.ModelSettings(**settings, extra_body=body), **more)


def shaped(**more):
    """Room for a shape, and no thoughts before it."""
    return {"max_tokens": 160, "temperature": 1.0, "reasoning": {"effort": "none"}, **more}


async def drained(result):
    async for _ in result.stream_events():
        pass
    return result


async def plain(house):
    result = await agents.Runner.run(house.agent(), HELLO)
    same(len(result.raw_responses), 1, "answers")
    expect(json.loads(result.final_output) in GREETINGS, f"a greeting, not {result.final_output}")
    expect(0 < result.raw_responses[0].usage.output_tokens <= 40, f"usage in {result}")
    expect(house.seen == 1, "one strict body")


async def streamed(house):
    whole = await agents.Runner.run(house.agent(), HELLO)
    pieces = await drained(agents.Runner.run_streamed(house.agent(), HELLO))
    same(pieces.final_output, whole.final_output, "streamed and whole")


async def tool_loop(house, run):
    """The framework calls the function itself and sends the result back."""
    asked = []

    @agents.function_tool
    def get_weather(wet: bool) -> str:
        """The weather."""
        asked.append(wet)
        return "Sunny."

    for seed in range(30):  # noise may talk until its tokens are over before it calls
        agent = house.agent(tools=[get_weather], seed=seed, settings=shaped(tool_choice="required"))
        try:
            await run(agent, HELLO, max_turns=2)
        except (agents.MaxTurnsExceeded, agents.ModelBehaviorError):
            pass  # it called once more, or its call was cut short
        if asked:
            break
    expect(asked and all(isinstance(each, bool) for each in asked), f"calls of its type: {asked}")


async def run_streamed(agent, text, **more):
    return await drained(agents.Runner.run_streamed(agent, text, **more))


async def typed(house, run):
    for seed in range(30):
        agent = house.agent(output_type=Report, seed=seed, settings=shaped())
        try:
            result = await run(agent, HELLO)
        except agents.ModelBehaviorError:
            continue  # cut short
        expect(isinstance(result.final_output, Report), f"a report, not {result.final_output}")
        return
    expect(False, "no seed came to its end")


async def session(house):
    memory = agents.SQLiteSession("one")
    tokens = 0
    for text in ("My name is Ada.", "What is my name?"):
        result = await agents.Runner.run(house.agent(), text, session=memory)
        used = result.raw_responses[0].usage.input_tokens
        expect(used > tokens, "the prompt to grow")
        tokens = used
    memory.close()


async def handoff(house):
    """A handoff is a call of a tool that hands the conversation to another agent."""
    for seed in range(30):
        other = house.agent(handoff_description="Knows the weather.")
        other.name = "Weather"
        first = house.agent(handoffs=[other], seed=seed, settings=shaped(tool_choice="required"))
        try:
            result = await agents.Runner.run(first, HELLO, max_turns=3)
        except (agents.ModelBehaviorError, agents.MaxTurnsExceeded):
            continue
        if result.last_agent.name == "Weather":
            return
    expect(False, "no seed handed over")


async def refused(house):
    try:
        await agents.Runner.run(house.agent(settings={"temperature": 9.0}), HELLO)
        expect(False, "no refusal")
    except openai.BadRequestError as error:
        same(error.param, "temperature", "the field at fault")


CASES = [
    ("run", plain), ("run_streamed", streamed),
    ("typed_output", lambda house: typed(house, agents.Runner.run)),
    ("typed_output_streamed", lambda house: typed(house, run_streamed)),
    ("session", session), ("refusal", refused),
]
# SmolLM2's chat template has no calls.
CALLS = [
    ("tools", lambda house: tool_loop(house, agents.Runner.run)),
    ("tools_streamed", lambda house: tool_loop(house, run_streamed)),
    ("handoff", handoff),
]


def cases_of(model):
    return [(f"agents.{kind}.{name} [{model}]", kind, run) for kind in KINDS
            for name, run in CASES + (CALLS if model == "tiny" else [])]


def main(program):
    agents.set_tracing_disabled(True)
    count = 0
    for model, (file, *flags) in MODELS.items():
        with serving(program, work_model(file), *flags) as server:
            for name, kind, run in cases_of(model):
                began = time.monotonic()
                asyncio.run(run(House(server, kind)))
                print(f"ok      {name} ({1000 * (time.monotonic() - began):.0f} ms)", flush=True)
                count += 1
    print(f"{count} of {count} cases of agents are right")


if __name__ == "__main__":
    if sys.argv[1] == "--list":
        print("\n".join(name for model in MODELS for name, _, _ in cases_of(model)))
    else:
        main(sys.argv[1])

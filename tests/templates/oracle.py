# SPDX-License-Identifier: Apache-2.0
"""The oracle: Python's jinja2 set up as transformers sets it up, and the variables it passes."""
import datetime
import json

import jinja2
import jinja2.ext
import jinja2.sandbox


class Generation(jinja2.ext.Extension):
    """{% generation %} marks what the assistant says; the text is the same without it."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(
        x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


class Oracle:
    def __init__(self, source, bos, eos, date):
        env = jinja2.sandbox.ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
        )
        env.filters["tojson"] = tojson
        env.globals["raise_exception"] = raise_exception
        now = datetime.datetime.fromisoformat(date)
        env.globals["strftime_now"] = now.strftime
        self.template = env.from_string(source)
        self.bos, self.eos = bos, eos
        self.refusal = ""

    def render(self, request):
        """The text, or None when the template refuses; self.refusal says why."""
        try:
            return self.template.render(
                messages=[message(m) for m in request["messages"]],
                tools=[tool(t) for t in request.get("tools", [])] or None,
                documents=None,
                add_generation_prompt=True,
                bos_token=self.bos,
                eos_token=self.eos,
                **effort(request),
            )
        except (jinja2.exceptions.TemplateError, TypeError, ValueError, LookupError, RuntimeError,
                AttributeError) as refusal:
            self.refusal = f"{type(refusal).__name__}: {refusal}"
            return None


def effort(request):
    return {"reasoning_effort": request["reasoning_effort"]} if "reasoning_effort" in request else {}


def message(given):
    """What Hearth passes for one message of a request (src/templates/jinja_format.cc)."""
    role = "system" if given["role"] == "developer" else given["role"]
    out = {"role": role, "content": given.get("content") or ""}
    if given.get("reasoning_content"):
        out["reasoning_content"] = given["reasoning_content"]
        out["thinking"] = given["reasoning_content"]
    if given.get("tool_calls"):
        out["tool_calls"] = [tool_call(call) for call in given["tool_calls"]]
    if given.get("name"):
        out["name"] = given["name"]
    if given.get("tool_call_id"):
        out["tool_call_id"] = given["tool_call_id"]
    return out


def tool_call(given):
    arguments = given["function"]["arguments"]
    try:
        parsed = json.loads(arguments)
    except ValueError:
        parsed = None
    function = {
        "name": given["function"]["name"],
        "arguments": parsed if isinstance(parsed, dict) else arguments,
    }
    return {"type": "function", "id": given["id"], "function": function}


def tool(given):
    function = given["function"]
    out = {"name": function["name"], "description": function.get("description", "")}
    if function.get("parameters") is not None:
        out["parameters"] = function["parameters"]
    return {"type": "function", "function": out}

# SPDX-License-Identifier: Apache-2.0
"""docs/compatibility.md is what the server does: its column of requests is made of the tables that
requests are read with, its column of answers of what a running server sends.
usage: compatibility_test.py HEARTH [--write]"""
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "server"))

from serving import expect, serving, work_model

PAGE = HERE.parent.parent / "docs" / "compatibility.md"
OPENING = """# Compatibility, field by field

*Made by `tests/clients/compatibility_test.py HEARTH --write`; a test holds it to the server. Hearth's
columns come from its own field tables ([api.md](api.md)) and from what a running server sends.*

| in a column | a request's field is | an answer's field is |
|---|---|---|
| yes | honoured | sent |
| partly | honoured with the limits in the note | sent sometimes |
| ignored | known, taken, without effect | |
| refused | answered by a 400 that names it | |
| – | not known | not sent |
| ? | not verified | not verified |

What becomes of a field that a server does not know differs: OpenAI and Hearth refuse it by its name;
vLLM, llama-server and Ollama take the request and ignore the field. So a misspelt or unsupported
setting is an error here and silence there. With `hearth serve --unknown-fields warn` unknown fields are
ignored here too, and named in the header `x-hearth-ignored-fields`.

A conversation whose last message is the assistant's is continued, as at Anthropic and in llama-server
([templates.md](templates.md)); OpenAI and vLLM begin another message unless vLLM is told
`continue_final_message: true`, which works here as well. Where a model's template does not allow it the
answer is a 400. The name of the model in an answer is its own, whatever name it was asked under
(`--served-name`). Tools work with models whose template has none ([structured-output.md](structured-output.md)).

What is said of the others was read in their sources and documentation as of 2026 (mostly vLLM's and
Ollama's request types, llama-server's parser and README), not tried; they move fast. Anthropic
stands in OpenAI's place for `/v1/messages`. Every answer of Hearth is held to the types of the
`openai` and `@anthropic-ai/sdk` packages, nothing missing and nothing left over, by the tests in
`tests/clients` and `tests/server`.
"""
WORDS = {"y": "yes", "p": "partly", "i": "ignored", "r": "refused", "-": "–", "?": "?"}
HELLO = [{"role": "user", "content": "hello"}]
SCHEMA = {"type": "object", "properties": {}, "additionalProperties": False}
# Together these show every member that an answer can have.
ASKED = {
    "POST /v1/chat/completions": [
        {"messages": HELLO, "max_tokens": 2, "logprobs": True, "reasoning_effort": "none"},
        {"messages": HELLO, "max_tokens": 90, "reasoning_effort": "none", "tool_choice": "required",
         "tools": [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}]},
        {"messages": HELLO, "max_tokens": 30},
        # Noise seldom thinks by itself: 35644 is "analysis", the channel of thoughts.
        {"messages": HELLO, "max_tokens": 6, "logit_bias": {"35644": 100}},
    ],
    "POST /v1/completions": [{"prompt": "hello", "max_tokens": 2, "logprobs": 1}],
    "POST /v1/responses": [{"input": "hello", "max_output_tokens": 30, "temperature": 2}],
    "POST /v1/messages": [
        {"messages": HELLO, "max_tokens": 2, "thinking": {"type": "disabled"}},
        {"messages": HELLO, "max_tokens": 30, "temperature": 2,
         "thinking": {"type": "enabled", "budget_tokens": 4}},
        {"messages": HELLO, "max_tokens": 90, "thinking": {"type": "disabled"},
         "tools": [{"name": "f", "input_schema": SCHEMA}], "tool_choice": {"type": "any"}},
    ],
    "POST /v1/embeddings": [{"input": "hello"}],
    "GET /v1/models": [None],
}
NUM_SEEDS = 24


def read_peers():
    """{endpoint: {field: (four marks, note)}}; answers have "answer " before their endpoint."""
    peers = {}
    for line in (HERE / "peers.tsv").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            endpoint, field, *marks, note = line.split("\t")
            expect(len(marks) == 4 and set(marks) <= set(WORDS), f"four marks in {line}")
            rows = peers.setdefault(endpoint, {})
            expect(field not in rows, f"{endpoint} {field} to stand once")
            rows[field] = (marks, note)
    return peers


def own_fields(program):
    """{endpoint: {field: what becomes of it}} as `hearth api-docs` tells it."""
    text = subprocess.run([program, "api-docs"], capture_output=True, text=True, check=True).stdout
    found = {}
    for part in text.split("\n## ")[1:]:
        title, _, rest = part.partition("\n")
        rows = re.findall(r"^\| `(\w+)` \|[^|]*\|[^|]*\| (.*) \|$", rest, re.MULTILINE)
        if " /" in title and rows:
            found[title] = dict(rows)
    return found


def becomes(doc):
    """The short word for it."""
    if doc.startswith("**refused:** "):
        return "refused: " + doc.removeprefix("**refused:** ")
    if doc.startswith("*no effect:* "):
        return "ignored: " + doc.removeprefix("*no effect:* ")
    return "yes"


def paths(value, path=""):
    """Where the leaves of an answer are, as peers.tsv writes it."""
    if isinstance(value, dict) and value:
        return {p for k, v in value.items() for p in paths(v, f"{path}.{k}" if path else k)}
    if isinstance(value, list) and value:
        return {p for each in value for p in paths(each, path + "[]")}
    return {path}


def sent_fields(server, peers):
    """{endpoint: rows that were sent}, None for an endpoint that is not built."""
    sent = {}
    for endpoint, bodies in ASKED.items():
        method, target = endpoint.split()
        found = set()
        for body in bodies:
            has_seed = body is not None and "embeddings" not in endpoint
            for seed in range(NUM_SEEDS if has_seed else 1):  # noise does not always think or call
                asked = {**body, "seed": seed} if has_seed else body
                status, _, data = server.request(method, target, asked)
                if status == 501:
                    found = None
                    break
                expect(status == 200, f"an answer to {endpoint} {asked}: {data[:300]}")
                found |= paths(json.loads(data))
        rows = peers["answer " + endpoint]
        # An empty list is no news about the rows of its members.
        told = [p for p in found or () if not any(row.startswith(p + "[]") for row in rows)]
        sent[endpoint] = None if found is None else {row_of(p, rows) for p in told}
    return sent


def row_of(path, rows):
    """The row it is part of; one that nobody looked up at the others has its own."""
    at = path
    while at and at not in rows:
        at = re.sub(r"(\[\]|\.?[^.\[\]]+)$", "", at)
    return at or path


def table(endpoint, rows, hearth, first):
    out = [f"| field | Hearth | {first} | vLLM | llama-server | Ollama | note |",
           "|---|---|---|---|---|---|---|"]
    for field in sorted(rows):
        marks, note = rows[field]
        others = " | ".join(WORDS[mark] for mark in marks)
        out.append(f"| `{field}` | {hearth[field]} | {others} | {note} |")
    return "\n".join(out) + "\n"


def page(program, server):
    peers, own = read_peers(), own_fields(program)
    sent = sent_fields(server, peers)
    out = OPENING
    for endpoint in ASKED:
        first = "Anthropic" if "messages" in endpoint else "OpenAI"
        out += f"\n## {endpoint}\n"
        if sent[endpoint] is None:
            out += "\nNot built in Hearth: 501.\n"
        rows = dict(peers.get(endpoint, {}))
        fields = own.get(endpoint, {})
        for field in fields:
            rows.setdefault(field, (["?"] * 4, ""))
        if rows:
            missing = "–" if sent[endpoint] is None else "refused: not known"
            hearth = {f: becomes(fields[f]) if f in fields else missing for f in rows}
            out += "\n### Requests\n\n" + table(endpoint, rows, hearth, first)
        rows = dict(peers["answer " + endpoint])
        for field in sent[endpoint] or ():
            rows.setdefault(field, (["?"] * 4, ""))
        hearth = {f: "yes" if f in (sent[endpoint] or ()) else "–" for f in rows}
        out += "\n### Answers\n\n" + table(endpoint, rows, hearth, first)
    return out


def main(program, write=""):
    with serving(program, work_model("tiny-oss-o200k.gguf")) as server:
        text = page(program, server)
    if write == "--write":
        PAGE.write_text(text, encoding="utf-8")
    expect(PAGE.read_text(encoding="utf-8") == text,
           f"docs/compatibility.md to be current; make it with: {sys.argv[0]} HEARTH --write")
    print(f"{text.count(chr(10) + '| `')} fields are as docs/compatibility.md says")


if __name__ == "__main__":
    main(*sys.argv[1:])

# SPDX-License-Identifier: Apache-2.0
"""Scenes of showing: Markdown, reasoning, colours, screen readers, pipes and what goes wrong."""
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile

from fake_server import FakeServer, words
from scenes_typing import talker
from talker import CTRL_C, CTRL_D, ENTER, PROGRAM, Talker, expect, run, same, work_model

MARKDOWN = """# Title

Some **bold** and *slanted* text with `co*d*e` and 2 * 3 * 4.

- first
- second

```python
x = a ** b  # **kept**
```
The **end"""
THINKING = [(0.1, {"reasoning_content": "Let me think. "}), (0.1, {"reasoning_content": "Yes: 世界."}),
            (0.3, {"content": "The answer."})]
ESCAPE = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")


def markdown():
    # In pieces of three characters: marks come in halves.
    pieces = [(0, {"content": MARKDOWN[i:i + 3]}) for i in range(0, len(MARKDOWN), 3)]
    with FakeServer({"md": pieces}) as server, talker(server) as talk:
        talk.send("md")
        shown = talk.shown()[3:]
        same(shown[:11],
             ["# Title", "", "Some bold and slanted text with co*d*e and 2 * 3 * 4.", "",
              "\u2022 first", "\u2022 second", "", "```python", "x = a ** b  # **kept**", "```",
              "The **end"], "the text")
        for text, marks in (("Title", {"bold"}), ("bold", {"bold"}), ("slanted", {"italics"}),
                            ("Some", set()), ("kept", set()), ("The **end", set())):
            for cell in talk.cells(text):
                found = {mark for mark in ("bold", "italics") if getattr(cell, mark)}
                same(found, marks, f"the style of {text!r}")
        for text, colour in (("co*d*e", "cyan"), ("x = a ** b", "cyan"), ("text with", "default")):
            same({cell.fg for cell in talk.cells(text)}, {colour}, f"the colour of {text!r}")


def folded_reasoning():
    with FakeServer({"q": THINKING}) as server, talker(server) as talk:
        talk.type(b"q" + ENTER)
        talk.until("thinking: Let me think. Yes: 世")
        talk.at_prompt()
        same(talk.shown()[3:5], ["[thought for N s, 5 words]", "The answer."], "folded")
        talk.send("/thoughts")
        expect("Let me think. Yes:" in talk.text(), talk.text())
        same(server.bodies[0]["messages"][-1]["content"], "q", "the message")


def shown_reasoning():
    with FakeServer({"q": THINKING}) as server, talker(server) as talk:
        talk.send("/set reasoning show")
        talk.send("q")
        text = talk.text()
        expect("Let me think. Yes: 世" in text and "thought for" not in text, text)
        expect(b"\x1b[2mLet me think. \x1b[0m" in talk.raw, "dimmed")
        expect("The answer." in talk.lines(), text)


def hidden_reasoning():
    with FakeServer({"q": THINKING}) as server, talker(server, "--reasoning", "hide") as talk:
        talk.send("q")
        expect(b"think" not in talk.raw and "The answer." in talk.text(), talk.text())


def a_narrow_terminal():
    with FakeServer({"q": THINKING}) as server, talker(server, columns=24, rows=12) as talk:
        talk.type(b"q" + ENTER)
        talk.until("The answer.")
        talk.at_prompt()
        expect(talk.text().count("thinking") == 0, "the folded line fits and goes:\n" + talk.text())


def resize_amid_a_reply():
    thoughts = [(0.1, {"reasoning_content": f"thought {i} "}) for i in range(8)]
    with FakeServer({"q": [*thoughts, *words("done now")]}) as server, talker(server) as talk:
        talk.type(b"q" + ENTER)
        talk.until("thought 2")
        talk.resize(30, 12)
        talk.until("done now")
        talk.at_prompt()
        expect("thinking:" not in talk.text(), talk.text())


def no_colour():
    with FakeServer({"md": "**bold** `code`", "q": THINKING}) as server:
        with talker(server, env={"NO_COLOR": "1"}) as talk:
            talk.send("md")
            talk.send("q")
            expect(not re.search(rb"\x1b\[[0-9;]*m", talk.raw), "no style is set")
            expect("**bold** `code`" in talk.lines(), "the text as it was written")


def screen_reader(*flags, env=None):
    """No command to the terminal at all, and no line twice."""
    with FakeServer({"md": "**bold** text", "q": THINKING}) as server:
        with talker(server, *flags, env=env) as talk:
            talk.send("md")
            talk.send("q")
            talk.send("/set reasoning show")
            talk.send("q")
            expect(b"\x1b" not in talk.raw, repr(ESCAPE.findall(talk.raw)))
            text = talk.text()
            expect("**bold** text" in talk.lines() and "[thought for" in text, text)
            expect("[thinking]" in text and "[answer]" in text, text)
            talk.type(CTRL_C)
            talk.until("Ctrl-C again ends")
            talk.at_prompt()
            talk.type(b"half" + CTRL_C)
            same(talk.end(), 0, "Ctrl-C twice")


def plain():
    screen_reader("--plain")


def dumb_terminal():
    screen_reader(env={"TERM": "dumb"})


def plain_interrupts_a_reply():
    script = {"count": words("one two three four five six", 0.2)}
    with FakeServer(script) as server, talker(server, "--plain") as talk:
        talk.type(b"count" + ENTER)
        talk.until("two")
        talk.type(CTRL_C)
        talk.until("[interrupted]")
        talk.at_prompt()
        talk.type(CTRL_D)
        same(talk.end(), 0, "the end")


def replies_cannot_command_the_terminal():
    script = {"x": "a\x1b[2J\x1b]0;title\x07b", "y": [(0, {"reasoning_content": "\x1b[31mred"}),
                                                      (0.1, {"content": "c"})]}
    with FakeServer(script) as server, talker(server, "--reasoning", "show") as talk:
        talk.send("x")
        expect("a\\x1b[2J\\x1b]0;title\\x07b" in talk.text(), talk.text())
        talk.send("y")
        expect("\\x1b[31mred" in talk.text() and talk.screen.title == "", talk.text())


def a_pipe_in_and_out():
    with FakeServer({"review this\n\n+ line\n- line": "Looks **good**", "q": THINKING}) as server:
        flags = ("--server", server.url, "quill")
        code, out, err = run(*flags, "review", "this", stdin=b"+ line\n- line\n")
        same((code, out, err), (0, "Looks **good**\n", ""), "a prompt, and what is piped in")
        code, out, err = run(*flags, stdin=b"line one\n/help\nline three\n")
        same(server.said(), [("user", "line one\n/help\nline three")], "all input is one message")
        same(out, "You said: line one\n/help\nline three\n", "its reply")
        same(run(*flags, "--prompt", "alone")[1], "You said: alone\n", "--prompt")
        same(run(*flags, "q")[1:], ("The answer.\n", ""), "no reasoning in a pipe")
        out = run(*flags, "--reasoning", "show", "q")[1]
        expect("Let me think." in out and "\x1b" not in out, out)
        code, out, err = run(*flags, stdin=b"")
        expect(code == 1 and "the message is empty" in err, err)
        code, out, err = run(*flags, "x", stdin=b"a\xffb")
        expect(code == 1 and "not UTF-8 text: found byte 0xff at offset 1" in err, err)
        code, _, err = run(*flags, "word", "--prompt", "x")
        expect(code == 1 and "give one of them" in err, err)


def a_broken_pipe():
    script = {"count": words("one\n" + "more and more " * 2000)}
    with FakeServer(script) as server:
        command = f'"{PROGRAM}" run quill --server {server.url} count | head -1'
        done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=60, check=False)
        same((done.stdout, done.stderr), (b"one\n", b""), "head -1 ends it quietly")
        # A parent that ignores SIGPIPE hands that down.
        reader, writer = os.pipe()
        os.close(reader)
        child = subprocess.Popen([PROGRAM, "run", "quill", "--server", server.url, "count"],
                                 stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.PIPE,
                                 restore_signals=False,
                                 preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN))
        os.close(writer)
        err = child.communicate(timeout=30)[1]
        same((child.returncode, err), (0, b""), "without SIGPIPE too")


def a_full_disk():
    with FakeServer() as server, open("/dev/full", "wb") as full:
        done = subprocess.run([PROGRAM, "run", "quill", "--server", server.url, "x"],
                              stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE,
                              timeout=30, check=False)
        expect(done.returncode == 1 and b"cannot write the reply: No space left" in done.stderr,
               done.stderr)


def servers_that_fail():
    half = [(0, {"content": "half of "}), (0.1, None)]
    with FakeServer({"half": half, "no": 429}) as server, talker(server) as talk:
        talk.send("half")
        expect("the server ended the stream before the reply was complete" in talk.text(),
               talk.text())
        talk.send("no")
        expect("refused with 429" in talk.text(), talk.text())
        talk.send("fine")
        same(server.said(), [("user", "fine")], "failed turns are not part of the conversation")
        url = server.url
    code, _, err = run("quill", "--server", url, "x")
    expect(code == 1 and "is `hearth serve` running there?" in err, err)


def servers_by_name():
    with FakeServer() as server:
        code, out, _ = run("pen", "x", env={"HEARTH_SERVER": server.url + "/v1/"})
        same((code, out, server.last("model")), (0, "You said: x\n", "pen"), "HEARTH_SERVER")
        code, _, err = run("ink", "--server", server.url, "x")
        expect(code == 1 and 'model "ink" not found; available: quill, pen' in err, err)
        code, _, err = run("--server", server.url, "--prompt", "x")
        expect(code == 1 and "name one of its models: quill, pen" in err, err)
        code, _, err = run("quill", "--server", server.url, "--threads", "2", "x")
        expect(code == 1 and "--threads is for a model in this process" in err, err)
    code, _, err = run("quill", "--server", "quill.example", "x")
    expect(code == 1 and "starts with http://" in err, err)
    code, _, err = run()
    expect(code == 2 and "MODEL" in err, err)


def a_schema_at_a_server():
    with tempfile.TemporaryDirectory() as folder, FakeServer() as server:
        path = pathlib.Path(folder, "schema.json")
        path.write_text('{"type": "object"}')
        run("quill", "--server", server.url, "--json-schema", str(path), "x")
        same(server.last("response_format")["json_schema"]["schema"], {"type": "object"}, "sent")
        path.write_text("{")
        code, _, err = run("quill", "--server", server.url, "--json-schema", str(path), "x")
        expect(code == 1 and str(path) in err, err)


def a_schema_in_process():
    model = work_model("smollm2.gguf")
    schema = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20},
                                               "big": {"type": "boolean"}},
              "required": ["city", "big"], "additionalProperties": False}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "schema.json")
        path.write_text(json.dumps(schema))
        flags = (model, "--json-schema", str(path), "--temperature", "0", "--threads", "1")
        code, out, err = run(*flags, "Is Paris big? Answer in JSON.")
        same(code, 0, err)
        reply = json.loads(out)
        expect(set(reply) == {"city", "big"} and isinstance(reply["big"], bool), out)
        code, _, err = run(*flags, "--max-tokens", "3", "Is Paris big?")
        expect(code == 1 and "not complete" in err, f"{code}: {err}")
        path.write_text('{"type": "nonsense"}')
        code, out, err = run(*flags, "x")
        expect(code == 1 and out == "" and "--json-schema" in err, err)


def without_a_terminal_to_write_to():
    """Keys from a terminal, replies to a file: the prompt and notes stay on the terminal."""
    with FakeServer() as server, tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "out.txt")
        command = f'"{PROGRAM}" run quill --server {server.url} > {path}'
        talk = Talker(program=["bash", "-c", command])
        with talk:
            talk.at_prompt()
            talk.send("hello")
            talk.type(CTRL_D)
            same(talk.end(), 0, "the end")
        same(path.read_text(), "You said: hello\n", "only the reply is in the file")

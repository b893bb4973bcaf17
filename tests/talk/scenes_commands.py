# SPDX-License-Identifier: Apache-2.0
"""Scenes of commands, each as it looks and as what the server then hears; and of models in this
process, whose cache is kept from turn to turn."""
import json
import pathlib
import re
import shutil

from fake_server import FakeServer
from scenes_typing import talker
from talker import CTRL_D, Talker, expect, same, work_model


def help_command():
    with FakeServer() as server, talker(server) as talk:
        talk.send("/help")
        shown = talk.shown()
        same(shown[3], "/help                    this list", "the first line")
        names = [line.split()[0] for line in shown[3:-1]]
        same(names, ["/help", "/system", "/model", "/set", "/retry", "/undo", "/save", "/load",
                     "/file", "/thoughts", "/stats", "/bye", "//TEXT", '"""', "Alt-Enter"],
             "every command")
        same(len(server.bodies), 0, "commands are not sent")


def near_commands():
    with FakeServer() as server, talker(server) as talk:
        talk.send("/hlep")
        talk.send("/zzz")
        same(talk.shown()[2:6],
             ["> /hlep", "unknown command /hlep; did you mean /help?", "> /zzz",
              "unknown command /zzz; /help lists the commands, and // sends a message that starts "
              "with a slash"],
             "the screen")
        same(len(server.bodies), 0, "nothing is sent")


def slashes_in_messages():
    with FakeServer() as server, talker(server) as talk:
        talk.send("//help me")
        same(server.said()[-1], ("user", "/help me"), "two slashes are one")
        talk.send("/usr/bin/env is what?")
        same(server.said()[-1], ("user", "/usr/bin/env is what?"), "a path is a message")


def system_command():
    with FakeServer() as server, talker(server, "--system", "Be kind.") as talk:
        talk.send("x")
        same(server.said()[0], ("system", "Be kind."), "--system")
        talk.send("/system")
        talk.send("/system Be brief.")
        talk.send("y")
        same([row for row in server.said() if row[0] == "system"], [("system", "Be brief.")], "set")
        talk.send("/system clear")
        talk.send("z")
        same(server.said()[0], ("user", "x"), "cleared")
        expect("Be kind." in talk.text() and "system prompt removed" in talk.text(), talk.text())


def model_command():
    with FakeServer() as server, talker(server) as talk:
        talk.send("x")
        talk.send("/model pen")
        talk.send("y")
        same((server.last("model"), len(server.said())), ("pen", 3), "the conversation goes on")
        talk.send("/model ink")
        expect('model "ink" not found; available: quill, pen' in talk.text().replace("\n", ""),
               talk.text())
        talk.send("/model")
        expect(f"pen at {server.url}, 1000 tokens of context" in talk.lines(), talk.text())


def set_command():
    with FakeServer() as server, talker(server) as talk:
        talk.send("/set")
        same(talk.shown()[3:6], ["temperature  default", "top-p        default",
                                 "min-p        default"], "the list")
        for line in ("temperature 0.5", "top-k 3", "seed 7", "max-tokens 50", "effort low"):
            talk.send("/set " + line)
        talk.send("x")
        sent = {name: server.last(name) for name in ("temperature", "top_k", "seed", "max_tokens",
                                                     "reasoning_effort", "top_p")}
        same(sent, {"temperature": 0.5, "top_k": 3, "seed": 7, "max_tokens": 50,
                    "reasoning_effort": "low", "top_p": None}, "what is sent")
        talk.send("/set temperature hot")
        talk.send("/set colour red")
        text = talk.text().replace("\n", "")
        expect('temperature: expected a number from 0 to 10, found "hot"' in text, talk.text())
        expect('unknown setting "colour"' in text, talk.text())
        talk.send("y")
        same((server.last("temperature"), server.last("seed")), (0.5, 8), "other draws each turn")


def retry_command():
    with FakeServer() as server, talker(server) as talk:
        talk.send("one")
        talk.send("two")
        talk.send("/retry")
        same([text for _, text in server.said()], ["one", "You said: one", "two"], "asked again")
        same(len(server.bodies), 3, "one more turn")
        talk.send("three")
        same(len(server.said()), 5, "the older reply is gone")


def undo_command():
    with FakeServer() as server, talker(server) as talk:
        talk.send("/undo")
        expect("there is nothing to take back" in talk.text(), talk.text())
        talk.send("one")
        talk.send("two")
        talk.send("/undo")
        expect('taken back: "two"' in talk.lines(), talk.text())
        talk.send("three")
        same([text for _, text in server.said()], ["one", "You said: one", "three"], "without two")


def save_and_load():
    with FakeServer() as server:
        with talker(server) as talk:
            talk.send("remember 世界")
            talk.send("/save chat.json")
            expect("2 messages saved to chat.json" in talk.lines(), talk.text())
            kept = pathlib.Path(talk.folder.name, "chat.json").read_text()
            talk.send("/undo")
            talk.send("/load chat.json")
            expect("2 messages loaded from chat.json" in talk.lines(), talk.text())
            talk.send("and?")
            same(len(server.said()), 3, "the loaded conversation goes on")
            pathlib.Path(talk.folder.name, "other").write_text("precious")
            talk.send("/save other")
            expect("other exists; `/save -f other` replaces it" in talk.lines(), talk.text())
            talk.send("/load other")
            expect("other: " in talk.text(), talk.text())
        same([row["content"] for row in json.loads(kept)["messages"]],
             ["remember 世界", "You said: remember 世界"], "the file is what the API takes")


def file_command():
    with FakeServer() as server, talker(server) as talk:
        pathlib.Path(talk.folder.name, "notes.md").write_text("```\ncode\n```\n")
        pathlib.Path(talk.folder.name, "noise").write_bytes(b"\xff\xfe\0")
        talk.send("/file notes.md")
        expect("notes.md (13 bytes) goes with the next message" in talk.lines(), talk.text())
        talk.send("explain")
        same(server.said()[0][1], "explain\n\nnotes.md:\n````\n```\ncode\n```\n````", "with the file")
        talk.send("/file absent.txt")
        talk.send("/file noise")
        talk.send("/file")
        text = talk.text()
        expect("absent.txt" in text and "noise is not UTF-8 text" in text, text)
        talk.send("again")
        same(server.said()[-1][1], "again", "only once")


def stats_command():
    with FakeServer() as server, talker(server) as talk:
        talk.send("one")
        talk.send("two")
        talk.send("/stats")
        same(talk.shown()[-3:-1],
             ["2 replies: 6 tokens generated, 40 prompt tokens, 20 of them cached, N s",
              "context: 33 of 1000 tokens after the last reply"], "the sums")


def bye_commands():
    for command in (b"/bye\r", b"/exit\r", b"/quit\r"):
        with FakeServer() as server, talker(server) as talk:
            talk.type(command)
            same(talk.end(), 0, f"{command!r} ends")


def local(*flags, temperature="0", **options):
    # One thread: on a busy machine two wait for each other.
    started = Talker(work_model("smollm2.gguf"), "--temperature", temperature, "--threads", "1",
                     *flags, **options)
    started.at_prompt()
    return started


def cached(talk):
    """(cached, prompt) tokens of each turn on the screen, oldest first."""
    joined = talk.text().replace("\n", " ")
    return [(int(a), int(b)) for a, b in re.findall(r"(\d+) of (\d+) prompt tokens cached", joined)]


def the_cache_in_process():
    with local("--max-tokens", "24", rows=40) as talk:
        expect("smollm2 in this process, 8192 tokens of context" in talk.lines(), talk.text())
        talk.send("What is the capital of France?")
        expect("Paris" in talk.text(), talk.text())
        talk.send("And of Italy?")
        expect("Rome" in talk.text(), "the second question means nothing without the first:\n"
               + talk.text())
        talk.send("/retry")
        talk.send("/undo")
        talk.send("And of Spain?")
        turns = cached(talk)
        same(len(turns), 4, f"four turns: {turns}")
        (_, first), (second, both), (again, same_prompt), (other, _) = turns
        # Blocks of 16 tokens are cached when they are full.
        expect(second > first - 16, f"the second turn reads only what is new: {turns}")
        expect(again > same_prompt - 17 and same_prompt == both,
               f"a retry reads almost nothing: {turns}")
        expect(other > first - 16, f"after /undo the first turn is still there: {turns}")
        talk.type(CTRL_D)
        same(talk.end(), 0, "the end")


def interrupt_a_reply_in_process():
    with local(temperature="1.5", rows=40) as talk:
        talk.type(b"Count to ten thousand.\r")
        before = len(talk.raw)
        while len(talk.raw) < before + 200 and talk.process.poll() is None:
            talk.drain(0.1)
        talk.type(b"\x03")
        talk.until("[interrupted]")
        talk.at_prompt()
        talk.send("/stats")
        expect("1 reply:" in talk.text(), talk.text())


def another_model_in_process():
    with local("--max-tokens", "8", rows=30) as talk:
        shutil.copy(work_model("smollm2.gguf"), pathlib.Path(talk.folder.name, "copy.gguf"))
        talk.send("Hello")
        talk.send("/model nowhere.gguf")
        expect("nowhere.gguf" in talk.text(), talk.text())
        talk.send("/model copy.gguf")
        expect("copy in this process" in talk.text(), talk.text())
        talk.send("Hello again")
        turns = cached(talk)
        expect(turns[-1][0] == 0 and turns[-1][1] > turns[0][1], f"another cache: {turns}")


def a_context_that_fills():
    with local("--context", "128", "--max-tokens", "200", rows=40) as talk:
        talk.send("Tell me a long story about a fox.")
        expect("[stopped: the context is full]" in talk.lines(), talk.text())
        talk.send("Go on.")
        expect("but the context length is 128" in talk.text(), talk.text())
        talk.send("/undo")
        talk.send("Hi")
        same(len(cached(talk)), 2, "after /undo there is room again")

# SPDX-License-Identifier: Apache-2.0
"""Scenes of typing: keys, history, pastes, interrupts, sizes and characters."""
import pathlib
import signal
import stat
import tempfile
import termios

from fake_server import FakeServer, words
from talker import (CTRL_C, CTRL_D, ENTER, LEFT, UP, Talker, expect, paste, run, same, work_model)

GREETING = ["/help lists the commands; Ctrl-C stops a reply, Ctrl-D ends"]


def talker(server, *flags, **options):
    started = Talker("quill", "--server", server.url, *flags, **options)
    started.at_prompt()
    return started


def a_turn():
    with FakeServer() as server, talker(server) as talk:
        talk.send("hello world")
        same(talk.shown(),
             [f"quill at {server.url}, 1000 tokens of context", *GREETING, "> hello world",
              "You said: hello world",
              "4 tokens, N tokens/s, first after N s, 0 of 10 prompt tokens cached", ">"],
             "the screen of a turn")
        talk.send("again")
        expect("20 of 30 prompt tokens cached" in talk.text(), talk.text())
        same(server.said(), [("user", "hello world"), ("assistant", "You said: hello world"),
                             ("user", "again")], "the second turn has the first")
        talk.type(CTRL_D)
        same(talk.end(), 0, "Ctrl-D ends")


def editing_keys():
    with FakeServer() as server, talker(server) as talk:
        talk.type(b"helo")
        talk.type(LEFT + b"l")           # hello
        talk.type(b"\x1b[H" + b"oh, ")   # Home
        talk.type(b"\x1b[F" + b" you")   # End
        talk.type(b"\x17" + b"there")    # Ctrl-W takes a word
        talk.type(b"\x01\x1b[3~" + b"O")  # Ctrl-A, Delete
        talk.settle()
        expect("> Oh, hello there" in talk.lines(), talk.text())
        expect("^[" not in talk.text(), "no key is shown as its code")
        talk.type(ENTER)
        talk.at_prompt()
        same(server.said()[-1][1], "Oh, hello there", "what was sent")


def history_keys():
    with tempfile.TemporaryDirectory() as state, FakeServer() as server:
        with talker(server, state=state) as talk:
            talk.send("first")
            talk.send("second 世界")
            talk.type(UP + UP)
            talk.settle()
            expect(talk.lines()[talk.screen.cursor.y] == "> first", talk.text())
            talk.type(b"!" + ENTER)
            talk.at_prompt()
            same(server.said()[-1][1], "first!", "an older message, changed")
            talk.type(CTRL_D)
            talk.end()
        path = pathlib.Path(state) / "hearth/history"
        same(stat.S_IMODE(path.stat().st_mode), 0o600, "the history is its owner's")
        same(path.read_text(), '"first"\n"second 世界"\n"first!"\n', "the history")
        with talker(server, state=state) as talk:
            talk.type(UP + UP + ENTER)
            talk.at_prompt()
            same(server.said(), [("user", "second 世界")], "another chat has the history")
        with talker(server, "--no-history", state=state) as talk:
            talk.send("secret")
        expect("secret" not in path.read_text(), "--no-history")


def a_paste_is_one_message():
    with FakeServer() as server, talker(server) as talk:
        talk.type(paste("line one\nline two\n  three"))
        talk.settle()
        same(talk.shown()[-3:], ["> line one", "line two", "  three"], "the pasted lines")
        same(len(server.bodies), 0, "nothing is sent yet")
        talk.type(b"!" + ENTER)
        talk.at_prompt()
        same(server.said(), [("user", "line one\nline two\n  three!")], "one message")


def a_long_paste_is_named():
    text = "\n".join(f"row {i}" for i in range(300))
    with FakeServer() as server, talker(server) as talk:
        talk.type(b"see ")
        talk.type(paste(text))
        talk.settle()
        expect(f"> see [paste 1: 300 lines, {len(text)} bytes]" in talk.text(), talk.text())
        talk.type(b" please" + ENTER)
        talk.at_prompt()
        same(server.said()[0][1], f"see {text} please", "all of it is sent")


def a_paste_of_keys_is_text():
    """What a paste spells is never a key: not Ctrl-C's neighbours, not a command's Enter."""
    with FakeServer() as server, talker(server) as talk:
        talk.type(paste("/bye\nx\x04\x15y"))
        talk.type(ENTER)
        talk.at_prompt()
        expect("/bye takes no arguments" in talk.text(), talk.text())
        same((talk.process.poll(), len(server.bodies)), (None, 0), "neither ended nor sent")


def alt_enter_and_quotes():
    with FakeServer() as server, talker(server) as talk:
        talk.type(b"one\x1b\rtwo" + ENTER)
        talk.at_prompt()
        same(server.said()[-1][1], "one\ntwo", "Alt-Enter")
        talk.type(b'"""three' + ENTER)
        talk.settle()
        expect(talk.lines()[talk.screen.cursor.y] == ".", talk.text())
        talk.type(b'/four' + ENTER)
        talk.settle()
        talk.type(b'five"""' + ENTER)
        talk.at_prompt()
        same(server.said()[-1][1], "three\n/four\nfive", "quotes around lines")


def wide_characters():
    with FakeServer() as server, talker(server, columns=30) as talk:
        talk.type("世界🙂e".encode())
        talk.settle()
        same(talk.screen.cursor.x, 2 + 2 + 2 + 2 + 1, "columns of wide characters")
        talk.type(LEFT + b"\x7f")  # the smile goes
        talk.settle()
        same(talk.screen.cursor.x, 2 + 4, "a wide character takes two columns with it")
        talk.type("界".encode() * 14 + ENTER)
        talk.at_prompt()
        same(server.said()[0][1], "世界" + "界" * 14 + "e", "over the edge of the screen")


def another_locale():
    with FakeServer() as server, talker(server, env={"LC_ALL": "C"}) as talk:
        talk.send("Grüße 世界")
        same(server.said()[0][1], "Grüße 世界", "UTF-8 whatever the locale says")
        expect("You said: Grüße 世" in talk.text(), talk.text())


def resize_while_typing():
    with FakeServer() as server, talker(server, columns=40) as talk:
        talk.type(b"x" * 50)
        talk.settle()
        talk.resize(80, 20)
        talk.settle(0.3)
        expect("> " + "x" * 50 in talk.lines(), "one line of the wider terminal:\n" + talk.text())
        talk.type(b"\x1b[H")
        talk.settle()
        same(talk.screen.cursor.x, 2, "the line is where the editor believes it is")
        talk.type(b"\x1b[F")
        talk.type(b"y" + ENTER)
        talk.at_prompt()
        same(server.said()[0][1], "x" * 50 + "y", "nothing is lost")
        talk.resize(20, 10)
        talk.type(b"z" * 30)
        talk.settle(0.3)
        expect("z" * 12 in talk.lines()[talk.screen.cursor.y], talk.text())


def interrupt_at_an_empty_prompt():
    with FakeServer() as server, talker(server) as talk:
        talk.type(CTRL_C)
        talk.until("Ctrl-C again ends")
        talk.at_prompt()
        talk.send("still here")
        same(len(server.bodies), 1, "one Ctrl-C ends nothing")
        talk.type(CTRL_C)
        talk.until("Ctrl-C again ends", times=2)
        talk.at_prompt()
        talk.type(CTRL_C)
        same(talk.end(), 0, "the second one in a row ends")


def interrupt_half_a_line():
    with FakeServer() as server, talker(server) as talk:
        for times in range(1, 4):
            talk.type(b"half a li" + LEFT * times)
            talk.until("half a li", times=times)
            talk.settle()
            talk.type(CTRL_C)
            talk.until("> half a li^C", times=times)
            talk.at_prompt()
        talk.send("whole")
        same(server.said(), [("user", "whole")], "what was given up is not sent")


def interrupt_while_streaming():
    script = {"count": words("one two three four five six seven eight nine ten", 0.15)}
    with FakeServer(script) as server, talker(server) as talk:
        talk.type(b"count" + ENTER)
        talk.until("three")
        talk.type(CTRL_C)
        talk.until("[interrupted]")
        talk.at_prompt()
        expect("ten" not in talk.text(), talk.text())
        expect(server.gone.wait(5), "the server sees that nobody listens")
        talk.send("next")
        same(server.said()[0], ("user", "count"), "the message stays")
        expect(server.said()[1][1].startswith("one two three"), "and what came of its reply")


def interrupt_while_reading():
    with FakeServer({"long": words("late", 30)}) as server, talker(server) as talk:
        talk.type(b"long" + ENTER)
        talk.until("reading the prompt")
        talk.type(CTRL_C)
        talk.until("[interrupted; the message was taken back]")
        talk.at_prompt()
        expect("reading the prompt" not in talk.text(), "the line of waiting is gone")
        talk.send("short")
        same(server.said(), [("user", "short")], "as if it had never been asked")


def interrupt_while_loading():
    """Nothing is there to be stopped but the program: it ends as others do, the terminal is whole."""
    with Talker(work_model("smollm2.gguf"), "--threads", "1") as talk:
        talk.until("loading")
        # It stands still until the key is there: loading must not end first.
        talk.process.send_signal(signal.SIGSTOP)
        talk.type(CTRL_C)
        talk.process.send_signal(signal.SIGCONT)
        same(talk.end(), -signal.SIGINT, "ended by Ctrl-C")


def interrupt_while_prefilling():
    with Talker(work_model("smollm2.gguf"), "--threads", "1", "--isa", "avx2") as talk:
        talk.at_prompt()
        talk.type(paste("word " * 6000) + ENTER)
        talk.until("reading the prompt")
        talk.type(CTRL_C)
        talk.until("[interrupted; the message was taken back]")
        talk.at_prompt()
        talk.type(CTRL_D)
        same(talk.end(), 0, "the end")


def signals_that_end():
    for number in (signal.SIGTERM, signal.SIGHUP):
        with FakeServer() as server, talker(server) as talk:
            talk.type(b"half")
            talk.settle()
            talk.process.send_signal(number)
            same(talk.end(), 0, f"{number} at the prompt")
    script = {"count": words("one two three four", 0.3)}
    with FakeServer(script) as server, talker(server) as talk:
        talk.type(b"count" + ENTER)
        talk.until("two")
        talk.process.send_signal(signal.SIGTERM)
        same(talk.end(), 0, "SIGTERM amid a reply")


def keys_during_a_reply():
    script = {"count": words("one two three four five", 0.2)}
    with FakeServer(script) as server, talker(server) as talk:
        talk.type(b"count" + ENTER)
        talk.until("two")
        talk.type(b"next one" + ENTER)
        talk.until("five")
        expect("one two three four five" in talk.lines(), "keys do not show amid a reply:\n"
               + talk.text())
        talk.until("You said: next one")
        talk.at_prompt()
        same(server.said()[-1], ("user", "next one"), "they are the next line")


def completion():
    with FakeServer() as server, talker(server) as talk:
        talk.type(b"/he\t")
        talk.settle()
        same(talk.lines()[talk.screen.cursor.y], "> /help", "one command begins so")
        talk.type(b"\x15/s\t")
        talk.settle()
        same(talk.lines()[talk.screen.cursor.y], "> /s", "several begin so")
        talk.type(b"y\t" + b"be brief" + ENTER)
        talk.at_prompt()
        talk.send("x")
        same(server.said()[0], ("system", "be brief"), "/system")


def stopped_and_continued():
    with FakeServer() as server, talker(server) as talk:
        talk.type(b"half")
        talk.settle()
        editing = talk.modes()
        talk.process.send_signal(signal.SIGSTOP)
        termios.tcsetattr(talk.slave, termios.TCSANOW, talk.modes_before)  # as a shell does
        talk.process.send_signal(signal.SIGCONT)
        talk.settle(0.3)
        same(talk.modes(), editing, "the line editor's modes are back")
        talk.type(b" done" + ENTER)
        talk.at_prompt()
        same(server.said()[0][1], "half done", "the line goes on")

# SPDX-License-Identifier: Apache-2.0
"""hearth run: a real conversation with SmolLM2, its end of turn, piped input, reproducibility."""
import os
import pty
import select
import signal
import sys
import time

from models import expect, hearth, work_model

MODEL = work_model("smollm2.gguf")


def answers_and_stops():
    code, out, err = hearth("run", "--model", MODEL, "--temperature", "0", "--max-tokens", "60",
                            "--prompt", "What is the capital of France?")
    expect(code == 0, f"exit {code}: {err}")
    expect("Paris" in out, f"the capital of France: {out!r}")
    expect("stopped" not in err, f"the model ends its own turn: {err!r}")
    expect("<|" not in out, f"no control token is shown: {out!r}")
    return out


def same_twice_and_on_the_reference(first):
    again = hearth("run", "--model", MODEL, "--temperature", "0", "--max-tokens", "60",
                   "--prompt", "What is the capital of France?", "--threads", "1")[1]
    expect(again == first, f"another thread count changed the reply: {again!r}")
    args = ("run", "--model", MODEL, "--max-tokens", "12", "--seed", "5", "--prompt", "Hi")
    expect(hearth(*args)[1] == hearth(*args)[1], "same seed, same reply")
    expect(hearth(*args)[1] != hearth(*args[:-3], "6", *args[-2:])[1], "another seed differs")


def input_is_one_message():
    """Lines were messages once; a file of two lines is one question. Turns: tests/talk."""
    flags = ("run", MODEL, "--temperature", "0", "--max-tokens", "40")
    question = "What is the capital of France?\nAnswer with one word."
    code, out, err = hearth(*flags, stdin=question + "\n")
    expect(code == 0 and err == "", f"exit {code}: {err}")
    expect(out == hearth(*flags, "--prompt", question)[1], f"the same as a prompt: {out!r}")
    parts = hearth(*flags, "What is the capital of France?", stdin="Answer with one word.\n")[1]
    joined = question.replace("\n", "\n\n")
    expect(parts == hearth(*flags, joined)[1], f"a prompt, then the input: {parts!r}")


def length_is_told():
    code, _, err = hearth("run", "--model", MODEL, "--max-tokens", "3", "--temperature", "0",
                          "--prompt", "Tell me a long story.")
    expect(code == 0 and "[stopped: the reply reached --max-tokens]" in err,
           f"a cut reply says so: {err!r}")


def flags_that_mean_nothing_here_are_refused():
    for flags, told in ((("--reasoning-effort", "high"), "no reasoning effort"),
                        (("--context", "100000"), "more than the model's maximum")):
        code, out, err = hearth("run", "--model", MODEL, *flags, "--prompt", "Hi")
        expect(code != 0 and out == "" and told in err, f"{flags}: exit {code}, {out!r}, {err!r}")


def interrupt_ends_the_reply():
    """Ctrl-C in the middle of a reply: the program says so and exits cleanly."""
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.argv[1], [sys.argv[1], "run", "--model", MODEL, "--max-tokens", "100000",
                               "--plain", "--temperature", "1.5", "--prompt", "Count to ten thousand."])
    seen = b""
    deadline = time.time() + 300
    while len(seen) < 20 and time.time() < deadline:
        if select.select([terminal], [], [], 1)[0]:
            seen += os.read(terminal, 4096)
    os.kill(child, signal.SIGINT)
    while time.time() < deadline:
        try:
            if select.select([terminal], [], [], 1)[0]:
                piece = os.read(terminal, 4096)
                if not piece:
                    break
                seen += piece
        except OSError:  # the other end is gone
            break
    _, status = os.waitpid(child, 0)
    expect(os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0, f"clean exit, not {status}")
    expect(b"[interrupted]" in seen, f"says it was interrupted: {seen[-80:]!r}")


def main():
    first = answers_and_stops()
    same_twice_and_on_the_reference(first)
    input_is_one_message()
    length_is_told()
    flags_that_mean_nothing_here_are_refused()
    interrupt_ends_the_reply()
    print("reply:", first.strip())


main()

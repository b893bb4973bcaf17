# SPDX-License-Identifier: Apache-2.0
"""hearth run: a real conversation with SmolLM2, its end of turn, several turns, reproducibility."""
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


def several_turns():
    code, out, err = hearth("run", "--model", MODEL, "--temperature", "0", "--max-tokens", "40",
                            stdin="What is the capital of France?\nAnd of Italy?\n")
    expect(code == 0, f"exit {code}: {err}")
    # The second question means nothing without the first.
    expect(out.splitlines()[-1].count("Rome") == 1, f"the second turn sees the first: {out!r}")


def length_is_told():
    code, _, err = hearth("run", "--model", MODEL, "--max-tokens", "3", "--temperature", "0",
                          "--prompt", "Tell me a long story.")
    expect(code == 0 and "[stopped after --max-tokens]" in err, f"a cut reply says so: {err!r}")


def interrupt_ends_the_reply():
    """Ctrl-C in the middle of a reply: the program says so and exits cleanly."""
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.argv[1], [sys.argv[1], "run", "--model", MODEL, "--max-tokens", "100000",
                               "--temperature", "1.5", "--prompt", "Count to ten thousand."])
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
    several_turns()
    length_is_told()
    interrupt_ends_the_reply()
    print("reply:", first.strip())


main()

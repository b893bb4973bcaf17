# SPDX-License-Identifier: Apache-2.0
"""A replay of chats: twenty apps with system prompts of their own, five turns a chat, branches that ask the same
turn otherwise, edits of an earlier turn, and a restart after every fifty chats, with memory for a quarter of what
is said. How much of what an unlimited exact cache would reuse is reused with memory alone, with a disk, and with
a disk and Redis; and what share of all prompt tokens that is."""
import argparse
import contextlib
import json
import pathlib
import random
import sys
import tempfile
import time

from serving import Server, expect, same, work_model
from shared_cache_test import connected, redis

FLAGS = ("--isa", "scalar", "--threads", "1", "--cache-disk", "1GiB", "--cache-write-rate", "1GiB")
APPS, TURNS, BLOCK = 20, 5, 16


def requests_of(num_chats, rng):
    """(chat, messages) in the order in which they are asked: some chats at a time, turn after turn."""
    out, open_chats, next_chat = [], [], 0

    def question(chat, turn, variant=0):
        return {"role": "user", "content": f"In chat {chat}, turn {turn}, asked in way {variant}: " +
                f"what of {chat * 7 + turn}? " * 4}

    while next_chat < num_chats or open_chats:
        while next_chat < num_chats and len(open_chats) < 6:
            app = next_chat % APPS
            system = {"role": "system", "content": f"Assistant {app}. " + f"Rule {app} of this house. " * 10}
            open_chats.append((next_chat, [system]))
            next_chat += 1
        at = rng.randrange(len(open_chats))
        chat, history = open_chats[at]
        turn = len(history) // 2
        kind = rng.random()
        if kind < 0.1 and turn > 0:  # a branch: the last turn asked in another way, then forgotten
            out.append((chat, history[:-2] + [question(chat, turn - 1, 1)]))
        if kind > 0.9 and turn > 1:  # an edit: an earlier question is changed for good
            history[1 + 2 * rng.randrange(turn)] = question(chat, turn, 2)
        asked = history + [question(chat, turn)]
        out.append((chat, asked))
        open_chats[at] = (chat, asked + [{"role": "assistant", "content": f"Answer {turn} of {chat}. " * 3}])
        if turn + 1 == TURNS:
            open_chats.pop(at)
    return out


def ask(server, messages):
    body = {"messages": messages, "max_tokens": 2, "temperature": 0, "logprobs": True}
    status, _, data = server.request("POST", "/v1/chat/completions", body)
    same(status, 200, f"{data[:300]}")
    reply = json.loads(data)
    usage = reply["usage"]
    return (str(reply["choices"][0]["logprobs"]), usage["prompt_tokens"],
            usage["prompt_tokens_details"]["cached_tokens"])


def stop(server):
    """After what was computed is stored: how long that takes is not the question here."""
    last = None
    while tier := json.loads(server.request("GET", "/status")[2])["tier"]:
        now = [part["stored"] + part["declined"] for part in tier["parts"]]
        if tier["storing"] == 0 and now == last:
            break
        last = now
        time.sleep(0.3)
    same(server.stop()[0], 0, "the exit code")


def play(program, model, flags, plan, restart_every, needs_redis=False):
    """[(logprobs, prompt, cached)], restarting when so many chats more have begun."""
    out, server, begun = [], None, set()
    try:
        for chat, messages in plan:
            if server is None or (chat not in begun and len(begun) % restart_every == 0):
                if server is not None:
                    stop(server)
                server = Server(program, model, *FLAGS[:4], *flags)
                expect(server.port is not None, f"a start: {server.log}")
                if needs_redis:
                    connected(server)
            begun.add(chat)
            out.append(ask(server, messages))
        return out
    finally:
        if server is not None and server.process.poll() is None:
            server.stop()


def check(program, model, folder, num_chats, restart_every, least):
    plan = requests_of(num_chats, random.Random(11))
    secret = folder / "secret"
    secret.write_text("a secret that all servers share\n")
    exact = play(program, model, ("--kv-memory", "2GiB"), plan, len(plan) + 1)
    prompts, reusable = sum(each[1] for each in exact), sum(each[2] for each in exact)
    # What an unlimited cache holds of it, by the bytes a token has in this model's blocks.
    memory = ("--kv-memory", f"{max(2, int((prompts - reusable) * 1300 / 4) >> 20)}MiB")
    rows = [("an unlimited cache, no restart", reusable)]
    with contextlib.ExitStack() as stack:
        shared = stack.enter_context(redis(folder))
        disk = ("--cache-dir", str(folder / "disk"), *FLAGS[4:])
        far = ("--cache-dir", str(folder / "near"), *FLAGS[4:], "--cache-key", str(secret), "--cache-redis",
               f"redis://127.0.0.1:{shared.port}")
        for name, flags in (("memory alone", ()), ("memory and disk", disk), ("memory, disk and Redis", far)):
            got = play(program, model, (*memory, *flags), plan, restart_every, flags is far)
            same([each[:2] for each in got], [each[:2] for each in exact], f"the replies with {name}")
            rows.append((name, sum(each[2] for each in got)))
    print(f"{num_chats} chats, {len(plan)} requests, {prompts} prompt tokens, restarts every {restart_every} chats, "
          f"{memory[1]} of memory")
    for name, cached in rows:
        print(f"  {name}: {cached} tokens from a cache, {100 * cached / reusable:.1f} % of the reusable, "
              f"{100 * cached / prompts:.1f} % of all")
    for name, cached in rows[2:]:
        expect(cached >= least / 100 * reusable, f"{least} % of the reusable tokens with {name}")
        expect(cached > rows[1][1], f"more with {name} than with memory alone")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--chats", type=int, default=5)
    parser.add_argument("--restart-every", type=int, default=2)
    # Whether a fetch is in time depends on the machine, so it is asked for only where there is time to wait.
    parser.add_argument("--least", type=float, default=0, help="percent of the reusable tokens, with a disk")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        check(args.program, work_model("tiny-oss-o200k.gguf"), pathlib.Path(folder), args.chats, args.restart_every,
              args.least)


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""A server with --cache-dir: after a restart chats go on as if there had been none, with the same replies
as ever; a directory that cannot be used, or takes nothing more, is a line in the log and no more."""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time

from serving import Server, expect, same, serving, work_model

# The scalar kernels compute slowly, so that reading always pays: what is tested here is the cache.
SLOW = ("--isa", "scalar", "--threads", "2", "--cache-disk", "256MiB")


def messages(chat, turns):
    """A conversation of so many turns; its last message is the user's. Chats of one app share the system
    prompt."""
    app = chat % 3
    out = [{"role": "system", "content": f"You are assistant {app}. " + f"Rule {app}. " * 20}]
    for turn in range(turns):
        if turn > 0:
            out.append({"role": "assistant", "content": f"Answer {turn} to chat {chat}. " * 3})
        out.append({"role": "user", "content": f"Question {turn} of chat {chat}. " * 6})
    return out


def ask(server, chat, turns, salt=None):
    """(text, tokens of the prompt, cached tokens)"""
    body = {"messages": messages(chat, turns), "max_tokens": 4, "temperature": 0, "logprobs": True}
    if salt:
        body["cache_salt"] = salt
    status, _, data = server.request("POST", "/v1/chat/completions", body)
    same(status, 200, f"chat {chat}: {data[:300]}")
    reply = json.loads(data)
    usage = reply["usage"]
    said = [reply["choices"][0]["message"], reply["choices"][0]["logprobs"]]
    return said, usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]


def tier_of(server):
    tier = json.loads(server.request("GET", "/status")[2])["tier"]
    return tier and tier["parts"][0]


def check_restart(program, model, folder, num_chats, num_turns):
    flags = (*SLOW, "--cache-dir", str(folder))
    with serving(program, model, "--isa", "scalar", "--threads", "2") as server:
        expect(tier_of(server) is None, "no tier without a directory")
        for chat in range(num_chats):
            for turns in range(1, num_turns):
                ask(server, chat, turns)
        plain = [ask(server, chat, num_turns) for chat in range(num_chats)]
    with serving(program, model, *flags) as server:
        for chat in range(num_chats):
            for turns in range(1, num_turns):
                ask(server, chat, turns)
        ask(server, 0, 1, salt="mine")
    with serving(program, model, *flags) as server:
        expect(any("disk cache: " in line and " 0 blocks" not in line for line in server.log),
               f"a line about the cache: {server.log}")
        warm = [ask(server, chat, num_turns) for chat in range(num_chats)]
        salted = [ask(server, 0, 1, salt=salt)[2] for salt in ("mine", "yours")]
        tier = tier_of(server)
        page = server.request("GET", "/metrics?names=hearth")[2].decode()
    for chat in range(num_chats):
        same(warm[chat][:2], plain[chat][:2], f"the reply of chat {chat}")
    found, reusable = sum(each[2] for each in warm), sum(each[2] for each in plain)
    tokens = sum(each[1] for each in warm)
    print(f"{num_chats} chats of {num_turns} turns, a restart before the last: {found} of {reusable} reusable "
          f"tokens found, of {tokens}; {tier['bytes_read'] / max(1, found):.0f} bytes read a token")
    expect(found >= 0.95 * reusable, "95 % of the reusable tokens")
    expect(salted[0] > 50 and salted[1] == 0, f"salts to be as good as before: {salted}")
    expect(tier["hits"] > 0 and tier["corrupt"] == 0 and tier["failed"] == 0, f"{tier}")
    expect(f'hearth_tier_fetches_total{{tier="disk",result="hit"}} {tier["hits"]}\n' in page, "metrics")


def check_kill(program, model, folder):
    """A server that is killed starts again; what was stored before is right or not there."""
    for round_ in range(3):
        server = Server(program, model, *SLOW, "--cache-dir", str(folder))
        expect(server.port is not None, f"a start: {server.log}")
        said = [ask(server, chat, 2)[0] for chat in range(round_ + 2)]
        if round_ > 0:
            same(said[:len(before)], before, "replies after a kill")
        before = said
        time.sleep(0.1 * round_)
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        server.process.stderr.close()


def check_shared(program, model, folder):
    """Two servers cannot have one store: the second says so, and serves."""
    with serving(program, model, *SLOW, "--cache-dir", str(folder)):
        with serving(program, model, *SLOW, "--cache-dir", str(folder)) as second:
            expect(any("another process has it open" in line for line in second.log), f"{second.log}")
            ask(second, 0, 1)
            expect(tier_of(second) is None, "no tier")
        info = subprocess.run([program, "cache", "info", str(folder)], capture_output=True, text=True)
        expect("open now" in info.stdout, f"info: {info}")
        clear = subprocess.run([program, "cache", "clear", str(folder)], capture_output=True, text=True)
        expect(clear.returncode == 1 and "another process" in clear.stderr, f"clear: {clear}")


def check_unusable(program, model, folder):
    other = folder / "not-a-cache"
    other.mkdir()
    (other / "precious").write_text("text")
    places = ["/proc/hearth-cache", str(other), str(other / "precious" / "below")]
    if os.geteuid() != 0:
        sealed = folder / "sealed"
        sealed.mkdir(mode=0o555)
        places.append(str(sealed / "cache"))
    for place in places:
        with serving(program, model, *SLOW, "--cache-dir", place) as server:
            lines = [line for line in server.log if "no disk cache" in line]
            same(len(lines), 1, f"lines about {place}: {server.log}")
            ask(server, 0, 1)
    same([each.name for each in other.iterdir()], ["precious"], "a directory of somebody else")


def check_full(program, model, folder):
    """No file may be larger than 64 KiB: as on a full disk every flush fails, and serving goes on."""
    script = folder / "limited"
    script.write_text(f"#!/bin/bash\ntrap '' XFSZ\nulimit -f 64\nexec {program} \"$@\"\n")
    script.chmod(0o755)
    server = Server(str(script), model, *SLOW, "--cache-dir", str(folder / "full"))
    expect(server.port is not None, f"a start: {server.log}")
    first = [ask(server, chat, 2)[0] for chat in range(4)]
    time.sleep(3.5)
    again = [ask(server, chat, 2) for chat in range(4)]
    same([each[0] for each in again], first, "the replies")
    expect(all(each[2] > 50 for each in again), "memory still has them")
    expect(not tier_of(server)["writes"], "that it is seen in /status")
    same(server.stop()[0], 0, "the exit code")
    lines = [line for line in server.log if "disk cache: writing fails" in line]
    same(len(lines), 1, f"lines about the disk: {server.log}")


def check_commands(program, folder):
    def run(*args):
        return subprocess.run([program, "cache", *args], capture_output=True, text=True)

    rows = json.loads(run("info", str(folder), "--json").stdout)
    expect(len(rows) == 1 and rows[0]["bytes"] > 1000 and not rows[0]["open"], f"{rows}")
    good = run("verify", str(folder))
    expect(good.returncode == 0 and "; 0 thrown away" in good.stdout, f"verify: {good}")
    tables = sorted(folder.glob("models/*/blocks/*.sst"), key=lambda path: path.stat().st_size)
    data = bytearray(tables[-1].read_bytes())
    for at in range(1000, len(data) // 2, 10000):
        data[at] ^= 1
    tables[-1].write_bytes(data)
    bad = run("verify", str(folder))
    expect(bad.returncode == 1 and "damaged" in bad.stderr, f"verify after damage: {bad}")
    same(run("verify", str(folder)).returncode, 0, "the second time: what was damaged is gone")
    same(run("clear", str(folder)).returncode, 0, "clear")
    same(json.loads(run("info", str(folder), "--json").stdout), [], "nothing left")
    same(run("info", str(folder / "none")).returncode, 1, "a directory that is not there")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--chats", type=int, default=6)
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    model = work_model("tiny-oss-o200k.gguf")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        cache = folder / "cache"
        check_restart(args.program, model, cache, args.chats, args.turns)
        check_commands(args.program, cache)
        check_kill(args.program, model, cache)
        check_shared(args.program, model, cache)
        check_unusable(args.program, model, folder)
        check_full(args.program, model, folder)
    print("the cache on disk stands")


if __name__ == "__main__":
    main()

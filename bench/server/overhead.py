# SPDX-License-Identifier: Apache-2.0
"""What the server costs: `hearth bench load` on an engine in its own process against the same
requests over HTTP, taking turns."""
import json
import pathlib
import statistics
import subprocess
import tempfile

from rig import Others, Row, milliseconds, rig

# One-token requests that are left out: until all of the memory for K and V was touched once, the
# system's zeroing of it costs one request in 75 some 7 ms. The engine of `bench load` has little of
# that memory; so must the server's.
WARM_UP = 300
SMALL = ("--context", "256", "--max-sequences", "32")


def load(program, folder, *words):
    out = pathlib.Path(folder) / "load.json"
    done = subprocess.run([program, "bench", "load", *map(str, words), "--json", str(out)],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"bench load failed: {done.stdout}{done.stderr}")
    figures = json.loads(out.read_text(encoding="utf-8"))
    if figures["refused"] or any(reply["problem"] for reply in figures["replies"]):
        raise SystemExit(f"bench load: {figures['refused']} refused, or replies with problems")
    return figures


def p99(values):
    values = sorted(values)
    return values[min(len(values) - 1, int(0.99 * len(values)))]


def whole_s(figures):
    return [reply["ended_s"] - reply["sent_s"] for reply in figures["replies"]]


def measure(program, driver, model, *, vocab_size, streams=(1, 16), rounds=3, answer_tokens=64,
            prompt_tokens=32, chats=2, singles=200):
    """Requests are the same to the last token: random ids from the same seed. Every run of either
    side has an engine that has seen nothing yet: what it learns about steps, and what it caches,
    would be an advantage or a burden that has nothing to do with HTTP."""
    program = str(program)
    out = {"model": pathlib.Path(model).name, "rates": {}, "whole": {}, "gaps": {},
           "single": {"engine": [], "server": []}}
    with tempfile.TemporaryDirectory() as folder, Others() as others:
        def run(side, seed, *more):
            words = [*more, "--turns", 1, "--preamble-tokens", 2, "--user-tokens", prompt_tokens,
                     "--seed", seed]
            if side == "engine":
                return load(program, folder, "--model", model, *words)
            with rig(program, driver, model, *SMALL) as under_load:
                return load(program, folder, "--url", f"http://127.0.0.1:{under_load.port}",
                            "--vocab-size", vocab_size, *words)

        for side in ("engine", "server"):  # the file gets into memory, left out
            run(side, 1, "--answer-tokens", 4, "--clients", 1, "--chats", 4)
        for count in streams:
            rates, whole, gaps = ({"engine": [], "server": []} for _ in range(3))
            # A lone stream's run is short, and what else the machine does shows more in it.
            for round_ in range(rounds if count > 1 else 3 * rounds):
                for side in ("engine", "server"):
                    figures = run(side, 100 + round_, "--answer-tokens", answer_tokens, "--clients",
                                  count, "--chats", chats * count)
                    rates[side].append(figures["steady"]["generated_per_s"])
                    whole[side].append(figures["generated_per_s"])
                    gaps[side].append(figures["between_tokens_s"]["p50"])
            out["rates"][count], out["whole"][count], out["gaps"][count] = rates, whole, gaps
        for seed in (1, 2) if singles else ():
            for side, values in out["single"].items():
                figures = run(side, seed, "--answer-tokens", 1, "--clients", 1, "--chats",
                              WARM_UP + singles)
                values.extend(whole_s(figures)[WARM_UP:])
    out["others"] = others.share
    return out


def rows(out):
    result = []
    for count, rates in out["rates"].items():
        best = max(rates["server"]) / max(rates["engine"])
        middle = statistics.median(rates["server"]) / statistics.median(rates["engine"])
        gaps = out["gaps"][count]
        for side in ("engine", "server"):
            result.append(Row(
                f"{count} streams, {side}: tokens/s best / median; from the first request to the "
                "last answer; between tokens",
                f"{max(rates[side]):.2f} / {statistics.median(rates[side]):.2f}; "
                f"{max(out['whole'][count][side]):.2f}; {milliseconds(min(gaps[side]))}"))
        # What a tiny model computes in a token's time is nothing beside sending it.
        is_asked = out["model"].startswith("gpt-oss")
        result.append(Row(f"{count} streams, server / engine: best / median",
                          f"{100 * best:.1f} % / {100 * middle:.1f} %",
                          ">= 97 %" if is_asked else "", best >= 0.97 or not is_asked))
    single = out["single"]
    shares = (("median", statistics.median), ("p99", p99)) if single["server"] else ()
    for name, share in shares:
        ours, theirs = share(single["server"]), share(single["engine"])
        result.append(Row(
            f"one token when idle, {len(single['server'])} requests, {name}: server - engine",
            f"{milliseconds(ours)} - {milliseconds(theirs)} = {milliseconds(ours - theirs)}",
            "<= 5 ms" if name == "p99" else "", name != "p99" or ours - theirs <= 0.005))
    return result


def words(out):
    return (f"{out['model']}: the same random token ids, lengths and seeds from `hearth bench load` "
            "to an engine in its own process and over HTTP (streamed) to `hearth serve` on the same "
            "machine, taking turns; both start anew for every run. Rates are of the time in which "
            "all clients are busy: an engine in the same process gets the first prompts all at "
            "once, over HTTP they come one after the other and the later ones are read beside "
            f"streams. Others used {out['others']:.0%}.")

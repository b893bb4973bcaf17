# SPDX-License-Identifier: Apache-2.0
"""hearth bench load: chats and the long prompt end, and their figures agree with each other. Speed
itself is not judged here: test machines are busy."""
import json
import pathlib
import tempfile

from models import expect, hearth, work_model

MODEL = work_model("tiny-oss-o200k.gguf")


def load(folder, *flags):
    path = pathlib.Path(folder) / "load.json"
    page = pathlib.Path(folder) / "load.html"
    code, out, err = hearth("bench", "load", "--model", MODEL, "--json", str(path), "--html",
                            str(page), *flags)
    expect(code == 0, f"exit {code}: {err}")
    expect("<svg" in page.read_text(encoding="utf-8"), "the page has pictures")
    return out, json.loads(path.read_text(encoding="utf-8"))


def gaps(replies, first=0.0, last=1e300):
    """Between tokens, any part of it within the times; one cut off by the end counts up to there."""
    found = [b - a for reply in replies
             for a, b in zip(reply["heard_s"], reply["heard_s"][1:]) if b > first and a < last]
    found += [last - reply["heard_s"][-1] for reply in replies
              if reply["heard_s"][-1] < last <= reply["ended_s"]]
    return sorted(found)


def check_chats(folder, *flags):
    out, record = load(folder, "--chats", "4", "--turns", "2", "--apps", "1", "--user-tokens", "8",
                       "--answer-tokens", "12", *flags)
    replies = record["replies"]
    expect(record["schema"] == "hearth.bench.load", "names its schema")
    expect(len(replies) == 8 and record["refused"] == 0, f"all turns of all chats: {out}")
    expect(all(r["problem"] == "" and r["heard_s"] for r in replies), "all were answered")
    expect(all(r["sent_s"] <= r["heard_s"][0] <= r["heard_s"][-1] <= r["ended_s"] for r in replies),
           "times are in order")
    heard = sum(len(r["heard_s"]) for r in replies)
    expect(abs(record["generated_per_s"] * record["seconds"] / heard - 1) < 1e-6, "rate and count")
    all_gaps = gaps(replies)
    expect(record["between_tokens_s"]["count"] == len(all_gaps), "a gap between two tokens")
    expect(abs(record["between_tokens_s"]["most"] - all_gaps[-1]) < 1e-9, "the longest gap")
    cached, prompt = sum(r["cached"] for r in replies), sum(r["prompt"] for r in replies)
    expect(abs(record["hit_share"] - cached / prompt) < 1e-9 and cached > 0, "second turns hit")
    expect(0 <= record["steps"]["own_share"] < 1 and record["steps"]["count"] > 0, "steps")
    expect("first token" in out and "between tokens" in out, f"the table: {out}")
    return record


def main():
    with tempfile.TemporaryDirectory() as folder:
        record = check_chats(folder, "--clients", "3")
        expect(record["backend_per_s"] > 0, "beside the backend alone")
        check_chats(folder, "--rate", "50")
        out, record = load(folder, "--long-prompt", "300", "--streams", "3", "--itl-target", "100")
        streams, prompt = record["replies"], record["long_prompt"]
        expect(len(streams) == 3 and prompt["reply"]["prompt"] == 300, "streams and the prompt")
        expect(all(len(s["heard_s"]) >= 32 for s in streams), "streams went on before and after")
        expect(prompt["from_s"] <= prompt["reply"]["heard_s"][0] <= prompt["to_s"], "its first token")
        beside = gaps(streams, prompt["from_s"], prompt["to_s"])
        expect(prompt["between_tokens_s"]["count"] == len(beside), "gaps beside the prompt")
        expect("the longest pause" in out, f"the table: {out}")
        out, record = load(folder, "--long-prompt", "100", "--prompts", "4", "--streams", "2",
                           "--itl-target", "100")
        prompts = record["long_prompt"]
        waits = sorted(r["heard_s"][0] - r["sent_s"] for r in prompts["replies"])
        expect(len(waits) == 4, "as many prompts as asked for")
        expect(abs(prompts["first_token_s"]["p50"] - waits[1]) < 1e-9, "their median wait")
        expect(all(r["sent_s"] - prompts["from_s"] < 1 for r in prompts["replies"]), "all at once")
        expect(sum(step[3] for step in prompts["steps"]) >= 400, "steps say what they read")
        expect("then come 4 prompts of 100 tokens" in out, f"the table: {out}")
    code, _, err = hearth("bench", "load", "--model", "/nonexistent.gguf")
    expect(code == 1 and "/nonexistent.gguf" in err, f"a missing model is named: {err!r}")
    expect(hearth("bench", "load", "--model", MODEL, "--rate", "1", "--clients", "2")[0] == 2,
           "either a rate or clients")
    print("bench load ok")


main()

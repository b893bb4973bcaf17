# SPDX-License-Identifier: Apache-2.0
"""A large batch job on several replicas with one PostgreSQL, behind HAProxy: a replica is killed every so often,
the database is restarted once. Each line must be answered exactly once and as the synchronous API answers it;
beside it people ask, and their waiting is compared with a quiet fleet's. Every replica has a share of the
processors that the others cannot take, as on machines of their own; --share 0: none.
usage: fleet_batch.py HEARTH [--lines N] [--every S] [--json FILE]"""
import argparse
import collections
import io
import json
import pathlib
import sys
import tempfile
import threading
import time

import openai

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests/fleet"))
# pylint: disable=wrong-import-position
from fleet import Failed, Haproxy, ask, percentile, wait_until
from postgres import Postgres
from serving import expect, same, work_model
from shares import CpuShare, SharedReplica

DISTINCT = 500  # prompts; every line has one of them, and its answer is compared
CHAT = "/v1/chat/completions"


def body_of(number):
    return {"model": "any", "messages": [{"role": "user", "content": f"line {number % DISTINCT}"}],
            "max_tokens": 8, "temperature": 0}


class People:
    """Ask at a fixed pace, whatever else happens. A request that failed is sent again and counts as one."""

    def __init__(self, port, clients=2, pause_s=0.25):
        self.port, self.pause_s, self.over = port, pause_s, threading.Event()
        self.seen, self.failed = [], []
        self.threads = [threading.Thread(target=self.live, args=(i,), daemon=True) for i in range(clients)]
        for thread in self.threads:
            thread.start()

    def live(self, who):
        number = 0
        while not self.over.wait(self.pause_s):
            number += 1
            body = {"model": "any", "messages": [{"role": "user", "content": f"person {who}, question {number}"}],
                    "max_tokens": 24, "temperature": 0, "logprobs": True}
            began = time.monotonic()
            while not self.over.is_set():
                try:
                    ask(self.port, body)
                    self.seen.append((began, time.monotonic() - began))
                    break
                except Failed as failure:
                    self.failed.append(str(failure))
                    self.over.wait(0.1)

    def finish(self):
        self.over.set()
        for thread in self.threads:
            thread.join()


def p99_ms(seconds):
    return round(1000 * percentile(seconds, 0.99), 1)


class Trouble(threading.Thread):
    """Kills a replica every `every` seconds and starts it again, and restarts the database at half of the job."""

    def __init__(self, replicas, database, is_half, every):
        super().__init__(daemon=True)
        self.replicas, self.database, self.is_half, self.every = replicas, database, is_half, every
        self.over, self.kills, self.moments, self.restarts = threading.Event(), 0, [], 0
        self.mistake = None

    def run(self):
        try:
            due = time.monotonic() + self.every
            while not self.over.wait(0.5):
                if self.restarts == 0 and self.is_half():
                    self.moments.append(time.monotonic())
                    self.database.stop("fast")
                    self.over.wait(2)
                    self.database.start()
                    self.restarts += 1
                if time.monotonic() >= due:
                    due += self.every
                    victim = self.replicas[self.kills % len(self.replicas)]
                    self.moments.append(time.monotonic())
                    victim.kill()
                    self.kills += 1
                    self.over.wait(1)
                    victim.start()
        except BaseException as mistake:  # pylint: disable=broad-except
            self.mistake = mistake


def begin(client, lines):
    text = "".join(json.dumps({"custom_id": f"id-{i}", "method": "POST", "url": CHAT, "body": body_of(i)}) + "\n"
                   for i in range(lines))
    file = client.files.create(file=("lines.jsonl", io.BytesIO(text.encode())), purpose="batch")
    return client.batches.create(input_file_id=file.id, endpoint=CHAT, completion_window="24h")


def check_output(client, port, batch, lines):
    """Every line once, and its answer that of the API."""
    counts, answers = collections.Counter(), {}
    for text in client.files.content(batch.output_file_id).text.splitlines():
        each = json.loads(text)
        counts[each["custom_id"]] += 1
        same(each["response"]["status_code"], 200, each["custom_id"])
        answers[each["custom_id"]] = each["response"]["body"]["choices"][0]["message"]["content"]
    same(set(counts), {f"id-{i}" for i in range(lines)}, "a result for every line")
    same(set(counts.values()), {1}, "one result for each line")
    now = [ask(port, {**body_of(i), "logprobs": True})[0][0] for i in range(min(DISTINCT, lines))]
    for i in range(lines):
        same(answers[f"id-{i}"], now[i % DISTINCT], f"line {i} as it is answered at once")


def until_over(database, batch):
    """Asked of the database itself: the API goes away with it."""
    def look():
        try:
            return database.ask(f"SELECT status FROM hearth_batches WHERE id = '{batch.id}'") == "completed"
        except Exception:  # pylint: disable=broad-except
            return False
    wait_until(look)


def is_half_done(database, batch):
    return database.ask(f"SELECT completed * 2 >= total AND total > 0 FROM hearth_batches"
                        f" WHERE id = '{batch.id}'") == "t"


def run(options, database, folder):
    model = work_model("tiny-chatml.gguf")
    flags = ("--batches", database.url, "--batch-lease", "5", "--served-name", "*", "--batch-concurrency",
             str(options.concurrency), "--overload-status", "503")
    shares = [CpuShare(i, options.share) if options.share else None for i in range(options.replicas)]
    replicas = [SharedReplica(options.program, model, share, *flags) for share in shares]
    try:
        balancer = Haproxy(options.program, folder, replicas, "--shared-batches")
        client = openai.OpenAI(base_url=f"http://127.0.0.1:{balancer.port}/v1", api_key="none", timeout=600)
        quiet = People(balancer.port)
        time.sleep(options.quiet)
        quiet.finish()
        began = time.monotonic()
        batch, people = begin(client, options.lines), People(balancer.port)
        trouble = Trouble(replicas, database, lambda: is_half_done(database, batch), options.every)
        trouble.start()
        until_over(database, batch)
        took = time.monotonic() - began
        trouble.over.set()
        trouble.join()
        people.finish()
        expect(trouble.mistake is None, f"{trouble.mistake!r}")
        done = client.batches.retrieve(batch.id)
        same((done.request_counts.completed, done.request_counts.failed), (options.lines, 0), "the counts")
        check_output(client, balancer.port, done, options.lines)
        balancer.stop()
    finally:
        for each in replicas:
            each.kill()
    undisturbed = [taken for began, taken in people.seen
                   if not any(-2 < began - moment < 8 for moment in trouble.moments)]
    return {"lines": options.lines, "replicas": options.replicas, "share": options.share, "kills": trouble.kills,
            "database_restarts": trouble.restarts, "seconds": round(took, 1),
            "lines_per_second": round(options.lines / took, 1),
            "quiet_p99_ms": p99_ms([taken for _, taken in quiet.seen]),
            "beside_p99_ms": p99_ms(undisturbed), "beside_requests": len(undisturbed),
            "all_p99_ms": p99_ms([taken for _, taken in people.seen]),
            "all_requests": len(people.seen), "failed_interactive": len(people.failed)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--lines", type=int, default=50_000)
    parser.add_argument("--replicas", type=int, default=4)
    parser.add_argument("--every", type=float, default=30, help="seconds between kills")
    parser.add_argument("--quiet", type=float, default=60, help="seconds that a quiet fleet is measured for")
    parser.add_argument("--share", type=float, default=0.35, help="processors of each replica; 0: no limit")
    parser.add_argument("--concurrency", type=int, default=4, help="batch lines that a replica runs at a time")
    parser.add_argument("--json")
    options = parser.parse_args()
    database = Postgres()
    try:
        with tempfile.TemporaryDirectory() as folder:
            out = run(options, database, folder)
    finally:
        database.close()
    ratio = out["beside_p99_ms"] / max(0.001, out["quiet_p99_ms"])
    print(f"{out['lines']} lines in {out['seconds']} s, {out['kills']} kills, {out['database_restarts']} restarts of "
          f"the database: each answered once, as the API answers; people beside it p99 {out['beside_p99_ms']} ms "
          f"({ratio:.2f} times quiet {out['quiet_p99_ms']} ms), with the moments of kills {out['all_p99_ms']} ms, "
          f"{out['failed_interactive']} requests failed and were sent again")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(out, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

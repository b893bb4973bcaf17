# SPDX-License-Identifier: Apache-2.0
"""Batch jobs of several replicas in one real PostgreSQL: replicas are killed and replaced, the
database crashes and comes back in the middle; each line is answered exactly once, and as the
synchronous API answers it."""
import argparse
import atexit
import contextlib
import os
import pathlib
import signal
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "server"))
# pylint: disable=wrong-import-position
import batches_test as single
from fleet import wait_until
from postgres import Postgres
from serving import Server, expect, same, serving, work_model


def counters(server, *names):
    page = server.request("GET", "/metrics")[2].decode()
    values = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
    return [float(values.get(name, 0)) for name in names]


def check_whole(program, model, flags):
    """All that one server does with a file, it does with a database."""
    with serving(program, model, *flags) as server:
        client = single.client_of(server)
        single.check_whole(client)
        single.check_mistakes(client)
        single.check_cancel(client)
        single.check_sizes(client, server)

        def counted():
            done, failed, jobs = counters(
                server, 'hearth_batch_lines_total{result="completed"}',
                'hearth_batch_lines_total{result="failed"}',
                'hearth_batch_jobs{status="completed"}')
            return done >= 20 and failed >= 1 and jobs >= 1

        wait_until(counted)


def started(program, model, flags):
    server = Server(program, model, *flags)
    expect(server.port is not None, "".join(server.log))
    return server


def check_kills(program, model, flags, database, options):
    """A replica is killed and another started whenever a part of the job is done; once the database
    crashes, once a replica hangs for longer than its claims last."""
    lines = [single.line(i) for i in range(options.lines)]
    replicas = [started(program, model, flags) for _ in range(options.replicas)]
    atexit.register(lambda: [single.kill(each) for each in replicas if each.process.poll() is None])
    batch = single.begin(single.client_of(replicas[-1]), lines)
    events = options.kills + 2
    for number in range(1, events + 1):
        wait_for_share(database, batch, number / (events + 1))
        if number == options.kills + 1:
            database.stop()
            threading.Event().wait(0.5)
            database.start()
        elif number == options.kills + 2:
            hung = replicas[0].worker_pid()
            os.kill(hung, signal.SIGSTOP)
            wait_until(lambda: no_claims_left(database) or is_done(database, batch))
            with contextlib.suppress(ProcessLookupError):  # its supervisor may have had enough of it
                os.kill(hung, signal.SIGCONT)
        else:
            single.kill(replicas[0])
            replicas[:] = [*replicas[1:], started(program, model, flags)]
    client = single.client_of(replicas[-1])
    done = single.wait_for(client, batch, "completed")
    same((done.request_counts.total, done.request_counts.completed),
         (options.lines, options.lines), "all lines")
    got = single.results(client, done.output_file_id)
    same(len(got), options.lines, "one result per line")
    every = max(1, options.lines // 50)
    chosen = lines[::every]
    single.check_result(client, chosen, {each["custom_id"]: got[each["custom_id"]]
                                         for each in chosen})
    shares = [int(counters(each, 'hearth_batch_lines_total{result="completed"}')[0])
              for each in replicas]
    if options.lines >= 1000:  # fewer are answered before the last replicas have started
        expect(sum(share > 0 for share in shares) > 0, f"the work went on: {shares}")
    for each in replicas:
        same(each.stop()[0], 0, "the exit code")
    print(f"{options.lines} lines, {options.replicas} replicas, {options.kills} kills, a crash of the "
          f"database, a replica that hung: each answered once; by those that lived {shares}")


def wait_for_share(database, batch, share):
    wait_until(lambda: int(database.ask(
        f"SELECT completed >= {share} * total AND total > 0 FROM hearth_batches"
        f" WHERE id = '{batch.id}'") == "t"))


def is_done(database, batch):
    return database.ask(f"SELECT status FROM hearth_batches WHERE id = '{batch.id}'") == "completed"


def no_claims_left(database):
    """Those of the one that hangs have ended, or were taken over."""
    return database.ask("SELECT COUNT(*) FROM hearth_lines WHERE state = 0") == "0"


def check_leaving(program, model, flags, database):
    """A replica that is told to go gives its lines back at once: nobody waits for claims to end."""
    first = Server(program, model, *flags)
    batch = single.begin(single.client_of(first), [
        single.line(i, max_tokens=2000, ignore_eos=True) for i in range(400)])  # more than a drain ends
    wait_until(lambda: database.ask("SELECT COUNT(*) >= 4 FROM hearth_lines WHERE claimed > now()") == "t")
    same(first.stop()[0], 0, "the exit code")
    same(database.ask("SELECT COUNT(*) FROM hearth_lines WHERE state = 0 AND claimed > now()"), "0",
         "lines that are neither answered nor given back")
    with serving(program, model, *flags) as second:
        client = single.client_of(second)
        client.batches.cancel(batch.id)
        single.wait_for(client, batch, "cancelled")


def check_mistakes(program, model):
    server = Server(program, model, "--batches", "postgresql://hearth@127.0.0.1:1/none")
    expect(server.port is None and "PostgreSQL" in "".join(server.log), f"{server.log}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--lines", type=int, default=150)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--kills", type=int, default=2)
    options = parser.parse_args()
    model = work_model("tiny-chatml.gguf")
    database = Postgres()
    try:
        flags = ("--batches", database.url, "--batch-lease", "3", "--served-name", "*",
                 "--threads", "1")
        check_mistakes(options.program, model)
        check_whole(options.program, model, flags)
        check_leaving(options.program, model, flags, database)
        check_kills(options.program, model, flags, database, options)
    finally:
        database.close()


if __name__ == "__main__":
    main()

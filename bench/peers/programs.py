# SPDX-License-Identifier: Apache-2.0
"""How each program runs the rows of the table. A piece is one run of one program: it loads a model,
gives the figures of one or more rows, and takes less than four minutes."""
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

DECODE_STEPS = 16
PREFILL = 512
BATCH = 32
DEPTH = 8192


@dataclasses.dataclass
class Row:
    name: str
    title: str
    unit: str
    more_is_better: bool = True


ROWS = {row.name: row for row in (
    Row("decode", "gpt-oss-20b: decode, 1 sequence", "tokens/s"),
    Row("prefill", f"gpt-oss-20b: prefill of {PREFILL} tokens", "tokens/s"),
    Row("batch", f"gpt-oss-20b: decode, {BATCH} sequences in total", "tokens/s"),
    Row("depth", f"gpt-oss-20b: decode after {DEPTH:,} tokens of context", "tokens/s"),
    Row("memory", "gpt-oss-20b: peak resident", "GiB", False),
    Row("start", "gpt-oss-20b: start to first token, file cached", "s", False),
    Row("dense-prefill", f"1B dense Q8_0: prefill of {PREFILL} tokens", "tokens/s"),
    Row("dense-decode", "1B dense Q8_0: decode, 1 sequence", "tokens/s"),
)}


@dataclasses.dataclass
class Piece:
    """`command(wanted rows, out file)` is what to run; `figures(result, out file)` what it found:
    rows to values, and yardsticks by name."""

    program: str
    name: str
    rows: list
    command: object
    figures: object
    warm: object = None  # a file to read into the cache first


class Hearth:
    def __init__(self, binary, threads):
        self.binary, self.threads = str(binary), str(threads)

    def bench(self, program, name, model, rows, memory_row=None):
        """`rows` maps a measurement of `hearth bench` to a row."""

        def command(wanted, out):
            cases = [case for case, row in rows.items() if row in wanted]
            depths = [case.split()[-1] for case in cases if " at " in case]
            batches = [case.split()[1] for case in cases
                       if case.startswith("decode") and " at " not in case]
            # Memory alone needs some case; a context is judged against none.
            if depths or not cases:
                batches = sorted({"1", *batches}, key=int)
            words = [self.binary, "bench", "--model", str(model), "--threads", self.threads,
                     "--repeat", "1", "--json", out,
                     "--prefill", str(PREFILL if f"prefill {PREFILL}" in cases else 0)]
            if depths:
                words += ["--depth", ",".join(depths)]
            words += ["--decode", str(DECODE_STEPS if batches else 0)]
            if batches:
                words += ["--batch", ",".join(batches)]
            return words

        def figures(_, out):
            record = json.loads(pathlib.Path(out).read_text(encoding="utf-8"))
            found = {rows[m["name"]]: m["tokens_per_second"] for m in record["measurements"]
                     if m["name"] in rows}
            if memory_row:
                found[memory_row] = record["model"]["peak_resident_bytes"] / 2**30
            yardsticks = {y["name"]: y["best"] for y in record["yardsticks"] if "best" in y}
            return found, yardsticks, record

        all_rows = list(rows.values()) + ([memory_row] if memory_row else [])
        return Piece(program, name, all_rows, command, figures)

    def start(self, program, model):
        command = [self.binary, "run", "--model", str(model), "--prompt", "Hello", "--max-tokens",
                   "1", "--temperature", "0", "--threads", self.threads]
        return start_piece(program, command, model)


def start_piece(program, command, model):
    return Piece(program, f"{program} start", ["start"], lambda wanted, out: command,
                 lambda result, out: ({"start": result["seconds"]}, {}, None), model)


class Llama:
    NAME = "llama.cpp"

    def __init__(self, sid, threads):
        self.sid, self.threads = sid, str(threads)

    def bench(self, name, model, prefill_row, decode_row, memory_row=None):
        """llama-bench without its own warm-up, which would prefill everything twice: a prefill of
        64 tokens goes first instead."""

        def command(wanted, _):
            words = self.sid.command(
                "llama-bench", "-m", self.sid.model(model), "-t", self.threads, "-r", "1",
                "--no-warmup", "-fa", "on", "-o", "jsonl")
            prefill = prefill_row in wanted
            decode = decode_row in wanted or not prefill
            return [*words, "-p", f"64,{PREFILL}" if prefill else "64",
                    "-n", str(2 * DECODE_STEPS if decode else 0)]

        def figures(result, _):
            found = {}
            for line in result["out"].splitlines():
                if not line.startswith("{"):
                    continue
                run = json.loads(line)
                if run["n_gen"] > 0:
                    found[decode_row] = run["avg_ts"]
                elif run["n_prompt"] == PREFILL:
                    found[prefill_row] = run["avg_ts"]
            if memory_row:
                found[memory_row] = result["peak_bytes"] / 2**30
            return found, {}, None

        rows = [prefill_row, decode_row] + ([memory_row] if memory_row else [])
        return Piece(self.NAME, f"{self.NAME} {name}", rows, command, figures)

    def batch(self, model):
        def command(_, __):
            return self.sid.command(
                "llama-batched-bench", "-m", self.sid.model(model), "-t", self.threads, "-tb",
                self.threads, "-c", "1024", "-b", "512", "-ub", "512", "-npp", "4", "-ntg",
                str(DECODE_STEPS), "-npl", str(BATCH), "-fa", "on", "--output-format", "jsonl")

        def figures(result, _):
            lines = [json.loads(line) for line in result["out"].splitlines()
                     if line.startswith("{")]
            return {"batch": lines[-1]["speed_tg"]}, {}, None

        return Piece(self.NAME, f"{self.NAME} batch", ["batch"], command, figures)

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
        found = json.loads(pathlib.Path(result).read_text(encoding="utf-8"))
        if found["exit"] != 0:
            raise SystemExit(f"peers: {piece.name}: exit {found['exit']}\n{found['err']}")
        figures, yardsticks, detail = piece.figures(found, out)
    missing = [row for row in figures if figures[row] is None]
    if missing or not figures:
        raise SystemExit(f"peers: {piece.name}: no figure for {missing or piece.rows}")
    return {"program": piece.program, "piece": piece.name, "seconds": found["seconds"],
            "others": found["others"], "figures": figures, "yardsticks": yardsticks,
            "detail": detail}

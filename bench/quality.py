# SPDX-License-Identifier: Apache-2.0
"""./dev bench quality: every weight format against the reference in double precision.

Real models, requantised by llama-quantize to each format, run through `hearth eval compare` on text
of this repository. What was measured stays in $HEARTH_WORK until Hearth is built anew; a table goes
to bench/results/quality.
"""
import argparse
import collections
import hashlib
import json
import os
import pathlib
import subprocess
import sys

import gguf

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools" / "synth"))
import quantise  # noqa: E402  (the path is set above)
import synth  # noqa: E402
from work import work_dir  # noqa: E402

TEXT = ROOT / "docs" / "formats.md"
LEAST_TOP1, MOST_KL, LEAST_TOKENS = 99.5, 1e-4, 2000  # percent, nats
FIELDS = {"tokens": "tokens", "top-1 agreement": "top1", "mean KL": "kl", "max KL": "max_kl",
          "NMSE": "nmse"}


def names(is_large):
    """SmolLM2 in formats of small blocks; those of 256 columns on models that have such rows."""
    models = {"smollm2": quantise.FORMATS["smollm2"],
              "minimind2-small": quantise.FORMATS["minimind2-small"]}
    if is_large:
        models["tinyllama"] = quantise.FORMATS["tinyllama"]
    return [f"{model}-{kind}" for model, kinds in models.items() for kind in kinds]


def holds(path):
    """{format: share of the weights of all matrices}: not every row fits every format."""
    counts = collections.Counter()
    for tensor in gguf.GGUFReader(path).tensors:
        if len(tensor.shape) > 1:
            counts[tensor.tensor_type.name] += int(tensor.n_elements)
    return {kind: count / counts.total() for kind, count in counts.most_common()}


def compare(hearth, path, tokens):
    command = [str(hearth), "eval", "compare", "--model", str(path), "--text", str(TEXT), "--tokens",
               str(tokens)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    lines = dict(line.rsplit(" ", 1) for line in done.stdout.replace(" %", "").splitlines())
    return {field: float(lines[name]) for name, field in FIELDS.items()}


def is_good(found):
    return (found["top1"] >= LEAST_TOP1 and found["kl"] <= MOST_KL
            and found["tokens"] >= LEAST_TOKENS)


def markdown(figures):
    lost = [name for name, found in figures.items() if not is_good(found)]
    lines = ["# Quality of every format", "",
             "The CPU backend against the reference in double precision on the same file: real models "
             "requantised by llama-quantize (`./dev synth NAME`), text of this repository. Asked for: "
             f"top-1 ≥ {LEAST_TOP1} %, mean KL ≤ {MOST_KL:.0e} nats over {LEAST_TOKENS:,} tokens or more; "
             f"{len(figures) - len(lost)} of {len(figures)} files meet all.", "",
             "| file | holds | tokens | top-1 | mean KL | largest KL | NMSE | |",
             "|---|---|---|---|---|---|---|---|"]
    for name, found in figures.items():
        kinds = ", ".join(f"{kind} {share:.0%}" for kind, share in found["holds"].items())
        lines.append(f"| {name} | {kinds} | {found['tokens']:,.0f} | {found['top1']:.2f} % | "
                     f"{found['kl']:.1e} | {found['max_kl']:.1e} | {found['nmse']:.1e} | "
                     f"{'met' if is_good(found) else '**missed**'} |")
    return "\n".join([*lines, ""])


def main():
    parser = argparse.ArgumentParser(prog="./dev bench quality", description=__doc__)
    parser.add_argument("--only", default="", metavar="FILE,...", help="e.g. smollm2-q5_0")
    parser.add_argument("--large", action="store_true", help="also TinyLlama, whose rows all fit "
                        "blocks of 256: about 10 minutes a format on two cores")
    parser.add_argument("--tokens", type=int, default=2100)
    parser.add_argument("--hearth", type=pathlib.Path, default=ROOT / "build/release/bin/hearth")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "bench" / "results")
    arguments = parser.parse_args()
    wanted = [name for name in arguments.only.split(",") if name] or names(arguments.large)
    build = hashlib.sha256(arguments.hearth.read_bytes()).hexdigest()[:16]
    kept = work_dir() / "quality.json"
    record = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    if (record.get("build"), record.get("tokens")) != (build, arguments.tokens):
        record = {"build": build, "tokens": arguments.tokens, "figures": {}}
    figures = record["figures"]
    for name in wanted:
        if name in figures:
            continue
        path = synth.make(name)
        figures[name] = compare(arguments.hearth, path, arguments.tokens) | {"holds": holds(path)}
        print(f"quality: {name}: {figures[name]}", flush=True)
        kept.with_suffix(".part").write_text(json.dumps(record), encoding="utf-8")
        os.replace(kept.with_suffix(".part"), kept)
    text = markdown(figures)
    (arguments.results / "quality.md").write_text(text, encoding="utf-8")
    (arguments.results / "quality.json").write_text(json.dumps(record, indent=1) + "\n",
                                                    encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()

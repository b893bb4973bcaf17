#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The predictions of docs/gpu.md, computed from src/cuda/costs.txt and the data sheets of cards: no machine of this project
has a GPU. `gpu_predict.py --write` puts them into the page; without, it fails when the page has others."""
import math
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).parents[1]
BEGIN, END = "<!-- predictions: tools/gpu_predict.py --write -->", "<!-- end of predictions -->"

# Processors, GHz (boost), GB/s of memory, GB of memory, int8 TOPS of dense tensor cores, architecture of the counts.
CARDS = {
    "T4": (40, 1.59, 320, 16, 130, "75"),
    "RTX 3060": (28, 1.78, 360, 12, 102, "80"),
    "RTX 4090": (128, 2.52, 1008, 24, 660, "89"),
    "RTX 5090": (170, 2.41, 1792, 32, 838, "120"),
    "H100 SXM": (132, 1.98, 3350, 80, 1979, "80"),
}
REACHED = 0.85    # of the memory's data sheet: published kernels reach 0.81 to 0.92
ISSUED = 0.7      # of what four schedulers a processor could issue
LAUNCH = 2.5e-6   # seconds between two launches of a stream; what graphs save is not known here
CONTEXT = 1024    # tokens before a decoded one
CHUNK = 512       # tokens of prompt in a step
BYTES = {"mxfp4": 0.533, "q8": 1.0625}  # of a packed weight


def matrices_of_gpt_oss():
    """MXFP4 experts, everything else Q8_0: (format, weights, experts, of them active)."""
    d, heads, kv, d_ff, layers, vocab = 2880, 64 * 64, 8 * 64, 2880, 24, 201088
    attention = layers * d * (heads + 2 * kv + heads)
    expert = layers * 3 * d * d_ff
    return [("q8", attention + d * vocab, 1, 1), ("mxfp4", expert * 32, 32, 4)]


def kv_bytes(layers, heads, d_head):
    return layers * heads * (4 * d_head + 8)  # int16 K and V with a scale each


# Matrices, layers by kind, launches more for layers with two formats side by side, bytes of K and V per token seen:
# all the way, and in the window.
MODELS = {
    "gpt-oss-20b, MXFP4 experts and Q8_0": dict(
        matrices=matrices_of_gpt_oss(), experts=24, dense=0, extra=0, full=kv_bytes(12, 8, 64),
        window=(kv_bytes(12, 8, 64), 128), embedding=2880 * 201088 * BYTES["q8"]),
}

# Tokens per second that others published for gpt-oss-20b; sources in the page's text.
PUBLISHED = {("RTX 4090", 1): "llama.cpp 187 [1]", ("RTX 5090", 1): "llama.cpp 298 [2]",
             ("RTX 5090", 32): "llama.cpp 1,491 [3]", ("H100 SXM", 32): "SGLang 2,765 [4]",
             ("RTX 4090", CHUNK): "llama.cpp 11,100 [5]", ("RTX 5090", CHUNK): "llama.cpp 9,400 [2]"}


def read_costs():
    launches, instructions = {}, {}
    for line in (ROOT / "src/cuda/costs.txt").read_text().splitlines():
        words = line.split()
        if words[:1] == ["launches"]:
            launches[words[1]] = int(words[2])
        if words[:1] == ["instructions"]:
            kernel = words[1].removeprefix("hearth_").removesuffix("_few")
            instructions[kernel] = dict(zip(("75", "80", "89", "120"), map(float, words[2:])))
    return launches, instructions


def weight_bytes(model):
    return sum(count * BYTES[kind] for kind, count, _, _ in model["matrices"]) + model["embedding"]


def step(model, card, tokens, context, costs):
    """Seconds of memory, of instructions, of tensor cores and of launches; and bytes that are read."""
    processors, clock, bandwidth, _, tops, arch = CARDS[card]
    launches, instructions = costs
    read = issued = multiplied = 0.0
    for kind, count, experts, active in model["matrices"]:
        rows = tokens if experts == 1 else tokens * active / experts
        touched = 1.0 if experts == 1 else 1 - (1 - active / experts) ** tokens
        # A launch for up to eight tokens has tiles of 8 rows, others of 32, which take up to four times the
        # instructions; each tile reads its weights anew.
        tile = 8 if tokens <= 8 else 32
        tiles = max(1, math.ceil(rows / tile))
        size = count * BYTES[kind] * touched * tiles
        read += size
        issued += size * instructions[kind][arch] * tile / 8
        multiplied += count * touched * tiles * tile * 2 * 2  # two halves, multiply and add
    seen = context * model["full"] + min(context, model["window"][1]) * model["window"][0]
    read += tokens * seen
    prompt = "prompt-" if tokens == CHUNK else ""
    count = (model["experts"] * launches[f"{prompt}experts"] + model["dense"] * launches[f"{prompt}dense"]
             + model["extra"])
    return (read / (bandwidth * 1e9 * REACHED), issued / (processors * 4 * clock * 1e9 * ISSUED),
            multiplied / (tops * 1e12), (count + launches["around"]) * LAUNCH, read)


def rounded(value):
    digits = max(0, int(math.log10(value)) - 1)
    return f"{round(value, -digits):,.0f}"


def bound(times):
    return ("memory", "instructions", "tensor cores")[max(range(3), key=lambda i: times[i])]


def rows_of(name, model, costs):
    published = PUBLISHED if name.startswith("gpt-oss") else {}
    for card, facts in CARDS.items():
        if weight_bytes(model) > facts[3] * 0.93e9:
            yield f"| {card} | does not fit: {weight_bytes(model) / 1e9:.1f} GB of weights | | | | |"
            continue
        cells = []
        for tokens in (1, 8, 32, CHUNK):
            # The tokens of a chunk see half of it on average.
            times = step(model, card, tokens, CONTEXT if tokens != CHUNK else CHUNK // 2, costs)
            cell = f"{rounded(tokens / (max(times[:3]) + times[3]))} ({bound(times)})"
            if (card, tokens) in published:
                cell += f"; {published[card, tokens]}"
            cells.append(cell)
        launch = step(model, card, 1, CONTEXT, costs)[3]
        yield f"| {card} | " + " | ".join(cells) + f" | {launch * 1e3:.2f} ms |"


def page():
    costs = read_costs()
    out = []
    for name, model in MODELS.items():
        read = step(model, "T4", 1, CONTEXT, costs)[4]
        out += [f"**{name}**: {weight_bytes(model) / 1e9:.1f} GB of weights, {read / 1e9:.2f} GB read for one token.", "",
                "| *predicted* tokens/s | decode, 1 | decode, 8 | decode, 32 | prompt | launches of a step |",
                "|---|---|---|---|---|---|", *rows_of(name, model, costs), ""]
    return "\n".join(out)


def main():
    path = ROOT / "docs/gpu.md"
    text = path.read_text(encoding="utf-8")
    found = re.search(re.escape(BEGIN) + "\n(.*?)" + re.escape(END), text, re.S)
    if not found:
        sys.exit(f"{path} has no place for the predictions")
    if sys.argv[1:] == ["--write"]:
        path.write_text(text[:found.start(1)] + page() + text[found.end(1):], encoding="utf-8")
    elif found.group(1) != page():
        sys.exit("docs/gpu.md has other predictions than tools/gpu_predict.py: run it with --write")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Models in other formats, made by llama.cpp's own llama-quantize: what people's files went through.

The program is that of the peers' Debian folder (`./dev bench peers --setup`). Files are "pure": every
matrix in the one format, where its width allows it, and nothing weighted by an importance matrix.
"""
import os
import pathlib
import subprocess
import sys

import catalogue
from work import work_dir

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "peers"))
sys.path.insert(0, str(ROOT / "tools" / "oracle"))
import debian  # noqa: E402  (the paths are set above)
import locate  # noqa: E402

SMALL_BLOCKS = ["q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "iq4_nl"]
SUPERBLOCKS = ["q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_xs"]
FLOATS = ["f16", "bf16"]
# Where a file comes from. SmolLM2 is 576 wide and minimind2 has 1,408 columns in its last
# projection, no multiples of 256: there llama-quantize takes a format of small blocks instead.
# TinyLlama has none such, but its reference takes ten times as long.
SOURCES = {"llama-1b": "llama-1b-bf16", "smollm2": "smollm2", "tinyllama": "tinyllama",
           "minimind2-small": "work:minimind2-small-q8_0.gguf"}
FORMATS = {
    "llama-1b": [*(f for f in SMALL_BLOCKS if f != "q8_0"), *SUPERBLOCKS, "q4_k_m"],
    "smollm2": SMALL_BLOCKS + SUPERBLOCKS + FLOATS,
    "minimind2-small": SUPERBLOCKS,
    "tinyllama": SUPERBLOCKS,
}
NAMES = {f"{model}-{kind}": (model, kind) for model, kinds in FORMATS.items() for kind in kinds}


def source_of(model, make):
    """The path of the file that the others are made from; `make` writes synthetic ones."""
    name = SOURCES[model]
    if ":" in name:
        return pathlib.Path(locate.find(name))
    return catalogue.get(name) if name in catalogue.FILES else make(name)


def write(name, make, path):
    """Writes the file `name` to `path`."""
    model, kind = NAMES[name]
    sid = debian.Sid(work_dir() / "peers" / "sid")
    if not sid.ready():
        raise SystemExit(f"{name} is made by llama-quantize: ./dev bench peers --setup installs it")
    source = source_of(model, make)
    inside = pathlib.PurePosixPath("/models") / path.name
    flags = ["--allow-requantize"] + ([] if kind.endswith("_m") else ["--pure"])
    command = sid.command("llama-quantize", *flags, sid.model(source), str(inside), kind.upper(),
                          str(len(os.sched_getaffinity(0))))
    made = sid.folder / "models" / path.name
    try:
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-2000:]}")
        made.rename(path)
    finally:
        made.unlink(missing_ok=True)

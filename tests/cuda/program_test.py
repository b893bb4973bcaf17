# SPDX-License-Identifier: Apache-2.0
"""The unmodified program on the mock driver: --device cuda:0 gives the CPU's replies, and what cannot
be done is refused with the reason. A program that was built without nvcc must say that."""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "server"))
from serving import expect, same, serving, work_model

NOTE = "verified by emulation, not yet on hardware"


def environment(mock, **more):
    return {**os.environ, "LD_LIBRARY_PATH": str(mock), **more}


def run(program, model, device, env, *flags):
    done = subprocess.run([program, "run", "--model", model, "--device", device, "--temperature", "0",
                           "--max-tokens", "3", "--context", "64", "--prompt", "Once upon", *flags],
                          capture_output=True, text=True, env=env, check=False)
    return done.returncode, done.stdout, done.stderr


def check_run(program, model, mock):
    code, wanted, _ = run(program, model, "cpu", os.environ)
    same(code, 0, "the CPU's reply")
    code, found, err = run(program, model, "cuda:0", environment(mock))
    expect(code == 0 and NOTE in err and "Mock GPU" in err, f"a reply and a warning: {err!r}")
    same(found, wanted, "the reply of the GPU")


def check_refusals(program, model, mock):
    nowhere = {**os.environ, "LD_LIBRARY_PATH": ""}
    for device, env, named in (
            ("cuda:0", nowhere, "no NVIDIA driver: libcuda.so.1 was not found"),
            ("cuda:1", environment(mock), "no device cuda:1; the driver has 1 device"),
            ("cuda:0", environment(mock, HEARTH_MOCK="memory=9000000"),
             "the model does not fit in the memory of cuda:0: needs")):
        code, out, err = run(program, model, device, env)
        expect(code == 1 and out == "" and named in err, f"{device}: {named}: {err!r}")


def check_serve(program, model, mock):
    body = {"prompt": "Once upon a time", "max_tokens": 3, "temperature": 0, "logprobs": 1}
    replies = []
    for device, env in (("cpu", None), ("cuda:0", environment(mock))):
        with serving(program, model, "--device", device, "--confine", "off", "--kv-memory", "4MiB",
                     "--context", "64", env=env) as server:
            status, _, data = server.request("POST", "/v1/completions", body)
            same(status, 200, f"a completion on {device}: {data!r}")
            replies.append(json.loads(data)["choices"])
            if device != "cpu":
                expect(any(NOTE in line for line in server.log), f"the start says it: {server.log}")
    same(replies[1], replies[0], "the completion of the GPU with its log-probabilities")


def check_lost_device(program, model, mock):
    """A device that is lost ends requests with the reason, and the server goes on."""
    env = environment(mock, HEARTH_MOCK="crash=40")
    body = {"prompt": "Once", "max_tokens": 2, "temperature": 0}
    with serving(program, model, "--device", "cuda:0", "--confine", "off", "--kv-memory", "4MiB",
                 "--context", "64", env=env) as server:
        for _ in range(2):
            status, _, data = server.request("POST", "/v1/completions", body)
            expect(status >= 500, f"a request on a lost device: {status} {data!r}")
        same(server.request("GET", "/livez")[0], 200, "the server lives")


def main(program, mock):
    model = work_model("minimind2-small-q8_0.gguf")
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    if "CUDA: not built in" in version:
        code, _, err = run(program, model, "cuda:0", environment(mock))
        expect(code == 1 and "built without CUDA kernels" in err, f"without kernels: {err!r}")
        print("SKIPPED LOUDLY: the program has no CUDA kernels, nvcc is missing (./dev setup cuda)")
        return
    expect(NOTE in version, f"--version: {version!r}")
    check_run(program, model, mock)
    check_refusals(program, model, mock)
    check_serve(program, model, mock)
    check_lost_device(program, model, mock)


if __name__ == "__main__":
    main(sys.argv[1], pathlib.Path(sys.argv[2]))

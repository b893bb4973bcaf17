# SPDX-License-Identifier: Apache-2.0
"""Who may let a model go: with keys in use an admin's alone, by /models/unload and by Ollama's
`keep_alive` alike; without keys everybody. And what clients hear of one that cannot be loaded."""
import json
import pathlib
import subprocess
import sys
import tempfile
import time

from serving import expect, same, serving, work_model

FLAGS = ["--kv-memory", "64MiB"]
MESSAGES = [{"role": "user", "content": "Hi"}]


def key(path, name, *more):
    done = subprocess.run([sys.argv[1], "key", name, "--keys", str(path), *more], check=True,
                          capture_output=True, text=True)
    return {"authorization": "Bearer " + done.stdout.split()[-1]}


def state(server, headers):
    status, _, data = server.request("GET", "/v1/models", headers=headers)
    same(status, 200, "/v1/models")
    return {card["id"]: card["state"] for card in json.loads(data)["data"]}["smol"]


def chat(server, headers, **body):
    status, _, data = server.request("POST", "/api/chat", {"model": "smol", "stream": False, **body},
                                     headers)
    return status, json.loads(data)


def leaves(server, headers):
    end = time.monotonic() + 60
    while state(server, headers) == "loaded" and time.monotonic() < end:
        time.sleep(0.05)
    return state(server, headers) != "loaded"


def check_keys(folder, models):
    path = folder / "keys.json"
    user, admin = key(path, "user"), key(path, "boss", "--admin")
    with serving(sys.argv[1], models, *FLAGS, "--keys", str(path)) as server:
        short = {"messages": MESSAGES, "options": {"num_predict": 2}}
        same(chat(server, user, **short, keep_alive=0)[0], 200, "a usual request that says keep_alive")
        time.sleep(0.5)
        same(state(server, user), "loaded", "the model after it")
        status, said = chat(server, user, keep_alive=0)
        expect(status == 403 and "admin" in said["error"], f"an unload by a user: {status} {said}")
        same(server.request("POST", "/models/unload", {"model": "smol"}, user)[0], 403, "and by the route")
        same(state(server, user), "loaded", "the model after both")
        status, said = chat(server, admin, keep_alive=0)
        same((status, said.get("done_reason")), (200, "unload"), "an unload by an admin")
        expect(leaves(server, admin), "the model leaves")
        same(chat(server, admin, **short, keep_alive=0)[0], 200, "a request of an admin's with keep_alive")
        expect(leaves(server, admin), "the model leaves after it")


def check_without(models):
    with serving(sys.argv[1], models, *FLAGS) as server:
        same(chat(server, {}, messages=MESSAGES, options={"num_predict": 2})[0], 200, "a request")
        same(state(server, {}), "loaded", "the model after it")
        same(chat(server, {}, keep_alive=0)[1].get("done_reason"), "unload", "an unload without keys")
        expect(leaves(server, {}), "the model leaves")


def check_failure(folder, models):
    """A model that cannot be loaded is told by its name; its place is the server's own business."""
    (folder / "broken.gguf").write_bytes(pathlib.Path(work_model("smollm2.gguf")).read_bytes()[:3000])
    with serving(sys.argv[1], [*models, str(folder / "broken.gguf")], *FLAGS) as server:
        status, _, data = server.request("POST", "/v1/chat/completions",
                                         {"model": "broken", "messages": MESSAGES})
        said = data + server.request("GET", "/v1/models")[2]
    expect(status == 503 and b"broken" in data, f"{status} {data}")
    expect(str(folder).encode() not in said, f"where the file is: {said}")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for model, file in (("smol", "smollm2.gguf"), ("other", "tiny-oss-o200k.gguf")):
            (folder / f"{model}.gguf").symlink_to(work_model(file))
        models = [str(folder / "smol.gguf"), str(folder / "other.gguf")]
        check_keys(folder, models)
        check_without(models)
        check_failure(folder, models)
    print("keeping ok")


main()

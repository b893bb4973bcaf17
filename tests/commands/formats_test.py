# SPDX-License-Identifier: Apache-2.0
"""Upgrade and rollback of every file that Hearth keeps: what an older version wrote is read, what a newer one
wrote is refused in words and left as it is, byte for byte, and what is of this version again is read again.
formats_test.py HEARTH; docs/formats.md has a row for each."""
import contextlib
import json
import os
import pathlib
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile

for room in ("server", "support"):
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / room))
from serving import expect, same, serving, work_model

MODEL = "tiny-chatml.gguf"


def everything(folder):
    """path -> bytes of a file or folder. Of SQLite's own two files only that they hold nothing."""
    paths = [folder] if folder.is_file() else sorted(p for p in folder.rglob("*") if p.is_file())
    return {str(path): path.read_bytes() for path in paths}


def run(program, *arguments, env=None):
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=120,
                          env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL)


def refused(program, path, words, *commands, env=None):
    """None of the commands succeeds, each says these words, and nothing under `path` changes."""
    before = everything(path)
    for command in commands:
        done = run(program, *command, env=env)
        expect(done.returncode != 0, f"{command} to fail: {done.stdout}{done.stderr}")
        for word in words:
            expect(word in done.stderr, f"{command}: {word!r} in {done.stderr!r}")
    same(everything(path), before, f"what is in {path} after {commands}")


def ask(server, method, path, body=None):
    status, _, data = server.request(method, path, body)
    same(status, 200, f"{method} {path}: {data[:300]}")
    return json.loads(data)


def check_responses(program, folder):
    path = folder / "responses"
    flags = ("--responses", str(path), "--no-supervisor")
    with serving(program, work_model(MODEL), *flags) as server:
        kept = ask(server, "POST", "/v1/responses", {"input": "keep", "max_output_tokens": 16})["id"]

    def set_format(number, sql=""):
        with contextlib.closing(sqlite3.connect(path)) as db:
            found = db.execute("PRAGMA user_version").fetchone()[0]
            db.executescript(f"{sql}; PRAGMA user_version = {number}; PRAGMA wal_checkpoint(TRUNCATE)")
        return found

    same(set_format(0), 1, "the format that this version writes")
    with serving(program, work_model(MODEL), *flags) as server:  # as before formats had numbers
        same(ask(server, "GET", f"/v1/responses/{kept}")["id"], kept, "a response of before")
    same(set_format(2, "ALTER TABLE responses ADD COLUMN more TEXT"), 1, "the format after an upgrade")
    refused(program, path, ["responses", "has format 2", "reads up to 1", "another file"],
            ("serve", "--model", work_model(MODEL), "--port", "0", *flags))
    same(set_format(1, "ALTER TABLE responses DROP COLUMN more"), 2, "the newer format, untouched")
    with serving(program, work_model(MODEL), *flags) as server:
        same(ask(server, "GET", f"/v1/responses/{kept}")["id"], kept, "a response after a rollback")


def check_keys(program, folder):
    path = folder / "keys.json"
    same(run(program, "key", "anna", "--keys", str(path)).returncode, 0, "a key")
    old = path.read_text(encoding="utf-8")
    serve = ("serve", "--model", work_model(MODEL), "--port", "0", "--keys", str(path))
    key = ("key", "bert", "--keys", str(path))
    newer = [({"format": 2, **json.loads(old)}, "format 2"), ({**json.loads(old), "groups": []}, "expected a keys file"),
             ({"keys": [{**json.loads(old)["keys"][0], "expires": 1}]}, '"expires": unknown field')]
    for content, words in newer:
        path.write_text(json.dumps(content), encoding="utf-8")
        refused(program, path, ["keys.json", words], serve, key)
    for content in (json.loads(old), {"format": 1, **json.loads(old)}):
        path.write_text(json.dumps(content), encoding="utf-8")
        same(run(program, *key).returncode, 0, "a second key")
        same(len(json.loads(path.read_text(encoding="utf-8"))["keys"]), 2, "both of them")


def check_manifests(program, folder):
    home = folder / "models"
    model = home / "m"
    model.mkdir(parents=True)
    shutil.copy(work_model(MODEL), model / "m.gguf")
    size = (model / "m.gguf").stat().st_size
    env = {"HEARTH_MODELS": str(home)}

    def write(number):
        (model / "hearth.json").write_text(json.dumps({
            "format": number, "name": "m", "repo": "a/b", "revision": "c0ffee", "selector": "", "url": "",
            "licence": "mit", "complete": True, "directory": False,
            "files": [{"name": "m.gguf", "bytes": size, "digest": ""}]}), encoding="utf-8")

    write(1)
    shown = run(program, "show", "m", env=env)
    expect(shown.returncode == 0 and "a/b" in shown.stdout, f"a model of this version: {shown.stdout}{shown.stderr}")
    write(2)
    before = everything(home)
    listed = run(program, "list", env=env)
    expect("newer version of Hearth" in listed.stderr + listed.stdout, f"why it is not listed: {listed}")
    same(everything(home), before, "the store after `hearth list`")
    refused(program, home, [], ("show", "m"), env=env)
    write(1)
    same(run(program, "show", "m", env=env).returncode, 0, "the model after a rollback")


def check_packed(program, folder):
    path = folder / "model.hearth"
    same(run(program, "pack", work_model(MODEL), str(path)).returncode, 0, "packing")
    data = path.read_bytes()
    same(run(program, "inspect", str(path)).returncode, 0, "a packed file of this version")
    for number in (0, 2, 1 << 31):
        at = data.index(struct.pack("<I", 1), 4, 32)
        path.write_bytes(data[:at] + struct.pack("<I", number) + data[at + 4:])
        refused(program, path, [f"packed format {number} is not supported", "hearth pack"], ("inspect", str(path)),
                ("serve", "--model", str(path), "--port", "0"))
    path.write_bytes(data)
    same(run(program, "inspect", str(path)).returncode, 0, "it after a rollback")


def main(program):
    os.environ["HEARTH_CONFIG"] = "/dev/null"
    for check in (check_responses, check_keys, check_manifests, check_packed):
        with tempfile.TemporaryDirectory() as folder:
            check(program, pathlib.Path(folder))
        print(f"{check.__name__}: ok", flush=True)
    print("older files are read, newer ones refused and left as they are")


if __name__ == "__main__":
    main(sys.argv[1])

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hearth doctor with the real program: models, configuration and servers in which one thing is broken,
what it says of each, its exit codes, and that a report names neither user nor host."""
import hashlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile

from serving import expect, new_key, same, serving, work_model

PROGRAM = sys.argv[1]


def doctor(*flags, home, variables=None):
    """(exit code, {check: row}, standard error)"""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HEARTH_")}
    clean.update(XDG_DATA_HOME=str(home / "data"), XDG_CONFIG_HOME=str(home / "config"),
                 HOME=str(home), OLLAMA_MODELS=str(home / "none"), **(variables or {}))
    done = subprocess.run([PROGRAM, "doctor", "--json", "--quick", *flags], capture_output=True,
                          text=True, env=clean, timeout=120, check=False)
    rows = json.loads(done.stdout)["checks"] if done.stdout else []
    return done.returncode, {row["check"]: row for row in rows}, done.stderr


def finds(rows, check, verdict, found, advice):
    row = rows[check]
    same(row["verdict"], verdict, f"{check}: {row}")
    expect(found in row["found"], f"{check} finds {found!r}: {row}")
    expect(advice in row["advice"], f"{check} advises {advice!r}: {row}")


def check_store(home):
    models = home / "data/hearth/models"
    code, rows, _ = doctor(home=home)
    finds(rows, "store.models", "note", "no models", "hearth pull")
    finds(rows, "store.folder", "good", str(models), "")
    folder = models / "tiny"
    folder.mkdir(parents=True)
    content = pathlib.Path(work_model("tiny-chatml.gguf")).read_bytes()
    (folder / "tiny.gguf").write_bytes(content)
    manifest = {"format": 1, "name": "tiny", "url": "https://box.example/tiny.gguf",
                "complete": True, "directory": False,
                "files": [{"name": "tiny.gguf", "bytes": len(content),
                           "digest": "sha256:" + hashlib.sha256(content).hexdigest()}]}
    (folder / "hearth.json").write_text(json.dumps(manifest))
    code, rows, err = doctor("tiny", "--hash", home=home)
    same(code, 0, f"a sound model: {rows} {err}")
    for check in ("store.models", "model.opens", "model.fits", "model.talks", "model.checksums"):
        same(rows[check]["verdict"], "good", f"{check}: {rows[check]}")

    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 1
    (folder / "tiny.gguf").write_bytes(flipped)
    code, rows, err = doctor("tiny", "--hash", home=home)
    same(code, 1, "a flipped bit is a fault")
    finds(rows, "model.checksums", "fault", "tiny.gguf does not have", "hearth rm tiny")
    (folder / "tiny.gguf").write_bytes(content[:4096])
    code, rows, err = doctor("tiny", home=home)
    same(code, 1, "a cut file is a fault")
    finds(rows, "model.opens", "fault", "tiny.gguf", "damaged, unfinished")
    finds(rows, "model.fits", "unknown", "does not open", "")

    (folder / "hearth.json").write_text(json.dumps({**manifest, "complete": False}))
    _, rows, _ = doctor(home=home)
    finds(rows, "store.models", "note", "unfinished", "hearth pull tiny")
    (folder / "hearth.json").write_text("{")
    _, rows, _ = doctor(home=home)
    finds(rows, "store.models", "warning", "hearth.json", "pull the model again")
    shutil.rmtree(home / "data")
    (home / "data").write_text("a file where the folder should be")
    _, rows, _ = doctor(home=home)
    finds(rows, "store.folder", "fault", "cannot be written", "XDG_DATA_HOME")
    (home / "data").unlink()


def check_models(home):
    model = work_model("tiny-chatml.gguf")
    text = home / "notes.gguf"
    text.write_text("not a model\n" * 9000)
    code, rows, _ = doctor(str(text), home=home)
    same(code, 1, "a text file")
    finds(rows, "model.opens", "fault", "notes.gguf", "hearth pull")
    code, rows, _ = doctor("no-such-model", home=home)
    same(code, 1, "an unknown name")
    finds(rows, "model.opens", "fault", "no-such-model", "hearth list")
    _, rows, _ = doctor(model, "--hash", home=home)
    finds(rows, "model.checksums", "unknown", "checksum", "")


def make_certificate(home, name, days):
    """(certificate, key) with a name, valid from now on."""
    paths = home / f"{name}.pem", home / f"{name}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-subj", f"/CN={name}", "-days", str(days), "-out", paths[0], "-keyout", paths[1]],
                   check=True, capture_output=True)
    paths[1].chmod(0o600)
    return paths


def check_certificates(home, config):
    """What `hearth serve` is configured with: its dates, its key, who can read that."""
    def rows_with(certificate, key):
        config.write_text(f'[serve]\ntls-certificate = "{certificate}"\ntls-key = "{key}"\n')
        return doctor(home=home)

    good, good_key = make_certificate(home, "good", 365)
    code, rows, err = rows_with(good, good_key)
    same(code, 0, f"a certificate in order: {rows} {err}")
    finds(rows, "tls.certificate", "good", "valid for another", "")
    finds(rows, "tls.key", "good", "belongs", "")
    soon, soon_key = make_certificate(home, "soon", 5)
    code, rows, _ = rows_with(soon, soon_key)
    finds(rows, "tls.certificate", "warning", "valid for another", "renew")
    code, rows, _ = rows_with(good, soon_key)
    same(code, 1, "another certificate's key")
    finds(rows, "tls.key", "fault", "is not the key of", "made with")
    good_key.chmod(0o644)
    _, rows, _ = rows_with(good, good_key)
    finds(rows, "config.secrets", "warning", "good.key", "chmod 600")
    good_key.chmod(0o600)
    good.write_text("no certificate\n")
    code, rows, _ = rows_with(good, good_key)
    same(code, 1, "a damaged certificate")
    finds(rows, "tls.certificate", "fault", "holds no certificate", "correct the path")
    _, rows, _ = rows_with(home / "nothing.pem", good_key)
    finds(rows, "tls.certificate", "fault", "cannot be read", "correct the path")
    soon_key.write_text("no key\n")
    _, rows, _ = rows_with(soon, soon_key)
    finds(rows, "tls.key", "fault", "holds no private key", "made with")
    config.write_text(f'[serve]\ntls-certificate = "{soon}"\n')
    _, rows, _ = doctor(home=home)
    finds(rows, "tls.key", "fault", "only one of", "both")


def check_config(home):
    config = home / "config/hearth/hearth.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[serve]\nprot = 1\n")
    code, rows, _ = doctor(home=home)
    same(code, 1, "a mistake in the configuration")
    finds(rows, "config.files", "fault", "hearth.toml:2", "hearth config check")
    keys = home / "keys.json"
    keys.write_text('{"keys": []}')
    keys.chmod(0o644)
    config.write_text(f'[serve]\nkeys = "{keys}"\n')
    code, rows, _ = doctor(home=home)
    finds(rows, "config.secrets", "warning", "other users", "chmod 600")
    same(code, 0, "a warning alone does not fail")
    code, _, err = doctor("--strict", home=home)
    same(code, 1, f"but does with --strict: {err}")
    keys.chmod(0o600)
    _, rows, _ = doctor(home=home)
    finds(rows, "config.secrets", "good", "1 file", "")
    keys.unlink()
    _, rows, _ = doctor(home=home)
    finds(rows, "config.secrets", "fault", "not there", "correct the path")
    check_certificates(home, config)
    config.unlink()
    _, rows, _ = doctor(home=home, variables={"HEARTH_SERVE_PROT": "1"})
    finds(rows, "config.files", "warning", "HEARTH_SERVE_PROT", "hearth config show")


def check_server(home):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        _, rows, _ = doctor(home=home, variables={"HEARTH_SERVE_PORT": str(port)})
        finds(rows, "server.port", "warning", f"uses port {port}", "--port")
    _, rows, _ = doctor(home=home, variables={"HEARTH_SERVE_PORT": str(port)})
    finds(rows, "server.port", "good", "is free", "")
    code, rows, _ = doctor("--url", f"http://127.0.0.1:{port}", home=home)
    same(code, 1, "no server")
    finds(rows, "server.lives", "fault", str(port), "hearth serve")
    finds(rows, "server.ready", "unknown", "does not answer", "")

    key, entry = new_key(PROGRAM, "ada")
    path = home / "keys.json"
    path.write_text(json.dumps({"keys": [entry]}))
    path.chmod(0o600)
    with serving(PROGRAM, work_model("tiny-chatml.gguf"), "--keys", str(path)) as server:
        url = server.address
        code, rows, err = doctor("--url", url, home=home, variables={"HEARTH_API_KEY": key})
        same(code, 0, f"a server in order: {rows} {err}")
        for check in ("server.lives", "server.ready", "server.key", "server.version",
                      "server.encrypted"):
            same(rows[check]["verdict"], "good", f"{check}: {rows[check]}")
        code, rows, _ = doctor("--url", url, home=home, variables={"HEARTH_API_KEY": "wrong"})
        same(code, 1, "a wrong key")
        finds(rows, "server.key", "fault", "401", "HEARTH_API_KEY")
        used = url.rsplit(":", 1)[1]
        _, rows, _ = doctor(home=home, variables={"HEARTH_SERVE_PORT": used})
        finds(rows, "server.port", "good", "a server answers", "")
        public = url.replace("127.0.0.1", "box.example")
        _, rows, _ = doctor("--url", public, home=home)
        finds(rows, "server.encrypted", "warning", "unencrypted", "--tls-certificate")


def check_report(home):
    bundle = home / "report.json"
    _, _, err = doctor("--bundle", str(bundle), str(home / "secret-place"), home=home,
                       variables={"USER": "adalovelace"})
    expect("bug report" in err, f"tells where: {err}")
    text = bundle.read_text()
    same(bundle.stat().st_mode & 0o777, 0o600, "for its owner alone")
    expect(json.loads(text)["checks"], "the findings are in it")
    expect("~/secret-place" in text, f"the home folder is ~: {text}")
    for private in (str(home), "adalovelace", socket.gethostname()):
        expect(len(private) < 3 or private not in text, f"{private!r} is not in a report")


def check_people():
    """What a person sees."""
    done = subprocess.run([PROGRAM, "doctor", "--all"], capture_output=True, text=True,
                          timeout=300, check=False)
    expect("kernels.avx2" in done.stdout or "instructions" in done.stdout, done.stdout)
    expect("memory.bandwidth" in done.stdout and "GB/s" in done.stdout, done.stdout)
    expect("\x1b" not in done.stdout, "no colours into a pipe")
    shown = [line for line in done.stdout.splitlines() if line and not line.startswith(" ")]
    expect(len(shown) > 40, f"more than 40 checks: {len(shown)}")


def check_page():
    """docs/doctor.md lists every check, and no other."""
    page = (pathlib.Path(__file__).parents[2] / "docs/doctor.md").read_text()
    listed, subject = set(), ""
    for row in page.splitlines():
        if not row.startswith("| `"):
            continue
        for word in row.split("|")[1].split("`")[1::2]:
            subject = word.split(".")[0] or subject
            listed.add(word if not word.startswith(".") else subject + word)
    done = subprocess.run([PROGRAM, "doctor", "--json", "--hash", "--url", "http://127.0.0.1:1",
                           work_model("tiny-chatml.gguf")], capture_output=True, text=True,
                          timeout=300, check=False)
    known = {row["check"] for row in json.loads(done.stdout)["checks"]}
    # A processor without them has no kernels to check.
    known |= {f"kernels.{level}" for level in ("avx2", "avxvnni", "avx512vnni", "avx512", "amx")}
    same(sorted(listed), sorted(known), "docs/doctor.md")


def main():
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder)
        check_store(home)
        check_models(home)
        check_config(home)
        check_server(home)
        check_report(home)
    check_people()
    check_page()
    print("doctor: every broken thing was found and advised")


main()

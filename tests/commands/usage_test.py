# SPDX-License-Identifier: Apache-2.0
"""Mistakes on the command line: exit 2 for wrong usage, 1 for work that failed, and a message that
names the thing at fault. Every command has help."""
import json
import pathlib
import socket
import tempfile

from models import expect, hearth, work_model


def check_serve():
    """What can be known at once is told before a model is loaded, which may take a minute."""
    model = work_model("smollm2.gguf")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for flags, named in ((["--port", port], f"port {port}: Address already in use"),
                             (["--port", "0", "--control-port", port], f"port {port}"),
                             (["--host", "localhost", "--port", port], "127.0.0.1 port"),
                             (["--host", "0.0.0.0"], "--keys"),
                             (["--host", "example", "--keys", "k"], "k: cannot open"),
                             (["--tls-certificate", "no.pem", "--tls-key", "no.pem"], '"no.pem"'),
                             (["--tls-key", "no.pem"], "go together")):
            code, _, err = hearth("serve", "--model", model, *flags)
            expect(code == 1 and named in err and len(err.splitlines()) == 1,
                   f"serve {flags}: one line that names it: {err!r}")


def check_key():
    """Keys are put into a file that hearth serve takes, and a mistake leaves it as it was."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "keys.json"
        for name, flags in (("ada", []), ("root", ["--admin"])):
            code, out, err = hearth("key", name, "--keys", str(path), *flags)
            expect(code == 0 and out.startswith("hearth-") and str(path) in err, f"a key: {err!r}")
        entries = json.loads(path.read_text())["keys"]
        expect([(e["id"], e["admin"]) for e in entries] == [("ada", False), ("root", True)],
               f"both entries: {entries}")
        before = path.read_bytes()
        code, out, err = hearth("key", "ada", "--keys", str(path))
        expect(code == 1 and out == "" and "ada is taken" in err, f"a name twice: {err!r}")
        expect(path.read_bytes() == before, "the file is as it was")
        path.write_text("junk")
        code, out, _ = hearth("key", "bob", "--keys", str(path))
        expect(code == 1 and out == "" and path.read_text() == "junk", "no keys file")


def main():
    code, out, _ = hearth("--help")
    expect(code == 0 and "inspect" in out and "run" in out, "help lists the commands")
    for command in (["inspect"], ["eval", "logits"], ["eval", "perplexity"], ["eval", "compare"],
                    ["run"], ["tokenize"], ["bench"], ["render"], ["serve"], ["pull"], ["show"],
                    ["rm"]):
        code, out, _ = hearth(*command, "--help")
        expect(code == 0 and "--model" in out or "model" in out, f"{command} has help")
    expect(hearth()[0] == 2, "no command is wrong usage")
    for wrong, named in ((["bogus"], '"bogus"'), (["serve", "--modle", "x"], '"--modle"'),
                         (["inspect", "x", "--jsno"], '"--jsno"'),
                         (["serve", "--model", "x", "--port", "99999"], "65535"),
                         (["top", "--interval", "soon"], "--interval")):
        code, _, err = hearth(*wrong)
        expect(code == 2 and named in err, f"{wrong} names what is wrong: {err!r}")
    expect(hearth("inspect")[0] == 2, "a missing argument is wrong usage")
    expect(hearth("eval", "logits", "--bogus")[0] == 2, "an unknown flag is wrong usage")
    code, _, err = hearth("inspect", "/nonexistent.gguf")
    expect(code == 1 and "/nonexistent.gguf" in err, f"a missing file is named: {err!r}")
    with tempfile.TemporaryDirectory() as folder:
        junk = pathlib.Path(folder) / "junk.gguf"
        junk.write_bytes(b"not a model at all, just bytes")
        code, _, err = hearth("inspect", str(junk))
        expect(code == 1 and "junk.gguf" in err, f"junk is refused by name: {err!r}")
        tokens = pathlib.Path(folder) / "t.i32"
        tokens.write_bytes(b"\1\0\0")
        model = work_model("smollm2.gguf")
        code, _, err = hearth("eval", "logits", "--model", model, "--tokens", str(tokens), "--out",
                              folder + "/x.f64")
        expect(code == 1 and "3 bytes" in err, f"odd token files are refused: {err!r}")
        tokens.write_bytes((2**31 - 1).to_bytes(4, "little"))
        code, _, err = hearth("eval", "logits", "--model", model, "--tokens", str(tokens), "--out",
                              folder + "/x.f64", "--backend", "cpu")
        expect(code == 1 and "outside the vocabulary" in err, f"tokens are checked: {err!r}")
        code, _, err = hearth("eval", "logits", "--model", model, "--tokens", str(tokens), "--out",
                              folder + "/x.txt")
        expect(code == 1 and ".f32 or .f64" in err, f"the output's type must be named: {err!r}")
        code, _, err = hearth("eval", "logits", "--model", model, "--tokens", str(tokens), "--out",
                              folder + "/x.f64", "--backend", "cpu", "--isa", "neon")
        expect(code == 1 and "neon" in err, f"an unknown instruction set is named: {err!r}")
    check_serve()
    check_key()
    print("usage ok")


main()

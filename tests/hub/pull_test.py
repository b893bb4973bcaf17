# SPDX-License-Identifier: Apache-2.0
"""`hearth pull`, list, show and rm as a person uses them, against a stand-in for the Hub."""
import hashlib
import json
import pathlib
import random
import socket
import subprocess
import sys
import tempfile

from pulls import PATIENT, clear_message, expect, hearth, models, same
from checking import work_model
from standin import COMMIT, Hub

RNG = random.Random(1)
FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures/families"


def gguf(size=300_000):
    return b"GGUF" + RNG.randbytes(size)


class Bench:
    """A hub with some repositories, and an empty machine."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.hub = Hub()
        self.hub.repos["ggml-org/gpt-oss-20b-GGUF"]["gpt-oss-20b-mxfp4.gguf"] = gguf()
        self.hub.repos["a/split"] = {f"s/m-Q8_0-0000{n}-of-00003.gguf": gguf() for n in (1, 2, 3)}
        self.hub.repos["a/many"] = {f"m-{q}.gguf": gguf(5000) for q in ("Q2_K", "Q4_K_M", "Q8_0")}
        tiny = FIXTURES / "llama3/hf"
        self.hub.repos["a/tensors"] = {p.name: p.read_bytes() for p in tiny.iterdir()}
        self.environment = self.hub.environment(self.folder)

    def run(self, *args, **options):
        return hearth(self.environment, *args, **options)

    def pull(self, *args, **options):
        return self.run("pull", *args, *PATIENT, **options)

    def fails(self, named, *args, **options):
        code, out, err = self.run(*args, **options)
        expect(clear_message(code, err), f"{args}: exit {code}: {err!r}")
        for word in (named,) if isinstance(named, str) else named:
            expect(word in err, f"{args}: {word!r} is not in {err!r}")
        return err


def names(bench):
    """By the catalogue's name, then without the network."""
    code, out, err = bench.pull("gpt-oss:20b")
    expect(code == 0, f"by name: {err!r}")
    path = pathlib.Path(out.strip())
    same(path, bench.folder / "models/gpt-oss-20b/gpt-oss-20b-mxfp4.gguf", "the path")
    expect("hearth run gpt-oss-20b" in err and "apache-2.0" in err, f"what to do next: {err!r}")
    offline = {**bench.environment, "HF_ENDPOINT": "http://127.0.0.1:1"}
    for again in ("gpt-oss-20b", "gpt-oss", "ggml-org/gpt-oss-20b-GGUF:mxfp4"):
        code, out, err = hearth(offline, "pull", again)
        expect(code == 0 and out.strip() == str(path), f"{again}, offline: {err!r}")
    err = hearth(offline, "pull", "qwen3-8b", "--retry-wait", "0.01")[2]
    expect("On this machine are: gpt-oss-20b" in err, f"no network: {err!r}")
    code, out, _ = bench.run("show", "gpt-oss", "--json")
    shown = json.loads(out)
    same((shown["name"], shown["repo"], shown["revision"], shown["licence"], shown["complete"]),
         ("gpt-oss-20b", "ggml-org/gpt-oss-20b-GGUF", COMMIT, "apache-2.0", True), "show")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    same(shown["files"][0]["digest"], f"sha256:{digest}", "the digest is shown")
    code, out, _ = bench.run("show", "gpt-oss-20b")
    expect(code == 0 and digest in out and "hearth inspect" in out, f"show: {out!r}")


def selections(bench):
    """Quantisations, split sets and directories."""
    code, out, err = bench.pull("a/many")
    expect(code == 0 and "chose m-Q4_K_M of 3" in err, f"the usual one: {err!r}")
    code, out, err = bench.pull("a/many:Q2_K", "--name", "small")
    expect(code == 0 and out.strip().endswith("models/small/m-Q2_K.gguf"), f"a quant: {err!r}")
    bench.fails(("Q2_K, Q4_K_M, Q8_0",), "pull", "a/many:Q5_0")
    bench.fails("--name", "pull", "a/many:Q8_0", "--name", "small")
    code, out, err = bench.pull("a/split@v1")
    shards = sorted(p.name for p in pathlib.Path(out.strip()).parent.glob("*.gguf"))
    expect(code == 0 and len(shards) == 3 and out.strip().endswith("00001-of-00003.gguf"),
           f"a set: {shards} {err!r}")
    code, out, err = bench.pull("a/tensors")
    expect(code == 0 and out.strip() == str(bench.folder / "models/tensors"), f"files: {err!r}")
    code, out, err = bench.run("inspect", "tensors", "--json")
    expect(code == 0 and json.loads(out)["family"] == "llama", f"it can be opened: {err!r}")


def tokens(bench):
    """The token goes to the Hub, and to nobody that it redirects to."""
    bench.hub.requests.clear()
    bench.hub.repos["a/private"]["p-Q8_0.gguf"] = gguf(9000)
    environment = {**bench.environment, "HF_TOKEN": "hf_secret"}
    code, _, err = hearth(environment, "pull", "a/private", *PATIENT)
    expect(code == 0, f"with a token: {err!r}")
    seen = {(r.server, r.authorization) for r in bench.hub.requests}
    same(seen, {("hub", "Bearer hf_secret"), ("files", None)}, "who saw the token")
    expect("hf_secret" not in err, "the token is not shown")
    bad = hearth({**environment, "HF_TOKEN": "hf secret"}, "pull", "a/x")[2]
    expect("HF_TOKEN" in bad and "hf secret" not in bad, f"a bad token: {bad!r}")


def urls(bench):
    """A URL of the Hub is a file of the Hub; any other is checked as far as it can be."""
    bench.hub.repos["a/url"] = {"u-Q8_0.gguf": gguf(9000), "page.gguf": b"<html>please log in"}
    code, out, err = bench.pull(f"{bench.hub.address}/a/url/resolve/main/u-Q8_0.gguf?download=true")
    expect(code == 0 and "no checksum" not in err, f"a URL of the Hub: {err!r}")
    plain = f"{bench.hub.files_address}/a/url/u-Q8_0.gguf"
    code, out, err = bench.pull(plain, "--name", "plain")
    expect(code == 0 and "only the length was checked" in err, f"a URL: {err!r}")
    good = hashlib.sha256(bench.hub.repos["a/url"]["u-Q8_0.gguf"]).hexdigest()
    code, out, err = bench.pull(plain, "--name", "summed", "--sha256", good)
    expect(code == 0 and "only the length" not in err, f"with a sum: {err!r}")
    bench.fails("checksum", "pull", plain, "--name", "bad", "--sha256", "0" * 64, *PATIENT)
    bench.fails("64 hexadecimal", "pull", plain, "--name", "bad", "--sha256", "0" * 63)
    bench.fails('"<htm"', "pull", f"{bench.hub.files_address}/a/url/page.gguf", "--name", "page")
    expect(not (bench.folder / "models/page").exists(), "a page is not kept")


def mistakes(bench):
    """Each says what is wrong and what to do."""
    bench.fails(("qwen3-8b", "hearth list --all"), "pull", "qwen3-8c")
    bench.fails("check the spelling", "pull", "nobody/nothing")
    bench.fails("expected a name", "pull", "../../etc/passwd")
    nobody = str(bench.folder / "nobody")
    bare = {**bench.environment, "HOME": nobody, "HEARTH_MODELS": nobody, "XDG_DATA_HOME": nobody}
    for name in ("HF_HOME", "HF_HUB_CACHE", "OLLAMA_MODELS"):
        bare.pop(name, None)
    code, _, err = hearth(bare, "serve", "--port", "0")
    expect(code != 0 and "hearth pull smollm2" in err, f"serve without a model: {err!r}")
    bench.fails("hearth pull qwen3-8b", "serve", "qwen3-8b")
    bench.fails("`hearth pull a/b:Q8_0`", "inspect", "a/b:Q8_0")
    bad = hearth({**bench.environment, "HF_ENDPOINT": "mirror"}, "pull", "a/none")[2]
    expect("HF_ENDPOINT" in bad and "http://" in bad, f"a bad endpoint: {bad!r}")
    folder = bench.folder / "some"
    folder.mkdir()
    bench.fails("has no model", "inspect", str(folder))
    for name in ("a.gguf", "b.gguf"):
        (folder / name).write_text("GGUF")
    bench.fails("a.gguf, b.gguf", "inspect", str(folder))
    bench.fails("has: a.gguf, b.gguf", "inspect", str(folder / "c.gguf"))
    (folder / "notes.txt").write_text("# my notes\n")
    bench.fails(("GGUF", "# my"), "inspect", str(folder / "notes.txt"))
    (folder / "lfs.gguf").write_text("version https://git-lfs.github.com/spec/v1\n")
    bench.fails("git lfs pull", "inspect", str(folder / "lfs.gguf"))
    bench.fails("not on this machine", "rm", "never-was")
    code, out, _ = bench.run("pull")
    expect(code == 0 and "gpt-oss-20b" in out and "qwen3-8b" in out, f"the catalogue: {out!r}")
    code, out, _ = bench.run("list", "--all")
    expect(code == 0 and "gpt-oss-120b" in out, f"list --all: {out!r}")


def fits(bench):
    """What does not fit is refused before a byte of it comes."""
    bench.hub.repos["a/big"]["big-Q8_0.gguf"] = gguf(9000)
    listing = bench.hub.listing
    bench.hub.listing = lambda repo: listing(repo).replace(b'"size": 9004', b'"size": 9004000000000')
    bench.hub.requests.clear()
    bench.fails(("memory", "--anyway"), "pull", "a/big")
    bench.fails(("disk", "HEARTH_MODELS"), "pull", "a/big", "--anyway")
    expect(all(r.server == "hub" for r in bench.hub.requests), "nothing was downloaded")
    bench.hub.listing = listing


def removal(bench):
    """Only from the store, and gone for good."""
    before = {m["name"] for m in models(bench.environment)}
    code, out, err = bench.run("rm", "small")
    expect(code == 0 and "removed small" in out, f"rm: {err!r}")
    same({m["name"] for m in models(bench.environment)}, before - {"small"}, "the others stay")
    expect(not (bench.folder / "models/small").exists(), "its folder is gone")


def progress(bench):
    """Sparse lines where nobody watches; a path on stdout in any case; silence when asked for."""
    bench.hub.repos["a/show"]["w-Q8_0.gguf"] = gguf()
    code, out, err = bench.pull("a/show")
    expect(code == 0 and len(err.splitlines()) <= 6 and "\r" not in err, f"sparse: {err!r}")
    expect(out.strip().endswith("w-Q8_0.gguf") and out.count("\n") == 1, f"the path: {out!r}")
    bench.run("rm", "w-Q8_0")
    code, out, err = bench.pull("a/show", "--quiet")
    expect(code == 0 and err == "", f"quiet: {err!r}")


def served(bench):
    """`hearth serve NAME` is the model NAME in the API."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    smollm = pathlib.Path(work_model("smollm2.gguf"))
    bench.hub.repos["a/smol"]["smollm2-Q4_1.gguf"] = smollm.read_bytes()
    code, _, err = hearth(bench.environment, "pull", "a/smol", "--name", "smol")
    expect(code == 0, f"a real model: {err!r}")
    process = subprocess.Popen([sys.argv[1], "serve", "smol", "--port", str(port)],
                               env=bench.environment, stderr=subprocess.PIPE, text=True)
    try:
        line = next(line for line in process.stderr if " at http" in line)
        expect(line.startswith("smol at "), f"served as smol: {line!r}")
    finally:
        process.terminate()
        same(process.wait(60), 0, "a clean end")


def main():
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder)
        for part in (names, selections, tokens, urls, mistakes, fits, removal, progress, served):
            part(bench)
        bench.hub.close()
    print("pull ok")


main()

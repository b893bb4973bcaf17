# SPDX-License-Identifier: Apache-2.0
"""Makes every mistake of mistakes.py with the real program: the message names what is wrong and says
what to do next, in a line or two, without a trace of the program's insides; a request gets the status
and an error in its API's form. docs/mistakes.md shows all of it.

    mistakes_test.py HEARTH [--write]      with --write the page is made anew
"""
import contextlib
import http.client
import json
import os
import pathlib
import re
import resource
import shlex
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "server"))
from mistakes import CHAT, COMMANDS, MODELS, REQUESTS, SERVING, STARTING, Typed
from serving import expect, new_key, same, serving, work_model

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "mistakes.md"
NOBODY = 65534
# Nothing of the program's insides belongs into a message.
INSIDES = re.compile(r"terminate called|std::|bug at|\.(cc|h|rs|py):\d|Aborted|Segmentation|panicked|"
                     r"Traceback|0x[0-9a-f]{8}")
OPENING = """# Usual mistakes, and what Hearth says

*Made by `tests/commands/mistakes_test.py HEARTH --write`, which makes every mistake with the real
program; a test holds this page to it.* On the command line a line that cannot be understood ends with
exit code 2 and work that failed with 1. Over HTTP the message is the `error.message` of the answer, in
the form of the API that was asked ([api.md](api.md)). N stands for numbers that differ between
machines. Every message of the program is in [messages.md](messages.md).
"""
HEADINGS = {"Starting": STARTING, "Models": MODELS, "Serving": SERVING, "Other commands": COMMANDS}


def make_files(program, folder):
    """What the mistakes need."""
    model = pathlib.Path(work_model("smollm2.gguf"))
    texts = {"notes.txt": "Dear diary, this is no model.\n", "page.gguf": "<!DOCTYPE html><html>",
             "pointer.gguf": "version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
             "torch.bin": "PK\x03\x04", "empty.gguf": "", "nokeys.json": '{"keys": []}',
             "secret.gguf": "GGUF"}
    for name, text in texts.items():
        (folder / name).write_text(text)
    for name in ("nothing", "ggufs", "bare"):
        (folder / name).mkdir()
    for name in ("model.gguf", "other.gguf"):
        shutil.copy(folder / "secret.gguf", folder / "ggufs" / name)
    (folder / "bare/model.safetensors").write_bytes(len(b"{}").to_bytes(8, "little") + b"{}")
    (folder / "secret.gguf").chmod(0)
    with model.open("rb") as whole:
        (folder / "half.gguf").write_bytes(whole.read(model.stat().st_size // 2))
    (folder / "head.gguf").write_bytes((folder / "half.gguf").read_bytes()[:1000])
    shutil.copy(ROOT / "tests/golden/tiny-oss-f32.gguf", folder / "tiny.gguf")
    make_bert(folder / "bert.gguf")
    run([program, "pack", folder / "tiny.gguf", folder / "small.packed"])
    run([program, "key", "ada", "--keys", folder / "keys.json"])
    for name in ("key.pem", "other.pem"):
        run(["openssl", "genrsa", "-out", folder / name, "2048"])
    run(["openssl", "req", "-x509", "-new", "-key", folder / "key.pem", "-subj", "/CN=localhost",
         "-out", folder / "certificate.pem"])


def make_bert(path):
    import gguf
    writer = gguf.GGUFWriter(path, "bert")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def run(words):
    subprocess.run([str(word) for word in words], check=True, capture_output=True)


def prepare(case):
    """What happens to the child before it becomes the program."""
    def become():
        if case.memory:
            resource.setrlimit(resource.RLIMIT_AS, (case.memory, case.memory))
        if case.as_nobody and os.geteuid() == 0:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
    return become


def typed(case, program, folder, places):
    """Makes the mistake; what the page shows of it."""
    words = [word.format(**places) for word in shlex.split(case.words)]
    if case.as_nobody:  # who may not look into the folder that the program is in
        program = shutil.copy(program, folder / "hearth")
    # Models of whoever runs the test are none of its business.
    done = subprocess.run([program, *words], input=case.stdin.encode(), capture_output=True,
                          timeout=120, preexec_fn=prepare(case), cwd=folder, check=False,
                          env={**os.environ, "HOME": str(folder)})
    err = done.stderr.decode("utf-8")
    # A warning or a plan may stand before it.
    lines = [line for line in err.splitlines() if not re.match("warning: |memory: ", line)]
    told = "\n".join(lines)
    same(done.returncode, case.code, f"{case.what}: exit code: {err!r}")
    expect(1 <= len(lines) <= 2, f"{case.what}: one or two lines, not {err!r}")
    expect(not INSIDES.search(err), f"{case.what}: nothing of the program's insides: {err!r}")
    for words_said in case.said:
        expect(words_said in told, f"{case.what}: {words_said!r} in {err!r}")
    for real, shown in ((places["model"], "smollm2.gguf"), (f"{folder}/", ""),
                        (str(folder), "folder"), (f"port {places['port']}", "port 8080")):
        told = told.replace(real, shown)
    return without_numbers(told) if case.varies else told


def without_numbers(text):
    """Also 1m0s is Ns: a duration that is a minute now is seconds a moment later."""
    return re.sub(r"\d+(\.\d+)?", "N", re.sub(r"\b\d+m(?=\d+s\b)", "", text))


def shown_words(case):
    words = case.words.replace("{folder}/", "").replace("{model}", "smollm2.gguf")
    words = words.replace("{folder}", "folder").replace("{port}", "8080")
    typed_in = f"hearth {words}".strip()
    if len(typed_in) > 120:
        typed_in = typed_in[:100] + "…"
    return typed_in


@contextlib.contextmanager
def servers(program, folder, model):
    """The servers of the table, and the keys that they know."""
    keys, entries = {}, []
    for name, flags in (("key", []), ("limited", ["--requests-per-minute", "1"])):
        keys[name], entry = new_key(program, name, *flags)
        entries.append(entry)
    path = folder / "served.json"
    path.write_text(json.dumps({"keys": entries}))
    tls = ("--tls-certificate", folder / "certificate.pem", "--tls-key", folder / "key.pem")
    with serving(program, model) as first, serving(program, model, "--keys", path) as keyed, \
            serving(program, model, *tls) as secure:
        status, _, _ = keyed.request("POST", CHAT, {"messages": [{"role": "user", "content": "hi"}],
                                                    "max_tokens": 1},
                                     {"authorization": f"Bearer {keys['limited']}"})
        same(status, 200, "the one request that a limited key has")
        yield {"open": first, "keyed": keyed, "tls": secure}, keys


def sent(case, by_name, keys):
    """Makes the mistake; (status, message)."""
    headers = {name: value.format(**keys) for name, value in case.headers.items()}
    began = time.monotonic()
    status, _, data = by_name[case.at].request(case.method, case.path, case.body, headers)
    expect(time.monotonic() - began < 5, f"{case.what}: an answer at once")
    same(status, case.status, f"{case.what}: {data[:300]}")
    if case.at == "tls":
        told = data.decode().strip()  # nobody knows which API was meant
    else:
        error = json.loads(data)["error"]
        expect(error["type"], f"{case.what}: an error in the API's form: {data[:300]}")
        told = error["message"]
    expect("\n" not in told and not INSIDES.search(told), f"{case.what}: one clean line: {told!r}")
    for words_said in case.said:
        expect(words_said in told, f"{case.what}: {words_said!r} in {told!r}")
    return status, without_numbers(told) if case.varies else told


def https_to_http(server):
    """A client of https hears at once, in clear, that it came to the wrong port; its TLS library
    gives that its own words."""
    context = ssl.create_default_context()
    began = time.monotonic()
    try:
        with socket.create_connection(("127.0.0.1", server.port), timeout=8) as plain:
            context.wrap_socket(plain, server_hostname="localhost")
        expect(False, "a handshake with a port that does not speak TLS")
    except ssl.SSLError as error:
        expect("WRONG_VERSION_NUMBER" in str(error), f"the library's own words: {error}")
    expect(time.monotonic() - began < 5, "an answer at once")
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=8)
    connection.connect()
    connection.sock.sendall(outgoing.read())
    response = http.client.HTTPResponse(connection.sock)
    response.begin()
    told = json.loads(response.read())["error"]["message"]
    connection.close()
    same((response.status, "use http://" in told), (400, True), f"said in clear: {told}")
    return "https to a port that speaks http", response.status, told


def code(text):
    text = text.replace("|", "\\|").replace("\n", " / ")
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def page(program, folder):
    """Makes all mistakes; (the page, how many there are)."""
    model = work_model("smollm2.gguf")
    out, count = OPENING, 0
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        places = {"folder": str(folder), "model": model, "port": str(taken.getsockname()[1])}
        for heading, cases in HEADINGS.items():
            rows = [(case.what, code(shown_words(case)), code(typed(case, program, folder, places)))
                    for case in cases]
            out += f"\n## {heading}\n\n" + table(("mistake", "typed", "answer"), rows)
            count += len(rows)
    with servers(program, folder, model) as (by_name, keys):
        rows = []
        for case in REQUESTS:
            status, told = sent(case, by_name, keys)
            rows.append((case.what, code(f"{case.method} {case.path}"), f"{status} {code(told)}"))
        what, status, told = https_to_http(by_name["open"])
        rows.append((what, code("TLS ClientHello"), f"{status} {code(told)}"))
        for name, server in by_name.items():
            expect(server.process.poll() is None, f"the server {name} lives")
    out += "\n## Requests\n\n" + table(("mistake", "sent", "answer"), rows)
    return out, count + len(rows)


def main(program, write=""):
    program = os.path.abspath(program)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)  # somebody else must be able to look into it
        make_files(program, folder)
        text, count = page(program, folder)
    expect(count >= 60, f"sixty mistakes, not {count}")
    if write == "--write":
        PAGE.write_text(text, encoding="utf-8")
    expect(PAGE.exists() and PAGE.read_text(encoding="utf-8") == text,
           f"docs/mistakes.md to be current; make it with: {sys.argv[0]} HEARTH --write")
    print(f"{count} mistakes are answered as docs/mistakes.md says")


if __name__ == "__main__":
    main(*sys.argv[1:])

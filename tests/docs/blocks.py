# SPDX-License-Identifier: Apache-2.0
"""The code blocks of README.md, CONTRIBUTING.md, ARCHITECTURE.md and docs/: where they stand, and what becomes of them.

A block of `text` is output or an illustration. Any other has a comment on the line above its fence:

    <!-- run -->                   run by tests/docs, line by line, in a folder of its own
    <!-- run nightly -->           likewise, every night
    <!-- file: NAME -->            written there before the page's commands run
    <!-- checked: HOW -->          not a command: `json` is parsed, `config` and `redis` are read by the program
    <!-- tested: CTEST NAME -->   run, or compared with what is seen, by that test
    <!-- named: WHY NOT RUN -->    its programs, commands, flags and tests exist; it is not run here

`run` may be followed by ` | beside: COMMAND` (a server that runs meanwhile), ` | skip PREFIX: WHY` (commands that are
only named) and ` | exits: 0 1` (codes that are right)."""
import collections
import dataclasses
import pathlib
import re
import shlex

ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^(`{3,}|~{3,})\s*(\S*)\s*$")
COMMENT = re.compile(r"^<!-- (.*) -->$")
KINDS = ("run", "run nightly", "file", "checked", "tested", "named")
# Pages that other tests read block by block have the marks of those tests.
BY_LANGUAGE = {"sampling": "golden.sampling_examples", "examples": "diff.grammar.examples"}
BY_MARK = {"transcript": "slow.packages_bare"}
TYPED = re.compile(r"^(\$ |# )?(hearth|\./dev|curl|ctest|sudo|build/release/bin/\S+) (?!.*:$)", re.M)


@dataclasses.dataclass
class Block:
    page: str
    line: int
    language: str
    text: str
    kind: str = "output"
    value: str = ""
    options: dict = dataclasses.field(default_factory=dict)

    @property
    def place(self):
        return f"{self.page}:{self.line}"

    def skipped(self, command):
        return any(command.startswith(key[5:]) for key in self.options if key.startswith("skip "))


class Mistake(Exception):
    """A page that does not say what its blocks are."""


def judged(block, mark):
    """The block with what its mark says."""
    if block.language in BY_LANGUAGE:
        block.kind, block.value = "tested", BY_LANGUAGE[block.language]
    elif mark in BY_MARK:
        block.kind, block.value = "tested", BY_MARK[mark]
    elif mark and mark.startswith("recipe "):
        block.kind, block.value = "recipe", mark.removeprefix("recipe ").split(":")[0]
    elif mark:
        first, *options = mark.split(" | ")
        block.kind, _, block.value = first.partition(": ")
        block.options = dict(option.split(": ", 1) for option in options)
        if block.kind not in KINDS:
            raise Mistake(f"{block.place}: unknown mark {mark!r}")
        if block.kind in KINDS[2:] and not block.value:
            raise Mistake(f"{block.place}: {block.kind} needs a word after it")
        for option in block.options:
            if not re.match(r"beside$|exits$|skip \S", option):
                raise Mistake(f"{block.place}: unknown option {option!r}")
    elif block.language != "text":
        raise Mistake(f"{block.place}: a block of {block.language or 'no language'} without a mark; "
                      "tests/docs/blocks.py says which there are")
    elif TYPED.search(block.text) and block.page != "docs/messages.md":
        raise Mistake(f"{block.place}: commands in a block of text; mark it as `sh` or `console`")
    return block


def blocks(page, text):
    """All blocks of a page."""
    found, lines, at = [], text.splitlines(), 0
    while at < len(lines):
        fence = FENCE.match(lines[at])
        if fence:
            end = next((i for i in range(at + 1, len(lines))
                        if lines[i].startswith(fence.group(1)) and not lines[i].strip("`~")), None)
            if end is None:
                raise Mistake(f"{page}:{at + 1}: a block without an end")
            comment = COMMENT.match(lines[at - 1]) if at else None
            block = Block(page, at + 1, fence.group(2), "\n".join(lines[at + 1:end]) + "\n")
            found.append(judged(block, comment.group(1) if comment else None))
            at = end
        elif lines[at].startswith("    ") and (at == 0 or not lines[at - 1].strip()):
            raise Mistake(f"{page}:{at + 1}: an indented block cannot say what it is; fence it")
        at += 1
    return found


def pages():
    """{name: text} of all pages."""
    paths = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md", ROOT / "SECURITY.md",
             *sorted((ROOT / "docs").rglob("*.md"))]
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}


def is_whole(text):
    """Whether the shell would run this rather than ask for more."""
    if text.endswith(("\\", "|", "&&")):
        return False
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return False
    return True


def commands(text):
    """The commands of a block of shell, each as it is typed."""
    found, open_lines = [], []
    for line in text.splitlines():
        if not open_lines and (not line.strip() or line.lstrip().startswith("#")):
            continue
        open_lines.append(line)
        whole = "\n".join(open_lines)
        if is_whole(whole):
            found.append(whole)
            open_lines = []
    if open_lines:
        raise Mistake(f"a command without an end: {open_lines[0]}")
    return found


def typed(block):
    """What a person types of a block; of `console` also what they then see: [(command, lines)]."""
    if block.language != "console":
        return [(command, []) for command in commands(block.text)]
    found = []
    for line in block.text.splitlines():
        if line.startswith(("$ ", "# ")):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def counted(all_blocks):
    return collections.Counter(block.kind for block in all_blocks)

# SPDX-License-Identifier: Apache-2.0
"""Writes docs/messages.md: every --help page and every error message, to be read in one go.

The help pages come from the program (--hearth), the messages from src/. No line numbers, so that
the page changes only when a text does. --check compares it with the file and prints a diff.
"""
import argparse
import difflib
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "messages.md"
# The simulation is a test of the scheduler: no command runs it.
SKIPPED_ROOMS = {"sim"}

TOKEN = re.compile(
    r'(?P<comment>//[^\n]*|/\*.*?\*/)'
    r'|(?P<directive>^[ \t]*#(?:\\\n|[^\n])*)'
    r'|(?P<raw>R"(?P<fence>[^(\s]*)\((?P<rawtext>.*?)\)(?P=fence)")'
    r'|(?P<text>"(?:\\.|[^"\\\n])*")'
    r"|(?P<char>'(?:\\.|[^'\\\n])+')"
    r"|(?P<word>[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)"
    r"|(?P<number>\d(?:[\w.]|'\d)*)"
    r"|(?P<other>\S)", re.DOTALL | re.MULTILINE)
OPENING, CLOSING = "([{", ")]}"

# Calls that make a message: the argument that says what kind, and the one with the words.
# LAST is the last argument with words in it.
LAST = -1
CALLS = {
    "Error": (0, 1),
    "Status": (0, 1),
    "BadField": (None, 1),
    "Unsupported": (None, 1),
    "HttpRefusal": (0, 1),
    "Refuse": (0, LAST),
    "Fail": (None, 0),
    "OsError": (None, 1),
    "Complaint": (None, 1),
    "Within": (None, 0),
    "End": (None, LAST),
    "EndAll": (None, LAST),
    "CLI::ValidationError": (None, LAST),
    "std::fprintf": (0, 1),
    "PrintError": (None, 0),
    "fmt::print": (0, 1),
}
FORMATTERS = {"Printf", "fmt::format", "std::string", "std::string_view"}
KINDS = re.compile(r"Code::k(\w+)|(\d{3})|(stderr)")
# `error.message = ...;` and its like; what is assigned are the words.
ASSIGNED = re.compile(r"(?:^|::)(message|warning|detail)$")
# Functions that return the words of a message as a plain string are in these places.
RETURNED = re.compile(r"src/(app/|engine/inbox|server/turns/(exchange|cache_report)|top/)")
# What <cinttypes> calls the end of a conversion: PRIu64.
CONVERSION = re.compile(r"PRI([duxX])\d+")
# JSON, markup, a rule of a grammar, a size: no messages.
NOT_WORDS = re.compile(r'<|\{"|\[\{|\||\(\?|\S+ [KMG]iB$')
ESCAPES = {"n": "\n", "t": "\t", "r": "", '"': '"', "\\": "\\", "'": "'"}


class Tok:
    """One token: its kind, its text and, for a string literal, what it spells."""

    def __init__(self, kind, text, value=None):
        self.kind, self.text, self.value = kind, text, value


def unescaped(literal):
    text = re.sub(r"\\x1b\[K", "", literal[1:-1])
    return re.sub(r"\\(.)", lambda m: ESCAPES.get(m.group(1), m.group(0)), text)


def tokens_of(source):
    """The tokens without comments and directives, adjacent literals joined into one."""
    out = []
    for match in TOKEN.finditer(source):
        kind = match.lastgroup if match.lastgroup != "rawtext" else "raw"
        if match.group("comment") or match.group("directive"):
            continue
        conversion = CONVERSION.fullmatch(match.group(0))
        if match.group("raw") or match.group("text") or conversion:
            value = (conversion.group(1) if conversion else match.group("rawtext")
                     if match.group("raw") else unescaped(match.group("text")))
            if out and out[-1].kind == "literal":
                out[-1].value += value
            else:
                out.append(Tok("literal", "", value))
            continue
        out.append(Tok(kind, match.group(0)))
    return out


def closing_of(tokens, start):
    """The index of the bracket that closes the one at `start`."""
    depth = 0
    for at in range(start, len(tokens)):
        depth += (tokens[at].text in OPENING and tokens[at].text != "")
        depth -= (tokens[at].text in CLOSING and tokens[at].text != "")
        if depth == 0:
            return at
    return len(tokens) - 1


def split_at(tokens, separators):
    """The tokens in pieces, cut where one of `separators` stands outside of all brackets."""
    pieces, depth = [[]], 0
    for token in tokens:
        if token.text and token.text in OPENING:
            depth += 1
        elif token.text and token.text in CLOSING:
            depth -= 1
        if depth == 0 and token.text and token.text in separators:
            pieces.append([])
        else:
            pieces[-1].append(token)
    return pieces


def has_words(tokens):
    return any(token.kind == "literal" and re.search("[A-Za-z]", token.value) for token in tokens)


def spelled(tokens):
    """An expression as the texts that it can be; {} is what only the running program knows."""
    choice = split_at(tokens, "?:")
    if len(choice) >= 3:
        return [text for branch in choice[1:] for text in spelled(branch)]
    texts = [""]
    for part in split_at(tokens, "+"):
        if len(part) == 1 and part[0].kind == "literal":
            pieces = [part[0].value]
        elif len(part) > 2 and part[0].text == "(":
            pieces = spelled(part[1:-1])
        elif len(part) > 2 and part[0].text in FORMATTERS and part[1].text in OPENING:
            arguments = split_at(part[2:-1], ",")
            pieces = spelled(arguments[0]) if has_words(arguments[0]) else ["{}"]
        else:
            pieces = ["{}"]
        texts = [text + piece for text in texts for piece in pieces]
    return texts


def kind_of(tokens):
    match = KINDS.fullmatch("".join(token.text for token in tokens))
    return next(filter(None, match.groups()), "").lower() if match else ""


def from_call(name, arguments):
    """(kind, text) of the messages that one call makes."""
    kind_at, words_at = CALLS[name]
    if words_at == LAST:
        words_at = max((i for i, each in enumerate(arguments) if has_words(each)), default=0)
    if words_at + 1 < len(arguments) and arguments[words_at][0].value == "%s":
        words_at += 1  # Error(code, "%s", the words)
    if words_at >= len(arguments) or not has_words(arguments[words_at]):
        return []
    kind = kind_of(arguments[kind_at]) if kind_at is not None else ""
    if name in ("std::fprintf", "fmt::print") and kind != "stderr":
        return []
    if name == "Status" and not kind:
        return []
    return [(kind or {"Within": "prefix", "PrintError": "stderr"}.get(name, ""), text)
            for text in spelled(arguments[words_at])]


def from_row(arguments):
    """{413, "words"}, or a row of a table of fields: a refused one says why in its sixth column."""
    if len(arguments) == 2 and kind_of(arguments[0]).isdigit() and has_words(arguments[1]):
        return [(kind_of(arguments[0]), text) for text in spelled(arguments[1])]
    if len(arguments) < 6 or "".join(t.text for t in arguments[2]) != "kRefused":
        return []
    return [("400", f"{arguments[0][0].value}: not supported: {text}")
            for text in spelled(arguments[5])]


def until_semicolon(tokens, start):
    return split_at(tokens[start:start + 400], ";")[0]


def messages_in(path, source):
    """(kind, text) of every message that a file can make."""
    tokens = tokens_of(source)
    returns = RETURNED.match(path)
    found = []
    for at, token in enumerate(tokens[:-1]):
        after = tokens[at + 1].text
        if token.text in CALLS and after and after in "({":
            inside = tokens[at + 2:closing_of(tokens, at + 1)]
            found += from_call(token.text, split_at(inside, ","))
        elif token.text == "{" and tokens[at + 1].kind in ("literal", "number"):
            found += from_row(split_at(tokens[at + 1:closing_of(tokens, at)], ","))
        elif token.kind == "word" and ASSIGNED.search(token.text) and after == "=":
            words = until_semicolon(tokens, at + 2)
            found += [("", text) for text in spelled(words)] if has_words(words) else []
        elif token.text == "return" and returns:
            words = until_semicolon(tokens, at + 1)
            is_call = words and words[0].kind == "word" and words[0].text in CALLS
            found += [] if is_call else [("", text) for text in spelled(words)]
    return [(kind, text) for kind, text in found if is_sentence(text)]


def is_sentence(text):
    """Words for people: not an identifier, a piece of JSON or of markup."""
    return re.search(r"[A-Za-z]{2}", text) and " " in text.strip() and not NOT_WORDS.match(text)


def rooms():
    """room -> file -> sorted messages."""
    out = {}
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix not in (".cc", ".h", ".inl") or path.name.endswith("_test.cc"):
            continue
        room = path.relative_to(ROOT / "src").parts[0]
        if room in SKIPPED_ROOMS:
            continue
        name = path.relative_to(ROOT).as_posix()
        found = sorted(set(messages_in(name, path.read_text(encoding="utf-8"))),
                       key=lambda message: message[::-1])
        if found:
            out.setdefault(room, {})[name] = found
    return out


def help_pages(hearth, words=()):
    """(command, its --help), the program's own first, then its subcommands in their order."""
    # 80 columns and no colours, whatever the terminal: the page must not depend on them.
    done = subprocess.run([hearth, *words, "--help"], capture_output=True, text=True, check=True,
                          env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1"}, timeout=60)
    pages = [(" ".join(("hearth", *words)), done.stdout.rstrip())]
    listed = re.search(r"^Subcommands:\n((?:  .*\n?)+)", done.stdout, re.MULTILINE)
    for name in re.findall(r"^  (\S+)", listed.group(1), re.MULTILINE) if listed else []:
        pages += help_pages(hearth, (*words, name))
    return pages


def as_item(kind, text):
    one_line = re.sub(r"\s*\n\s*", " / ", text.strip())
    fence = "``" if "`" in one_line else "`"
    pad = " " if fence == "``" else ""
    return f"* {f'*{kind}* ' if kind else ''}{fence}{pad}{one_line}{pad}{fence}"


def page_of(hearth):
    helps, texts = help_pages(hearth), rooms()
    count = sum(len(each) for files in texts.values() for each in files.values())
    lines = ["<!-- Generated by tools/messages.py (./dev messages); do not edit. -->",
             "# Help pages and messages", "",
             "Everything that the program says when asked for help or when something is wrong. "
             "`%d`, `%s` and", "`{}` stand for what only the running program knows. The word in "
             "italics is the kind of an error", "(`Code` in `base/result.h`), an HTTP status, "
             "`stderr` for notes on standard error, or `prefix` for", "words put in front of "
             "another message.", "",
             f"{len(helps)} help pages, {count} messages.", "", "## Help", ""]
    for command, text in helps:
        lines += [f"### {command}", "", "```text",
                  *(line.rstrip() for line in text.splitlines()), "```", ""]
    lines += ["## Messages", ""]
    for room in sorted(texts):
        lines += [f"### {room}", ""]
        for path, found in texts[room].items():
            lines += [f"`{path}`", "", *(as_item(kind, text) for kind, text in found), ""]
    return "\n".join(lines).rstrip() + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hearth", required=True, metavar="PATH", help="the built program")
    parser.add_argument("--check", action="store_true", help="compare, do not write")
    arguments = parser.parse_args()
    page = page_of(str(pathlib.Path(arguments.hearth).resolve()))
    if not arguments.check:
        PAGE.write_text(page, encoding="utf-8")
        return 0
    old = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    diff = list(difflib.unified_diff(old.splitlines(), page.splitlines(), "docs/messages.md",
                                     "what the program says", lineterm=""))
    if diff:
        print("\n".join(diff))
        print("docs/messages.md is out of date: run ./dev messages and read what changed")
    return 1 if diff else 0


if __name__ == "__main__":
    sys.exit(main())

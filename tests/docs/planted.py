# SPDX-License-Identifier: Apache-2.0
"""Pages with one mistake each, which must be found, and commands that name what does not exist."""
from blocks import Mistake, blocks, commands

PAGES = {
    "an indented block": ("Type:\n\n    hearth list\n", "indented"),
    "no language": ("```\nhearth list\n```\n", "without a mark"),
    "no mark": ("```sh\nhearth list\n```\n", "without a mark"),
    "a mark that is not above the fence": ("<!-- run -->\n\n```sh\nhearth list\n```\n", "without a mark"),
    "an unknown mark": ("<!-- tried -->\n```sh\nhearth list\n```\n", "unknown mark"),
    "no reason": ("<!-- named -->\n```sh\nhearth list\n```\n", "needs a word"),
    "an unknown option": ("<!-- run | after: x -->\n```sh\nhearth list\n```\n", "unknown option"),
    "a command as output": ("```text\nhearth list --all\n```\n", "commands in a block of text"),
    "no end": ("<!-- run -->\n```sh\nhearth list\n", "without an end"),
}
COMMANDS = {
    "hearth lits": "no command 'lits'",
    "hearth serve --prot 1": "no flag --prot",
    "hearth bench load --model M --client 3": "no flag --client",
    "git diff | hearth run MODEL --modle x": "no flag --modle",
    "HEARTH_X=1 hearth serve --prot 1": "no flag --prot",
    "./dev bulid": "no command 'bulid'",
    "./dev bench plan --round 3": "no benchmark has a flag --round",
    "./dev bench plans": "no 'plans'",
    "ctest --preset release -R no.such.test": "no test is chosen",
    "build/release/bin/no_such_program": "no program no_such_program",
    ".venv/bin/python tests/docs/no_such_test.py": "there is no tests/docs/no_such_test.py",
}
SOUND = ("hearth list --all", "hearth bench load --model M --clients 3", "./dev bench plan --rounds 3",
         "ctest --preset release -R golden.docs.blocks", "build/release/bin/hearth --version", "sudo apt remove hearth")


def check_planted(names, expect):
    for what, (page, says) in PAGES.items():
        try:
            blocks("planted.md", page)
        except Mistake as found:
            expect(says in str(found), f"{what}: {found}")
        else:
            expect(False, f"{what} is found")
    for command, says in COMMANDS.items():
        expect(says in (names.mistake(command) or ""), f"{command}: {says}, not {names.mistake(command)}")
    for command in SOUND:
        expect(names.mistake(command) is None, f"{command}: {names.mistake(command)}")
    expect(names.missing_tests("slow.no_such and golden.docs.blocks") == ["slow.no_such"], "a test that is none")
    block = "a \\\n  b\n# no command\n\nc 'x\ny' # why\nd |\n  e\n"
    expect(commands(block) == ["a \\\n  b", "c 'x\ny' # why", "d |\n  e"], f"commands: {commands(block)}")
    return len(PAGES) + len(COMMANDS)

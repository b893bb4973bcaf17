# SPDX-License-Identifier: Apache-2.0
"""Every code block of the documentation is run, here or by a test that it names, or says why not.

    blocks_test.py HEARTH BUILD [--nightly] [PAGE ...]

Runs the blocks marked `run`, with --nightly those marked `run nightly`, and prints the share."""
import pathlib
import re
import sys
import time

from blocks import ROOT, Mistake, blocks, pages, typed
from names import Names
from place import Place, expect, same
from planted import check_planted

sys.path.insert(0, str(ROOT / "tests/clients"))
SENTENCE = re.compile(r"(?<!`)`((?:hearth|\./dev|ctest) [^`\n]+)`(?!`)")


def check_names(all_blocks, names):
    """What is not run names things that exist. Returns how many commands that are."""
    count = 0
    for block in all_blocks:
        told = " ".join([block.value, *block.options.values()])
        same(names.missing_tests(told), [], f"{block.place}: tests that do not exist")
        if block.kind == "tested":
            expect(block.value in names.tests, f"{block.place}: the test {block.value}")
        if block.kind not in ("named", "run", "run nightly") or block.language not in ("sh", "console"):
            continue
        for command, _ in typed(block):
            if block.kind != "run" or block.skipped(command):
                wrong = names.mistake(command)
                expect(not wrong, f"{block.place}: {command}: {wrong}")
                count += 1
    return count


def check_sentences(texts, names):
    """Commands in sentences and tables, too."""
    count = 0
    for page, text in texts.items():
        if page.startswith("docs/decisions/") or page in ("docs/messages.md", "docs/mistakes.md"):
            continue  # decisions tell of their time, messages are the program's own, mistakes are meant
        for number, line in enumerate(text.splitlines(), 1):
            for command in SENTENCE.findall(line):
                if command.startswith("hearth"):  # [optional], a|b, …
                    command = re.sub(r"\\\|\w+", "", re.sub(r"[\[\]]", "", command)).replace("…", "X")
                try:
                    wrong = names.mistake(command)
                except ValueError:
                    continue  # half a quotation
                expect(not wrong, f"{page}:{number}: `{command}`: {wrong}")
                count += 1
    return count


def recipe_kind(block):
    """Which test runs a recipe of docs/clients.md."""
    from recipes_test import GROUP_OF
    return {"sdk": "tested", "replay": "named"}.get(GROUP_OF[block.value], "tested nightly")


def run_page(page, its_blocks, wanted, program):
    ran = skipped = 0
    bin_folder = pathlib.Path(program).parent
    chosen = [block for block in its_blocks if block.kind == wanted or (wanted == "run" and block.kind == "checked")]
    if not chosen:
        return 0, 0
    began = time.monotonic()
    with Place(its_blocks, program, wanted == "run") as place:
        for block in chosen:
            if block.kind == "checked":
                place.check(block)
                continue
            more, fewer = place.run(block, bin_folder)
            ran, skipped = ran + more, skipped + fewer
    print(f"ok      {page}: {len(chosen)} blocks, {ran} commands ({time.monotonic() - began:.1f} s)", flush=True)
    return ran, skipped


def summary(all_blocks, commands, named, sentences):
    kinds = {}
    for block in all_blocks:
        kind = recipe_kind(block) if block.kind == "recipe" else block.kind
        if kind == "recipe" or (block.kind == "recipe" and block.language == "text"):
            kind = "tested" if kind != "named" else kind
        if kind == "tested" and block.value.startswith("slow."):
            kind = "tested nightly"
        kinds[kind] = kinds.get(kind, 0) + 1
    code = len(all_blocks) - kinds.get("output", 0)
    here = sum(kinds.get(kind, 0) for kind in ("run", "file", "checked"))
    runs = code - kinds.get("named", 0)
    print(f"{len(all_blocks)} blocks: {kinds.get('output', 0)} are output; of {code} with commands or code "
          f"{here} are run here, {kinds.get('run nightly', 0)} here every night, {kinds.get('tested', 0)} by another "
          f"test, {kinds.get('tested nightly', 0)} by another test every night, {kinds.get('named', 0)} only have their "
          f"names and flags checked: {100 * runs / code:.0f} % are run")
    print(f"{commands} commands were run now; {named} in blocks and {sentences} in sentences name what exists")


def main(program, build, *arguments):
    program = str(pathlib.Path(program).resolve())
    wanted = "run nightly" if "--nightly" in arguments else "run"
    only = [word for word in arguments if not word.startswith("--")]
    texts = pages()
    try:
        found = {page: blocks(page, text) for page, text in texts.items()}
        everything = [block for its in found.values() for block in its]
        names = Names(program, pathlib.Path(build))
        planted = check_planted(names, expect)
        named = check_names(everything, names)
        sentences = check_sentences(texts, names)
        commands = 0
        for page, its in found.items():
            if not only or page in only:
                commands += run_page(page, its, wanted, program)[0]
    except Mistake as wrong:
        sys.exit(f"FAILED: {wrong}")
    print(f"{planted} planted mistakes were found")
    summary(everything, commands, named, sentences)


if __name__ == "__main__":
    main(*sys.argv[1:])

# SPDX-License-Identifier: Apache-2.0
"""What is generated from the flags: docs/configuration.md is current, every command has a man page that
`man` shows without a complaint, and completions complete."""
import difflib
import pathlib
import re
import shutil
import subprocess
import tempfile

from models import expect, hearth

ROOT = pathlib.Path(__file__).parents[2]


def commands(*words):
    """Every command that the help lists, nested ones included."""
    _, out, _ = hearth(*words, "--help")
    listed = re.search(r"^Subcommands:\n((?:  .*\n?)+)", out, re.MULTILINE)
    found = []
    for name in re.findall(r"^  (\S+)", listed.group(1), re.MULTILINE) if listed else []:
        found += [(*words, name), *commands(*words, name)]
    return found


def flags_of(command):
    """The flags that a command's help lists."""
    _, out, _ = hearth(*command, "--help")
    found = set(re.findall(r"^  (?:-\w,)?(--[a-z0-9-]+)", out, re.MULTILINE))
    return found - {"--help", "--config", "--version"}


def check_page(known):
    code, page, _ = hearth("docs", "configuration")
    expect(code == 0, "the page is written")
    path = ROOT / "docs/configuration.md"
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    diff = "\n".join(difflib.unified_diff(old.splitlines(), page.splitlines(), str(path.name),
                                          "what the program has", lineterm=""))
    expect(not diff, f"docs/configuration.md is out of date: run ./dev messages\n{diff}")
    for command, flags in known.items():
        if command[0] in ("config", "doctor"):  # they judge a configuration, and take none
            continue
        for flag in flags:
            variable = "_".join(("HEARTH", *command, flag[2:])).upper().replace("-", "_")
            expect(f"| `{flag}` | `{flag[2:]}` | `{variable}`" in page, f"{command} {flag}")


def check_manual(known):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "new/man1"
        code, _, err = hearth("docs", "man", str(folder))
        expect(code == 0, f"man pages: {err}")
        pages = {path.name: path.read_text() for path in folder.iterdir()}
        expect(len(pages) == len(known) + 1, f"one page per command: {sorted(pages)}")
        for command, flags in known.items():
            page = pages["-".join(("hearth", *command)) + ".1"]
            for flag in flags:
                expect("\\fB" + flag.replace("-", "\\-") + "\\fR" in page, f"{command} {flag}")
        if not shutil.which("groff"):
            print("SKIPPED: groff is not installed; man pages were not rendered")
            return
        for name, text in pages.items():
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-Kutf8"], input=text,
                                  capture_output=True, text=True, check=False)
            expect(done.returncode == 0 and done.stderr == "", f"{name}: {done.stderr}")
        shown = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", subprocess.run(
            ["groff", "-man", "-Tutf8", "-Kutf8"], input=pages["hearth-serve.1"],
            capture_output=True, text=True, check=True).stdout)
        expect("--port N" in shown and "(default: 8080)" in shown, "rendered")


def completed(script, *words):
    """What bash offers for the last word of a line."""
    quoted = " ".join(f"'{word}'" for word in words)
    done = subprocess.run(
        ["bash", "-c", f'source "{script}"; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; '
                       '_hearth; printf "%s\\n" "${COMPREPLY[@]}"'],
        capture_output=True, text=True, check=True)
    expect(done.stderr == "", done.stderr)
    return set(done.stdout.split())


def check_completions(known):
    with tempfile.TemporaryDirectory() as name:
        for shell in ("bash", "zsh", "fish"):
            code, text, _ = hearth("docs", "completions", shell)
            expect(code == 0 and text, f"completions for {shell}")
            script = pathlib.Path(name) / f"hearth.{shell}"
            script.write_text(text)
            if not shutil.which(shell):
                print(f"SKIPPED: {shell} is not installed; its completions were not read by it")
                continue
            done = subprocess.run([shell, "-n", script], capture_output=True, text=True, check=False)
            expect(done.returncode == 0 and done.stderr == "", f"{shell}: {done.stderr}")
        script = pathlib.Path(name) / "hearth.bash"
        offered = completed(script, "hearth", "")
        expect({command[0] for command in known} <= offered and "docs" not in offered, f"{offered}")
        for command, flags in known.items():
            offered = completed(script, "hearth", *command, "--")
            expect(flags <= offered, f"{command} offers its flags: {flags - offered}")
        expect(completed(script, "hearth", "run", "--backend", "") == {"cpu", "reference"}, "choices")
        expect(completed(script, "hearth", "serve", "--po") == {"--port"}, "by its beginning")
        expect(completed(script, "hearth", "serve", "--model", "") == set(), "files are the shell's")


def main():
    known = {command: flags_of(command) for command in commands()}
    expect(len(known) > 12 and "--port" in known[("serve",)], f"the commands: {sorted(known)}")
    check_page(known)
    check_manual(known)
    check_completions(known)
    print(f"documents ok: {len(known)} commands, {sum(map(len, known.values()))} flags")


main()

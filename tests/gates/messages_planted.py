# SPDX-License-Identifier: Apache-2.0
"""tools/messages.py on a tiny tree: the page holds what a user can see, and --check notices when a
help text or a message changes, but not when only a line moves."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "messages.py"
PROGRAM = """#!/bin/sh
case "$*" in
  --help) printf 'Words.\\n\\nSubcommands:\\n  sub                Less\\n' ;;
  'sub --help') printf 'Less words.\\n' ;;
  *) exit 2 ;;
esac
"""
SOURCE = """
// Error(Code::kIo, "a comment is not a message")
Status A() { return Error(Code::kCorrupt, "%s: expected %" PRIu64
                          " bytes", name, size); }
ApiError B() { return BadField("n", many ? "must be " + Limit() : "must not be empty"); }
HttpRefusal C() { return {413, Printf("more than %zu bytes", limit)}; }
void D() { PrintError("warning: %s\\n", why); }
Field d[] = {{"speed", kString, kRefused, 0, 0, "one speed for all"}};
"""
WANTED = ("### hearth sub\n", "Less words.", "* *corrupt* `%s: expected %u bytes`\n",
          "* `must be {}`\n", "* `must not be empty`\n", "* *413* `more than %zu bytes`\n",
          "* *stderr* `warning: %s`\n", "* *400* `speed: not supported: one speed for all`\n")


def main():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name in ("tools", "docs", "src/room"):
            (root / name).mkdir(parents=True)
        shutil.copy(TOOL, root / "tools")
        program, source, page = root / "hearth", root / "src/room/a.cc", root / "docs/messages.md"

        def run(*flags):
            return subprocess.run([sys.executable, root / "tools/messages.py", "--hearth", program,
                                   *flags], capture_output=True, text=True, timeout=60)

        program.write_text(PROGRAM)
        program.chmod(0o755)
        source.write_text(SOURCE)
        done = run()
        assert done.returncode == 0, done.stderr
        text = page.read_text()
        for wanted in WANTED:
            assert wanted in text, f"{wanted!r} is missing in:\n{text}"
        assert "a comment" not in text, text
        assert run("--check").returncode == 0, "the page that was just written"
        source.write_text("\n\n" + SOURCE)
        assert run("--check").returncode == 0, "a line moved"
        source.write_text(SOURCE.replace("must not be empty", "may not be empty"))
        done = run("--check")
        assert done.returncode == 1 and "+* `may not be empty`" in done.stdout, done.stdout
        source.write_text(SOURCE)
        program.write_text(PROGRAM.replace("Less words", "Other words"))
        done = run("--check")
        assert done.returncode == 1 and "+Other words." in done.stdout, done.stdout
    print("messages ok")


main()

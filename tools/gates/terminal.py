# SPDX-License-Identifier: Apache-2.0
"""What the program prints goes through base/terminal.h (PrintOut, PrintError), which lets no text from
outside command a terminal and masks passwords on standard error. Those who write to standard output or
error otherwise are listed here, each for a reason."""
import re

import tree

# Why something else is right there.
MAY = {
    "src/base/terminal.h": "the door",
    "src/base/terminal.cc": "the door",
    "src/base/check.cc": "file, line and expression of our own source, where nothing can be trusted to work",
    "src/app/print.h": "JSON, through JsonForTerminal",
    "src/app/cmd_top.cc": "frames, whose names go through PlainName; JSON, through JsonForTerminal",
    "src/app/cmd_render.cc": "prompts: through ForTerminal on a terminal, else data, byte for byte",
    "src/app/cmd_tokenize.cc": "JSON, through JsonForTerminal",
    "src/app/run_terminal.cc": "replies: through ForTerminal on a terminal (talk/reply_view.h), else data; notes, "
                               "through ForTerminal and then dimmed",
    "src/app/cmd_bench.cc": "a line written again, through ForTerminal",
    "src/app/cmd_doctor.cc": "colours of verdicts",
    "src/app/cmd_pack.cc": "a percentage",
    "src/app/cmd_pull.cc": "a bar of figures",
    "src/app/cmd_quantize.cc": "a percentage",
    "src/app/open_backend.cc": "a percentage",
    "src/supervise/supervisor.cc": "may not wait for a reader; through ForTerminal and MaskSecrets",
    "src/talk/line_editor.cc": "what the editor of lines needs, and what the user typed",
    "src/top/screen.cc": "frames, whose names go through PlainName",
}

WRITES = re.compile(
    r"\bstd::(?:printf|vprintf|puts|putchar|perror|cout|cerr|clog|print|println)\b"
    r"|\b(?:std::)?v?f(?:printf|puts|putc|putwc|write)\s*\([^;]*\b(?:stdout|stderr|out_)\b"
    r"|\b(?:std::)?fprintf\s*\(|\bfmt::print\w*|\bfmt::output_file\b|\bdprintf\s*\("
    r"|\bwrite\s*\(\s*STD(?:OUT|ERR)_FILENO|\bPrintCodes\s*\(")


def main():
    root = tree.root_argument()
    bad, count = [], 0
    for path in tree.cpp_files(root, ("src",)):
        if path.stem.endswith(("_test", "_bench")):
            continue
        count += 1
        if str(path) in MAY:
            continue
        code = tree.code_only(tree.read(root, path))
        for match in WRITES.finditer(code):
            number = code.count("\n", 0, match.start()) + 1
            what = match.group(0).split("(")[0]
            bad.append(f"{path}:{number}: {what} writes past PrintOut and PrintError (base/terminal.h), which let no text "
                       "command a terminal (tools/gates/terminal.py lists who may)")
    tree.report(bad, f"{count} files, {len(MAY)} of which write to standard output or error themselves")


if __name__ == "__main__":
    main()

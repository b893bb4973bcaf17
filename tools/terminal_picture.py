# SPDX-License-Identifier: Apache-2.0
"""Draws a real session of `hearth pull` and `hearth run` as an SVG: the shell and the program run on a
terminal of their own, the model comes from the stand-in for the Hub, and what stands on the screen at the
end is the picture. usage: terminal_picture.py HEARTH OUT.svg"""
import html
import itertools
import pathlib
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests/talk"), str(ROOT / "tests/hub"), str(ROOT / "tests/support")]
from checking import work_model
from standin import Hub
from talker import CTRL_D, ENTER, PROGRAM, Talker

NAME, REPO = "smollm2-135m", "bartowski/SmolLM2-135M-Instruct-GGUF"
QUESTION = "Write a haiku about a warm hearth."
COLUMNS, ROWS = 106, 40
CELL, LINE, SIZE, EDGE, BAR = 8.4, 19, 14, 18, 34
# A light theme with enough contrast; pyte's names of the usual colours.
COLOURS = {"default": "#24292f", "black": "#24292f", "red": "#b3261e", "green": "#1a7f37",
           "brown": "#8a6100", "blue": "#0550ae", "magenta": "#8250df", "cyan": "#0b6e82",
           "white": "#6e7781", "brightblack": "#6e7781"}


class Shell(Talker):
    """pyte knows no faint text; it is drawn in grey."""

    def __init__(self, **options):
        super().__init__(program=["/bin/bash", "--noprofile", "--norc"], columns=COLUMNS, rows=ROWS,
                         **options)
        feed = self.stream.feed
        self.stream.feed = lambda piece: feed(
            piece.replace(b"\x1b[2m", b"\x1b[90m").replace(b"\x1b[22m", b"\x1b[22;39m"))

    def at_shell(self, seconds=60):
        end = time.monotonic() + seconds
        while self.lines()[self.screen.cursor.y] != "$" or self.screen.cursor.x != 2:
            self.settle()
            if time.monotonic() > end:
                sys.exit(f"FAILED: no prompt of the shell; the screen:\n{self.text()}")

    def command(self, line):
        """Types it and waits for its end."""
        self.type(line)
        self.settle()
        self.type(ENTER)
        self.settle(0.5)
        self.at_shell()


def session():
    """The screen's rows of cells after the session."""
    hub = Hub()
    hub.repos[REPO]["SmolLM2-135M-Instruct-Q8_0.gguf"] = pathlib.Path(work_model("smollm2.gguf")).read_bytes()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "bin").mkdir()
        (folder / "bin/hearth").symlink_to(PROGRAM)
        env = {**hub.environment(folder), "PS1": "$ ", "PATH": f"{folder}/bin:/usr/bin:/bin"}
        with Shell(env=env) as shell:
            shell.at_shell()
            shell.command(f"hearth pull {NAME}")
            shell.type(f"hearth run {NAME}")
            shell.type(ENTER)
            shell.at_prompt()
            shell.send(QUESTION)
            shell.type(CTRL_D)
            shell.settle(0.5)
            shell.at_shell()
            shell.command("hearth list")
            rows = [[shell.screen.buffer[y][x] for x in range(COLUMNS)] for y in range(ROWS)]
    hub.close()
    # The last prompt has nothing to say.
    while rows and "".join(cell.data for cell in rows[-1]).strip() in ("", "$"):
        rows.pop()
    return rows


def style_of(cell):
    colour = COLOURS.get(cell.fg, f"#{cell.fg}")
    words = f' fill="{colour}"'
    if cell.bold:
        words += ' font-weight="bold"'
    if cell.italics:
        words += ' font-style="italic"'
    return words


def row_as_svg(y, row):
    """One <text> per run of equal style, each held to its columns."""
    out, x = [], 0
    for style, run in itertools.groupby(row, style_of):
        cells = list(run)
        text = "".join(cell.data for cell in cells)
        stripped = text.strip()
        if stripped:
            # Browsers join several spaces to one.
            shown = html.escape(stripped).replace(" ", "&#160;")
            begin = x + len(text) - len(text.lstrip())
            out.append(f'<text x="{EDGE + begin * CELL:.1f}" y="{BAR + EDGE + y * LINE}" '
                       f'textLength="{len(stripped) * CELL:.1f}"{style}>{shown}</text>')
        x += len(cells)
    return out


def as_svg(rows):
    width, height = COLUMNS * CELL + 2 * EDGE, len(rows) * LINE + BAR + EDGE
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
           f'viewBox="0 0 {width:.0f} {height:.0f}" '
           f'font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="{SIZE}">',
           "<title>hearth pull and hearth run in a terminal</title>",
           f'<rect x="0.5" y="0.5" width="{width - 1:.0f}" height="{height - 1:.0f}" rx="8" fill="#ffffff" '
           'stroke="#d0d7de"/>',
           f'<path d="M0.5 {BAR - 8}V8.5a8 8 0 0 1 8-8H{width - 8.5:.1f}a8 8 0 0 1 8 8V{BAR - 8}z" '
           'fill="#f6f8fa" stroke="#d0d7de"/>']
    out += [f'<circle cx="{18 + 18 * i}" cy="13" r="5" fill="#d0d7de"/>' for i in range(3)]
    for y, row in enumerate(rows):
        out += row_as_svg(y, row)
    return "\n".join([*out, "</svg>"]) + "\n"


def main():
    out = pathlib.Path(sys.argv[2])
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(as_svg(session()))
    print(f"wrote {out}")


if __name__ == "__main__":
    main()

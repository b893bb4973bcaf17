# SPDX-License-Identifier: Apache-2.0
"""Inter-token gaps of streams over time, as a picture and a table: one panel per program, time 0 is
when the long prompt arrives."""
import json
import math

from picture import COLOURS, FAINT, INK, text

WIDTH, LEFT, RIGHT, PANEL, TOP, SPACE = 860, 64, 24, 190, 64, 46


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


def panel(program, record, scales, top):
    said = bool(record["long_prompt"]["reply"]["heard_s"])
    wait = wait_of(record)
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


def draw(model, records):
    scales = Scales(records)
    first = next(iter(records.values()))
    prompt, streams = first["long_prompt"]["tokens"], len(first["replies"])
    parts = [text(LEFT, 22, f"{model}: time between tokens of {streams} streams while a prompt of "
                  f"{prompt:,} tokens arrives", 15, INK, bold=True)]
    top = TOP
    for program, record in records.items():
        parts += panel(program, record, scales, top)
        top += PANEL + SPACE
    foot = top - SPACE
    for tick in scales.time_ticks():
        x = scales.x(tick)
        parts += [f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{foot}" y2="{foot + 5}" '
                  f'stroke="{FAINT}"/>', text(x, foot + 18, f"{tick:g}", 11, FAINT, "middle")]
    parts.append(text(WIDTH - RIGHT, foot + 34, "seconds after the prompt's arrival; each dot is a "
                      "token; shaded while the prompt waits for its first", 12, FAINT, "end"))
    height = foot + 46
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" height="{height}" role="img" font-family="system-ui, \'Segoe UI\', '
            f'\'DejaVu Sans\', sans-serif"><title>Latency of streams beside a long prompt</title>\n'
            f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>\n'
            + "\n".join(parts) + "\n</svg>\n")


def table(model, machine, records, versions):
    lines = [f"# {model}: streams beside a long prompt", "",
             f"{machine}. " + "; ".join(f"{p} {v} (Debian)" for p, v in versions.items())
             + ". Same file, token ids and client; Hearth in the client's process, llama-server "
             "over HTTP on the same machine.", "",
             "| | " + " | ".join(records) + " |", "|---" * (1 + len(records)) + "|"]
    rows = {"between tokens before it, median": ("between_tokens_before_s", "p50"),
            "beside it, median": ("between_tokens_s", "p50"),
            "beside it, 99th percentile": ("between_tokens_s", "p99"),
            "beside it, longest pause": ("between_tokens_s", "most")}
    for title, (group, name) in rows.items():
        cells = [seconds_text(r["long_prompt"][group][name]) for r in records.values()]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    waits = []
    for record in records.values():
        wait = wait_of(record)
        said = record["long_prompt"]["reply"]["heard_s"]
        waits.append(f"{wait:.1f} s" if said else f"not within {wait:.0f} s")
    heard = [str(sum(0 < x <= wait_of(r) for x, _ in dots(r))) for r in records.values()]
    lines += [f"| tokens of the streams meanwhile | {' | '.join(heard)} |",
              f"| first token of the prompt after | {' | '.join(waits)} |", ""]
    bounds = [r["itl_target_s"] for p, r in records.items() if p == "Hearth"]
    others = [r["others"] for p, r in records.items() if p == "Hearth"]
    if bounds:
        lines += [f"Hearth's bound (`--itl-target`) was {bounds[0] * 1e3:.0f} ms; others used "
                  f"{others[0]:.0%} of the machine during its run.", ""]
    return "\n".join(lines)


def rounded(value):
    """Times to a tenth of a millisecond: the file is kept in the repository."""
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, list):
        return [rounded(v) for v in value]
    return {k: rounded(v) for k, v in value.items()} if isinstance(value, dict) else value


def write(folder, name, model, machine, records, versions):
    folder.mkdir(parents=True, exist_ok=True)
    kept = {p: {k: v for k, v in r.items() if k != "url"} for p, r in records.items()}
    for one in kept.values():
        left_out = ("steps", "replies")  # the tokens' times say the same
        one["long_prompt"] = {k: v for k, v in one["long_prompt"].items() if k not in left_out}
    record = {"schema": "hearth.bench.latency", "version": 1, "name": name, "machine": machine,
              "versions": versions, "records": rounded(kept)}
    (folder / f"{name}.json").write_text(json.dumps(record) + "\n", encoding="utf-8")
    words = table(model, machine, records, versions)
    (folder / f"{name}.md").write_text(words, encoding="utf-8")
    (folder / f"{name}.svg").write_text(draw(model, records), encoding="utf-8")
    print(words)
    print(f"latency: wrote {folder / name}.json, .md and .svg")

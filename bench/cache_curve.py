#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fetch against recompute by prompt length: a disk, Redis on this machine, and Redis behind links of 1 Gbit/s
and 100 Mbit/s, which are made of a network namespace and `tc` (needs root). Prints what tier_curve_bench
measures and draws it. cache_curve.py BENCH MODEL [--longest N] [--picture FILE] [--from FILE]"""
import argparse
import contextlib
import csv
import math
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

LINKS = {"1gbit": ("1gbit", 1), "100mbit": ("100mbit", 2)}
NAMES = {"computed": "computed again", "memory": "in memory", "disk": "disk", "redis": "Redis, this machine",
         "1gbit": "Redis, 1 Gbit/s", "100mbit": "Redis, 100 Mbit/s"}
COLOURS = {"computed": "#444444", "memory": "#7a9a01", "disk": "#1668a8", "redis": "#8250a8", "1gbit": "#d2691e",
           "100mbit": "#c02040"}


def run(*words):
    subprocess.run(words, check=True)


@contextlib.contextmanager
def link(name, rate, number):
    """A namespace behind a link of that rate in both directions; yields the address in it."""
    space, here, there = f"hearth{number}", f"hearth{number}a", f"hearth{number}b"
    run("ip", "netns", "add", space)
    try:
        run("ip", "link", "add", here, "type", "veth", "peer", "name", there)
        run("ip", "link", "set", there, "netns", space)
        run("ip", "addr", "add", f"10.77.{number}.1/24", "dev", here)
        run("ip", "link", "set", here, "up")
        inside = ("ip", "netns", "exec", space)
        run(*inside, "ip", "addr", "add", f"10.77.{number}.2/24", "dev", there)
        run(*inside, "ip", "link", "set", there, "up")
        shape = ("root", "tbf", "rate", rate, "burst", "128kb", "latency", "50ms")
        run("tc", "qdisc", "add", "dev", here, *shape)
        run(*inside, "tc", "qdisc", "add", "dev", there, *shape)
        yield f"10.77.{number}.2", inside
    finally:
        subprocess.run(("ip", "netns", "del", space))  # and with it the link
        subprocess.run(("ip", "link", "del", here), stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def redis(folder, host, before=()):
    """Yields the addresses by the network and by a socket in the file system, which no link slows down."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    path = pathlib.Path(folder) / f"{host}.socket"
    server = subprocess.Popen((*before, "redis-server", "--port", str(port), "--bind", host, "--save", "",
                               "--unixsocket", str(path), "--protected-mode", "no", "--maxmemory", "2gb"),
                              stdout=subprocess.DEVNULL)
    try:
        while not path.exists():
            time.sleep(0.01)
        yield f"redis://{host}:{port}", f"unix://{path}"
    finally:
        server.terminate()
        server.wait()


def measure(args):
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=pathlib.Path.home()))
        near, fill = stack.enter_context(redis(folder, "127.0.0.1"))
        where = [f"disk={folder}/disk", f"redis={near},{fill}"]
        for name, (rate, number) in LINKS.items():
            host, inside = stack.enter_context(link(name, rate, number))
            far, fill = stack.enter_context(redis(folder, host, inside))
            where.append(f"{name}={far},{fill}")
        done = subprocess.run((args.bench, args.model, str(args.longest), *where), check=True, text=True,
                              capture_output=True)
    return done.stdout


class Chart:
    """Both axes by powers."""
    width, height, left, right, top, bottom = 860, 520, 70, 200, 50, 56

    def __init__(self, lengths, times):
        self.x_range, self.y_range = (min(lengths), max(lengths)), (min(times), max(times))
        self.parts = []

    def x(self, value):
        low, high = map(math.log, self.x_range)
        return self.left + (math.log(value) - low) / (high - low) * (self.width - self.left - self.right)

    def y(self, value):
        low, high = map(math.log, self.y_range)
        span = self.height - self.top - self.bottom
        return self.top + span - (math.log(value) - low) / (high - low) * span

    def text(self, x, y, words, anchor="middle", size=13, colour="#222222"):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
                          f'fill="{colour}">{words}</text>')

    def grid(self, lengths):
        for length in lengths:
            self.parts.append(f'<path d="M{self.x(length):.1f} {self.top}V{self.height - self.bottom}" '
                              'stroke="#dddddd"/>')
            self.text(self.x(length), self.height - self.bottom + 18, f"{length:,}")
        power = math.floor(math.log10(self.y_range[0]))
        while 10 ** power <= self.y_range[1]:
            if 10 ** power >= self.y_range[0]:
                at = self.y(10 ** power)
                self.parts.append(f'<path d="M{self.left} {at:.1f}H{self.width - self.right}" stroke="#dddddd"/>')
                self.text(self.left - 8, at + 4, f"{10.0 ** power:g} ms", "end")
            power += 1

    def line(self, points, colour, width=2):
        path = "L".join(f"{self.x(x):.1f} {self.y(y):.1f}" for x, y in points)
        self.parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>')

    def dot(self, x, y, colour):
        self.parts.append(f'<circle cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="4.5" fill="#ffffff" '
                          f'stroke="{colour}" stroke-width="2"/>')

    def svg(self):
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
                f'font-family="sans-serif" role="img"><title>Fetch against recompute</title>'
                f'<rect width="{self.width}" height="{self.height}" fill="#ffffff"/>\n'
                + "\n".join(self.parts) + "\n</svg>\n")


def draw(rows, model):
    lines = {}
    for row in rows:
        length = int(row["tokens"])
        for name in ("computed", "memory"):
            lines.setdefault(name, {})[length] = float(row[f"{name} ms"])
        lines.setdefault(row["where"], {})[length] = float(row["fetched ms"])
    lengths = sorted(lines["computed"])
    times = [time for line in lines.values() for time in line.values()]
    chart = Chart(lengths, [min(times) * 0.8, max(times) * 1.25])
    chart.grid(lengths)
    chart.text(chart.left, 24, f"Time to the first token of a known prompt, {model}", "start", 16)
    chart.text(chart.left, 42, "lines: each way by itself; circles: what the server chose", "start", 12, "#666666")
    chart.text((chart.left + chart.width - chart.right) / 2, chart.height - 12, "prompt, tokens")
    ends = []
    for name in sorted(lines, key=lambda each: -lines[each][lengths[-1]]):
        chart.line(sorted(lines[name].items()), COLOURS[name], 3 if name == "computed" else 2)
        at = chart.y(lines[name][lengths[-1]])
        ends.append(max(at, ends[-1] + 17) if ends else at)
        chart.text(chart.width - chart.right + 10, ends[-1] + 4, NAMES[name], "start", 13, COLOURS[name])
    for row in rows:
        chart.dot(int(row["tokens"]), float(row["chosen ms"]), COLOURS[row["where"]])
    return chart.svg()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bench")
    parser.add_argument("model")
    parser.add_argument("--longest", type=int, default=1024)
    parser.add_argument("--picture", type=pathlib.Path)
    parser.add_argument("--from", dest="source", type=pathlib.Path, help="what was printed before")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # and what was set up goes
    text = args.source.read_text() if args.source else measure(args)
    print(text, end="")
    rows = list(csv.DictReader(text.splitlines()))
    if not rows:
        sys.exit("nothing was measured")
    worst = max(rows, key=lambda row: float(row["chosen/best"]))
    print(f"the choice takes {worst['chosen/best']} times the better one at worst: {worst['where']}, "
          f"{worst['tokens']} tokens")
    if args.picture:
        args.picture.write_text(draw(rows, pathlib.Path(args.model).stem))


if __name__ == "__main__":
    main()

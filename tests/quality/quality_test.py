# SPDX-License-Identifier: Apache-2.0
"""hearth eval compare stays within the bounds of quality, and notices when they are not met.

Usage: quality_test.py HEARTH MODEL TEXT TOKENS; MODEL as tools/oracle/locate.py names places.
"""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "oracle"))
import locate  # noqa: E402  (the path is set above)

LEAST_TOP1, MOST_KL = 0.995, 1e-4


def compare(hearth, model, text, tokens, *flags):
    return subprocess.run([hearth, "eval", "compare", "--model", str(model), "--text", text,
                           "--tokens", tokens, *flags], capture_output=True, text=True,
                          check=False)


def main():
    hearth, model, text, tokens = sys.argv[1:]
    model = locate.find(model)
    done = compare(hearth, model, text, tokens, "--min-top1", str(LEAST_TOP1), "--max-kl",
                   str(MOST_KL))
    print(done.stdout, done.stderr)
    if done.returncode != 0:
        sys.exit(f"exit {done.returncode}")
    figures = dict(line.rsplit(" ", 1) for line in done.stdout.replace(" %", "").splitlines())
    # Pieces of some models begin with a token of their own, which is compared as well.
    if int(figures["tokens"]) < int(tokens):
        sys.exit(f"{figures['tokens']} tokens compared, {tokens} wanted: the text is too short")
    if float(figures["mean KL"]) <= 0:
        sys.exit("nothing differs at all: this compares a thing with itself")
    strict = compare(hearth, model, text, "20", "--max-kl", "0")
    if strict.returncode != 1 or "mean KL" not in strict.stderr:
        sys.exit(f"a bound nobody can meet was met: {strict.stdout} {strict.stderr}")


main()

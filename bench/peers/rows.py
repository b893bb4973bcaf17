# SPDX-License-Identifier: Apache-2.0
"""What is measured: rows, grouped by the question they answer. A group is measured, kept and drawn by
itself."""
import dataclasses

PREFILL = 512
LONG_PREFILL = 32768
BATCHES = [1, 8, 32]
DEPTHS = [2048, 8192]
ARRIVALS_BOUND = 0.6  # seconds between tokens that the streams were promised
# As the issue that asked for them lists them; the last is the mix that most people have.
FORMATS = ["q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl",
           "iq4_xs", "f16", "bf16", "q4_k_m"]


@dataclasses.dataclass
class Row:
    name: str
    subject: str  # what the row is about; rows of one subject stand together
    what: str
    unit: str = "tokens/s"
    more_is_better: bool = True

    @property
    def title(self):
        return f"{self.subject}: {self.what}"


@dataclasses.dataclass
class Group:
    name: str
    title: str
    rows: list


def _both(name, subject):
    return [Row(f"{name}-decode", subject, "decode, 1 sequence"),
            Row(f"{name}-prefill", subject, f"prefill of {PREFILL}")]


def _formats():
    return [row for kind in FORMATS for row in _both(kind, kind.upper())]


GROUPS = {group.name: group for group in (
    Group("formats", "A 1B dense model in every format", _formats()),
    Group("files", "Files that people have", [
        *_both("gguf", "gpt-oss-20b, GGUF (MXFP4 and Q8_0)"),
        *_both("checkpoint", "gpt-oss-20b, Hugging Face directory (MXFP4 and BF16)"),
        *_both("smollm2", "SmolLM2 135M Q4_1"),
        *_both("8b", "8B dense Q4_K_M"),
        *_both("qwen3moe", "Qwen3-30B-A3B Q4_K_M, 24 of 48 layers")]),
    Group("prompts", "Prompts of gpt-oss-20b, short and long", [
        Row(f"prompt-{PREFILL}", f"prefill of {PREFILL} tokens", "rate"),
        Row(f"prompt-{LONG_PREFILL}", f"prefill of {LONG_PREFILL:,} tokens", "rate")]),
    Group("batches", "Sequences of gpt-oss-20b decoded at once", [
        Row(f"batch-{n}", f"{n} sequence{'s' if n > 1 else ''}", "decode in total")
        for n in BATCHES]),
    Group("depth", "Decode of gpt-oss-20b after a context", [
        Row("depth-0", "no context", "decode"),
        *(Row(f"depth-{n}", f"after {n:,} tokens", "decode") for n in DEPTHS)]),
    Group("arrivals", "16 prompts of 500 tokens at once beside 8 streams of gpt-oss-20b", [
        Row("arrivals-first", "16 prompts at once", "median time to the first token", "s", False),
        Row("arrivals-pause", "8 streams beside them", "p99 between tokens", "s", False)]),
    Group("start", "Memory and start of gpt-oss-20b", [
        Row("memory", "peak resident", "memory", "GiB", False),
        Row("start", "start to first token, file cached", "time", "s", False)]),
)}
ROWS = {row.name: row for group in GROUPS.values() for row in group.rows}


def chosen(names):
    """{group: rows} of the names, each a group's or a row's. Raises KeyError with the unknown one."""
    found = {}
    for name in names:
        if name in GROUPS:
            found[name] = [row.name for row in GROUPS[name].rows]
            continue
        group = next((g.name for g in GROUPS.values() if any(r.name == name for r in g.rows)), None)
        if group is None:
            raise KeyError(name)
        if name not in found.setdefault(group, []):
            found[group].append(name)
    return found

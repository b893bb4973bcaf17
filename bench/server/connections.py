# SPDX-License-Identifier: Apache-2.0
"""Streams beside a crowd of connections that are idle, write a byte a second or read a few."""
import json
import subprocess
import time

from rig import Others, Row, Sampler, milliseconds, resident_mib, rig


class Crowd:
    """The driver's crowd, open until the block ends."""

    def __init__(self, under_load, sizes, reader_tokens):
        idle, writers, readers = sizes
        self.process = subprocess.Popen(
            [under_load.driver, "crowd", "--port", str(under_load.port), "--idle", str(idle),
             "--slow-writers", str(writers), "--slow-readers", str(readers), "--reader-tokens",
             str(reader_tokens)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if not self.process.stdout.readline():
            raise SystemExit("the crowd's driver failed")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.figures = json.loads(self.process.stdout.readline())
        self.process.wait(30)


def faults(figures):
    """Everything that must not happen to a stream."""
    bad = {name: figures[name] for name in ("cut", "broken", "unconnected", "unanswered", "short",
                                            "different")}
    bad.update({f"status {status}": count for status, count in figures["statuses"].items()
                if status != "200"})
    return {name: count for name, count in bad.items() if count}


def measure(program, driver, model, *, sizes, active, seconds, reader_tokens=64, answer_tokens=32,
            vocab_size=200000):
    """Figures of one run: the streams alone, beside the crowd, and alone again."""
    out = {"sizes": sizes, "active": active}
    words = ["--clients", active, "--answer-tokens", answer_tokens, "--vocab-size", vocab_size,
             "--warm-up", 1]
    with rig(program, driver, model) as under_load, Others(under_load.pid) as others:
        # Twice as long as a round: pages, caches and buffers are as full as they get.
        under_load.clients(*words, "--seconds", 2 * seconds)
        out["alone"] = [under_load.clients(*words, "--seconds", seconds)]
        under_load.wait_until_idle()
        before = resident_mib(under_load.pid)
        with Crowd(under_load, sizes, reader_tokens) as crowd:
            under_load.wait_until_idle()  # what the slow readers asked for is said
            time.sleep(2)
            out["open"] = under_load.metric("hearth_http_open_connections")
            out["crowd_mib"] = resident_mib(under_load.pid) - before
            with Sampler(under_load) as sampler:
                out["beside"] = under_load.clients(*words, "--seconds", seconds)
            out["growth_mib"] = max(sampler.most_resident, resident_mib(under_load.pid)) - before
            out["most_open"] = sampler.most_open
            out["control_s"] = max(sampler.control_s, default=0)
        out["crowd"] = crowd.figures
        under_load.wait_until_idle()
        out["alone"].append(under_load.clients(*words, "--seconds", seconds))
    out["others"] = others.share
    return out


def first_byte_ratio(out):
    alone = [round_["first_byte_s"]["p99"] for round_ in out["alone"]]
    return out["beside"]["first_byte_s"]["p99"] / (sum(alone) / len(alone))


def rows(out):
    total = sum(out["sizes"])
    ratio = first_byte_ratio(out)
    bad = {**faults(out["beside"]), **{f"alone: {k}": v for round_ in out["alone"]
                                       for k, v in faults(round_).items()}}
    per_connection = 1024 * out["crowd_mib"] / max(1, total)
    return [
        Row("connections open beside the streams", f"{out['open']:.0f}", f"{total}",
            out["open"] >= 0.98 * total),
        Row("resident growth with the crowd", f"{out['crowd_mib']:.0f} MiB "
            f"({per_connection:.1f} KiB a connection)"),
        Row("resident growth, streams included", f"{out['growth_mib']:.0f} MiB", "<= 256 MiB",
            out["growth_mib"] <= 256),
        Row("first byte alone, p99", ", ".join(milliseconds(r["first_byte_s"]["p99"])
                                               for r in out["alone"])),
        Row("first byte beside the crowd, p99", milliseconds(out["beside"]["first_byte_s"]["p99"]),
            "", True),
        Row("beside / alone (mean of before and after)", f"{ratio:.2f}", "<= 1.3", ratio <= 1.3),
        Row("streams per second alone / beside", ", ".join(
            f"{r['right_per_s']:.1f}" for r in out["alone"]) +
            f" / {out['beside']['right_per_s']:.1f}"),
        Row("streams that were not right", str(bad or 0), "0", not bad),
        Row("slow ones that the server cut (they came again)", str(out["crowd"]["cut"])),
        Row("answers other than 200 to the crowd", str(out["crowd"]["bad"]), "0",
            out["crowd"]["bad"] == 0),
        Row("longest answer of the control port meanwhile", milliseconds(out["control_s"])),
    ]


def words(out):
    idle, writers, readers = out["sizes"]
    return (f"{idle:,} idle connections, {writers} that write a byte a second, {readers} that read "
            f"64 bytes a second of a stream, while {out['active']} clients stream in a closed loop; "
            f"server and clients on the same machine; others used {out['others']:.0%} of it.")

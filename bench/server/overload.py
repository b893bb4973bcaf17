# SPDX-License-Identifier: Apache-2.0
"""Several times as many requests as the server can answer, for minutes."""
from connections import faults
from rig import Others, Row, Sampler, milliseconds, rig


def measure(program, driver, model, *, seconds, times=5, peak_seconds=15, max_queued=2000,
            prompt_tokens=32, answer_tokens=32, vocab_size=200000):
    out = {"seconds": seconds, "times": times, "max_queued": max_queued}
    words = ["--prompt-tokens", prompt_tokens, "--answer-tokens", answer_tokens, "--vocab-size",
             vocab_size]
    with rig(program, driver, model, "--max-queued", str(max_queued)) as under_load, \
            Others(under_load.pid) as others:
        def peak():
            # More clients than sequences that run: a step is always full. On a machine that others
            # use, it takes longer until enough have ended to speak of a rate.
            seconds_ = peak_seconds
            while True:
                figures = under_load.clients(*words, "--clients", 96, "--seconds", seconds_,
                                             "--warm-up", min(3, seconds_ / 3))
                if figures["right_per_s"] * seconds_ >= 96 or seconds_ >= 8 * peak_seconds:
                    return figures
                seconds_ *= 2

        out["peaks"] = [peak()]
        rate = times * out["peaks"][0]["right_per_s"]
        if rate == 0:
            raise SystemExit("nothing was answered in a closed loop")
        out["rate"] = rate
        patience = 60 + 4 * max_queued / out["peaks"][0]["right_per_s"]
        with Sampler(under_load) as sampler:
            out["overload"] = under_load.clients(
                *words, "--rate", rate, "--seconds", seconds, "--warm-up", min(3, seconds / 5),
                "--patience", patience, timeout=seconds + patience + 60)
        out["most_waiting"] = sampler.most_waiting
        out["control_s"] = max(sampler.control_s, default=0)
        under_load.wait_until_idle()
        out["peaks"].append(peak())
    out["others"] = others.share
    return out


def goodput_share(out):
    peaks = [round_["right_per_s"] for round_ in out["peaks"]]
    return out["overload"]["right_per_s"] / max(peaks)


def expected_retry_s(out):
    """The time in which a tenth of the queue goes, as admission promises it."""
    return min(600, max(1, 0.1 * out["max_queued"] / out["overload"]["right_per_s"]))


def bad_ones(out):
    bad = faults(out["overload"])
    bad.pop("status 429", None)
    return bad


def rows(out):
    over = out["overload"]
    refusals, retry = over["refusal_s"], over["retry_after_s"]
    bad, share, expected = bad_ones(out), goodput_share(out), expected_retry_s(out)
    is_computed = expected / 3 <= retry["p50"] <= 3 * expected + 1
    return [
        Row("peak, closed loop of 96, before and after",
            ", ".join(f"{round_['right_per_s']:.1f}/s" for round_ in out["peaks"])),
        Row("requests that came", f"{out['rate']:.0f}/s for {out['seconds']:.0f} s"),
        Row("answered right while they came", f"{over['right_per_s']:.1f}/s = "
            f"{100 * share:.1f} % of the better peak", ">= 95 %", share >= 0.95),
        Row("refused", f"{refusals['count']}"),
        Row("time to a refusal, p50 / p99 / longest",
            " / ".join(milliseconds(refusals[p]) for p in ("p50", "p99", "max")), "p99 <= 20 ms",
            refusals["p99"] <= 0.020),
        Row("refusals without Retry-After", str(over["without_retry_after"]), "0",
            over["without_retry_after"] == 0),
        Row("Retry-After, shortest / median / longest",
            f"{retry['min']:.0f} / {retry['p50']:.0f} / {retry['max']:.0f} s",
            f"about {expected:.1f} s", is_computed),
        Row("most that waited", f"{out['most_waiting']:.0f}", f"<= {out['max_queued']}",
            0 < out["most_waiting"] <= out["max_queued"]),
        Row("accepted, all of them answered right", f"{over['right']}; otherwise: {bad or 0}",
            "otherwise 0", not bad),
        Row("longest answer of the control port meanwhile", milliseconds(out["control_s"])),
    ]


def words(out):
    return (f"{out['times']} times the peak, Poisson arrivals, greedy answers compared word for "
            f"word with every other answer to the same prompt; server and clients on the same "
            f"machine; others used {out['others']:.0%} of it.")

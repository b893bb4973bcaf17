# SPDX-License-Identifier: Apache-2.0
"""One client's flood of bodies that are expensive to read does not delay another's small requests:
bench/server/readers.py in a size for CI. Both sides are timed in the same run, so that a slow machine
slows both; other tests run beside, so the median is held to 2 and the tail to more."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/server"))
import readers  # noqa: E402
import rig  # noqa: E402

from serving import expect, work_model  # noqa: E402


def is_fair(out):
    # One reader that takes requests as they come gives more than 100 for each of them.
    return readers.ratio(out, "first_p50") <= 2 and readers.ratio(out, "first_p90") <= 4


def main(program):
    model = work_model("tiny-chatml.gguf")
    for attempt in range(3):
        out = readers.measure(program, model, count=200, connections=6)
        print(rig.table(readers.rows(out)))
        expect(out["sent"] >= 6, f"a flood, not {out['sent']} bodies")
        answers = set(out["answered"])
        expect(answers <= {"200", "400", "429"}, f"hostile bodies answered with {answers}")
        if is_fair(out):
            return
    sys.exit("FAILED: small requests wait for another client's bodies, three times over")


if __name__ == "__main__":
    main(*sys.argv[1:])

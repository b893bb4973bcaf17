# SPDX-License-Identifier: Apache-2.0
"""./dev bench server [PART...]: the server under load, with what it is compared to in the same run.

Parts: connections, overload, rate, readers, overhead; default all. Each prints a table and writes it to
bench/results/server-PART.md. Run it alone on the machine.
"""
import argparse
import os
import pathlib
import sys

import connections
import overhead
import overload
import rate
import readers
import rig

WORK = pathlib.Path(os.environ.get("HEARTH_WORK") or pathlib.Path.home() / ".cache" / "hearth")
BIN = rig.ROOT / "build/release/bin"
# Tokens that prompts are drawn from, by how a model's name begins.
VOCABULARIES = {"tiny-oss": 200000, "gpt-oss": 200000, "llama": 128000, "smollm": 49000}


def vocabulary(model):
    for name, size in VOCABULARIES.items():
        if model.stem.startswith(name):
            return size
    raise SystemExit(f"{model.name}: give its --vocab-size")


def do_connections(arguments, model):
    crowd = arguments.connections
    sizes = (crowd - 2 * (crowd // 20), crowd // 20, crowd // 20)
    out = connections.measure(arguments.hearth, arguments.driver, model, sizes=sizes,
                              active=arguments.active, seconds=arguments.round_seconds,
                              vocab_size=arguments.vocab_size)
    return "A crowd of connections", connections.words(out), connections.rows(out)


def do_overload(arguments, model):
    out = overload.measure(arguments.hearth, arguments.driver, model, seconds=arguments.seconds,
                           max_queued=arguments.max_queued, vocab_size=arguments.vocab_size)
    return "Overload", overload.words(out), overload.rows(out)


def do_rate(arguments, model):
    out = rate.measure(arguments.hearth, arguments.driver, model)
    return "Small requests per second", rate.words(out), rate.rows(out)


def do_readers(arguments, model):
    del model  # its own, in the size that leaves reading to be what counts
    out = readers.measure(arguments.hearth, WORK / "tiny-chatml.gguf", count=2000)
    return "A flood of bodies that are expensive to read", readers.words(out), readers.rows(out)


def do_overhead(arguments, model):
    out = overhead.measure(arguments.hearth, arguments.driver, model,
                           vocab_size=arguments.vocab_size, rounds=arguments.rounds,
                           answer_tokens=arguments.answer_tokens, singles=arguments.singles)
    return f"The server's cost beside the engine: {model.stem}", overhead.words(out), \
        overhead.rows(out)


PARTS = {"connections": do_connections, "overload": do_overload, "rate": do_rate,
         "readers": do_readers, "overhead": do_overhead}


def parse(words):
    parser = argparse.ArgumentParser(prog="./dev bench server", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--model", default="tiny-oss-o200k.gguf",
                        help="a file, or its name in $HEARTH_WORK (%(default)s)")
    parser.add_argument("--vocab-size", type=int, default=0, help="known for the usual models")
    parser.add_argument("--connections", type=int, default=10000, help="of the crowd (%(default)s)")
    parser.add_argument("--active", type=int, default=200, help="streams beside it (%(default)s)")
    parser.add_argument("--round-seconds", type=float, default=15, help="(%(default)s)")
    parser.add_argument("--seconds", type=float, default=180, help="of overload (%(default)s)")
    parser.add_argument("--max-queued", type=int, default=2000, help="in overload (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="of overhead (%(default)s)")
    parser.add_argument("--answer-tokens", type=int, default=64, help="in overhead (%(default)s)")
    parser.add_argument("--singles", type=int, default=200,
                        help="one-token requests in overhead, twice (%(default)s); 0 where a "
                             "prompt's time scatters by more than a request costs")
    parser.add_argument("--hearth", type=pathlib.Path, default=BIN / "hearth")
    parser.add_argument("--driver", type=pathlib.Path, default=BIN / "server_driver")
    parser.add_argument("--no-page", action="store_true", help="write nothing to bench/results")
    arguments = parser.parse_args(words)
    for part in arguments.parts:
        if part not in PARTS:
            parser.error(f"no part named {part}; there are {', '.join(PARTS)}")
    return arguments


def main(words):
    arguments = parse(words)
    model = pathlib.Path(arguments.model)
    if not model.exists():
        model = WORK / arguments.model
    if not model.exists():
        raise SystemExit(f"{model} is missing: ./dev synth {model.stem}")
    arguments.vocab_size = arguments.vocab_size or vocabulary(model)
    out_dir = None if arguments.no_page else rig.ROOT / "bench/results"
    all_met = True
    for part in arguments.parts or PARTS:
        title, about, rows = PARTS[part](arguments, model)
        name = part if part != "overhead" else f"overhead-{model.stem}"
        all_met &= rig.write_page(name, title, about, rows, out_dir)
    return 0 if all_met else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

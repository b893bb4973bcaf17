# SPDX-License-Identifier: Apache-2.0
"""The malformed requests of http_corpus_test.py to nginx and HAProxy: beside Hearth, where each answers by
itself, and in front of it. In front, Hearth never answers more requests than the proxy has passed on, and
the next client's request through the same proxy is answered as ever. Beside, what one refuses and the
other takes is listed, and what Hearth takes although a proxy refuses it must be in LAXER, with the reason.
proxies_test.py HEARTH [--write: docs/evidence/proxies.md]"""
import argparse
import pathlib
import tempfile
import time

from http_corpus_test import REFUSED, TAKEN
from proxies import exchange, proxies
from serving import expect, record, same, serving, work_model

EVIDENCE = pathlib.Path(__file__).parents[2] / "docs/evidence/proxies.md"
INNOCENT = b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
# Answers to requests whose ends are clear, whatever else is wrong with them.
CLEAR = {200, 403, 404, 405, 415}
# Taken by Hearth, refused by a proxy.
LAXER = {
    "method_lower_case": "Hearth has no such method; it says 405 and closes, so nothing behind it is read",
}
KINDS = {
    "te": "the body's end is not clear", "cl": "the body's end is not clear", "length": "a length that is no plain number",
    "chunk": "chunks", "chunks": "chunks", "bare": "ends of lines", "cr": "ends of lines", "folded": "folded lines",
    "nul": "bytes that no header has", "del": "bytes that no header has", "target": "what is asked for",
    "method": "methods", "version": "versions", "host": "hosts", "headers": "sizes", "head": "sizes", "line": "sizes",
}


def is_taken(statuses, count):
    """Whether all of a case's requests were understood."""
    final = [status for status in statuses if status >= 200]
    return len(final) >= count and all(status in CLEAR for status in final)


def verdicts(cases, started):
    """name -> (Hearth's statuses, {proxy: statuses}); http_corpus_test.py holds Hearth to its own."""
    found = {}
    for name, (data, wanted) in cases.items():
        found[name] = (wanted, {each.name: exchange(each.beside, data) for each in started})
    return found


def compare(found):
    """[(name, proxy, Hearth's, the proxy's, whether Hearth takes it)] where the two differ."""
    rows = []
    for name, (wanted, others) in found.items():
        count = len([status for status in wanted if status >= 200]) if name in TAKEN else 1
        here = is_taken(wanted, count)
        for proxy, statuses in others.items():
            # Which of several requests a proxy still answers when no more will come depends on the moment: it
            # refuses what it says an error to.
            taken = is_taken(statuses, 1) or (here and not statuses)
            if taken != here:
                rows.append((name, proxy, wanted, statuses, here))
    return rows


# Answered at its head, while its sender leaves before its body: a proxy that sees that first logs a request that it has
# passed on as one that it has not.
UNFINISHED = {"length_too_large"}


def check_front(proxy, cases):
    """Each case through the proxy, then an innocent one; (passed on, answered by Hearth)."""
    for name, (data, _) in cases.items():
        # Of both together: a request that its sender did not wait for may be answered during the next one.
        before = proxy.passed_on(), proxy.relay.answers
        for what, bytes_sent in ((name, data), ("somebody else's request after " + name, INNOCENT)):
            statuses = exchange(proxy.front, bytes_sent, stops=bytes_sent is not INNOCENT)
            if bytes_sent is INNOCENT:
                same(statuses, [200], f"{proxy.name}: {what}")
            # The log is written when a request is over, which may be after its last byte.
            until = time.monotonic() + 20
            while True:
                passed, answered = (now - old for now, old in zip((proxy.passed_on(), proxy.relay.answers), before))
                if answered <= passed + (name in UNFINISHED):
                    break
                expect(time.monotonic() < until, f"{proxy.name}, {what}: passed on {passed} requests, and Hearth "
                                                 f"answered {answered}")
                time.sleep(0.01)
    return proxy.passed_on(), proxy.relay.answers


def as_markdown(started, cases, rows, counts):
    names = " and ".join(f"{ {'nginx': 'nginx', 'haproxy': 'HAProxy'}[each.name]} {each.version()}" for each in started)
    lines = ["# Evidence: malformed HTTP, Hearth beside proxies and behind them", "",
             f"Written by `proxies_test.py --write` on 0.1.0 with {names}: the {len(cases)} cases of",
             "`http_corpus_test.py`.", ""]
    for each in started:
        passed, answered = counts[each.name]
        lines.append(f"* Behind {each.name}: it passed on {passed} requests, Hearth answered {answered}. In no case did "
                     "Hearth see more requests than the proxy, and the next client's was answered every time.")
    strict = sum(1 for row in rows if not row[4])
    lines += ["", f"Beside each other they differ {len(rows)} times: {strict} times Hearth refuses what the proxy takes, "
              f"{len(rows) - strict} times it is", "the other way. A refusal ends the connection, so nothing can hide "
              "behind it; being stricter is safe.", "",
              "| case | about | Hearth | nginx | HAProxy |", "|---|---|---|---|---|"]
    for name in sorted({row[0] for row in rows}):
        wanted = next(row[2] for row in rows if row[0] == name)
        kept = {row[1]: row[3] for row in rows if row[0] == name}
        shown = [", ".join(map(str, kept[proxy])) or "closes" if proxy in kept else "agrees"
                 for proxy in ("nginx", "haproxy")]
        lines.append(f"| `{name}` | {LAXER.get(name) or KINDS.get(name.split('_')[0], '')} | "
                     f"{' or '.join(map(str, wanted)) if name in REFUSED else ', '.join(map(str, wanted))} | "
                     f"{shown[0]} | {shown[1]} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    cases = {**REFUSED, **TAKEN}
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, serving(
            arguments.program, work_model("tiny-oss-o200k.gguf"), "--threads", "1") as server:
        with proxies(folder, server.port) as started:
            rows = compare(verdicts(cases, started))
            counts = {each.name: check_front(each, cases) for each in started}
            if arguments.write:
                EVIDENCE.write_text(as_markdown(started, cases, rows, counts), encoding="utf-8")
            versions = {each.name: each.version() for each in started}
    for name, proxy, wanted, statuses, here in rows:
        print(f"{'laxer' if here else 'stricter':8} than {proxy:8} {name:28} {wanted} against {statuses or 'a close'}")
    lax = {row[0] for row in rows if row[4]}
    same(sorted(lax - set(LAXER)), [], "what Hearth takes and a proxy refuses, without a reason here")
    expect(len(cases) >= 60, "enough cases")
    print(f"{len(cases)} cases beside and behind {versions}: {len(rows)} differ, none is two requests for one: {counts}; "
          f"{time.monotonic() - began:.1f} s")
    record("proxies", len(cases), cases=len(cases), versions=versions, stricter=len(rows) - len([r for r in rows if r[4]]),
           laxer=len([r for r in rows if r[4]]), passed_on={k: v[0] for k, v in counts.items()},
           answered={k: v[1] for k, v in counts.items()})


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The public JSON Schema test suite, as the source package of jsonschema carries it: every schema
of draft 2020-12 and 7 is either refused with a reason, or everything generated under it validates,
and none of the suite's invalid instances passes the mask."""
import argparse
import collections
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

import jsonschema

import replies

SDIST = "jsonschema==4.26.0"
SHA256 = "0c26707e2efad8aa1bfc5b7ce170f3fccc2e4918ff85989ba9ffa9facb2be326"
DRAFTS = ["draft2020-12", "draft7"]


def fetch():
    """The suite's files as {"draft/name": cases}; kept in the work folder."""
    kept = pathlib.Path(replies.work_dir()) / "json-schema-test-suite.json"
    if not kept.exists():
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps",
                            "--no-binary", "jsonschema", "-d", folder, SDIST], check=True)
            archive = next(pathlib.Path(folder).glob("jsonschema-*.tar.gz"))
            found = hashlib.sha256(archive.read_bytes()).hexdigest()
            if found != SHA256:
                sys.exit(f"{archive.name}: sha256 {found}, expected {SHA256}")
            files = {}
            with tarfile.open(archive) as tar:
                for member in tar:
                    parts = pathlib.PurePath(member.name).parts
                    if len(parts) == 5 and parts[1:3] == ("json", "tests") and parts[3] in DRAFTS:
                        files["/".join(parts[3:])] = json.load(tar.extractfile(member))
        partial = kept.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(files))
        partial.rename(kept)
    return json.loads(kept.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--vocab", default="o200k")
    parser.add_argument("--each", type=int, default=3)
    args = parser.parse_args()
    requests, names = [], []
    for file, cases in sorted(fetch().items()):
        for case in cases:
            for seed in range(args.each):
                # JSON inside JSON: the suite has numbers that must not pass through another reader.
                requests.append({"kind": "schema_text", "text": json.dumps(case["schema"]),
                                 "seed": seed + 1, "soft": 5 + 20 * seed})
                names.append((file, case))
            requests.append({"kind": "schema_text", "text": json.dumps(case["schema"]),
                             "accepts": [json.dumps(test["data"], ensure_ascii=False)
                                         for test in case["tests"]]})
            names.append((file, case))
    answers = replies.generate(args.program, args.vocab, requests)
    refused, enforced, instances = (collections.Counter() for _ in range(3))
    failed = 0
    for request, (file, case), answer in zip(requests, names, answers):
        if "refused" in answer:
            refused[answer["refused"][:70]] += 1
            continue
        if "accepts" in answer:
            for test, passes in zip(case["tests"], answer["accepts"]):
                instances[test["valid"], passes] += 1
                if passes and not test["valid"]:
                    failed += 1
                    print(f"FAILED {file}: {case['description']}: lets {test['data']!r} pass")
            continue
        enforced[file] += 1
        default = jsonschema.Draft7Validator if file.startswith("draft7") else None
        why = answer.get("error") or (not answer["finished"] and "did not end") or \
            replies.problem(case["schema"], answer["text"], default)
        if why:
            failed += 1
            print(f"FAILED {file}: {case['description']}: {why}\n  schema {request['text'][:400]}\n"
                  f"  wrote {answer['text'][:300]!r}")
    for reason, count in refused.most_common(40):
        print(f"refused {count}: {reason}")
    total, schemas = sum(enforced.values()), len(names) // (args.each + 1)
    print(f"{schemas} schemas: {total // args.each} enforced, {schemas - total // args.each} refused; "
          f"{total} generations; of the instances {instances[True, True]} valid ones pass, "
          f"{instances[True, False]} valid ones are stricter than needed refused, "
          f"{instances[False, False]} invalid ones are refused; {failed} failed")
    if failed or total < args.each * schemas // 3 or not instances[False, False]:
        sys.exit(1)


if __name__ == "__main__":
    main()

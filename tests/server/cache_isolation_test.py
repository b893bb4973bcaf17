# SPDX-License-Identifier: Apache-2.0
"""Tenants that send each other's texts, to two servers with small memories, disks of their own and one Redis:
whatever a tenant is told to have been cached, it sent before itself. Every text is sent by everybody, in an
order that a seed decides, so that a prompt of one tenant is nearly always in every cache for another."""
import argparse
import json
import pathlib
import random
import sys
import tempfile

from serving import expect, new_key, same, serving, work_model
from shared_cache_test import redis, wait_for

FLAGS = ("--isa", "scalar", "--threads", "1", "--cache-disk", "256MiB", "--kv-memory", "4MiB")

def text_of(number):
    """Different from the first block on."""
    return f"{number} is the number of this text, " + f"and line {number} says so again, " * 6


class Tenant:
    def __init__(self, key, salt):
        self.key, self.salt = key, salt
        self.sent = set()  # numbers of texts


def parts_of(server, admin):
    """{name of the tier: what it says}"""
    status, _, data = server.request("GET", "/status", headers={"authorization": "Bearer " + admin})
    same(status, 200, f"/status: {data[:300]}")
    return {part["name"]: part for part in json.loads(data)["tier"]["parts"]}


def ask(server, tenant, number):
    body = {"prompt": text_of(number), "max_tokens": 1, "temperature": 0, "logprobs": 1}
    if tenant.salt:
        body["cache_salt"] = tenant.salt
    headers = {"authorization": "Bearer " + tenant.key} if tenant.key else {}
    status, _, data = server.request("POST", "/v1/completions", body, headers)
    same(status, 200, f"text {number}: {data[:300]}")
    reply = json.loads(data)
    usage = reply["usage"]
    return (reply["choices"][0]["text"], str(reply["choices"][0]["logprobs"]["token_logprobs"]),
            usage["prompt_tokens_details"]["cached_tokens"])


def check(program, model, folder, count):
    rng = random.Random(7)
    made = [new_key(program, name) for name in ("anna", "bert", "cleo")]
    admin, entry = new_key(program, "root", "--admin")
    keys = folder / "keys.json"
    keys.write_text(json.dumps({"keys": [entry, *(each for _, each in made)]}))
    secret = folder / "secret"
    secret.write_text("a secret that all servers share\n")
    tenants = [Tenant(key, salt) for key, _ in made for salt in ("", "s", "t")]
    num_texts = count // 12
    told, hits, tokens, strange = {}, 0, 0, 0
    with redis(folder) as store:
        flags = (*FLAGS, "--keys", str(keys), "--cache-key", str(secret), "--cache-redis",
                 f"redis://127.0.0.1:{store.port}")
        sent = 0
        for life in range(3):  # memory is lost twice, the disks and Redis stay
            with serving(program, model, *flags, "--cache-dir", str(folder / "one")) as one, \
                    serving(program, model, *flags, "--cache-dir", str(folder / "two")) as two:
                servers = [one, two]
                for each in servers:
                    wait_for("a connection to Redis",
                             lambda: (shared := parts_of(each, admin)["shared"])["reads"] and shared["writes"])
                while sent < count * (life + 1) // 3:
                    sent += 1
                    number, tenant = rng.randrange(num_texts), rng.choice(tenants)
                    text, logprobs, cached = ask(rng.choice(servers), tenant, number)
                    if number not in tenant.sent:
                        same(cached, 0, f"request {sent}: tokens of text {number} cached for one who never sent it")
                        strange += number in told
                    same((text, logprobs), told.setdefault(number, (text, logprobs)), f"the reply to text {number}")
                    tenant.sent.add(number)
                    hits += cached > 0
                    tokens += cached
                tiers = [parts_of(each, admin) for each in servers]
    disk, shared = (sum(tier[name]["hits"] for tier in tiers) for name in ("disk", "shared"))
    expect(hits > count / 20 and strange > count / 4, f"hits, and texts of others: {hits}, {strange}")
    expect(disk > 0 and shared > 0, f"hits in every tier: {tiers}")
    print(f"{count} requests of {len(tenants)} tenants with the same {num_texts} texts: {hits} hits ({tokens} tokens), in "
          f"the last life {disk} blocks from disk and {shared} from Redis; {strange} asked for what only others had sent, "
          "and none of them had a token cached")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=200)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        check(args.program, work_model("tiny-oss-o200k.gguf"), pathlib.Path(folder), args.count)


if __name__ == "__main__":
    sys.exit(main())

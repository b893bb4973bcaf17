# SPDX-License-Identifier: Apache-2.0
"""Multi-turn chats over several replicas behind the real HAProxy with the configuration that `hearth
fleet haproxy` prints: every reply has a lone engine's bits, a conversation stays with its replica, a
replica that is killed costs no more requests than it had in flight, and one that is replaced none."""
import argparse
import concurrent.futures
import random
import signal
import ssl
import subprocess
import tempfile
import threading
import urllib.request

from fleet import Failed, Haproxy, Replica, admitted, admitted_since, ask, free_port, get, wait_until
from serving import expect, same, work_model

WORDS = ("river stone lantern winter market garden story window copper evening thunder orchard "
         "letter harbour silver meadow bridge candle forest painter").split()


class Chat:
    """One conversation: what its user says is fixed, what the model replies is the lone engine's."""

    def __init__(self, name, turns):
        draw = random.Random(name)
        self.name = name
        self.says = [" ".join(draw.choices(WORDS, k=40)) for _ in range(turns)]
        self.kind = draw.randrange(4)
        self.expected = []

    def body(self, turn):
        messages = []
        if self.kind == 1:  # known by its opening alone, as most are
            messages.append({"role": "system", "content": f"You write tales for {self.name}."})
        for i in range(turn):
            messages += [{"role": "user", "content": self.says[i]},
                         {"role": "assistant", "content": self.expected[i][0] or "…"}]
        messages.append({"role": "user", "content": self.says[turn]})
        body = {"messages": messages, "temperature": 0, "max_tokens": 12, "logprobs": True}
        if self.kind == 2:
            body["user"] = self.name
        if self.kind == 3:
            body["prompt_cache_key"] = self.name
        if turn % 2 == 1:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return body

    def headers(self):
        return {"x-session-affinity": self.name} if self.kind == 0 else {}

    def learn(self, port):
        for turn in range(len(self.says)):
            self.expected.append(ask(port, self.body(turn), self.headers())[0])


class Tally:
    """What clients saw, over all threads."""

    def __init__(self):
        self.lock = threading.Lock()
        self.failed, self.prompt, self.cached, self.replies = [], 0, 0, 0

    def add(self, usage):
        with self.lock:
            self.replies += 1
            self.prompt += usage["prompt_tokens"]
            self.cached += usage["prompt_tokens_details"]["cached_tokens"]

    def fail(self, why):
        with self.lock:
            self.failed.append(why)

    @property
    def share(self):
        return 100 * self.cached / self.prompt


def hold_turn(port, chat, turn, tally):
    """One turn, sent again by the client when it failed; its bits are the lone engine's."""
    for _ in range(5):
        try:
            reply, usage, _ = ask(port, chat.body(turn), chat.headers())
        except Failed as failure:
            tally.fail(str(failure))
            continue
        same(reply, chat.expected[turn], f"{chat.name}, turn {turn}")
        tally.add(usage)
        return
    raise AssertionError(f"{chat.name}: {tally.failed[-5:]}")


def hold(port, chats, clients, until=None):
    """All chats, turn after turn, by so many clients at a time; again and again while `until` has
    not come. Returns what they saw."""
    tally, mistakes = Tally(), []

    def client(mine):
        try:
            while True:
                for turn in range(len(chats[0].says)):
                    for chat in mine:
                        hold_turn(port, chat, turn, tally)
                if until is None or until.is_set():
                    return
        except BaseException as mistake:  # pylint: disable=broad-except
            mistakes.append(mistake)

    threads = [threading.Thread(target=client, args=(chats[i::clients],)) for i in range(clients)]
    for thread in threads:
        thread.start()

    def finish():
        for thread in threads:
            thread.join()
        if mistakes:
            raise mistakes[0]
        return tally

    return finish if until is not None else finish()


def beside(port, chats, clients, work):
    """`work` beside clients that go on with their chats; what they saw of it."""
    until = threading.Event()
    finish = hold(port, chats, clients, until)
    try:
        came = work()
    finally:
        until.set()
        tally = finish()
    return tally, came


def wait_for_rest(balancer, replicas):
    """A request that HAProxy has not yet let go of counts as load, and load may move a conversation."""
    wait_until(lambda: all(balancer.row(each)["scur"] == "0" for each in replicas))


def served_by(balancer, replicas, chat):
    """How many turns each replica answered, sorted; None when a weight changed meanwhile, which may move it."""
    weights = [balancer.row(each)["weight"] for each in replicas]
    before = admitted(replicas)
    tally = Tally()
    for turn in range(len(chat.says)):
        wait_for_rest(balancer, replicas)
        hold_turn(balancer.port, chat, turn, tally)
    turns = admitted_since(before, replicas, len(chat.says))
    if weights != [balancer.row(each)["weight"] for each in replicas]:
        return None
    return sorted(turns)


def check_sticky(balancer, replicas, chats):
    for chat in chats:
        served = wait_until(lambda each=chat: served_by(balancer, replicas, each))
        same(served, [0] * (len(replicas) - 1) + [len(chat.says)], f"one replica for {chat.name}")
    print(f"{len(chats)} conversations of every kind of key: each with one replica")


def check_echo(balancer, replicas, chat):
    """What the answer tells, sent as the header, leads to the same replica."""
    wait_for_rest(balancer, replicas)
    _, _, headers = ask(balancer.port, chat.body(0), chat.headers())
    wait_for_rest(balancer, replicas)
    key = headers["x-session-affinity"]
    expect(key and chat.name not in key, f"a hash, not the text: {key}")
    again = ask(balancer.port, chat.body(0), {"x-session-affinity": key})[2]
    same(again["x-session-affinity"], key, "the same key again")
    expect(int(again["x-hearth-cached-tokens"]) >= 32, f"found in the cache: {again}")


def check_kills(balancer, replicas, chats, clients, count):
    """The machine of a replica dies. Requests that fail are those it had in flight."""
    failed = flown = 0
    for _ in range(count):
        victim = max(replicas, key=lambda each: int(balancer.row(each)["stot"]))

        def kill(victim=victim):
            wait_until(lambda: int(balancer.row(victim)["scur"]) > 0)
            victim.signal(int(signal.SIGSTOP))  # what it has in flight can be counted now
            flying = int(balancer.row(victim)["scur"])
            victim.kill()
            wait_until(lambda: balancer.row(victim)["status"].startswith("DOWN"))
            return flying

        tally, flying = beside(balancer.port, chats, clients, kill)
        expect(len(tally.failed) <= flying, f"{tally.failed}: at most {flying}")
        failed, flown = failed + len(tally.failed), flown + flying
        victim.start()
        wait_until(lambda each=victim: balancer.row(each)["status"].startswith("UP"))
    print(f"kill -9 of a replica, {count} times: {failed} requests failed of {flown} in flight there")


def check_rolling(balancer, replicas, chats, clients):
    """Every replica is replaced in turn, and no client notices."""
    def roll():
        for replica in replicas:
            same(replica.leave(), 0, "a clean end")
            replica.start()
            wait_until(lambda each=replica: balancer.row(each)["status"].startswith("UP"))

    tally, _ = beside(balancer.port, chats, clients, roll)
    same(tally.failed, [], "requests that failed")
    print(f"rolling replacement of {len(replicas)}: 0 of {tally.replies} requests failed")


def check_tls(program, folder, replicas):
    pem = f"{folder}/fleet.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                    "/CN=localhost", "-keyout", f"{folder}/key", "-out", f"{folder}/crt"],
                   check=True, stderr=subprocess.DEVNULL)
    with open(pem, "w", encoding="utf-8") as out:
        for part in ("crt", "key"):
            with open(f"{folder}/{part}", encoding="utf-8") as file:
                out.write(file.read())
    balancer = Haproxy(program, folder, replicas, "--certificate", pem)
    context = ssl._create_unverified_context()  # pylint: disable=protected-access
    url = f"https://127.0.0.1:{balancer.port}/v1/models"
    with urllib.request.urlopen(url, context=context, timeout=60) as response:
        same(response.status, 200, "over TLS")
    status, page = get(balancer.stats, "/metrics")
    expect(status == 200 and "haproxy_server_status" in page, "HAProxy's own metrics")
    balancer.stop()


def check_alone(program, folder):
    """Without a replica the balancer's own error is in the API's form."""
    class Nobody:
        address, agent = f"127.0.0.1:{free_port()}", free_port()

    text = subprocess.run([program, "fleet", "haproxy", "--replicas", Nobody.address, "--listen",
                           f"127.0.0.1:{(port := free_port())}", "--stats",
                           f"127.0.0.1:{free_port()}", "--agent-port", "0", "--max-connections", "500"],
                          capture_output=True, text=True, check=True).stdout
    with open(f"{folder}/alone.cfg", "w", encoding="utf-8") as file:
        file.write(text)
    process = subprocess.Popen(["haproxy", "-db", "-f", f"{folder}/alone.cfg"],
                               stderr=subprocess.DEVNULL)

    def refused():
        try:
            status, body = get(port, "/v1/models")
        except OSError:
            return ""
        same(status, 503, "nobody there")
        return body

    expect('"code":"overloaded"' in wait_until(refused), "an error in the API's form")
    process.terminate()
    process.wait()


def check_shares(program, folder, replicas, lone, options):
    """The same kind of load under each policy, each with chats of its own."""
    shares = {}
    for policy in ("session", "round-robin", "least"):
        chats = [Chat(f"{policy}-{i}", options.turns) for i in range(options.chats)]
        for chat in chats:
            chat.learn(lone.port)
        balancer = Haproxy(program, folder, replicas, "--balance", policy)
        shares[policy] = hold(balancer.port, chats, options.clients).share
        balancer.stop()
    print("prompt tokens found cached, " + ", ".join(f"{k} {v:.1f} %" for k, v in shares.items()))
    expect(shares["session"] > shares["round-robin"] + 5, f"session hashing to pay: {shares}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--chats", type=int, default=8)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--kills", type=int, default=1)
    parser.add_argument("--clients", type=int, default=4)
    options = parser.parse_args()
    model = work_model("tiny-chatml.gguf")
    flags = ("--drain-notice", "1.5", "--overload-status", "503")
    lone, replicas = Replica(options.program, model), []
    with tempfile.TemporaryDirectory() as folder:
        try:
            with concurrent.futures.ThreadPoolExecutor() as pool:
                starts = [pool.submit(Replica, options.program, model, *flags)
                          for _ in range(options.replicas)]
            replicas += [start.result() for start in starts]
            check_shares(options.program, folder, replicas, lone, options)
            chats = [Chat(f"chat-{i}", options.turns) for i in range(options.chats)]
            for chat in chats:
                chat.learn(lone.port)
            balancer = Haproxy(options.program, folder, replicas)
            kinds = {chat.kind: chat for chat in chats}
            check_sticky(balancer, replicas, list(kinds.values()))
            check_echo(balancer, replicas, next(chat for chat in chats if chat.kind != 0))
            check_kills(balancer, replicas, chats, options.clients, options.kills)
            check_rolling(balancer, replicas, chats, options.clients)
            balancer.stop()
            check_tls(options.program, folder, replicas)
            check_alone(options.program, folder)
        finally:
            for each in [lone, *replicas]:
                each.kill()
    print("a fleet behind HAProxy serves what one engine would")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Multi-turn chats over three replicas behind the real Envoy and the real endpoint picker of the Gateway
API, with the files of deploy/envoy and no Kubernetes: every reply has a lone engine's bits, prompts are
found cached, a replica that is killed or taken off the list costs no more than what it had in flight, and
without the picker the fleet goes on."""
import argparse
import concurrent.futures
import signal
import tempfile
import threading

from envoy import EnvoyFleet, parts
from fleet import Replica, admitted, admitted_since, ask, free_port, wait_until
from haproxy_test import Chat, Tally, beside, hold, hold_turn
from serving import expect, same, work_model


class NamedChat(Chat):
    """The picker refuses requests that name no model."""

    def body(self, turn):
        return {"model": "tiny-chatml", **super().body(turn)}


def learned(lone, name, options):
    chats = [NamedChat(f"{name}-{i}", options.turns) for i in range(options.chats)]
    for chat in chats:
        chat.learn(lone.port)
    return chats


def check_shares(fleet, lone, options):
    tally = hold(fleet.port, learned(lone, "picked", options), options.clients)
    same(tally.failed, [], "requests that failed")
    print(f"prompt tokens found cached, picked: {tally.share:.1f} %")
    expect(tally.share > 50, f"the picker to send chats where their prompts are: {tally.share}")
    sent = fleet.stats(r"http\.picked\.ext_proc\.streams_started")
    expect(sent >= tally.replies, f"{tally.replies} replies, of which the picker saw {sent}")


def check_choice_is_the_pickers(fleet, replicas, chat):
    """A client cannot name its replica."""
    victim = replicas[0]
    where = {"x-gateway-destination-endpoint": f"{victim.host}:{victim.port}"}
    home = None
    for _ in range(4):
        served = admitted(replicas)
        ask(fleet.port, chat.body(0), where)
        got = admitted_since(served, replicas, 1)
        same(sorted(got), [0.0] * (len(replicas) - 1) + [1.0], "one replica that got it")
        home = got.index(1.0)
    served = admitted(replicas)
    for each in replicas:
        where = {"x-gateway-destination-endpoint": f"{each.host}:{each.port}"}
        ask(fleet.port, chat.body(0), where)
    same(admitted_since(served, replicas, 3)[home], 3.0, "the replica that has it cached got all three")


def check_kill(fleet, replicas, chats, clients):
    victim = replicas[1]

    def kill():
        wait_until(lambda: victim.metric("hearth_requests_running") > 0)
        victim.signal(int(signal.SIGSTOP))
        flying = fleet.stats(r"cluster\.replicas\.upstream_rq_active")
        victim.kill()
        wait_until(lambda: len(fleet.healthy()) == len(replicas) - 1)
        return flying

    tally, flying = beside(fleet.port, chats, clients, kill)
    expect(len(tally.failed) <= flying, f"{tally.failed}: at most {flying}")
    print(f"kill -9 of a replica: {len(tally.failed)} requests failed, {flying} were in flight on all")
    victim.start()
    wait_until(lambda: len(fleet.healthy()) == len(replicas))


def wait_for_rest(replica):
    """What was on its way to a replica is still answered. How many requests it has had then: nothing runs and nothing
    has come for a quarter of a second, because a server's counts are a moment old."""
    pause = threading.Event()

    def count():
        before = admitted([replica])[0]
        pause.wait(0.25)
        is_idle = replica.metric("hearth_requests_running") == 0
        return before if is_idle and admitted([replica])[0] == before else None
    return wait_until(count)


def check_list(fleet, replicas, chats, clients):
    """A replica leaves the list and comes back, and no client notices."""
    hosts = [each.host for each in replicas]

    def change():
        fleet.list(hosts[:-1])
        wait_until(lambda: fleet.healthy() == set(hosts[:-1]))
        before = wait_for_rest(replicas[-1])
        tally = Tally()
        for chat in chats:
            hold_turn(fleet.port, chat, 0, tally)
        same(admitted(replicas[-1:])[0], before, "requests after it left")
        fleet.list(hosts)
        wait_until(lambda: fleet.healthy() == set(hosts))

    tally, _ = beside(fleet.port, chats, clients, change)
    same(tally.failed, [], "requests that failed")
    print(f"a replica off the list and back: 0 of {tally.replies} requests failed")


def check_picker_loss(fleet, chats, clients):
    """Fail open: without the picker the session's hash chooses, and no client notices."""
    def lose():
        fleet.picker.kill()
        wait_until(lambda: not fleet.asks_picker())

    tally, _ = beside(fleet.port, chats, clients, lose)
    same(tally.failed, [], "requests that failed when the picker was killed")
    started = fleet.stats(r"http\.picked\.ext_proc\.streams_started")
    tally = hold(fleet.port, chats, clients)
    same(tally.failed, [], "requests that failed without a picker")
    same(fleet.stats(r"http\.picked\.ext_proc\.streams_started"), started, "requests that asked nobody")
    print(f"picker killed: 0 requests failed; then {tally.replies} without it, "
          f"{tally.share:.1f} % of their prompt tokens cached")
    fleet.picker.start()
    wait_until(fleet.asks_picker)

    def is_asked():  # Envoy's workers learn a moment after its main thread that the picker is there
        same(hold(fleet.port, chats[:1], 1).failed, [], "requests that failed")
        return fleet.stats(r"http\.picked\.ext_proc\.streams_started") > started
    wait_until(is_asked)
    print("picker started again: it is asked")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--chats", type=int, default=8)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--clients", type=int, default=4)
    options = parser.parse_args()
    for name in ("envoy", "epp"):
        parts.find(name)  # fails loudly before anything is started
    model = work_model("tiny-chatml.gguf")
    lone, replicas, port = Replica(options.program, model), [], free_port()
    with tempfile.TemporaryDirectory() as folder:
        try:
            with concurrent.futures.ThreadPoolExecutor() as pool:
                # One port for all, so an address for each.
                starts = [pool.submit(Replica, options.program, model, "--drain-notice", "1.5",
                                      "--overload-status", "503", host=f"127.0.0.{11 + i}", port=port)
                          for i in range(options.replicas)]
            replicas += [start.result() for start in starts]
            fleet = EnvoyFleet(folder, [each.host for each in replicas], port)
            check_shares(fleet, lone, options)
            chats = learned(lone, "chat", options)
            check_choice_is_the_pickers(fleet, replicas, chats[0])
            check_kill(fleet, replicas, chats, options.clients)
            check_list(fleet, replicas, chats, options.clients)
            check_picker_loss(fleet, chats, options.clients)
            fleet.stop()
        finally:
            for each in [lone, *replicas]:
                each.kill()
    print("a fleet behind Envoy and an endpoint picker serves what one engine would")


if __name__ == "__main__":
    main()

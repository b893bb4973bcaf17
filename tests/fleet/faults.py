# SPDX-License-Identifier: Apache-2.0
"""What goes wrong in a fleet, one function each. A function does it, undoes it and returns how many plain
requests may have failed by it: those that were in flight where it struck. (While a balancer is away a client
that tries again fails again: there a request counts once, however often it was tried.)"""
import signal
import threading

from fleet import wait_until
from serving import expect, same

PAUSE = threading.Event()


def wait_until_up(fleet, replicas):
    """Until the balancer sends requests to each."""
    for each in replicas:
        wait_until(lambda each=each: fleet.front.is_up(each))


def busy(front, replicas):
    """A replica that has requests in flight."""
    def look():
        return next((each for each in replicas if front.flying(each) > 0), None)
    return wait_until(look)


def kill(fleet):
    """`kill -9` of a replica and its supervisor, as the end of a machine."""
    victim = busy(fleet.front, fleet.replicas)
    victim.signal(int(signal.SIGSTOP))  # what it has in flight can be counted now
    flying = fleet.front.flying(victim)
    victim.kill()
    wait_until(lambda: not fleet.front.is_up(victim))
    PAUSE.wait(fleet.options.outage)
    victim.start()
    wait_until(lambda: fleet.front.is_up(victim))
    return flying


def hang(fleet):
    """SIGSTOP: nothing is closed, and nothing answers."""
    victim = busy(fleet.front, fleet.replicas)
    victim.signal(int(signal.SIGSTOP))
    flying = fleet.front.flying(victim)
    wait_until(lambda: not fleet.front.is_up(victim))
    PAUSE.wait(fleet.options.outage)
    victim.signal(int(signal.SIGCONT))
    wait_until(lambda: fleet.front.is_up(victim))
    return flying


def partition(fleet):
    """The link of a machine passes nothing on."""
    victim = busy(fleet.front, fleet.replicas)
    victim.machine.cut()
    flying = fleet.front.flying(victim)
    if not fleet.options.quick:
        wait_until(lambda: not fleet.front.is_up(victim))
    PAUSE.wait(fleet.options.outage)
    victim.machine.join()
    wait_until(lambda: fleet.front.is_up(victim))
    return flying


def slow_link(fleet):
    """A replica 40 ms away each way, and another behind 512 kbit/s."""
    far, narrow = fleet.replicas[0].machine, fleet.replicas[1].machine
    far.tell_wire("delay 0.04")
    narrow.limit("512kbit")
    PAUSE.wait(fleet.options.outage)
    far.tell_wire("delay 0")
    narrow.unlimit()
    return 0


def full_disk(fleet):
    """The disk of the cache and the journal is full on every second machine."""
    machines = [each.machine for each in fleet.replicas[::2]]
    for machine in machines:
        machine.fill_disk()
    PAUSE.wait(fleet.options.outage)
    for machine in machines:
        machine.empty_disk()
    return 0


def redis_loss(fleet):
    fleet.redis.kill()
    PAUSE.wait(fleet.options.outage)
    fleet.redis.start()
    return 0


def rolling_upgrade(fleet):
    """Replicas leave and come back, two at a time; in a quick run three."""
    size = 3 if fleet.options.quick else 2
    for first in range(0, len(fleet.replicas), size):
        wave = fleet.replicas[first:first + size]
        for each in wave:
            each.process.send_signal(signal.SIGTERM)
        for each in wave:
            same(each.process.wait(), 0, f"a clean end after {list(each.log)[-20:]}")
            each.start()
        wait_until_up(fleet, wave)
    return 0


def balancer_restart(fleet):
    """The balancer dies and is started again: what went through it is broken."""
    fleet.front.crash()
    fleet.front.start()
    wait_until_up(fleet, fleet.replicas)
    return fleet.options.plain


def balancer_reload(fleet):
    """As an operator changes its configuration: nobody notices."""
    fleet.front.reload()
    wait_until_up(fleet, fleet.replicas)
    return 0


def picker_loss(fleet):
    fleet.front.lose_picker()
    PAUSE.wait(fleet.options.outage)
    fleet.front.start_picker()
    return 0


COMMON = {"kill -9 of a replica": kill, "SIGSTOP of a replica": hang, "partition of a replica": partition,
          "slow links": slow_link, "full disks": full_disk, "Redis gone": redis_loss,
          "rolling upgrade": rolling_upgrade, "balancer killed": balancer_restart}


def faults_of(front):
    expect(front.name in ("haproxy", "envoy"), front.name)
    own = {"balancer reloaded": balancer_reload} if front.name == "haproxy" else {"picker gone": picker_loss}
    return {**COMMON, **own}

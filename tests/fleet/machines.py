# SPDX-License-Identifier: Apache-2.0
"""Replicas as if each were on a machine of its own: a network namespace with an address, a link that can be
cut, made slow or far, and a disk that can be full. Needs root, as namespaces do."""
import atexit
import contextlib
import json
import os
import pathlib
import subprocess
import sys

from fleet import Replica
from serving import expect, new_key
from wire import make_plain

PORT, AGENT = 8080, 9100


def ip(*words, check=True):
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    expect(done.returncode == 0 or not check, f"ip {' '.join(words)}: {done.stderr}")


class Network:
    """A switch, at which this process, the balancer and the databases sit. Names and addresses follow from
    the process: several may be there at a time."""

    def __init__(self):
        expect(os.geteuid() == 0, "root: the test makes network namespaces")
        self.name = f"h{os.getpid() % 100000:x}"
        second, third = divmod(os.getpid() % 16384, 256)
        self.subnet = f"10.{192 + second % 64}.{third}"
        self.address = f"{self.subnet}.1"
        self.machines = []
        atexit.register(self.remove)
        ip("link", "add", self.name, "type", "bridge")
        ip("addr", "add", f"{self.address}/24", "dev", self.name)
        ip("link", "set", self.name, "up")
        ip("netns", "add", self.wires)

    @property
    def wires(self):
        return f"{self.name}w"

    def remove(self):
        while self.machines:
            self.machines.pop().remove()
        ip("netns", "del", self.wires, check=False)
        ip("link", "del", self.name, check=False)


class Machine:
    """`is_far`: its link is a wire.py, which can delay."""

    def __init__(self, network, number, folder, is_far=False):
        self.network, self.number = network, number
        self.space = f"{network.name}m{number}"
        self.address = f"{network.subnet}.{10 + number}"
        self.disk = pathlib.Path(folder) / f"disk-{number}"
        self.disk.mkdir()
        self.wire = None
        network.machines.append(self)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "hearth", self.disk], check=True)
        ip("netns", "add", self.space)
        self.plug_in(is_far)
        ip("-n", self.space, "addr", "add", f"{self.address}/24", "dev", self.inner)
        for interface in ("lo", self.inner):
            ip("-n", self.space, "link", "set", interface, "up")

    @property
    def inner(self):
        return f"{self.space}i"

    def plug_in(self, is_far):
        near, inner, wires = f"{self.space}o", self.inner, self.network.wires
        if not is_far:
            ip("link", "add", near, "type", "veth", "peer", "name", inner)
        else:
            left, right = f"{self.space}l", f"{self.space}r"
            ip("link", "add", near, "type", "veth", "peer", "name", left)
            ip("link", "add", inner, "type", "veth", "peer", "name", right)
            for plain in (near, inner):
                make_plain(plain)
            for each in (left, right):
                ip("link", "set", each, "netns", wires)
                ip("-n", wires, "link", "set", each, "up")
            program = pathlib.Path(__file__).with_name("wire.py")
            self.wire = subprocess.Popen(["ip", "netns", "exec", wires, sys.executable, program, left, right],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            expect(self.wire.stdout.readline() == "ready\n", "wire.py to run")
        ip("link", "set", inner, "netns", self.space)
        ip("link", "set", near, "master", self.network.name)
        ip("link", "set", near, "up")

    def tell_wire(self, line):
        self.wire.stdin.write(line + "\n")
        self.wire.stdin.flush()

    def cut(self):
        """Nothing gets through, and nobody is told."""
        ip("-n", self.space, "link", "set", self.inner, "down")

    def join(self):
        ip("-n", self.space, "link", "set", self.inner, "up")

    def limit(self, rate):
        """A link of so many bits a second for what the machine sends, such as "256kbit"."""
        subprocess.run(["tc", "-n", self.space, "qdisc", "add", "dev", self.inner, "root", "tbf", "rate", rate,
                        "burst", "8kb", "latency", "2s"], check=True)

    def unlimit(self):
        subprocess.run(["tc", "-n", self.space, "qdisc", "del", "dev", self.inner, "root"], check=True)

    def fill_disk(self):
        with contextlib.suppress(OSError), open(self.disk / "filler", "wb", buffering=0) as out:
            while True:
                out.write(bytes(1 << 16))

    def empty_disk(self):
        (self.disk / "filler").unlink()

    def remove(self):
        if self.wire is not None:
            self.wire.stdin.close()
            self.wire.wait()
        ip("link", "del", f"{self.space}o", check=False)
        ip("netns", "del", self.space, check=False)
        subprocess.run(["umount", "-l", self.disk], check=False, stderr=subprocess.DEVNULL)


class PlacedReplica(Replica):
    """`hearth serve` on a machine; started again it is at the same address."""

    def __init__(self, program, model, machine, *flags):
        self.machine = machine
        super().__init__(program, model, *flags, host=machine.address, port=PORT)

    def command(self):
        return ["ip", "netns", "exec", self.machine.space, *super().command()]

    def start(self):
        self.agent = AGENT
        super().start()


class Keys:
    """One key for all, in a file."""

    def __init__(self, program, folder):
        self.secret, entry = new_key(program, "fleet")
        self.path = pathlib.Path(folder) / "keys.json"
        self.path.write_text(json.dumps({"keys": [entry]}), encoding="utf-8")

    @property
    def headers(self):
        return {"authorization": f"Bearer {self.secret}"}

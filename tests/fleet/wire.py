# SPDX-License-Identifier: Apache-2.0
"""A cable between two network interfaces: passes frames on, late or not at all, as a far or broken link
does. (The kernel's `netem` does the same, and is not in every kernel.) Commands on standard input, one a
line: `delay SECONDS` in each direction, `cut`, `join`. wire.py NEAR FAR"""
import array
import collections
import fcntl
import os
import select
import socket
import struct
import sys
import time

ALL_FRAMES = 3  # ETH_P_ALL
SIOCETHTOOL = 0x8946
SET_TX_CHECKSUM, SET_SEGMENTS, SET_GENERIC_SEGMENTS = 0x17, 0x1F, 0x24


def make_plain(interface):
    """Frames of this interface are whole on the wire: checksums computed, none larger than its MTU. A
    socket that copies frames would pass on what the other kernel refuses."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for command in (SET_TX_CHECKSUM, SET_SEGMENTS, SET_GENERIC_SEGMENTS):
            value = array.array("B", struct.pack("II", command, 0))
            request = struct.pack("16sP", interface.encode(), value.buffer_info()[0])
            fcntl.ioctl(sock.fileno(), SIOCETHTOOL, request + b"\0" * 16)


def opened(interface):
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_FRAMES))
    sock.bind((interface, 0))
    return sock


class Wire:
    def __init__(self, near, far):
        self.ends = {near: far, far: near}
        self.waiting = collections.deque()  # (when it is due, where to, frame); delays are equal
        self.delay, self.is_cut = 0.0, False

    def take(self, sock):
        frame, origin = sock.recvfrom(65536)
        # What this process sent comes by as well.
        if self.is_cut or origin[2] == socket.PACKET_OUTGOING:
            return
        if self.delay == 0 and not self.waiting:
            self.put(self.ends[sock], frame)
        else:
            self.waiting.append((time.monotonic() + self.delay, self.ends[sock], frame))

    @staticmethod
    def put(sock, frame):
        try:
            sock.send(frame)
        except OSError:  # the link is down, or its queue full: a lost frame
            pass

    def pause(self):
        return max(0.0, self.waiting[0][0] - time.monotonic()) if self.waiting else None

    def deliver(self):
        now = time.monotonic()
        while self.waiting and self.waiting[0][0] <= now:
            _, sock, frame = self.waiting.popleft()
            if not self.is_cut:
                self.put(sock, frame)

    def obey(self, line):
        words = line.split()
        if words[:1] == ["delay"]:
            self.delay = float(words[1])
        self.is_cut = words == ["cut"] if words in (["cut"], ["join"]) else self.is_cut


def main():
    wire = Wire(opened(sys.argv[1]), opened(sys.argv[2]))
    print("ready", flush=True)
    while True:
        ready, _, _ = select.select([*wire.ends, sys.stdin], [], [], wire.pause())
        for each in ready:
            if each is not sys.stdin:
                wire.take(each)
            elif data := os.read(0, 4096):  # a line at a time is what tests write
                for line in data.decode().splitlines():
                    wire.obey(line)
            else:
                return
        wire.deliver()


if __name__ == "__main__":
    main()

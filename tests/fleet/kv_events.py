# SPDX-License-Identifier: Apache-2.0
"""A subscriber to KV events, written from what vLLM and SGLang publish: three frames (topic, 8 bytes
of number, MessagePack), and a second socket that sends again what was missed."""
import random

import msgpack
import zmq

END = (-1).to_bytes(8, "big", signed=True)
STORED = ("block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium",
          "lora_name", "extra_keys", "group_idx", "kv_cache_spec_kind",
          "kv_cache_spec_sliding_window")
REMOVED = ("block_hashes", "medium", "group_idx")


def decode(payload):
    """(time, events) with each event as a dictionary; arrays and maps alike."""
    batch = msgpack.unpackb(payload, strict_map_key=True)
    if isinstance(batch, dict):
        batch = [batch["ts"], batch["events"], batch["data_parallel_rank"]]
    moment, events, rank = batch
    assert isinstance(moment, float) and rank == 0, batch
    named = []
    for event in events:
        if isinstance(event, list):
            fields = {"BlockStored": STORED, "BlockRemoved": REMOVED, "AllBlocksCleared": ()}
            event = {"type": event[0], **dict(zip(fields[event[0]], event[1:], strict=False))}
        named.append(event)
    return moment, named


class Blocks:
    """What the events leave: parent and tokens by medium, group and hash."""

    def __init__(self):
        self.known = {}

    def apply(self, payload):
        for event in decode(payload)[1]:
            if event["type"] == "AllBlocksCleared":
                self.known.clear()
            elif event["type"] == "BlockRemoved":
                for block in event["block_hashes"]:
                    self.known.pop((event["medium"], event.get("group_idx", 0), block), None)
            else:
                self.store(event)

    def store(self, event):
        size, parent = event["block_size"], event["parent_block_hash"]
        assert len(event["token_ids"]) == size * len(event["block_hashes"]), event
        for i, block in enumerate(event["block_hashes"]):
            tokens = event["token_ids"][i * size:(i + 1) * size]
            self.known[(event["medium"], event.get("group_idx", 0), block)] = (parent, tokens)
            parent = block

    def chains(self, medium="GPU", group=0):
        """The tokens from the beginning up to each block."""
        found = {}

        def chain(block):
            if block not in found:
                parent, tokens = self.known[(medium, group, block)]
                found[block] = (chain(parent) if parent is not None else []) + tokens
            return found[block]

        for kind, of, block in self.known:
            if (kind, of) == (medium, group):
                chain(block)
        return found


class Subscriber:
    """Does what vLLM's example does: where a number does not follow the last it asks for what is
    between. It loses `lost` of the batches, as a network may."""

    def __init__(self, address, replay, topic="", lost=0.0, seed=0):
        self.context = zmq.Context.instance()
        self.address, self.replay_address, self.lost = address, replay, lost
        self.draw = random.Random(seed)
        self.blocks, self.last, self.batches, self.replays = Blocks(), None, 0, 0
        self.socket = self.context.socket(zmq.SUB)
        self.socket.setsockopt(zmq.RECONNECT_IVL, 5)
        self.socket.setsockopt_string(zmq.SUBSCRIBE, topic)
        self.socket.connect(address)

    def reconnect(self):
        self.socket.disconnect(self.address)
        self.socket.connect(self.address)

    def catch_up(self):
        self.replays += 1
        with self.context.socket(zmq.DEALER) as asking:
            asking.setsockopt(zmq.LINGER, 0)
            asking.setsockopt(zmq.RECONNECT_IVL, 5)
            asking.connect(self.replay_address)
            start = 0 if self.last is None else self.last + 1
            asking.send_multipart([b"", start.to_bytes(8, "big")])
            while True:
                if not asking.poll(5000):
                    return False  # the publisher went meanwhile
                empty, number, payload = asking.recv_multipart()
                assert empty == b"", empty
                if number == END:
                    assert payload == b"", payload
                    return True
                self.blocks.apply(payload)
                self.last = int.from_bytes(number, "big")

    def receive(self, bound_ms):
        """One batch, or none within the time."""
        if not self.socket.poll(bound_ms):
            return False
        _, number, payload = self.socket.recv_multipart()
        assert len(number) == 8, number
        number = int.from_bytes(number, "big")
        self.batches += 1
        if self.draw.random() < self.lost:
            return True
        if self.last is not None and number <= self.last:
            if number < self.last:
                self.last = None  # another process, whose clock was behind
            else:
                return True
        if self.last is None or number != self.last + 1:
            if not self.catch_up():
                self.last = None
                return True
        if self.last is None or number > self.last:
            self.blocks.apply(payload)
            self.last = number
        return True

    def drain(self):
        while self.receive(0):
            pass

    def close(self):
        self.socket.close(linger=0)

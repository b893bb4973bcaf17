# SPDX-License-Identifier: Apache-2.0
"""A GGUF file whose texts are what somebody else chose: metadata replaced, everything else as it was."""
import pathlib
import struct

STRING, ARRAY = 8, 9
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


def text(value):
    """A string of the format; bytes stay as they are."""
    raw = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(raw)) + raw


def string(value):
    return struct.pack("<I", STRING) + text(value)


class Gguf:
    """Parsed as far as needed: `values` maps a key to its type and value as they stand in the file."""

    def __init__(self, path):
        self.data = pathlib.Path(path).read_bytes()
        assert self.data[:4] == b"GGUF"
        self.num_tensors, count = struct.unpack_from("<QQ", self.data, 8)
        at = 24
        self.values = {}
        for _ in range(count):
            size, = struct.unpack_from("<Q", self.data, at)
            key = self.data[at + 8:at + 8 + size].decode()
            begin = at + 8 + size
            at = self.skip(*struct.unpack_from("<I", self.data, begin), begin + 4)
            self.values[key] = self.data[begin:at]
        self.tensors_begin = at
        for _ in range(self.num_tensors):
            size, = struct.unpack_from("<Q", self.data, at)
            dims, = struct.unpack_from("<I", self.data, at + 8 + size)
            at += 8 + size + 4 + 8 * dims + 4 + 8
        self.tensors_end = at
        found = self.values.get("general.alignment")
        self.alignment = struct.unpack("<I", found[4:])[0] if found else 32

    def skip(self, kind, at):
        if kind == STRING:
            return at + 8 + struct.unpack_from("<Q", self.data, at)[0]
        if kind != ARRAY:
            return at + SIZES[kind]
        kind, count = struct.unpack_from("<IQ", self.data, at)
        at += 12
        if kind != STRING:
            return at + count * SIZES[kind]
        for _ in range(count):
            at = self.skip(STRING, at)
        return at

    def strings(self, key):
        """An array of strings, as bytes."""
        value, out, at = self.values[key], [], 16
        for _ in range(struct.unpack_from("<Q", value, 8)[0]):
            size, = struct.unpack_from("<Q", value, at)
            out.append(value[at + 8:at + 8 + size])
            at += 8 + size
        return out

    def write(self, path, **replaced):
        """With values replaced (dots of a key written as __); None leaves one out."""
        values = dict(self.values)
        for name, value in replaced.items():
            key = name.replace("__", ".")
            values.pop(key, None)
            if value is not None:
                values[key] = value
        head = self.data[:8] + struct.pack("<QQ", self.num_tensors, len(values))
        head += b"".join(text(key) + value for key, value in values.items())
        head += self.data[self.tensors_begin:self.tensors_end]
        head += b"\0" * (-len(head) % self.alignment)
        begin = -(-self.tensors_end // self.alignment) * self.alignment
        pathlib.Path(path).write_bytes(head + self.data[begin:])
        return str(path)


def strings(values):
    return struct.pack("<IIQ", ARRAY, STRING, len(values)) + b"".join(text(value) for value in values)

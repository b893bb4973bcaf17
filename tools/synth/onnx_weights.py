# SPDX-License-Identifier: Apache-2.0
"""The named tensors of an ONNX file, read from its protobuf without the onnx package."""
import math

import numpy as np

GRAPH, INITIALIZER = 7, 5  # fields of ModelProto and GraphProto
DIMS, DATA_TYPE, FLOATS, INTS, NAME, RAW = 1, 2, 4, 5, 8, 9  # fields of TensorProto
TYPES = {1: "<f4", 2: "u1", 3: "i1", 7: "<i8"}


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def _fields(data):
    """Yields (field, value): an int for a varint, bytes for everything else."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(kind)
            if size is None:
                size, at = _varint(data, at)
            value = data[at:at + size]
            at += size
        yield key >> 3, value


def _ints(value):
    """A repeated number, packed or alone."""
    if isinstance(value, int):
        return [value]
    found, at = [], 0
    while at < len(value):
        number, at = _varint(value, at)
        found.append(number)
    return found


def _tensor(data):
    dims, ints, name, kind, raw, floats = [], [], "", 0, b"", b""
    for field, value in _fields(data):
        if field == DIMS:
            dims += _ints(value)
        elif field == DATA_TYPE:
            kind = value
        elif field == FLOATS:
            floats += value
        elif field == INTS:
            ints += _ints(value)
        elif field == NAME:
            name = bytes(value).decode()
        elif field == RAW:
            raw = value
    if raw and kind in TYPES:
        values = np.frombuffer(raw, TYPES[kind])
    else:
        values = np.frombuffer(floats, "<f4") if floats else np.array(ints)
    return name, values.reshape(dims) if dims and values.size == math.prod(dims) else values


def read(data):
    """{name: array} of all initializers."""
    found = {}
    for field, graph in _fields(memoryview(data)):
        if field != GRAPH:
            continue
        for inner, tensor in _fields(graph):
            if inner == INITIALIZER:
                name, values = _tensor(tensor)
                found[name] = values
    return found

"""The bytes of an ONNX file without its weights, so that a model of any size is read in little memory.

The file is scanned as protobuf (Protocol Buffers encoding; messages and fields of onnx.proto), without being copied: tensors keep
their shapes and types, and lose their values unless they are few. Weights in other files are never looked for. A file with more
nodes or fields than a limit is refused while it is scanned.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path

from archsim.base.errors import InputError
from archsim.base.files import LIMITS, named_file, opened

KEPT = 1 << 9  # bytes of values of a tensor that are kept: shapes, axes, scales
LIMIT = LIMITS["onnx"]
MOST_FIELDS = 16 * LIMIT.entries  # of all messages together
MOST_VALUES = {11: LIMIT.entries, 12: LIMIT.entries, 13: 2 * LIMIT.entries}  # inputs, outputs, descriptions of other values
MOST_LEFT = 32 << 20  # bytes of what is kept
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types
ONE_BYTE = 0x7F  # the largest varint of one byte
LONGEST_VARINT = 10  # bytes

# message -> field -> the message that it holds
WITHIN = {
    "model": {7: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {},
}
DROPPED = {
    "model": {6, 20}, "graph": {10, 14, 16}, "node": {6, 9, 10}, "attribute": {13}, "sparse": set(), "tensor": {12, 16},
}  # fmt: skip  # descriptions, metadata, training, sharding
VALUES = {4, 5, 6, 7, 9, 10, 11}  # fields of a tensor that hold its values


def slimmed(path: Path) -> bytes:
    """The file without the values of large tensors, descriptions and metadata. Raises MissingFile or InputError."""
    with opened(named_file(str(path))) as stream:
        if path.stat().st_size > LIMIT.size:
            raise InputError(str(path), f"is larger than {LIMIT.size} bytes, the most that a protobuf message holds")
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return WireScan(data, str(path)).model()


class WireScan:
    """A scan of one file."""

    def __init__(self, data: mmap.mmap | bytes, path: str) -> None:
        self.data, self.path = data, path
        self.fields = self.nodes = self.left = 0
        self.values = dict.fromkeys(MOST_VALUES, 0)

    def model(self) -> bytes:
        """The whole message."""
        kept = self._message("model", 0, len(self.data), 0)
        return bytes(kept)

    def _message(self, kind: str, start: int, end: int, depth: int) -> bytearray:
        if depth > LIMIT.depth:
            raise self._error(start, f"is nested more than {LIMIT.depth} deep")
        kept, within, dropped = bytearray(), WITHIN[kind], DROPPED[kind]
        for field, wire, at, begin, stop in self._fields(start, end):
            if field in dropped or (kind == "tensor" and field in VALUES and stop - begin > KEPT):
                continue
            if kind == "graph" and field in MOST_VALUES:
                self.values[field] += 1
                if self.values[field] > MOST_VALUES[field]:
                    what = "inputs, or outputs" if field in (11, 12) else "described values"
                    raise InputError(self.path, f"has more than {MOST_VALUES[field]} {what}; refused")
            if wire == BYTES and field in within:
                if within[field] == "node":
                    self.nodes += 1
                    if self.nodes > LIMIT.entries:
                        raise InputError(self.path, f"has more than {LIMIT.entries} nodes; refused")
                inner = self._message(within[field], begin, stop, depth + 1)
                kept += varint(field << 3 | BYTES) + varint(len(inner)) + inner
            else:
                kept += self.data[at:stop]
                self.left += stop - at
                if self.left > MOST_LEFT:
                    raise InputError(self.path, f"has more than {MOST_LEFT} bytes beside its weights; refused")
        return kept

    def _fields(self, start: int, end: int) -> Iterator[tuple[int, int, int, int, int]]:
        """Field number, wire type, and where the field, its value and the next field begin."""
        data, at = self.data, start
        while at < end:
            self.fields += 1
            if self.fields > MOST_FIELDS:
                raise InputError(self.path, f"has more than {MOST_FIELDS} fields; refused")
            first = at
            tag, at = data[at], at + 1
            if tag > ONE_BYTE:
                tag, at = self._number(first, end)
            field, wire = tag >> 3, tag & 7
            if wire == BYTES:
                length, begin = data[at] if at < end else ONE_BYTE + 1, at + 1
                if length > ONE_BYTE:
                    length, begin = self._number(at, end)
                stop = begin + length
            elif wire == VARINT:
                begin, stop = at, at + 1
                if stop > end or data[at] > ONE_BYTE:
                    _, stop = self._number(at, end)
            elif wire in (FIXED64, FIXED32):
                begin, stop = at, at + (8 if wire == FIXED64 else 4)
            else:
                raise self._error(first, "is no ONNX model: no field of a protobuf message begins there")
            if stop > end or not field:
                raise self._error(first, "is no ONNX model, or is cut off")
            yield field, wire, first, begin, stop
            at = stop
        del data

    def _number(self, at: int, end: int) -> tuple[int, int]:
        """A varint, and where it ends."""
        value = shift = 0
        for place in range(at, min(end, at + LONGEST_VARINT)):
            byte = self.data[place]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, place + 1
            shift += 7
        raise self._error(at, "is no ONNX model, or is cut off")

    def _error(self, at: int, problem: str) -> InputError:
        return InputError(self.path, f"byte {at}: {problem}")


def varint(value: int) -> bytes:
    """A whole number as protobuf writes it."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)

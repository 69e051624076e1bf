"""How large a file of each kind may be: one table, which every loader reads. SECURITY.md promises it."""

from __future__ import annotations

from dataclasses import dataclass

KIB, MIB = 1 << 10, 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class InputLimit:
    """The most that one file may hold.

    size: bytes, after inflating
    depth: tables and lists inside each other
    entries: what the file is a list of: keys, ops, rows, parts
    """

    size: int
    depth: int
    entries: int


LIMITS = {
    **dict.fromkeys(("device", "node", "silicon"), InputLimit(size=256 * KIB, depth=8, entries=5_000)),
    "kernels": InputLimit(size=MIB, depth=1, entries=10_000),
    "stack": InputLimit(size=256 * KIB, depth=12, entries=10_000),
    "calibration": InputLimit(size=MIB, depth=8, entries=50_000),
    "study": InputLimit(size=64 * KIB, depth=8, entries=5_000),
    "sources": InputLimit(size=MIB, depth=8, entries=50_000),
    "network": InputLimit(size=64 * MIB, depth=32, entries=250_000),
    "config": InputLimit(size=4 * MIB, depth=32, entries=2_000),
    "prototxt": InputLimit(size=4 * MIB, depth=16, entries=200_000),
    "onnx": InputLimit(size=(1 << 31) - 1, depth=32, entries=30_000),  # weights are not read; entries are nodes
    "chakra": InputLimit(size=64 * MIB, depth=32, entries=30_000),
    "profile": InputLimit(size=16 << 30, depth=32, entries=50_000_000),  # read event by event; entries are events
    "measurements": InputLimit(size=64 * MIB, depth=1, entries=1_000_000),
    "prices": InputLimit(size=MIB, depth=1, entries=10_000),
    "shares": InputLimit(size=MIB, depth=1, entries=4_000),
    "arrivals": InputLimit(size=256 * MIB, depth=1, entries=10_000_000),
    "upload": InputLimit(size=256 * MIB, depth=1, entries=8),  # entries are files at once, each within the limits of its kind
    "sweep": InputLimit(size=1 << 50, depth=32, entries=1_000),  # entries of what it says of itself; points are read one by one
}
MOST_DOTS = 16  # in a key of TOML, whose parser takes seconds for thousands

"""Passes over tensors: loops that load, compute and store a register of values, or one value, at a time."""

from __future__ import annotations

from archsim.cycle.core.operation import CoreLoop
from archsim.cycle.core.writer import APART, LoopWriter

UNROLLED = 4  # registers of the result that an iteration of a vectorised loop makes
MOST = 64  # operations of one result that are written out
KINDS = ("max", "mul", "add")  # of these, one after the other


def elements(width: int, loads: int, operations: int, stores: int, footprint: int, level: int) -> CoreLoop:
    """A vectorised loop: for each register of the result some loads, operations on them, and stores.

    footprint: bytes of all tensors; level: where they lie, 1 for the L1 to 4 for memory
    """
    w = LoopWriter("vectorised loop", width)
    size = width // 8
    each = footprint // max(1, loads + stores)
    pointers = [w.stream(f"t{at}", UNROLLED * size, each, level, start=at * APART) for at in range(max(loads, stores))]
    for one in range(UNROLLED):
        values = [w.load(f"t{at}", one * size) for at in range(loads)]
        last = values[0] if values else None
        for at in range(min(operations, MOST)):
            other = values[at + 1] if at + 1 < len(values) else None
            last = w.op(KINDS[at % len(KINDS)], last, other)
        for at in range(stores):
            w.store(f"t{at}", one * size, last)
    w.step(pointers)
    return w.loop()

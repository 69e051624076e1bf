"""Passes over tensors: loops that load, compute and store a register of values, or one value, at a time."""

from __future__ import annotations

from archsim.cycle.core.operation import CoreLoop
from archsim.cycle.core.writer import APART, LoopWriter

UNROLLED = 4  # registers of the result that an iteration of a vectorised loop makes
MOST = 64  # operations of one result that are written out


def elements(width: int, loads: int, operations: int, stores: int, footprint: int, level: int, element: int = 32,
             kinds: tuple[str, ...] = ("max", "mul", "add")) -> CoreLoop:  # fmt: skip
    """A vectorised loop: for each register of the result some loads, operations on them, and stores.

    footprint: bytes of all tensors; level: where they lie, 1 for the L1 to 4 for memory
    """
    w = LoopWriter("vectorised loop", width, element)
    size = width // 8
    pointers = []
    for at in range(max(loads, stores)):
        name = f"t{at}"
        pointers.append(w.stream(name, UNROLLED * size, footprint // max(1, loads + stores), level, start=at * APART))
    for one in range(UNROLLED):
        values = [w.load(f"t{at}", one * size) for at in range(loads)]
        last = values[0] if values else None
        for at in range(min(operations, MOST)):
            other = values[at + 1] if at + 1 < len(values) else None
            last = w.op(kinds[at % len(kinds)], last, other)
        for at in range(stores):
            w.store(f"t{at}", one * size, last)
    w.step(pointers)
    return w.loop()

"""Copies of an operand into panels before a product (as its rows lie, transposed, or value by value), and passes over tensors."""

from __future__ import annotations

from math import log2

from archsim.cycle.core.operation import APART, CoreLoop, LoopWriter

ACROSS = 128  # bit within which a shuffle stays
SCALARS = 4  # values that an iteration of a scalar copy takes
UNROLLED = 4  # registers of the result that an iteration of a vectorised loop makes
MOST = 64  # operations of one result that are written out
KINDS = ("max", "mul", "add")  # of these, one after the other


def rows_copied(width: int, registers: int, pitch: int, footprint: int, level: int) -> CoreLoop:
    """Some registers of each row of a matrix, row after row, into a panel.

    pitch: bytes from a row to the next; footprint: of the matrix [B]; level: where it lies
    """
    w = LoopWriter("copy of rows into a panel", width)
    w.stream("matrix", pitch, footprint, level)
    w.stream("panel", registers * width // 8, 1 << 17, 2)
    for at in range(registers):
        w.store("panel", at * width // 8, w.load("matrix", at * width // 8))
    w.step(("matrix", "panel"))
    return w.loop()


def transposed(width: int, pitch: int, footprint: int, level: int) -> CoreLoop:
    """A square of as many rows as a register has values, transposed by shuffles: lanes log2(lanes) of them.

    The last exchanges lie across 128 bit.
    """
    w = LoopWriter("transposition into a panel", width)
    lanes, size = width // w.element, width // 8
    rows = [w.load(w.stream(f"row{row}", size, footprint // lanes, level, start=row * pitch % 4096), 0) for row in range(lanes)]
    stages = int(log2(lanes))
    within = int(log2(ACROSS // w.element))
    for stage in range(stages):
        kind = "shuffle" if stage < within else "cross"
        rows = [w.op(kind, rows[at], rows[at ^ (1 << stage)]) for at in range(lanes)]
    w.stream("panel", lanes * size, 1 << 17, 2)
    for at, row in enumerate(rows):
        w.store("panel", at * size, row)
    w.step(("row0", "panel"))
    return w.loop()


def value_by_value(stride: int, footprint: int, level: int) -> CoreLoop:
    """A load and a store for each value, from `stride` bytes further each."""
    w = LoopWriter("copy value by value", 32)
    w.stream("matrix", SCALARS * stride, footprint, level)
    w.stream("panel", SCALARS * 4, 1 << 17, 2)
    for at in range(SCALARS):
        w.store("panel", 4 * at, w.load("matrix", at * stride))
    w.step(("matrix", "panel"))
    return w.loop()


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

"""The inner block of a matrix product: rank-1 updates of rows x columns values that stay in registers."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from archsim.base.errors import ArgumentError
from archsim.cycle.core.operation import CoreLoop
from archsim.cycle.core.writer import LoopWriter, Value

BROADCASTS = ("register", "embedded", "element")
PRODUCTS = ("fma", "muladd", "dot")
APART = 1088  # bytes between the places of streams in their pages, so that they begin in different sets of a cache
SEGMENT = 128  # bit: an instruction that multiplies by one element takes it from 128 bit of a register


def gemm_block(
    rows: int, columns: int, width: int, element: int = 32, unroll: int = 1, broadcast: str = "register",
    a_level: int | None = 2, b_level: int | None = 1, *, registers: int | None = None, depth: int = 256, product: str = "fma",
    isa: str = "",
) -> CoreLoop:  # fmt: skip
    """Steps of the product of a packed panel A [depth, rows] and a packed panel B [depth, columns] into a block of C.

    C[r, c] += A[k, r] * B[k, c]        for all r and c, `unroll` steps k in an iteration (Van Zee and van de Geijn 2015)

    width: of vectors [bit]; element: of an operand [bit]
    broadcast: how a value of A meets a vector of B: `register` (loaded into all lanes of a register), `embedded` (memory operand
    of each multiply-add), `element` (lane of a register, as ARM has it)
    a_level, b_level: where the panels lie, 1 for the L1 to 4 for memory; None: as their footprint has it
    registers: vector registers that the program can name; 32 of 512 bit or for `element`, else 16. Accumulators that do not fit
    are loaded and stored in each step (spills)
    depth: steps of a pass
    product: `fma`, `muladd` (a multiplication and an addition), or `dot` (32 bit of products of 8 or 16 bit added to each lane)

    Raises ArgumentError for a block that is none.

    >>> loop = gemm_block(6, 16, 256)
    >>> sum(one.kind == "fma" for one in loop.operations), loop.bytes_loaded, loop.flop
    (12, 88, 192.0)
    """
    _check(rows, columns, width, element, unroll, broadcast, product, depth)
    lane = 32 if product == "dot" else element  # bit of an accumulator, and of what is multiplied at once
    taken = lane // element  # values of the depth in one step
    vectors = ceil(columns * lane / width)
    named = registers if registers is not None else 32 if width >= 512 or broadcast == "element" else 16
    operands = {"register": 1, "embedded": 0, "element": ceil(rows * lane / SEGMENT)}[broadcast] + (product == "muladd")
    held = vectors + operands + 1 <= named  # whether the vectors of B stay in registers during a step
    kept = max(0, min(rows * vectors, named - operands - (vectors if held else 1)))
    spilled = rows * vectors > kept
    kept = max(0, kept - 1) if spilled else kept  # one register is for accumulators that come and go
    w = LoopWriter(f"gemm {rows}x{columns}", width, lane)
    trips = max(1, depth // (unroll * taken))
    for name, stride, level in (("A", rows * lane // 8 * unroll, a_level), ("B", vectors * width // 8 * unroll, b_level)):
        w.stream(name, stride, stride * trips, level, start=APART * (name == "B"))
    if spilled:
        w.stream("C", 0, (rows * vectors - kept) * width // 8, 1, start=2 * APART)
    results: list[Value] = [f"c{at}" for at in range(rows * vectors)]
    for step in range(unroll):
        results = _step(w, step, rows, vectors, broadcast, product, kept, held, results)
    for at, value in enumerate(results[:kept]):
        assert isinstance(value, int)
        w.keep(f"c{at}", value)
    w.step(("A", "B"))
    flop = 2.0 * rows * vectors * (width // lane) * taken * unroll
    return replace(w.loop(flop=flop, isa=isa), trips=trips)


def _step(w: LoopWriter, step: int, rows: int, vectors: int, broadcast: str, product: str, kept: int, held: bool,
          before: list[Value]) -> list[Value]:  # fmt: skip
    """The rank-1 update of one step: the accumulators after it."""
    size, one, segment = w.width // 8, w.element // 8, SEGMENT // w.element
    b: list[Value] = [w.load("B", (step * vectors + vector) * size) for vector in range(vectors)] if held else [None] * vectors
    parts = range(ceil(rows / segment)) if broadcast == "element" else ()
    lanes = [w.load("A", step * rows * one + part * SEGMENT // 8, width=min(w.width, SEGMENT)) for part in parts]
    results: list[Value] = []
    for row in range(rows):
        a: Value = lanes[row // segment] if lanes else None
        if broadcast == "register":
            a = w.load("A", (step * rows + row) * one, kind="broadcast")
        for vector in range(vectors):
            if broadcast == "embedded":
                a = w.load("A", (step * rows + row) * one, kind="broadcast", folded=True)
            elif not held:
                b[vector] = w.load("B", (step * vectors + vector) * size, folded=True)
            at = row * vectors + vector
            results.append(_update(w, at - kept, b[vector], a, before[at], product))
    return results


def _update(w: LoopWriter, spilled: int, b: Value, a: Value, c: Value, product: str) -> int:
    """One accumulator's multiply-add; one without a register (`spilled` is its place) is loaded before and stored behind."""
    size = w.width // 8
    if spilled >= 0:
        c = w.load("C", spilled * size)
    found = w.op("add", c, w.op("mul", a, b)) if product == "muladd" else w.op(product, b, a, c, chained=True)
    if spilled >= 0:
        w.store("C", spilled * size, found)
    return found


def _check(rows: int, columns: int, width: int, element: int, unroll: int, broadcast: str, product: str, depth: int) -> None:
    for name, value, most in (("rows", rows, 256), ("columns", columns, 1024), ("unroll", unroll, 64), ("depth", depth, 1 << 24)):
        if not 1 <= value <= most:
            raise ArgumentError(f"gemm block: {name} = {value} is not from 1 to {most}")
    if width < 64 or width & (width - 1) or width > 2048:
        raise ArgumentError(f"gemm block: width = {width} is no power of two from 64 to 2048 bit")
    if broadcast not in BROADCASTS:
        raise ArgumentError(f"gemm block: broadcast = {broadcast!r} is not one of {', '.join(BROADCASTS)}")
    if product not in PRODUCTS:
        raise ArgumentError(f"gemm block: product = {product!r} is not one of {', '.join(PRODUCTS)}")
    fitting = (8, 16) if product == "dot" else (16, 32, 64)
    if element not in fitting:
        raise ArgumentError(f"gemm block: element = {element} is not one of {', '.join(map(str, fitting))} bit ({product})")

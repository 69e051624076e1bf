"""Loops over single values, as a compiler leaves them that does not vectorise: steps, bounds tests, windows, divisions, gathers.

Their instructions are those that GCC makes of the C++ of the libraries at -O2; one iteration takes one value, or one window.
"""

from __future__ import annotations

from math import ceil

from archsim.cycle.core.operation import APART, CoreLoop, LoopWriter

VALUE = 32  # bit
WRITTEN_OUT = 64  # values of a window that are written out; longer ones are a loop of their own
SIDE_BY_SIDE = 16  # operations of an iteration that wait for nothing
EITHER = 0.5  # share of values of either sign
PAGES = 4096 + 64  # bytes from one gathered value to the next


def step(footprint: int, level: int, trips: int = 0) -> CoreLoop:
    """A load, an operation and a store for each value; `trips` of the innermost loop, 0 where it is as long as the tensor.

    footprint: of the tensors [B]; level: where they lie, 1 for the L1 to 4 for memory
    """
    w = _writer("step of a scalar loop", footprint, level)
    w.store("y", 0, w.op("max", w.load("x", 0), None))
    w.step(("x",), trips)
    return w.loop(flop=1.0)


def further() -> CoreLoop:
    """Operations of a step beyond its own: what adds them to it is the slots that they take, since they wait for nothing new."""
    w = LoopWriter("further operations of a scalar loop", VALUE)
    for _ in range(SIDE_BY_SIDE):
        w.op("int")
    return w.loop()


def unfold(footprint: int, level: int, trips: int = 0) -> CoreLoop:
    """im2col: each value of a column of the matrix is one of the image if it lies within it, else zero.

    Its index is computed and tested for each value; the test goes the same way but at the edges. trips: columns of the result
    """
    w = _writer("im2col", footprint, level)
    w.keep("at_y", w.op("int", "at_y"))
    w.op("zero")
    w.branch("column", taken=False)
    index = w.op("address", "column")
    index = w.op("int", index)
    w.store("y", 0, w.load("x", 0, address=index, indexed=True))
    w.keep("column", w.op("int", "column"))
    w.step((), trips)
    return w.loop()


def largest(area: int, footprint: int, level: int, trips: int = 0) -> CoreLoop:
    """Max pooling: each value of a window is compared with the largest so far, which is in memory, as its position is.

    area: values of a window; trips: of a row of it

    In windows of values without order, half of them the zeros of a ReLU, the k-th is larger than all before with
    probability p = (1 - 2^-k) / k, the first one always. A predictor that knows k mispredicts sum min(p, 1 - p) of the
    branches; of one value, half. The width of the image is loaded again for each value, since the position that was stored
    might lie there.
    """
    w = _writer("max pooling", footprint, level)
    values = int(stored_every(area))
    larger = [(1.0 - 2.0**-k) / k for k in range(2, area + 1)] or [EITHER]
    missed = sum(min(p, 1.0 - p) for p in larger) / area
    w.stream("member", 0, 64, 1)
    w.stream("best", 0, 64, 1, start=64)
    for at in range(values):
        width = w.load("member", 0, vector=False)
        row = w.op("multiply", width)
        index = w.op("int", w.op("int", row))
        value = w.load("x", 4 * at, address=index, indexed=True)
        w.load("best", 0, folded=True)
        compared = w.op("max", value, None)
        w.branch(compared, taken=at > 0, missed=missed)
        if at == 0:
            w.store("best", 0, value)
            w.store("best", 4, index, vector=False, width=32)
        w.step(("x",) if at + 1 == values else (), trips)
    return w.loop(flop=float(values))


def stored_every(area: int) -> float:
    """Values that are compared for one that is stored: area / (1 + sum of p of the others), a whole number.

    >>> stored_every(9), stored_every(4)
    (3.0, 2.0)
    """
    stored = 1.0 + sum((1.0 - 2.0**-k) / k for k in range(2, area + 1))
    return float(max(1, round(area / stored)))


def mean(area: int, footprint: int, level: int, trips: int = 0) -> CoreLoop:
    """Average pooling: a chain of additions over a window, each of which is stored, and a division; an iteration is a window.

    Of a window of more than `WRITTEN_OUT` values an iteration takes one value.
    """
    w = _writer("average pooling", footprint, level)
    w.stream("sum", 0, 64, 1)
    whole = 1 < area <= WRITTEN_OUT
    total: int | str = "total"
    for at in range(area if whole else 1):
        w.load("x", 4 * at, folded=True)
        total = w.op("add", None if whole and at == 0 else total)
        w.store("sum", 0, total)
        last = not whole or at + 1 == area
        w.step(("x",) if last else (), trips)
        if whole and trips and (at + 1) % trips == 0:  # the next row of the window
            row = w.op("multiply", w.load("sum", 8, vector=False))
            w.op("address", w.op("address", row))
            w.branch(w.op("int"))
    if whole:
        w.store("y", 0, w.op("divide", total, w.op("convert", None)))
    elif isinstance(total, int):
        w.keep("total", total)
    return w.loop(flop=float(area if whole else 1))


def divided() -> CoreLoop:
    """An integer division for each value: it keeps the divider as long as one of fp64 does."""
    w = LoopWriter("integer division", 64, 64)
    w.op("int", w.op("divide", w.op("int", "count"), vector=False))
    w.step(())
    return w.loop()


def gathered(footprint: int, level: int) -> CoreLoop:
    """A value that is fetched by an index that was loaded: each lies in another line."""
    w = LoopWriter("gathered value", VALUE)
    w.stream("index", 8, footprint, 1)
    w.stream("x", PAGES, footprint, level)
    found = w.load("index", 0, vector=False, width=64)
    place = w.op("multiply", w.op("int", found))
    w.keep("sum", w.op("add", w.load("x", 0, address=place, indexed=True), "sum"))
    w.step(("index",))
    return w.loop(flop=1.0)


def _writer(name: str, footprint: int, level: int) -> LoopWriter:
    """A loop over a tensor `x` and a result `y`, value after value."""
    w = LoopWriter(name, VALUE)
    w.stream("x", 4, ceil(footprint / 2), level)
    w.stream("y", 4, ceil(footprint / 2), level, start=APART)
    return w

"""Loops over streams, by name: element-wise functions, inner products, exponentials, pooling, sums, chains of pointers."""

from __future__ import annotations

from archsim.base.errors import ArgumentError
from archsim.cycle.core.operation import Access, CoreLoop, MemoryStream, Operation
from archsim.cycle.core.writer import APART, LoopWriter, Value

TRIPS = 1024
# Streams that each function reads, the operation on a value of each (none: it is only moved), and FLOP for a value. A result of a
# function that writes nothing is kept: the largest value, as a loop that only reads has it.
STREAMED: dict[str, tuple[int, str, float]] = {
    "copy": (1, "", 0.0), "set": (0, "", 0.0), "read": (1, "max", 1.0), "scale": (1, "mul", 1.0),
    "scale and shift": (1, "fma", 2.0), "relu": (1, "max", 1.0), "add": (2, "add", 1.0), "triad": (2, "fma", 2.0),
    "divide": (2, "divide", 1.0), "root": (1, "root", 1.0),
}  # fmt: skip
LOG_STEP = 128  # bit: shuffles of a sum beyond lie across halves
WIDE = 512  # bit from which one instruction scales by a power of two
REDUCED = 3  # operations of an exponential before its polynomial: multiplication, rounding, remainder


def streamed(name: str, width: int, element: int = 32, unroll: int = 4, level: int | None = 1, fused: bool = True) -> CoreLoop:
    """One of `STREAMED` over vectors that follow each other, `unroll` of them in an iteration.

    width: of vectors [bit]; element: of a value [bit]; level: where the data lie, 1 for the L1 to 4 for memory
    fused: whether there are fused multiply-adds; without, it multiplies and adds

    Raises ArgumentError for another name.

    >>> triad = streamed("triad", 256)
    >>> triad.bytes_loaded, triad.bytes_stored, triad.flop
    (256, 128, 64.0)
    """
    if name not in STREAMED:
        raise ArgumentError(f"loop {name!r} is not one of {', '.join(STREAMED)}")
    reads, kind, flop = STREAMED[name]
    w = LoopWriter(name, width, element)
    size = width // 8
    writes = name != "read"
    pointers = [stream_at(w, at, size * unroll, level) for at in range(reads + writes)]
    for at in range(unroll):
        last: Value = w.load("x", at * size, folded=reads == 1 and kind not in ("", "fma")) if reads else None
        if reads == 2:
            w.load("y", at * size, folded=True)
        last = _applied(w, kind, last, at, fused, writes)
        if writes:
            w.store(pointers[-1], at * size, last)
    w.step(pointers)
    return w.loop(flop=flop * unroll * width / element, trips=TRIPS)


def _applied(w: LoopWriter, kind: str, value: Value, at: int, fused: bool, writes: bool) -> Value:
    """The operation of a streamed function on a value; an operand from memory is added where it is assembled."""
    if not kind:
        return value
    if kind == "fma" and not fused:
        return w.op("add", w.op("mul", value), None)
    if not writes:
        found = w.op(kind, f"s{at}", value)
        w.keep(f"s{at}", found)
        return found
    return w.op(kind, value, None)


def dot_product(width: int, element: int = 32, accumulators: int = 4, level: int | None = 1, fused: bool = True) -> CoreLoop:
    """An inner product with some accumulators, a vector for each in an iteration; its chain is that of one accumulator.

    >>> dot_product(256, accumulators=2).flop
    32.0
    """
    w = LoopWriter("dot", width, element)
    size = width // 8
    pointers = [stream_at(w, at, size * accumulators, level) for at in range(2)]
    for at in range(accumulators):
        x = w.load("x", at * size)
        w.load("y", at * size, folded=True)
        w.keep(f"d{at}", w.multiply_add(x, None, f"d{at}", fused, chained=True))
    w.step(pointers)
    return w.loop(flop=2.0 * accumulators * width / element, trips=TRIPS)


def exponential(width: int, element: int = 32, unroll: int = 1, degree: int = 6, level: int | None = 1,
                fused: bool = True) -> CoreLoop:  # fmt: skip
    """exp(x) of a vector: the nearest power of two, and a polynomial of what is left in Horner's form.

    n = round(x / ln 2);  r = x - n ln 2;  exp(x) = 2^n p(r)        (Cody and Waite 1980, chapter 6)

    The power is put into the exponent of p(r) by an integer shift and addition, at 512 bit by one instruction.

    >>> exponential(256, degree=5).flop / 8  # 1 + 1 + 2 + 5 x 2, and nothing for the exponent
    13.0
    """
    w = LoopWriter("exp", width, element)
    size = width // 8
    pointers = [stream_at(w, at, size * unroll, level) for at in range(2)]
    for at in range(unroll):
        w.store("y", at * size, exponential_of(w, w.load("x", at * size), degree, fused))
    w.step(pointers)
    return w.loop(flop=(REDUCED + 2.0 * degree) * unroll * width / element, trips=TRIPS)


def exponential_of(w: LoopWriter, x: Value, degree: int, fused: bool) -> int:
    """exp of a vector that is in a register."""
    n = w.op("round", w.op("mul", x))
    r = w.multiply_add(n, None, x, fused, chained=True)
    p: Value = w.op("mov", None)
    for _ in range(degree):
        p = w.multiply_add(p, r, None, fused)
    return w.op("scale", p, n) if w.width >= WIDE else w.op("vint", p, w.op("shift", w.op("convert", n)))


def max_pool(width: int, element: int = 32, level: int | None = 1) -> CoreLoop:
    """2 x 2 maxima at a stride of 2: of two rows, then of neighbours, which shuffles separate."""
    w = LoopWriter("max pool", width, element)
    size = width // 8
    for name, stride in (("x", 2 * size), ("row", 2 * size), ("y", size)):
        w.stream(name, stride, stride * TRIPS, level, start=APART * len(name))
    rows = []
    for at in range(2):
        x = w.load("x", at * size)
        w.load("row", at * size, folded=True)
        rows.append(w.op("max", x))
    even, odd = (w.op("shuffle", *rows) for _ in range(2))
    found = w.op("max", even, odd)
    w.store("y", 0, w.op("cross", found) if width > LOG_STEP else found)
    w.step(("x", "row", "y"))
    return w.loop(flop=3.0 * width / element, trips=TRIPS)


def row_sum(width: int, element: int = 32, level: int | None = 1) -> CoreLoop:
    """The sum of each vector, by halves: log2(lanes) shuffles and additions, and a store of one value."""
    w = LoopWriter("row sum", width, element)
    lanes = width // element
    for name, stride in (("x", width // 8), ("y", element // 8)):
        w.stream(name, stride, stride * TRIPS, level, start=APART * (name == "y"))
    found = w.load("x", 0)
    left = width
    while left > element:
        other = w.op("cross" if left > LOG_STEP else "shuffle", found, width=left)
        left //= 2
        found = w.op("add", found, other, width=left)
    w.store("y", 0, found, width=element)
    w.step(("x", "y"))
    return w.loop(flop=float(lanes + 1), trips=TRIPS)


def chase(level: int | None = 1, loads: int = 2, footprint: int = 16384) -> CoreLoop:
    """Loads each of whose addresses is what the one before has loaded: the latency of a level."""
    found = [Operation(kind="load", vector=False, element=64, address=((at - 1, 0),) if at else ((loads - 1, 1),), text="load",
                       memory=Access(stream="m", offset=0, size=8)) for at in range(loads)]  # fmt: skip
    found.append(Operation(kind="int", vector=False, element=64, sources=((loads, 1),), text="subtract"))
    found.append(Operation(kind="branch", vector=False, element=64, sources=((loads, 0),), writes=False, fused=True,
                           text="branch"))  # fmt: skip
    stream = MemoryStream(name="m", stride=0, footprint=footprint, level=level)
    return CoreLoop(name="chase", operations=tuple(found), streams=(stream,), trips=TRIPS)


def stream_at(w: LoopWriter, at: int, stride: int, level: int | None) -> str:
    """The stream of that place among those of a loop, x, y and z."""
    return w.stream("xyz"[at], stride, stride * TRIPS, level, start=APART * at)

"""Vectorised loops over streams, by name: element-wise functions, sums, exponentials and what they make, chains of pointers."""

from __future__ import annotations

from archsim.base.errors import ArgumentError
from archsim.cycle.core.operation import APART, Access, CoreLoop, LoopWriter, MemoryStream, Operation, Value

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


def chase(level: int | None = 1, loads: int = 2, footprint: int = 16384, chains: int = 1) -> CoreLoop:
    """Loads each of whose addresses is what the one before has loaded: the latency of a level; of some chains side by side, how
    many misses it has on their way at once."""
    count = loads * chains
    found = [Operation(kind="load", vector=False, element=64, text="load",
                       address=((at - chains, 0),) if at >= chains else ((count - chains + at, 1),),
                       memory=Access(stream=f"m{at % chains}", offset=0, size=8)) for at in range(count)]  # fmt: skip
    found.append(Operation(kind="int", vector=False, element=64, sources=((count, 1),), text="subtract"))
    found.append(Operation(kind="branch", vector=False, element=64, sources=((count, 0),), writes=False, fused=True,
                           text="branch"))  # fmt: skip
    streams = [MemoryStream(name=f"m{chain}", stride=0, footprint=footprint, level=level) for chain in range(chains)]
    return CoreLoop(name="chase", operations=tuple(found), streams=tuple(streams), trips=TRIPS)


def stream_at(w: LoopWriter, at: int, stride: int, level: int | None) -> str:
    """The stream of that place among those of a loop, x, y and z."""
    return w.stream("xyz"[at], stride, stride * TRIPS, level, start=APART * at)


# ------------------------------------------------------------------------------------------------ exponentials and sums

DEGREE = 6  # of the polynomials, for all digits of fp32
CHANNELS = 2  # of a window of channels: the one that enters it, and the one that leaves it


def sigmoid(width: int, element: int = 32, level: int | None = 1, fused: bool = True) -> CoreLoop:
    """1 / (1 + exp(-x)) of a vector: an exponential, an addition, a division.

    >>> sigmoid(256).operations[-3].kind
    'int'
    """
    w = _writer("sigmoid", width, element, level)
    below = w.op("add", exponential_of(w, w.load("x", 0), DEGREE, fused))
    w.store("y", 0, w.op("divide", None, below))
    return _ended(w, 2.0 * DEGREE + 5.0)


def hyperbolic(width: int, element: int = 32, level: int | None = 1, fused: bool = True) -> CoreLoop:
    """tanh(x) = 1 - 2 / (exp(2x) + 1) of a vector."""
    w = _writer("tanh", width, element, level)
    below = w.op("add", exponential_of(w, w.op("add", w.load("x", 0)), DEGREE, fused))
    w.store("y", 0, w.op("add", w.op("divide", None, below)))
    return _ended(w, 2.0 * DEGREE + 7.0)


def softmax(width: int, element: int = 32, level: int | None = 1, fused: bool = True) -> CoreLoop:
    """The three passes over a row, a vector of it in each: the largest value; exp(x - largest) and its sum; the division.

    A sum of one register is a chain of additions; the division is a multiplication by the reciprocal of the sum.
    """
    w = _writer("softmax", width, element, level)
    x = w.load("x", 0)
    w.keep("largest", w.op("max", x, "largest"))
    raised = exponential_of(w, w.op("add", w.load("x", 0)), DEGREE, fused)
    w.keep("sum", w.op("add", raised, "sum"))
    w.store("y", 0, raised)
    w.store("y", 0, w.op("mul", w.load("z", 0)))
    return _ended(w, 2.0 * DEGREE + 6.0)


def local_normalisation(width: int, element: int = 32, level: int | None = 1, fused: bool = True) -> CoreLoop:
    """x (k + a sum x^2)^-b across channels: a running sum that a square enters and one leaves; the power as exp(-b log s).

    The logarithm takes an exponent by shift and conversion, and a polynomial of the fraction.
    """
    w = _writer("local normalisation", width, element, level)
    running: Value = "sum"
    for at in range(CHANNELS):
        each = w.load("x", at * width // 8)
        running = w.op("add", w.op("mul", each, each), running)
    w.keep("sum", running if isinstance(running, int) else 0)
    scale = w.multiply_add(running, None, None, fused)
    exponent = w.op("convert", w.op("shift", scale))
    fraction = w.op("logic", scale)
    p: Value = w.op("mov", None)
    for _ in range(DEGREE):
        p = w.multiply_add(p, fraction, None, fused)
    log = w.multiply_add(exponent, None, p, fused)
    power = exponential_of(w, w.op("mul", log), DEGREE, fused)
    w.store("y", 0, w.op("mul", power, w.load("x", 0)))
    return _ended(w, 4.0 * DEGREE + 14.0)


def moments(width: int, element: int = 32, level: int | None = 1, fused: bool = True) -> CoreLoop:
    """The sum and the sum of squares of a channel, each a chain of one register: what a batch normalisation needs first."""
    w = _writer("moments", width, element, level)
    x = w.load("x", 0)
    w.keep("sum", w.op("add", x, "sum"))
    w.keep("squares", w.multiply_add(x, x, "squares", fused, chained=True))
    return _ended(w, 3.0)


def _writer(name: str, width: int, element: int, level: int | None) -> LoopWriter:
    w = LoopWriter(name, width, element)
    for at in range(3):
        stream_at(w, at, width // 8, level)
    return w


def _ended(w: LoopWriter, flop: float) -> CoreLoop:
    """The loop, with its FLOP for a value."""
    w.step(("x",))
    return w.loop(flop=flop * w.width / w.element, trips=TRIPS)

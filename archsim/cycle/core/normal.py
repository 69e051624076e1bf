"""Vectorised functions with exponentials and sums: sigmoid, tanh, softmax, local normalisation, and the moments of a batch."""

from __future__ import annotations

from archsim.cycle.core.loops import TRIPS, exponential_of, stream_at
from archsim.cycle.core.operation import CoreLoop
from archsim.cycle.core.writer import LoopWriter, Value

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

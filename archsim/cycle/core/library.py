"""Functions of the C library as one call for each value runs them: exp and pow of double precision, and what surrounds a call.

The arithmetic is that of the IBM Accurate Mathematical Library in glibc 2.2 to 2.27 (sysdeps/ieee754/dbl-64/e_exp.c,
e_pow.c), on the path that a usual argument takes: tables, error bounds and all, without fused multiply-adds. Branches of it
go the same way for each value; their comparisons are there.
"""

from __future__ import annotations

from archsim.cycle.core.operation import APART, CoreLoop, LoopWriter, Value

DOUBLE = 64  # bit
CALLS = 6  # taken branches of a call: into the linkage table, to a wrapper, from there the same way to the function, and back
TABLE = "table"  # stream of the tables, which stay in the L1
FRAME = "frame"  # stream of the stack frame
SAVED = 3  # registers that a function saves and restores
MODE = 3  # micro-operations that store the control register of the rounding mode
CHECKS_EXP, CHECKS_POW = 2, 6  # comparisons of the argument before the arithmetic


def called(name: str, level: int, footprint: int) -> CoreLoop:
    """exp, or pow, of each value of a vector of fp32: loaded, converted, called, converted, stored.

    level: where the values lie, 1 for the L1 to 4 for memory; footprint: of them [B]

    >>> len(called("exp", 1, 4096).operations) < len(called("pow", 1, 4096).operations)
    True
    """
    w = LoopWriter(f"{name} of the C library", DOUBLE, DOUBLE)
    w.stream("x", 4, footprint, level)
    w.stream("y", 4, footprint, level, start=APART)
    given = w.op("convert", w.load("x", 0, width=32))
    result = power(w, given) if name == "pow" else exponential_call(w, given)
    w.store("y", 0, w.op("convert", result), width=32)
    w.step(("x", "y"))
    return w.loop()


def exponential_call(w: LoopWriter, x: Value) -> int:
    """A call of exp."""
    _enter(w, x, CHECKS_EXP)
    result = _exponential(w, x, None)
    _leave(w, result)
    return result


def power(w: LoopWriter, x: Value) -> int:
    """A call of pow: a logarithm to more than double precision, a product as exact, and the exponential of both its parts."""
    _enter(w, x, CHECKS_POW)
    high, low = _logarithm(w, x)
    cut = w.op("mul", high)
    top = w.op("add", cut, w.op("add", cut, high))
    rest = w.op("add", w.op("add", high, top), low)
    product = w.op("mul", top)
    more = w.op("add", w.op("mul", top), w.op("mul", rest))
    whole = w.op("add", product, more)
    part = w.op("add", w.op("add", product, whole), more)
    result = _exponential(w, whole, part)
    _tested(w, result)
    _leave(w, result)
    return result


def _enter(w: LoopWriter, x: Value, checks: int) -> None:
    """Into a function: its branches, saved registers, the rounding mode, and comparisons of the argument's bits."""
    w.stream(TABLE, 0, 1 << 13, 1)
    w.stream(FRAME, 0, 64, 1)
    for _ in range(CALLS - 2):
        w.op("branch")
    w.store(FRAME, 48, x)
    for _ in range(MODE - 1):
        w.op("int")
    for at in range(SAVED):
        w.store(FRAME, 8 * at, None, width=64, vector=False)
    w.store(FRAME, 56, None, width=32, vector=False)
    mode = w.load(FRAME, 56, width=32, vector=False)
    w.branch(mode, taken=False)
    bits = w.op("transfer", x)
    for _ in range(checks):
        w.branch(w.op("int", bits), taken=False)


def _leave(w: LoopWriter, result: Value) -> None:
    for at in range(SAVED):
        w.load(FRAME, 8 * at, width=64, vector=False)
    w.op("branch")
    # The wrapper looks whether the result is finite and not zero.
    _tested(w, w.op("logic", result))
    _tested(w, result)
    w.op("branch")


def _tested(w: LoopWriter, value: Value) -> None:
    """A comparison of a floating-point value and a branch that goes the same way each time."""
    w.branch(w.op("max", value, None), taken=False)


def _looked_up(w: LoopWriter, index: Value, at: int) -> int:
    return w.load(TABLE, 8 * at, address=index, indexed=True)


def _polynomial(w: LoopWriter, x: Value, degree: int) -> int:
    """In Horner's form."""
    found = w.op("add", w.op("mul", x))
    for _ in range(degree - 1):
        found = w.op("add", w.op("mul", found, x))
    return found


def _exponential(w: LoopWriter, x: Value, low: int | None) -> int:
    """exp of x, or of x + low: 2^n from the exponent, two tables for 18 bit of the fraction, a cubic for the rest."""
    shifted = w.op("add", w.op("mul", x))
    power_of_two = w.op("add", shifted)
    tail = w.op("mul", power_of_two)
    reduced = w.op("add", w.op("mul", power_of_two), x)
    fixed = w.op("add", reduced)
    base = w.op("add", fixed)
    if low is not None:
        tail = w.op("add", low, tail)
    rest = w.op("add", w.op("add", reduced, base), tail)
    eps = w.op("add", rest, w.op("mul", w.op("mul", rest, rest), _polynomial(w, rest, 1)))
    exponent = w.op("int", w.op("int", w.op("transfer", shifted)))
    bits = w.op("transfer", fixed)
    coarse = w.op("int", w.op("int", w.op("int", bits)))
    fine = w.op("int", w.op("int", bits))
    c = [_looked_up(w, coarse, at) for at in (0, 1)]
    f = [_looked_up(w, fine, at) for at in (2, 3)]
    high = w.op("mul", c[0], f[0])
    cross = w.op("add", w.op("add", w.op("mul", c[0], f[1]), w.op("mul", c[1], f[0])), w.op("mul", c[1], f[1]))
    remainder = w.op("add", w.op("add", cross, w.op("mul", cross, eps)), w.op("mul", high, eps))
    result = w.op("add", high, remainder)
    correction = w.op("add", w.op("add", high, result), remainder)
    _tested(w, w.op("add", w.op("mul", correction), result))  # within the error bound
    return w.op("mul", result, w.op("transfer", exponent))


def _logarithm(w: LoopWriter, x: Value) -> tuple[int, int]:
    """log of x in two parts: the exponent, a table for the nearest of 512 fractions, a polynomial for what is left."""
    bits = w.op("transfer", x)
    masked = w.op("int", bits)
    w.branch(masked, taken=False)
    fraction = w.op("transfer", w.op("int", masked))
    exponent = w.op("transfer", w.op("int", w.op("int", bits)))
    shifted = w.op("add", fraction)
    nearest = w.op("add", shifted)
    index = w.op("int", w.op("int", w.op("transfer", shifted)))
    w.branch(exponent, taken=False)
    u = [_looked_up(w, index, at) for at in range(4)]
    eps = w.op("add", fraction, nearest)
    n = w.op("add", exponent)
    first, second = (w.op("mul", eps, each) for each in u[:2])
    e = w.op("add", first, second)
    e_low = w.op("add", w.op("add", first, e), second)
    t = w.op("add", w.op("mul", n), u[2])
    sum_of = w.op("add", t, e)
    lost = w.op("add", w.op("add", t, sum_of), e)
    parts = w.op("add", w.op("add", w.op("add", lost, w.op("mul", n)), u[3]), e_low)
    more = w.op("add", parts, w.op("mul", w.op("mul", e, e), _polynomial(w, e, 4)))
    result = w.op("add", sum_of, more)
    return result, w.op("add", w.op("add", sum_of, result), more)

"""Round numbers of axes."""

from __future__ import annotations

import math
from collections.abc import Sequence


def decades(low: float, high: float) -> list[float]:
    """The powers of ten inside a range.

    >>> decades(0.3, 40.0)
    [1.0, 10.0]
    """
    first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
    return [float(f"1e{power}") for power in range(first, last + 1)]


def round_step(rough: float) -> float:
    """The least of 1, 2, 5 and 10 times a power of ten that is no less.

    >>> round_step(0.3), round_step(7.0)
    (0.5, 10.0)
    """
    power = 10.0 ** math.floor(math.log10(rough))
    return next(size * power for size in (1, 2, 5, 10) if size * power >= rough)


def round_numbers(low: float, high: float, sizes: Sequence[int] = (1, 2, 5)) -> list[float]:
    """The round numbers inside a range, for a logarithmic axis: powers of ten times each of `sizes`.

    >>> round_numbers(0.3, 4.0)
    [0.5, 1.0, 2.0]
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [size * 10.0**power for power in powers for size in sizes if low <= size * 10.0**power <= high]

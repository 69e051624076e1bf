"""Power of kernels at a clock, and the clock that a power limit leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce

import numpy as np

from archsim.calibration.constants import Calibration
from archsim.cost.bounds import clocked
from archsim.cost.cost import Array, Cost, smooth_maximum
from archsim.cost.energy import spent
from archsim.device.device import Device

STEPS = 60  # of a search for a clock; it ends after about ten
TOLERANCE = 1e-12  # of the logarithm of a clock
SLOWEST = 0.1  # of the highest clock: where clock tables end. A choice.


def power_at(
    ratio: Array, cost: Cost, device: Device, precision: str, clock: Array | float, constants: Calibration
) -> Array:  # fmt: skip
    """Power of every variant [W], [D, V], at `ratio` of the core clock `clock` at which it was costed."""
    slower = {name: bound / ratio if clocked(name) else bound for name, bound in cost.bounds.items()}
    busy = np.where(np.isfinite(cost.busy_s), smooth_maximum(slower, cost.smooth), cost.busy_s)
    at = replace(cost, bounds=slower, busy_s=busy)
    energy = spent(at, device, precision, clock * ratio, np.inf, constants)
    with np.errstate(invalid="ignore"):
        power = reduce(np.add, energy.values()) / (busy + cost.overhead_s)
    return np.where(np.isfinite(power), power, 0.0)


def sustained_share(
    cost: Cost, device: Device, precision: str, clock: Array | float, limit: Array | float, constants: Calibration
) -> Array:
    """The highest share of `clock` at which each variant alone draws no more than `limit` [W], [D, V].

    A kernel that would draw more even at the lowest clock runs there.
    """

    def over(share: Array) -> Array:
        return np.log(np.maximum(power_at(share, cost, device, precision, clock, constants), 1e-3) / limit)

    high = np.ones(np.broadcast_shapes(cost.busy_s.shape, np.shape(clock)))
    at_high = over(high)
    if np.all(at_high <= 0.0):
        return high
    low = np.full_like(high, SLOWEST)
    return np.where(at_high <= 0.0, high, _crossing(over, low, high, over(low), at_high))


def _crossing(over: Callable[[Array], Array], low: Array, high: Array, at_low: Array, at_high: Array) -> Array:
    """Where the rising `over` passes 0 between `low` and `high`, or `low` where it is above 0 already; not above the crossing.

    False position in the logarithms, the kept end's value halved each time that it stays (the Illinois rule; Dowell & Jarratt
    1971): power is nearly a power of the clock, so few steps do what a bisection takes forty for.
    """
    left, right = np.log(low), np.log(high)
    lowest = at_low >= 0.0
    settled = lowest | (at_high <= 0.0)
    side = np.zeros_like(left)
    for _ in range(STEPS):
        open_ = ~settled & (right - left > TOLERANCE)
        if not open_.any():
            break
        with np.errstate(invalid="ignore", divide="ignore"):
            guess = np.where(open_, right - at_high * (right - left) / (at_high - at_low), left)
        guess = np.clip(guess, left + 0.25 * TOLERANCE, right - 0.25 * TOLERANCE)
        value = over(np.exp(guess))
        below = open_ & (value <= 0.0)
        above = open_ & (value > 0.0)
        at_high = np.where(below & (side < 0), 0.5 * at_high, at_high)
        at_low = np.where(above & (side > 0), 0.5 * at_low, at_low)
        left, at_low = np.where(below, guess, left), np.where(below, value, at_low)
        right, at_high = np.where(above, guess, right), np.where(above, value, at_high)
        side = np.where(below, -1.0, np.where(above, 1.0, side))
    return np.where(lowest, low, np.exp(left))

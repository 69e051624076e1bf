"""Power while kernels run: the clock that keeps to a limit, and what the supply of a computer draws for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from archsim.calibration.constants import Calibration
from archsim.cost.bounds import clocked
from archsim.cost.cost import Array, Cost
from archsim.cost.energy import spent
from archsim.device.device import Device

STEPS = 60  # of a search for a clock; it ends after about ten
TOLERANCE = 1e-12  # of the logarithm of a clock
SLOWEST = 0.1  # of the highest clock: where clock tables end. A choice.
SKIPPED = 0.1  # of the clocks stay where power is too high at the lowest one: a chip skips the others. A choice.


def power_at(
    ratio: Array, cost: Cost, device: Device, precision: str, clock: Array | float, constants: Calibration
) -> Array:  # fmt: skip
    """Power of every variant at `ratio` of the core clock at which it was costed [W].

    E(ratio f) / (t_busy(ratio f) + t_overhead), [D, V]        (Kandiah et al. 2021, equation 1)

    cost: of one launch of every variant, at clock f
    ratio: of the clock, [D, V]; clock: f [Hz], a float, [D, 1] or [D, V]
    t_busy: smooth maximum of the bounds, those that the core clock moves divided by `ratio` [s]; t_overhead [s]

    Holds for one kernel alone, in a steady state; 0 for what never runs.

    >>> import numpy as np
    >>> from archsim.calibration.constants import default
    >>> from archsim.device.catalog import find
    >>> one, gpu = np.ones((1, 1)), find("gtx_1080").device
    >>> cost = Cost(bounds={"dram": one}, busy_s=one, overhead_s=0 * one, dram_bytes=1e11 * one, cache_bytes=0 * one,
    ...             work={"macs": 0 * one, "issues": 0 * one, "units": 20 * one})
    >>> half, full = (power_at(ratio * one, cost, gpu, "fp32", 1.6e9, default()).item() for ratio in (0.5, 1.0))
    >>> half < full
    True
    """
    at = slowed(cost, ratio)
    energy = spent(at, device, precision, clock * ratio, np.inf, constants)
    with np.errstate(invalid="ignore"):
        power = reduce(np.add, energy.values()) / (at.busy_s + at.overhead_s)
    return np.where(np.isfinite(power), power, 0.0)


def slowed(cost: Cost, ratio: Array | float) -> Cost:
    """The costs at `ratio` of their core clock, each [D, V]: bounds that the clock moves take 1/ratio as long.

    t = (sum of (b / ratio)^q of clocked bounds and b^q of others)^(1/q) [s]

    cost: of one launch of every variant, at the clock f; ratio: of that clock [1], a float or [D, V]

    >>> import numpy as np
    >>> one = np.ones((1, 1))
    >>> cost = Cost(bounds={"compute": 2 * one, "dram": 3 * one}, busy_s=13**0.5 * one, overhead_s=one, dram_bytes=one,
    ...             cache_bytes=one, clock=1e9)
    >>> half = slowed(cost, 0.5)
    >>> half.busy_s.item(), half.clock, half.share
    (5.0, 500000000.0, 0.5)
    """
    slower = {name: bound / ratio if clocked(name) else bound for name, bound in cost.bounds.items()}
    served = cost.served(slower)
    busy = np.where(np.isfinite(cost.busy_s), served.busy_s, cost.busy_s)
    return replace(served, busy_s=busy, clock=cost.clock * ratio, share=cost.share * ratio)


def sustained_share(
    cost: Cost, device: Device, precision: str, clock: Array | float, limit: Array | float, constants: Calibration
) -> Array:
    """The highest share of the core clock at which each variant alone draws no more than the limit.

    max r with P(r f) <= limit and 0.01 <= r <= 1, [D, V]

    cost: of one launch of every variant, at clock f
    clock: f [Hz], a float, [D, 1] or [D, V]; limit: of power [W], a float or [D, 1]

    Below the lowest clock of tables, 0.1, a chip skips clocks. A kernel that would draw more even with nine in ten skipped runs
    there.

    >>> import numpy as np
    >>> from archsim.calibration.constants import default
    >>> from archsim.device.catalog import find
    >>> one, gpu = np.ones((1, 1)), find("gtx_1080").device
    >>> cost = Cost(bounds={"compute": one}, busy_s=one, overhead_s=0 * one, dram_bytes=1e9 * one, cache_bytes=0 * one,
    ...             work={"macs": 4e12 * one, "issues": 0 * one, "units": 20 * one})
    >>> share = sustained_share(cost, gpu, "fp32", 1.6e9, 100.0, default())
    >>> round(power_at(share, cost, gpu, "fp32", 1.6e9, default()).item(), 6)
    100.0
    """

    def over(share: Array) -> Array:
        return np.log(np.maximum(power_at(share, cost, device, precision, clock, constants), 1e-3) / limit)

    high = np.ones(np.broadcast_shapes(cost.busy_s.shape, np.shape(clock)))
    at_high = over(high)
    if np.all(at_high <= 0.0):
        return high
    low = np.full_like(high, SLOWEST * SKIPPED)
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


def thermal_limit(device: Device) -> float | Array | None:
    """Power at which the chip reaches, in a steady state, the temperature from which it lowers its clock [W]; None: not known.

    (throttle - air) / resistance, a float or [D, 1]        (JEDEC JESD51-1, 1995, equation 1, of chip, cooler and air)

    throttle: `power.throttle`, in degrees Celsius [1]
    air: `power.air`, before the cooler, in degrees Celsius [1]
    resistance: `power.thermal_resistance`, kelvin for each watt [1]

    >>> from types import SimpleNamespace as some
    >>> thermal_limit(some(power=some(throttle=85.0, air=35.0, thermal_resistance=0.8)))
    62.5
    >>> thermal_limit(some(power=some(throttle=85.0, air=35.0, thermal_resistance=None)))
    """
    power = device.power
    throttle, air, resistance = (getattr(power, name, None) for name in ("throttle", "air", "thermal_resistance"))
    if throttle is None or air is None or resistance is None:
        return None
    most: float | Array = (throttle - air) / resistance
    return most


def within_heat(device: Device, limit: float | Array | None) -> float | Array | None:
    """The lower of a power limit and that of the cooler [W], a float or [D, 1]; None where neither is known.

    >>> from types import SimpleNamespace as some
    >>> hot = some(power=some(throttle=85.0, air=35.0, thermal_resistance=0.8))
    >>> within_heat(hot, None), float(within_heat(hot, 70.0)), float(within_heat(hot, 50.0))
    (62.5, 62.5, 50.0)
    """
    carried = thermal_limit(device)
    if carried is None or limit is None:
        return limit if carried is None else carried
    return np.minimum(limit, carried)


# --------------------------------------------------------------------------------------------- the supply of a computer

LOADS = (0.1, 0.2, 0.5, 1.0)  # of the rating, at which the classes of 80 PLUS are defined


def supply_loss(output: float, rating: float, efficiencies: Sequence[float]) -> float:
    """What a power supply loses at a load [W].

    rating loss(output / rating), loss(u) = u (1 / efficiency(u) - 1) in straight lines between the loads of 80 PLUS

    output: what all parts take [W]; rating: of all supplies that share it [W]
    efficiencies: at 10, 20, 50 and 100 % of the rating
    Below the first load the loss stays what it is there: that of a supply with nothing to feed; above the last, its efficiency.

    Source: 80 PLUS, test points and least efficiencies of its classes (CLEAResult).

    >>> round(supply_loss(500.0, 1000.0, (0.83, 0.9, 0.94, 0.91)), 2)
    31.91
    """
    losses = [load * (1.0 / efficiency - 1.0) for load, efficiency in zip(LOADS, efficiencies, strict=True)]
    load = output / rating
    if load > LOADS[-1]:
        return output * (1.0 / efficiencies[-1] - 1.0)
    return rating * float(np.interp(load, LOADS, losses))


def host_power(idle: float, tdp: float, sockets: float, busy_cores: float, cores: float) -> float:
    """Power of the host's packages [W].

    sockets (idle + (tdp - idle) min(1, busy / all))

    idle, tdp: of a package [W]; busy_cores, cores: at work, and of all packages

    >>> host_power(65.0, 225.0, 2.0, 8.0, 128.0)
    150.0
    """
    return sockets * (idle + (tdp - idle) * min(1.0, busy_cores / cores))


def at_the_wall(
    parts_w: Mapping[str, float], fans: float, rating: float, efficiencies: Sequence[float]
) -> dict[str, float]:
    """Power of every part of a computer at its plug [W]: the parts, then `fans` and `supply`; their sum is what a meter shows.

    fans = share x sum of parts; supply = loss(parts + fans)

    parts_w: what each part takes [W]; fans: share of them that fans and converters take
    rating: of all supplies that share the load [W]; efficiencies: at 10, 20, 50 and 100 % of it

    >>> found = at_the_wall({"devices": 400.0, "host": 100.0}, 0.1, 1000.0, (0.83, 0.9, 0.94, 0.91))
    >>> found["fans"], round(sum(found.values()), 1)
    (50.0, 588.6)
    """
    fed = sum(parts_w.values())
    moved = fans * fed
    return {**parts_w, "fans": moved, "supply": supply_loss(fed + moved, rating, efficiencies)}

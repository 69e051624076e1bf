"""Power of a workload at a lower clock, from its power at the highest one and from how its rate follows."""

from __future__ import annotations

import numpy as np

from archsim.calibration.constants import Calibration
from archsim.cost.cost import Array
from archsim.cost.energy import TINY
from archsim.cost.units import unit_power
from archsim.device.device import Gpu
from archsim.device.units import AWAKE, UnitClocks, unit_rates


def power_by_clock(
    device: Gpu, power: float, top: float, clock: float, rate: float, free: float, constants: Calibration
) -> float:
    """Power of a workload at a clock [W], when it is known at a higher one.

    idle(f) + awake(f) s + (compute(f) (1 - free) + memory(f) free) s, s such that it is `power` at the top clock

    power: at the clock `top` [W] [Hz]; clock: f [Hz]; rate: work in a second beside that at the top clock [1]
    free: share of its time that does not go with the core clock: the memory works then, and the lanes do at all other times [1]

    >>> from archsim.calibration.constants import default
    >>> from archsim.device.catalog import find
    >>> gpu = find("tesla_v100_sxm2").device
    >>> round(power_by_clock(gpu, 250.0, 1.53e9, 1.53e9, 1.0, 0.2, default()), 6)
    250.0
    >>> 120.0 < power_by_clock(gpu, 250.0, 1.53e9, 1.0e9, 0.7, 0.2, default()) < 180.0
    True
    """
    first, idle_first = (_drawn(device, top, 1.0, free if busy else None, constants) for busy in (True, False))
    now, idle_now = (_drawn(device, clock, rate * top / clock, free if busy else None, constants) for busy in (True, False))
    work = (power - idle_first) / np.maximum(first - idle_first, TINY)
    return float(np.ravel(idle_now + np.maximum(work, 0.0) * (now - idle_now))[0])


def _drawn(device: Gpu, clock: float, busy: float, free: float | None, constants: Calibration) -> Array:
    """Power when lanes are busy for a share (1 - free) of what they could be and the memory for `free`, idle without [W]."""
    at = UnitClocks(core=clock)
    if free is None:
        return np.asarray(sum(unit_power(device, {}, at, constants).values()))
    rates = unit_rates(device, at)
    memory = busy * free * device.memory.achievable * clock / device.clock.boost
    shares = {AWAKE: 1.0, "fp32": busy * (1.0 - free), "dram": memory, "l2": memory * rates["dram"] / rates["l2"]}
    return np.asarray(sum(unit_power(device, shares, at, constants).values()))

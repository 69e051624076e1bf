"""The power whose heat a cooler carries away at the temperature from which a chip lowers its clock."""

from __future__ import annotations

import numpy as np

from archsim.cost.cost import Array
from archsim.device.device import Device


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

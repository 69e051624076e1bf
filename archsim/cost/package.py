"""Power of a CPU's packages from how busy its units are: the same energies as those of kernels, by the unit, without a network.

    P = P_idle + awake (P_leakage V^3 + E_clock f V^2) + P_uncore(f) + V^2 rate x share x E_op + bytes/s x (E_LLC V^2 + E_DRAM)
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from archsim.calibration.constants import Calibration
from archsim.cost.cost import Array
from archsim.cost.idle import core_leakage, inside, uncore_power
from archsim.cost.switched import byte_energy, cache_energy, clock_energy, mac_energy, node_energy, operation_energy
from archsim.cost.voltage import voltage
from archsim.device.device import Cpu
from archsim.device.units import CORE, PACKAGE_UNITS, package_rates

STANDING = ("standing", "uncore", "leakage", "active_units")  # what is drawn beside what the units switch


def package_power(device: Cpu, shares: Mapping[str, Array | float], clock: float, constants: Calibration) -> dict[str, Array]:
    """Power of each unit of all packages [W], by its name, after `STANDING`; the sum is what the packages draw.

    shares: of `PACKAGE_UNITS`, and of `CORE`, the cores that are awake, which is 1 where it is not given and any unit works
    clock: of the cores [Hz]

    `standing` is the idle power with every core asleep; the uncore's clocks run while any core of its socket is awake. Bytes
    of memory that lies outside the package take there what its controller does.

    >>> from archsim.calibration.constants import default
    >>> from archsim.device.catalog import find
    >>> cpu = find("i7_6700k").device
    >>> idle, half, busy = (sum(value.item() for value in package_power(cpu, shares, 4e9, default()).values())
    ...                     for shares in ({}, {"core": 0.5, "simd": 0.4}, {"simd": 0.8}))
    >>> idle == cpu.power.idle and idle < half < busy
    True
    """
    volt, node = voltage(clock, device, constants), node_energy(device, constants)
    operation = operation_energy(device, node, "fp32")
    given = {name: np.asarray(shares.get(name, 0.0), dtype=float) for name in PACKAGE_UNITS}
    works = np.asarray(sum(given.values()) > 0.0, dtype=float)
    awake = np.asarray(shares.get(CORE, works), dtype=float) * device.core.count
    rates = package_rates(device, clock)
    energies = {
        "simd": mac_energy(device, "fp32", volt, operation, constants),
        "llc": cache_energy(volt, node, constants),
        "dram": np.asarray(byte_energy(device, constants) * inside(device, constants)),
    }
    parts = {
        "standing": np.asarray(device.power.idle, dtype=float),
        "uncore": np.where(awake > 0.0, uncore_power(device, awake, clock, operation, constants), 0.0),
        "leakage": core_leakage(device, volt, operation, constants) * awake,
        "active_units": clock_energy(device, volt, operation, constants) * clock * awake,
    }
    return parts | {name: np.asarray(given[name] * rates[name] * energies[name]) for name in PACKAGE_UNITS}

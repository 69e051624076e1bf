"""Energy of kernels: switching per multiply-accumulate and per byte, and what flows while time passes."""

from __future__ import annotations

import numpy as np

from archsim.cost.constants import Calibration
from archsim.cost.cost import Array
from archsim.device.device import Device, Gpu
from archsim.errors import Unsupported

MEMORY_FAMILIES = (  # a longer name before the one it begins with
    "GDDR7", "GDDR6X", "GDDR6", "GDDR5X", "GDDR5", "LPDDR4", "HBM3e", "HBM3", "HBM2e", "HBM2", "DDR5", "DDR4", "DDR3",
)  # fmt: skip
VOLTAGE_FLOOR = 0.6  # V / Vmax at zero clock on the linear V-f line of a boost range; a choice, see `voltage_share`


def voltage_share(clock: Array | float, highest: Array | float) -> Array:
    """V / Vmax on a straight V-f line, 0.6 + 0.4 f / fmax: the shape of published DVFS tables of boost ranges."""
    return np.asarray(VOLTAGE_FLOOR + (1 - VOLTAGE_FLOOR) * np.minimum(1.0, clock / highest))


def mac_energy(device: Device, precision: str, clock: Array | float, constants: Calibration) -> Array:
    """Energy of one multiply-accumulate, its share of registers and control included [J].

    E0(process node) x (V / Vmax)^2; an SM spends the same per clock whatever the format, so a pipe with twice the rate
    of fp32 spends half per operation.
    """
    kind = "gpu" if isinstance(device, Gpu) else "cpu"
    base = constants[f"energy.mac.{kind}.{_nanometres(device)}"]
    fp32 = device.rate.fp32 if isinstance(device, Gpu) else device.pipe("fp32")
    return np.asarray(base * voltage_share(clock, device.clock.boost) ** 2 * fp32 / device.pipe(precision))


def byte_energy(device: Device, constants: Calibration) -> float:
    """Energy of one byte from memory to the chip, both ends included [J]."""
    for family in MEMORY_FAMILIES:
        if device.memory.type.lower().startswith(family.lower()):
            return constants[f"energy.byte.{family}"]
    raise Unsupported(f"{device.identity.id}: no energy per byte for memory type {device.memory.type!r}")


def active_power(device: Device, clock: Array | float, constants: Calibration) -> Array:
    """Power of clock trees and front ends while kernels run, on top of idle [W]; grows with f V^2."""
    kind = "gpu" if isinstance(device, Gpu) else "cpu"
    count = device.sm.count if isinstance(device, Gpu) else device.core.count
    share = clock / device.clock.boost * voltage_share(clock, device.clock.boost) ** 2
    per_unit = constants[f"energy.active.{kind}.{_nanometres(device)}"]
    return np.asarray(per_unit * count * share)


def kernel_energy(
    flop: Array, dram_bytes: Array, time_s: Array, device: Device, precision: str, clock: Array | float,
    constants: Calibration,
) -> Array:  # fmt: skip
    """Energy of kernels that ran for `time_s` [J], capped at the power limit: a chip at its limit lowers its clock."""
    switching = 0.5 * flop * mac_energy(device, precision, clock, constants) + dram_bytes * byte_energy(device, constants)
    standing = (device.power.idle + active_power(device, clock, constants)) * time_s
    return np.asarray(np.minimum(switching + standing, device.power.tdp * time_s))


def _nanometres(device: Device) -> str:
    return f"{round(float(np.ravel(device.chip.node)[0]) * 1e9)}nm"

"""The power of a GPU: limits, as every device has them, and what is known of its voltage and its operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from archsim.base.units import COUNT
from archsim.device.part import Power, fraction, spec

if TYPE_CHECKING:
    from archsim.device.part import Number


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPower(Power):
    """Power limits of a GPU, the line of its voltages where they were read or fitted, and its temperature where it is known."""

    voltage_slope: Number | None = spec(COUNT, "relative fall of voltage over that of the clock", low=0.1, high=3, optional=True)
    voltage_floor: Number | None = fraction("least core voltage over that at the chip's highest clock", low=0.2, optional=True)
    operation: Number | None = spec(COUNT, "energy of an operation beside others of the node", low=0.1, high=10, optional=True)
    temperature: Number | None = spec(COUNT, "of the chip, in degrees Celsius", low=-50, high=130, optional=True)

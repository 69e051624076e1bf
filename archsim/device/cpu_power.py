"""The power of a CPU: limits, as every device has them, and what sets its cores apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from archsim.base.units import COUNT, TEXT
from archsim.device.part import Power, spec

if TYPE_CHECKING:
    from archsim.device.part import Number


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuPower(Power):
    """Power limits of a CPU; `idle` is that of all its packages with every core asleep."""

    boundary: str = spec(TEXT, "what the two powers cover: board, module or package; memory modules stand outside a package")
    operation: Number | None = spec(COUNT, "energy of a core's clocks and operations beside desktop and server cores of the node",
                                    low=0.01, high=10, optional=True)  # fmt: skip

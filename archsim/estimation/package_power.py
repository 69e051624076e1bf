"""Power of a CPU's packages from how busy its units are: the answer of `archsim power` for a CPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from archsim.cost.package import package_power
from archsim.device.device import Cpu
from archsim.device.spec import Spec
from archsim.device.units import CORE, PACKAGE_UNITS
from archsim.estimation.power_estimate import PowerEstimate, UnitsAtWork

READ = ("chip.", "power.", "clock.", "core.count", "core.simd", "core.fma_ports", "memory.bandwidth", "memory.type",
        "l2.bandwidth", "l3.bandwidth")  # fmt: skip
ELSEWHERE = ("power.tdp",)  # it sets the limit


@dataclass(frozen=True, kw_only=True)
class PackageUse(UnitsAtWork):
    """Units of a CPU at work: shares at the clock of the answer."""

    shares: Mapping[str, float]

    def shares_at(self, clock: float) -> dict[str, float]:
        """Units stay as busy as they are at every clock."""
        works = float(any(share > 0.0 for share in self.shares.values()))
        return {CORE: works, **dict.fromkeys(PACKAGE_UNITS, 0.0), **self.shares}

    def parts_of(self, spec: Spec, clock: float) -> dict[str, float]:
        """Power of each part [W]."""
        assert isinstance(spec.device, Cpu)
        found = package_power(spec.device, self.shares_at(clock), clock, self.constants)
        return {name: float(np.ravel(value)[0]) for name, value in found.items()}


def package_estimate(use: PackageUse, name: str, usual: bool, tdp: bool) -> PowerEstimate:
    """The answer; `usual`, `tdp`: whether clock and limit are those of the spec."""
    kind, spread = use.spread("power")
    return use.answer(
        name, of=(kind, replace(spread, rows=0, basis="")), idle=("standing",), read=READ, elsewhere=ELSEWHERE, inside=("simd",),
        assumptions=_assumptions(use, usual, tdp),
    )  # fmt: skip


def _assumptions(use: PackageUse, usual: bool, tdp: bool) -> list[str]:
    found = ["interval: the widest of other classes, since no measured power of a CPU is behind it"]
    found += use.assumptions("that of dense SIMD code on all cores" if usual else "", tdp)
    if use.shares and CORE not in use.shares:
        found.append("core 1: every core is taken to be awake all the time")
    missing = [unit for unit in PACKAGE_UNITS if unit not in use.shares]
    if missing and use.shares:
        found.append(f"not counted and taken to be idle: {', '.join(missing)}")
    return found

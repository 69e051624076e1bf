"""Power of a CPU's packages from how busy its units are: the answer of `archsim power` for a CPU."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from archsim.base.units import show
from archsim.calibration.constants import Calibration
from archsim.calibration.nearness import Platform
from archsim.cost.package import package_power
from archsim.cost.voltage import highest_clock, voltage
from archsim.device.device import Cpu
from archsim.device.spec import Spec
from archsim.device.units import CORE, PACKAGE_UNITS
from archsim.device.variant import device_fields
from archsim.estimation.clock import ROUNDED, limit_note
from archsim.estimation.power_estimate import COUNTED, PowerEstimate, clock_within
from archsim.estimation.request import find_device

READ = ("chip.", "power.", "clock.", "core.count", "core.simd", "core.fma_ports", "memory.bandwidth", "memory.type",
        "l2.bandwidth", "l3.bandwidth")  # fmt: skip
ELSEWHERE = ("power.tdp",)  # it sets the limit


@dataclass(frozen=True, kw_only=True)
class PackageUse:
    """Units of a CPU at work: shares at the clock of the answer [Hz], and its power limit [W]."""

    spec: Spec
    shares: Mapping[str, float]
    clock: float
    limit: float
    constants: Calibration

    @cached_property
    def device(self) -> Cpu:
        """The CPU."""
        assert isinstance(self.spec.device, Cpu)
        return self.spec.device

    @cached_property
    def all_shares(self) -> dict[str, float]:
        """The shares of all units, `core` first."""
        works = float(any(share > 0.0 for share in self.shares.values()))
        return {CORE: works, **dict.fromkeys(PACKAGE_UNITS, 0.0), **self.shares}

    def parts_at(self, clock: float) -> dict[str, float]:
        """Power of each part at a clock [W]; units stay as busy as they are."""
        found = package_power(self.device, self.all_shares, clock, self.constants)
        return {name: float(np.ravel(value)[0]) for name, value in found.items()}

    def power_at(self, clock: float) -> float:
        """Power at a clock [W]."""
        return math.fsum(self.parts_at(clock).values())

    def within_limit(self) -> float | None:
        """The highest clock, up to that of the answer, at which units as busy stay within the limit [Hz]."""
        return clock_within(self.power_at, self.limit, self.clock)


def package_estimate(
    use: PackageUse, name: str, usual: bool, tdp: bool, words: tuple[str, dict[str, str], dict[str, float]]
) -> PowerEstimate:  # fmt: skip
    """The answer.

    usual, tdp: whether clock and limit are those of the spec; words: device, settings and scales as they were given
    """
    spec, device, constants = use.spec, use.device, use.constants
    parts = use.parts_at(use.clock)
    power, idle = math.fsum(parts.values()), parts["standing"]
    at = Platform(architecture=spec.identity.kernels_of, device=spec.identity.id, stack=spec.identity.default_stack)
    kind, spread = constants.spread_of(spec.kind, "power", at)
    spread = replace(spread, rows=0, basis="")  # errors of other classes: no power of a CPU is among the rows
    within = use.within_limit()
    return PowerEstimate(
        **device_fields(spec), name=name, clock_hz=use.clock, memory_clock_hz=None, counted_clock_hz=use.clock,
        counted_memory_clock_hz=None, voltage=voltage(use.clock, device, constants).item(), shares=use.all_shares, parts_w=parts,
        power_w=power, power_interval_w=(max(min(idle, power), power * math.exp(-spread.high)), power * math.exp(-spread.low)),
        interval_level=constants.level, interval_class=kind, held_out=spread, idle_w=idle, power_limit_w=use.limit,
        power_boundary=device.power.boundary, above_limit=power > use.limit, clock_within_limit_hz=within,
        assumptions=tuple(_assumptions(use, usual, tdp)),
        warnings=(*_warnings(use, power, within), *_without_effect(use, words)),
        assumed_values=tuple(entry.key for entry in spec.assumed if entry.key.startswith(READ)),
    )  # fmt: skip


def _assumptions(use: PackageUse, usual: bool, tdp: bool) -> list[str]:
    """What was taken because nobody said or measured it, one sentence each."""
    entry = use.spec.entries["power.idle"]
    found = ["interval: the widest of other classes, since no measured power of a CPU is behind it"]
    found += [f"clock {show(use.clock, 'Hz')}: that of dense SIMD code on all cores"] if usual else []
    if use.shares and CORE not in use.shares:
        found.append("core 1: every core is taken to be awake all the time")
    missing = [unit for unit in PACKAGE_UNITS if unit not in use.shares]
    if missing and use.shares:
        found.append(f"not counted and taken to be idle: {', '.join(missing)}")
    if tdp:
        found.append(limit_note(use.device, use.limit))
    if entry.unpublished:
        found.append(f"idle power {use.device.power.idle:g} W: {entry.kind}, nobody measured it on this device")
    return found


def _warnings(use: PackageUse, power: float, within: float | None) -> list[str]:
    found, top = [], float(np.ravel(highest_clock(use.device))[0])
    if power > use.limit:
        way = "at no clock does this work stay within it" if within is None else (
            f"the packages would lower their clock; units as busy stay within it up to {show(within, 'Hz')}")  # fmt: skip
        found.append(f"{power:.4g} W is above the power limit, {use.limit:g} W: {way}")
    if use.clock > ROUNDED * top:
        found.append(f"clock {show(use.clock, 'Hz')} is above the chip's highest, {show(top, 'Hz')}: the voltage is extrapolated")
    if use.all_shares["simd"] > use.all_shares[CORE] + COUNTED:
        found.append(f"share of simd, {use.all_shares['simd']:.3g}, is above that of core, {use.all_shares[CORE]:.3g}: a unit "
                     "works only while its core does")  # fmt: skip
    return found


def _without_effect(use: PackageUse, words: tuple[str, dict[str, str], dict[str, float]]) -> list[str]:
    """A warning for each key that was set or scaled and moves no watt."""
    hw, settings, scales = words
    found, power = [], use.power_at(use.clock)
    for key in dict.fromkeys((*settings, *scales)):
        if key in ELSEWHERE:
            continue
        before = replace(use, spec=find_device(hw, {k: v for k, v in settings.items() if k != key},
                                               {k: v for k, v in scales.items() if k != key}))  # fmt: skip
        if before.power_at(use.clock) == power:
            found.append(f"{key} changes no watt of this")
    return found

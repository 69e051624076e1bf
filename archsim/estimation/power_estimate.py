"""The answer of `archsim power`, of a GPU and of a CPU, and how the clock within a power limit is found."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from archsim.base.arguments import CLOCKS
from archsim.base.record import Answer
from archsim.base.units import show
from archsim.calibration.constants import Calibration, Spread
from archsim.calibration.nearness import Platform
from archsim.cost.voltage import highest_clock, voltage
from archsim.device.spec import Spec
from archsim.device.variant import device_fields
from archsim.estimation.boundary import WallPower
from archsim.estimation.clock import ROUNDED, limit_note
from archsim.estimation.request import find_device

HALVINGS = 50  # of the range in which the clock under a limit is sought
COUNTED = 0.02  # counters of one run that are read one after the other differ by as much. A choice.


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerEstimate(Answer):
    """Power of a GPU, or of the packages of a CPU, whose units are busy for known shares of the time.

    name: what a file of rows calls it
    clock_hz, memory_clock_hz: where it runs; the memory clock as drivers show it, half the data rate of a pin, None if unknown
    counted_clock_hz, counted_memory_clock_hz: where the shares were counted
    voltage: of the core, as a share of that at the chip's highest clock
    shares: of each unit at these clocks, `sm` first, or `core` on a CPU
    parts_w: `standing`, `leakage`, `clocks` (on a CPU `uncore`), `awake`, then each unit; they add up to `power_w`
    power_interval_w: where a measured power is to be expected, at `interval_level`, from held-out rows of `interval_class`
    idle_w: power at these clocks when nothing runs
    wall: the computer at its plug, where that was asked for; `power_w` and its interval are then the share of one device of it
    power_limit_w: the limit that was given, or the TDP; above it the board lowers its clock
    clock_within_limit_hz: the highest clock up to `clock_hz` at which the same work stays within the limit, None where none does
    assumed_values: keys of the device that nobody published and that this reads
    measured_w, error: what a row of a file says that was measured, and `power_w` over that less 1; None where it does not say
    """

    hardware: str
    hardware_name: str
    changes: Mapping[str, str]
    name: str
    clock_hz: float
    memory_clock_hz: float | None
    counted_clock_hz: float
    counted_memory_clock_hz: float | None
    voltage: float
    shares: Mapping[str, float]
    parts_w: Mapping[str, float]
    power_w: float
    power_interval_w: tuple[float, float]
    interval_level: float
    interval_class: str
    held_out: Spread
    idle_w: float
    power_limit_w: float
    power_boundary: str
    wall: WallPower | None = None
    above_limit: bool
    clock_within_limit_hz: float | None
    assumptions: tuple[str, ...]
    assumed_values: tuple[str, ...]
    warnings: tuple[str, ...]
    measured_w: float | None = None
    error: float | None = None


def clock_within(power_at: Callable[[float], float], limit: float, highest: float) -> float | None:
    """The highest clock up to `highest` at which a power that grows with it stays within a limit [Hz]; None where none does.

    power_at: the power [W] at a clock [Hz]; limit [W]

    >>> round(clock_within(lambda clock: 50.0 + clock * 1e-8, 70.0, 4e9) / 1e9, 6)
    2.0
    """
    if power_at(highest) <= limit:
        return highest
    low, high = CLOCKS[0], highest
    if low >= high or power_at(low) > limit:
        return None
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if power_at(middle) <= limit else (low, middle)
    return low


@dataclass(frozen=True, kw_only=True)
class UnitsAtWork:
    """Units of a device at work at a core clock [Hz], under a power limit [W].

    settings, scales: of the spec, as they were given for `hw`
    """

    hw: str
    settings: Mapping[str, str]
    scales: Mapping[str, float]
    spec: Spec
    clock: float
    limit: float
    constants: Calibration

    def shares_at(self, clock: float) -> dict[str, float]:
        """The shares of all units when the same work runs at a core clock, that of what is awake first."""
        raise NotImplementedError

    def parts_of(self, spec: Spec, clock: float) -> dict[str, float]:
        """Power of each part on a device, at a core clock [W]."""
        raise NotImplementedError

    def power_at(self, clock: float) -> float:
        """Power of the same work at a core clock [W]."""
        return math.fsum(self.parts_of(self.spec, clock).values())

    def answer(
        self, name: str, *, of: tuple[str, Spread], idle: Collection[str], read: tuple[str, ...], elsewhere: tuple[str, ...],
        inside: Collection[str], assumptions: Sequence[str], warnings: Sequence[str] = (),
        memory_hz: tuple[float | None, float | None] = (None, None), counted_hz: float | None = None,
    ) -> PowerEstimate:  # fmt: skip
        """The answer.

        of: class of the interval and its errors; idle: the parts that are drawn when nothing runs
        read, elsewhere: how keys begin that the power reads, and keys that set limits and clocks
        inside: units that only work while what is awake does; memory_hz, counted_hz: memory clock now and as counted, core clock
        """
        spec, device = self.spec, self.spec.device
        parts, shares = self.parts_of(spec, self.clock), self.shares_at(self.clock)
        power, still = math.fsum(parts.values()), math.fsum(parts[part] for part in idle)
        kind, spread = of
        within, top = clock_within(self.power_at, self.limit, self.clock), float(np.ravel(highest_clock(device))[0])
        found = []
        if power > self.limit:
            way = "at no clock does this work stay within it" if within is None else (
                f"the device would lower its clock; the same work stays within it up to {show(within, 'Hz')}")  # fmt: skip
            found.append(f"{power:.4g} W is above the power limit, {self.limit:g} W: {way}")
        if self.clock > ROUNDED * top:
            found.append(f"clock {show(self.clock, 'Hz')} is above the chip's highest, {show(top, 'Hz')}: the voltage is "
                         "extrapolated")  # fmt: skip
        busiest, (awake, most) = max(inside, key=lambda unit: shares[unit]), next(iter(shares.items()))
        if shares[busiest] > most + COUNTED:
            found.append(f"share of {busiest}, {shares[busiest]:.3g}, is above that of {awake}, {most:.3g}: a unit works only "
                         f"while its {awake} does")  # fmt: skip
        return PowerEstimate(
            **device_fields(spec), name=name, clock_hz=self.clock, memory_clock_hz=memory_hz[0],
            counted_clock_hz=self.clock if counted_hz is None else counted_hz, counted_memory_clock_hz=memory_hz[1],
            voltage=voltage(self.clock, device, self.constants).item(), shares=shares, parts_w=parts, power_w=power,
            power_interval_w=(max(min(still, power), power * math.exp(-spread.high)), power * math.exp(-spread.low)),
            interval_level=self.constants.level, interval_class=kind, held_out=spread, idle_w=still, power_limit_w=self.limit,
            power_boundary=device.power.boundary, above_limit=power > self.limit, clock_within_limit_hz=within,
            assumptions=tuple(assumptions), warnings=(*found, *warnings, *self._without_effect(power, elsewhere)),
            assumed_values=tuple(entry.key for entry in spec.assumed if entry.key.startswith(read)),
        )  # fmt: skip

    def spread(self, quantity: str) -> tuple[str, Spread]:
        """The class of errors of a kind of measured power, and these errors."""
        identity = self.spec.identity
        at = Platform(architecture=identity.kernels_of, device=identity.id, stack=identity.default_stack)
        return self.constants.spread_of(self.spec.kind, quantity, at)

    def assumptions(self, usual: str, tdp: bool) -> list[str]:
        """What was taken because nobody said or measured it: a clock that is the `usual` one, the TDP, a guessed idle power."""
        device, entry = self.spec.device, self.spec.entries["power.idle"]
        found = [f"clock {show(self.clock, 'Hz')}: {usual}"] if usual else []
        found += [limit_note(device, self.limit)] if tdp else []
        if entry.unpublished:
            idle = float(np.ravel(device.power.idle)[0])
            found.append(f"idle power {idle:g} W: {entry.kind}, nobody measured it on this device")
        return found

    def _without_effect(self, power: float, elsewhere: tuple[str, ...]) -> list[str]:
        """A warning for each key that was set or scaled and moves no watt."""
        found = []
        for key in dict.fromkeys((*self.settings, *self.scales)):
            others = {name: value for name, value in self.settings.items() if name != key}
            before = find_device(self.hw, others, {name: value for name, value in self.scales.items() if name != key})
            if key not in elsewhere and math.fsum(self.parts_of(before, self.clock).values()) == power:
                found.append(f"{key} changes no watt of this")
        return found


def why_power(found: PowerEstimate) -> str:
    """How much of a power is drawn in any case, and which unit draws most."""
    still, power = found.idle_w, math.fsum(found.parts_w.values())
    busy = sorted(((watts, part) for part, watts in found.parts_w.items() if part in found.shares and watts > 0.0), reverse=True)
    first = f"; of the units {busy[0][1]} draws most, {show(busy[0][0], 'W', 3)}" if busy else ""
    return f"{100 * still / power:.0f} % of it is drawn when nothing runs{first}."

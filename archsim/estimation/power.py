"""Power of a device from how busy its units are, as a profiler counts it: no network, no kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from archsim.base.arguments import ARGUMENTS, CLOCKS
from archsim.base.errors import ArchsimError, InputError, Unsupported
from archsim.base.files import LIMITS
from archsim.base.record import Answer
from archsim.base.units import parse, show
from archsim.calibration.constants import Calibration, Spread, default
from archsim.calibration.nearness import Question
from archsim.cost.power import within_heat
from archsim.cost.switched import highest_clock, memory_family, voltage, voltage_line
from archsim.cost.units import at_other_clocks, package_power, unit_power
from archsim.device import units
from archsim.device.device import Cpu, Gpu
from archsim.device.spec import Spec
from archsim.device.units import UnitClocks
from archsim.device.variant import device_fields, first_of
from archsim.estimation.clock import ROUNDED, check_core_clock, limit_note, limit_notes, memory_clock_of, memory_clock_top
from archsim.estimation.hardware import find_device, host_of, platform_of, unneeded_keys
from archsim.estimation.wall import WALL, WallPower, check_boundary, usual_wall_power
from archsim.evidence.table import MOST_TOLD, Row, read_table, refuse

HALVINGS = 50  # of the range in which the clock under a limit is sought
COUNTED = 0.02  # counters of one run that are read one after the other differ by as much. A choice.
CONSTANTS = {"fp32": "energy.lane", "int": "energy.int", "fp64": "energy.double", "special": "energy.special",
             "tensor": "energy.tensor", "shared": "energy.shared", "l2": "energy.cache"}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedUnits:
    """The units of one kind of device whose use is counted.

    awake: the unit in which the `inside` ones work; all: the others, with what the share of each is of; named: by any name
    idle: the parts that are drawn when nothing runs; errors: the class of measured powers whose errors give the interval
    read, elsewhere: how keys begin that the power reads, and keys that set limits and clocks
    each, usual: what `awake` has many of, and what the usual clock is, in words
    """

    awake: str
    all: Mapping[str, str]
    named: Callable[[str], str]
    inside: tuple[str, ...]
    idle: tuple[str, ...]
    errors: str
    read: tuple[str, ...]
    elsewhere: tuple[str, ...]
    each: str
    usual: str


OF_KIND = {
    "gpu": CountedUnits(
        awake=units.AWAKE, all=units.UNITS, named=units.unit_named, idle=("standing", "leakage", "clocks"),
        inside=("fp32", "int", "fp64", "special", "tensor", "shared"), errors="units",
        read=("chip.", "power.", "clock.", "rate.", "sm.count", "sm.shared_bandwidth", "l2.bandwidth", "memory.bandwidth",
              "memory.achievable", "memory.data_rate", "memory.type"),
        elsewhere=("power.tdp", "power.throttle", "power.air", "power.thermal_resistance", "memory.data_rate", "clock.sustained"),
        each="sm 1: every SM is taken to work all the time", usual="the sustained clock of the spec",
    ),
    "cpu": CountedUnits(
        awake=units.CORE, all=units.PACKAGE_UNITS, named=units.package_unit_named, idle=("standing",), inside=("simd",),
        read=("chip.", "power.", "clock.", "core.count", "core.simd", "core.fma_ports", "memory.bandwidth", "memory.type",
              "l2.bandwidth", "l3.bandwidth"),
        elsewhere=("power.tdp",), errors="power", usual="that of dense SIMD code on all cores",
        each="core 1: every core is taken to be awake all the time",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerEstimate(Answer):
    """Power of a GPU, or of the packages of a CPU, whose units are busy for known shares of the time.

    name: what a file of rows calls it
    clock_hz, memory_clock_hz: where it runs; the memory clock as drivers show it, half the data rate of a pin, None if unknown
    counted_clock_hz, counted_memory_clock_hz: where the shares were counted
    voltage: of the core, as a share of that at the chip's highest clock
    shares: of each unit at these clocks, `sm` first, or `core` on a CPU
    parts_w: `standing`, `leakage`, `clocks` (on a CPU `uncore`), `active_units`, then each unit; they add up to `power_w`
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
    name: str = ""
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


@dataclass(frozen=True, kw_only=True)
class UnitUse:
    """Units of a device at work.

    counted: the shares as they were counted at the clocks `was`; now: the clocks of the answer; limit: of power [W]
    """

    spec: Spec
    counted: Mapping[str, float]
    was: UnitClocks
    now: UnitClocks
    limit: float
    constants: Calibration

    def shares_at(self, clock: float) -> dict[str, float]:
        """The shares of all units when the same work runs at a core clock, what is awake first; those of a CPU stay."""
        device, of, at = self.spec.device, OF_KIND[self.spec.kind], replace(self.now, core=clock)
        awake = float(any(share > 0.0 for share in self.counted.values()))
        counted = {of.awake: awake, **dict.fromkeys(of.all, 0.0), **self.counted}
        if isinstance(device, Cpu) or at == self.was or not awake:
            return counted
        given = {name: np.asarray(share) for name, share in counted.items()}
        moved = at_other_clocks(given, self.was, at, device.memory.achievable)
        return {name: min(first_of(moved[name]), 1.0) for name in counted}

    def parts_at(self, clock: float) -> dict[str, float]:
        """Power of each part at a core clock [W]."""
        device, shares = self.spec.device, self.shares_at(clock)
        found = (package_power(device, shares, clock, self.constants) if isinstance(device, Cpu) else
                 unit_power(_gpu(self.spec), shares, replace(self.now, core=clock), self.constants))  # fmt: skip
        return {name: first_of(value) for name, value in found.items()}

    def power_at(self, clock: float) -> float:
        """Power at a core clock [W]."""
        return math.fsum(self.parts_at(clock).values())


def power_by_unit(
    hw: str, shares: Mapping[str, object], *, clock: float | None = None, memory_clock: float | None = None,
    counted_at: tuple[float, float | None] | None = None, power_limit: float | None = None,
    settings: Mapping[str, str] | None = None, scales: Mapping[str, float] | None = None, calibration: Calibration | None = None,
    boundary: str | None = None, system: str | None = None,
) -> PowerEstimate:  # fmt: skip
    """Power of a GPU, or of the packages of a CPU, whose units are busy for these shares of the time.

    shares: by unit of `archsim.device.units.UNITS`, `sm`, or a profiler's name, on a CPU by `PACKAGE_UNITS` and `core`; a unit
        that is not named does nothing
    clock: core clock [Hz]; the usual clock of the spec if not given
    memory_clock: as drivers show it, half the data rate of a pin [Hz]; the usual one if not given
    counted_at: core and memory clock [Hz] at which the shares were counted; those of the answer if not given
    power_limit: in place of the TDP [W]
    boundary, system: `wall` for the power at the plug of a computer, the share of one device of it; as of `make_request`

    Raises Unsupported for a TPU, a unit that the device does not have and a word of GPUs alone; UnknownName, ArgumentError.

    >>> found = power_by_unit("titan_xp", {"fp32": 0.8, "dram": 0.3}, clock=1.404e9)
    >>> found.power_interval_w[0] < found.power_w < found.power_interval_w[1] and found.power_w < 250.0
    True
    """
    check_boundary(boundary, system)
    spec = find_device(hw, settings, scales)
    if spec.kind == "cpu":
        for what, value in (("memory clock", memory_clock), ("counted-at", counted_at), ("boundary", boundary)):
            if value is not None:
                raise Unsupported(f"{what}: {spec.identity.id} is a CPU; power by unit has it for GPUs alone")
    else:
        _gpu(spec)
    device, of, constants = spec.device, OF_KIND[spec.kind], calibration or default()
    limit_notes(device, power_limit)  # which refuses some
    most = within_heat(device, device.power.tdp if power_limit is None else power_limit)
    now = _clocks(spec, first_of(device.usual_clock) if clock is None else clock, memory_clock)
    was = now if counted_at is None else _clocks(spec, *counted_at, counted=now)
    counted = units.shares_of(shares, of.named)
    if missing := [unit for unit, share in counted.items() if unit in of.all and share > 0.0 and not _has(spec, unit)]:
        raise Unsupported(f"share of {missing[0]}: {spec.identity.id} has no {of.all[missing[0]].partition(',')[0]}")
    use = UnitUse(spec=spec, counted=counted, was=was, now=now, constants=constants,
                  limit=first_of(most))  # fmt: skip
    core = first_of(now.core)
    parts, at_work = use.parts_at(core), use.shares_at(core)
    power, idle = math.fsum(parts.values()), math.fsum(parts[part] for part in of.idle)
    kind, spread = constants.spread_of(spec.kind, of.errors, Question(platform=platform_of(spec, spec.identity.default_stack)))
    spread = replace(spread, rows=0, basis="") if spec.kind == "cpu" else spread
    low, high = spread.around(power)
    within = clock_within(use.power_at, use.limit, core)

    def same(others: Mapping[str, str], scaled: Mapping[str, float]) -> bool:
        return replace(use, spec=find_device(hw, others, scaled)).power_at(core) == power

    keys = [key for key in unneeded_keys(settings or {}, scales or {}, same) if key not in of.elsewhere]
    found = PowerEstimate(
        **device_fields(spec), clock_hz=core, memory_clock_hz=memory_clock_of(spec, now.memory),
        counted_clock_hz=first_of(was.core), counted_memory_clock_hz=memory_clock_of(spec, was.memory),
        voltage=voltage(core, device, constants).item(), shares=at_work, parts_w=parts, power_w=power,
        power_interval_w=(max(min(idle, power), low), high), interval_level=constants.level, interval_class=kind,
        held_out=spread, idle_w=idle, power_limit_w=use.limit, power_boundary=device.power.boundary,
        above_limit=power > use.limit, clock_within_limit_hz=within,
        assumptions=tuple(_assumptions(use, clock is None, power_limit is None, counted_at is None)),
        assumed_values=tuple(entry.key for entry in spec.assumed if entry.key.startswith(of.read)),
        warnings=(*_warnings(use, power, within, at_work), *(f"{key} changes no watt of this" for key in keys)),
    )  # fmt: skip
    if boundary != WALL:
        return found
    wall = usual_wall_power(power, device, host_of(spec), system)
    return replace(found, power_w=wall.share_w, power_interval_w=wall.held_out.around(wall.share_w),
                   parts_w={**parts, **wall.added_w}, interval_class=wall.interval_class, held_out=wall.held_out,
                   power_boundary=WALL, wall=wall)  # fmt: skip


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


def _gpu(spec: Spec) -> Gpu:
    if not isinstance(spec.device, Gpu):
        raise Unsupported(f"{spec.identity.id} is a {spec.kind.upper()}: power by unit is modelled for GPUs and CPUs; "
                          f"`archsim estimate --hw {spec.identity.id}` gives the power of a network on it")  # fmt: skip
    return spec.device


def _clocks(spec: Spec, clock: float, memory: float | None, counted: UnitClocks | None = None) -> UnitClocks:
    """Clocks [Hz] as the model takes them; without a memory clock that of `counted`, or the usual one."""
    check_core_clock(spec, clock)
    if memory is None:
        return UnitClocks(core=clock, memory=1.0 if counted is None else counted.memory)
    ARGUMENTS["memory_clock"].check(memory)
    return UnitClocks(core=clock, memory=memory / memory_clock_top(spec, memory))


def _has(spec: Spec, unit: str) -> bool:
    """Whether a device has a unit; a CPU has all."""
    return spec.kind == "cpu" or bool(first_of(units.unit_rates(_gpu(spec), UnitClocks(core=1.0))[unit]) > 0.0)


def _warnings(use: UnitUse, power: float, within: float | None, shares: Mapping[str, float]) -> list[str]:
    """What is said of a power above the limit, clocks above the usual ones, and shares that cannot be [W, Hz]."""
    of, core, memory = OF_KIND[use.spec.kind], first_of(use.now.core), first_of(use.now.memory)
    found, top = [], first_of(highest_clock(use.spec.device))
    if power > use.limit:
        way = "at no clock does this work stay within it" if within is None else (
            f"the device would lower its clock; the same work stays within it up to {show(within, 'Hz')}")  # fmt: skip
        found.append(f"{power:.4g} W is above the power limit, {use.limit:g} W: {way}")
    if core > ROUNDED * top:
        found.append(f"clock {show(core, 'Hz')} is above the chip's highest, {show(top, 'Hz')}: the voltage is extrapolated")
    busiest = max(of.inside, key=lambda unit: shares[unit])
    if shares[busiest] > shares[of.awake] + COUNTED:
        found.append(f"share of {busiest}, {shares[busiest]:.3g}, is above that of {of.awake}, {shares[of.awake]:.3g}: a unit "
                     f"works only while its {of.awake} does")  # fmt: skip
    if memory > ROUNDED:
        found.append(f"memory clock: {memory:.3g} times the usual one; the constants are of lower ones")
    return found


def _assumptions(use: UnitUse, usual: bool, tdp: bool, here: bool) -> list[str]:
    """What was taken because nobody said or measured it, one sentence each.

    usual: clock of the answer; tdp: limit; here: the shares were counted at the clocks of the answer
    """
    device, entry, constants, of = use.spec.device, use.spec.entries["power.idle"], use.constants, OF_KIND[use.spec.kind]
    found = []
    if use.spec.kind == "cpu":
        found.append("interval: the widest of other classes, since no measured power of a CPU is behind it")
    if usual:
        found.append(f"clock {show(first_of(use.now.core), 'Hz')}: {of.usual}")
    if tdp:
        found.append(limit_note(device, use.limit))
    if entry.unpublished:
        found.append(f"idle power {first_of(device.power.idle):g} W: {entry.kind}, nobody measured it on this device")
    if here and use.counted and isinstance(device, Gpu):
        found.append("shares are taken as counted at these clocks")
    if use.counted and of.awake not in use.counted:
        found.append(of.each)
    if use.counted and (missing := [unit for unit in of.all if unit not in use.counted and _has(use.spec, unit)]):
        found.append(f"not counted and taken to be idle: {', '.join(missing)}")
    if not isinstance(device, Gpu):
        return found
    if device.power.voltage_slope is None or device.power.voltage_floor is None:
        slope, floor = (first_of(value) for value in voltage_line(device, constants))
        found.append(f"voltage: the line of all GPUs (slope {slope:.3g}, floor {floor:.3g}); that of "
                     f"{use.spec.identity.architecture} is not known")  # fmt: skip
    names = {**CONSTANTS, "dram": f"energy.byte.{memory_family(device)}"}
    known, busy = constants.constants, {unit for unit, share in use.counted.items() if share > 0.0}
    guessed = [unit for unit, name in names.items() if unit in busy and name in known and not known[name].fitted]
    if guessed:
        found.append(f"energy of {', '.join(guessed)}: not fitted to measured powers (`archsim show calibration energy.`)")
    return found


def why_power(found: PowerEstimate) -> str:
    """How much of a power is drawn in any case, and which unit draws most."""
    still, power = found.idle_w, math.fsum(found.parts_w.values())
    busy = sorted(((watts, part) for part, watts in found.parts_w.items() if part in found.shares and watts > 0.0), reverse=True)
    first = f"; of the units {busy[0][1]} draws most, {show(busy[0][0], 'W', 3)}" if busy else ""
    return f"{100 * still / power:.0f} % of it is drawn when nothing runs{first}."


WRITTEN = {"clock": "Hz", "memory_clock": "Hz", "power": "W"}  # columns of a file with units; `power` was measured
OWN = ("name", *WRITTEN)


def powers_of_file(path: str | Path, hw: str, **asked: Any) -> tuple[PowerEstimate, ...]:
    """The power of each row of a file.

    A row has the share of each unit in its column, and may have a `name`, a `clock` and a `memory_clock` with their units, and
    the `power` that was measured (`231 W`). An empty cell says nothing.

    asked: arguments of `power_by_unit`; a clock of a row goes before the one that is given here

    Raises MissingFile, or InputError with every problem and its line.
    """
    table, problems = read_table(path, LIMITS["shares"]), []
    named = OF_KIND["cpu" if find_device(hw, asked.get("settings"), asked.get("scales")).kind == "cpu" else "gpu"].named
    columns = [name for name in table.header if name not in OWN]
    for name in columns:
        try:
            named(name)
        except ArchsimError as error:
            problems.append(f"line 1: column {name!r}: {error}")
    if not columns:
        problems.append("line 1: no column for a unit; columns are units, name, clock, memory_clock and power")
    refuse(table.path, problems)
    power_by_unit(hw, {}, **asked)  # what is wrong with the device or the words of the question is no problem of a line
    found: list[PowerEstimate] = []
    for row in table.rows:
        try:
            found.append(_power(row, hw, asked))
        except (ArchsimError, ValueError) as error:
            problems.append(f"line {row.line}: {error}")
            if len(problems) >= MOST_TOLD:
                break
    refuse(table.path, problems)
    return tuple(found)


def _power(row: Row, hw: str, asked: Mapping[str, Any]) -> PowerEstimate:
    cells = {name: text.strip() for name, text in row.cells.items() if text.strip()}
    numbers = {name: _number(name, cells.pop(name)) for name in WRITTEN if name in cells}
    name, measured = cells.pop("name", ""), numbers.pop("power", None)
    found = replace(power_by_unit(hw, cells, **{**asked, **numbers}), name=name)
    if measured is None:
        return found
    if not measured > 0.0:
        raise InputError("power", "must be more than 0 W")
    return replace(found, measured_w=measured, error=found.power_w / measured - 1.0)


def _number(column: str, text: str) -> float:
    try:
        return parse(text, WRITTEN[column])
    except ValueError as error:
        raise InputError(column, str(error)) from None

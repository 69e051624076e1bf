"""Power of a device from how busy its units are, as a profiler counts it: no network, no kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from archsim.base.arguments import ARGUMENTS
from archsim.base.errors import Unsupported
from archsim.calibration.constants import Calibration, default
from archsim.cost.package import package_power
from archsim.cost.power import within_heat
from archsim.cost.switched import memory_family
from archsim.cost.units import at_other_clocks, unit_power
from archsim.cost.voltage import voltage_line
from archsim.device.device import Cpu, Device, Gpu
from archsim.device.spec import Spec
from archsim.device.units import AWAKE, CORE, PACKAGE_UNITS, UNITS, UnitClocks, package_unit_named, shares_of, unit_rates
from archsim.estimation.boundary import WALL, check_boundary
from archsim.estimation.clock import ROUNDED, check_core_clock, limit_notes, memory_clock_top
from archsim.estimation.power_estimate import PowerEstimate, UnitsAtWork
from archsim.estimation.request import find_device, host_of

IDLE = ("standing", "leakage", "clocks")  # the parts that are drawn when nothing runs
OF_SM = ("fp32", "int", "fp64", "special", "tensor", "shared")  # units that only work where their SM does
READ = ("chip.", "power.", "clock.", "rate.", "sm.count", "sm.shared_bandwidth", "l2.bandwidth", "memory.bandwidth",
        "memory.achievable", "memory.data_rate", "memory.type")  # fmt: skip  # keys of a device that are read here
READ_OF_CPU = ("chip.", "power.", "clock.", "core.count", "core.simd", "core.fma_ports", "memory.bandwidth", "memory.type",
               "l2.bandwidth", "l3.bandwidth")  # fmt: skip
CONSTANTS = {"fp32": "energy.lane", "int": "energy.int", "fp64": "energy.double", "special": "energy.special",
             "tensor": "energy.tensor", "shared": "energy.shared", "l2": "energy.cache"}  # fmt: skip
ELSEWHERE = ("power.tdp", "power.throttle", "power.air", "power.thermal_resistance", "memory.data_rate",
             "clock.sustained")  # they set the limit, and which clocks are the usual ones


@dataclass(frozen=True, kw_only=True)
class UnitUse(UnitsAtWork):
    """Units of a GPU at work: what the power is computed from.

    counted: the shares as they were counted at the clocks `was`; now: the clocks of the answer
    """

    counted: Mapping[str, float]
    was: UnitClocks
    now: UnitClocks

    @property
    def device(self) -> Gpu:
        """The GPU."""
        return _gpu(self.spec)

    def shares_at(self, clock: float) -> dict[str, float]:
        """None is more than the whole time."""
        at = replace(self.now, core=clock)
        awake = float(any(share > 0.0 for share in self.counted.values()))
        counted = {AWAKE: awake, **dict.fromkeys(UNITS, 0.0), **self.counted}
        if at == self.was or not awake:
            return counted
        given = {name: np.asarray(share) for name, share in counted.items()}
        moved = at_other_clocks(given, self.was, at, self.device.memory.achievable)
        return {name: min(float(np.ravel(moved[name])[0]), 1.0) for name in counted}

    def parts_of(self, spec: Spec, clock: float) -> dict[str, float]:
        """Power of each part [W]."""
        found = unit_power(_gpu(spec), replace(self, spec=spec).shares_at(clock), replace(self.now, core=clock), self.constants)
        return {name: float(np.ravel(value)[0]) for name, value in found.items()}


def power_by_unit(
    hw: str, shares: Mapping[str, object], *, clock: float | None = None, memory_clock: float | None = None,
    counted_at: tuple[float, float | None] | None = None, power_limit: float | None = None,
    settings: Mapping[str, str] | None = None, scales: Mapping[str, float] | None = None, calibration: Calibration | None = None,
    name: str = "", boundary: str | None = None, system: str | None = None,
) -> PowerEstimate:  # fmt: skip
    """Power of a GPU, or of the packages of a CPU, whose units are busy for these shares of the time.

    shares: by unit of `archsim.device.units.UNITS`, `sm`, or a profiler's name, on a CPU by `PACKAGE_UNITS` and `core`; a unit
        that is not named does nothing
    clock: core clock [Hz]; the usual clock of the spec if not given
    memory_clock: as drivers show it, half the data rate of a pin [Hz]; the usual one if not given
    counted_at: core and memory clock [Hz] at which the shares were counted; those of the answer if not given
    power_limit: in place of the TDP [W]
    boundary, system: `wall` for the power at the plug of a computer, the share of one device of it; as of `make_request`

    Raises Unsupported for a TPU, for a unit that the device does not have and for a word that a CPU has no use for; UnknownName,
    ArgumentError.

    >>> found = power_by_unit("titan_xp", {"fp32": 0.8, "dram": 0.3}, clock=1.404e9)
    >>> found.power_interval_w[0] < found.power_w < found.power_interval_w[1] and found.power_w < 250.0
    True
    """
    check_boundary(boundary, system)
    spec = find_device(hw, settings, scales)
    of: dict[str, Any] = {"hw": hw, "settings": settings or {}, "scales": scales or {}, "spec": spec,
                          "constants": calibration or default()}  # fmt: skip
    if isinstance(spec.device, Cpu):
        return _of_packages(spec, shares, clock, (memory_clock, counted_at, boundary), power_limit, name,
                            {**of, "limit": _most_power(spec.device, power_limit)})  # fmt: skip
    device = _gpu(spec)
    clock_hz = float(np.ravel(device.usual_clock)[0]) if clock is None else clock
    now = _clocks(spec, clock_hz, memory_clock)
    was = now if counted_at is None else _clocks(spec, *counted_at, counted=now)
    use = UnitUse(**of, counted=_counted(spec, shares_of(shares)), was=was, now=now, clock=clock_hz,
                  limit=_most_power(device, power_limit))  # fmt: skip
    hertz = [None if device.memory_clock is None else device.memory_clock * float(np.ravel(one.memory)[0]) for one in (now, was)]
    found = use.answer(
        name, of=use.spread("units"), idle=IDLE, read=READ, elsewhere=ELSEWHERE, inside=OF_SM,
        assumptions=_assumptions(use, shares, clock is None, counted_at is None, power_limit is None),
        warnings=[f"memory clock: {float(np.ravel(now.memory)[0]):.3g} times the usual one; the constants are of lower ones"]
        if float(np.ravel(now.memory)[0]) > ROUNDED else (),
        memory_hz=(hertz[0], hertz[1]), counted_hz=float(np.ravel(was.core)[0]),
    )  # fmt: skip
    if boundary != WALL:
        return found
    return _at_wall(found, device, host_of(spec), system)


def _of_packages(
    spec: Spec, shares: Mapping[str, object], clock: float | None, of_gpus: tuple[object, ...], limit: float | None, name: str,
    of: Mapping[str, Any],
) -> PowerEstimate:  # fmt: skip
    """The same of a CPU. `of_gpus`: memory clock, clocks of the counts and boundary, which only GPUs have here."""
    for what, value in zip(("memory clock", "counted-at", "boundary"), of_gpus, strict=True):
        if value is not None:
            raise Unsupported(f"{what}: {spec.identity.id} is a CPU; power by unit has it for GPUs alone")
    check_core_clock(spec, clock)
    at = float(np.ravel(spec.device.usual_clock)[0]) if clock is None else clock
    use = PackageUse(**of, shares=shares_of(shares, package_unit_named), clock=at)
    kind, spread = use.spread("power")
    return use.answer(
        name, of=(kind, replace(spread, rows=0, basis="")), idle=("standing",), read=READ_OF_CPU, elsewhere=("power.tdp",),
        inside=("simd",), assumptions=_assumptions_of_cpu(use, clock is None, limit is None),
    )  # fmt: skip


def _at_wall(found: PowerEstimate, device: Gpu, beside: Spec, name: str | None) -> PowerEstimate:
    """The power at the wall: the share of one device of its computer, in which `beside` is the host CPU."""
    from archsim.estimation.wall import interval_of, system_of, wall_power

    host = beside.device
    assert isinstance(host, Cpu)
    system, devices = system_of(device, host, beside.identity.id, name)
    wall = wall_power(found.power_w, device, host, system, devices)
    return replace(found, power_w=wall.share_w, power_interval_w=interval_of(wall, wall.share_w),
                   parts_w={**found.parts_w, **wall.added_w}, interval_class=wall.interval_class, held_out=wall.held_out,
                   power_boundary=WALL, wall=wall)  # fmt: skip


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


def _counted(spec: Spec, shares: dict[str, float]) -> dict[str, float]:
    rates = unit_rates(_gpu(spec), UnitClocks(core=1.0))
    for unit, share in shares.items():
        if unit != AWAKE and share > 0.0 and not float(np.ravel(rates[unit])[0]) > 0.0:
            raise Unsupported(f"share of {unit}: {spec.identity.id} has no {UNITS[unit].partition(',')[0]}")
    return shares


def _assumptions(use: UnitUse, shares: Iterable[str], usual: bool, here: bool, tdp: bool) -> list[str]:
    """What was taken because nobody said or measured it, one sentence each."""
    device, constants = use.device, use.constants
    found = use.assumptions("the sustained clock of the spec" if usual else "", tdp)
    if here and [*shares]:
        found.append("shares are taken as counted at these clocks")
    if use.counted and AWAKE not in use.counted:
        found.append("sm 1: every SM is taken to work all the time")
    missing = [unit for unit in UNITS if unit not in use.counted and _has(use, unit)]
    if missing and use.counted:
        found.append(f"not counted and taken to be idle: {', '.join(missing)}")
    if device.power.voltage_slope is None or device.power.voltage_floor is None:
        slope, floor = (float(np.ravel(value)[0]) for value in voltage_line(device, constants))
        found.append(f"voltage: the line of all GPUs (slope {slope:.3g}, floor {floor:.3g}); that of "
                     f"{use.spec.identity.architecture} is not known")  # fmt: skip
    names = {**CONSTANTS, "dram": f"energy.byte.{memory_family(device)}"}
    known, busy = constants.constants, {unit for unit, share in use.counted.items() if share > 0.0}
    guessed = [unit for unit, name in names.items() if unit in busy and name in known and not known[name].fitted]
    if guessed:
        found.append(f"energy of {', '.join(guessed)}: not fitted to measured powers (`archsim show calibration energy.`)")
    return found


def _has(use: UnitUse, unit: str) -> bool:
    return bool(float(np.ravel(unit_rates(use.device, use.now)[unit])[0]) > 0.0)


def _most_power(device: Device, limit: float | None) -> float:
    """What a board or package may draw: a limit that is given or its TDP, and no more than its cooler carries away [W]."""
    limit_notes(device, limit)
    return float(np.ravel(within_heat(device, device.power.tdp if limit is None else limit))[0])  # type: ignore[arg-type]


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


def _assumptions_of_cpu(use: PackageUse, usual: bool, tdp: bool) -> list[str]:
    found = ["interval: the widest of other classes, since no measured power of a CPU is behind it"]
    found += use.assumptions("that of dense SIMD code on all cores" if usual else "", tdp)
    if use.shares and CORE not in use.shares:
        found.append("core 1: every core is taken to be awake all the time")
    missing = [unit for unit in PACKAGE_UNITS if unit not in use.shares]
    if missing and use.shares:
        found.append(f"not counted and taken to be idle: {', '.join(missing)}")
    return found

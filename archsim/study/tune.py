"""The best setting of a device for a network: core clock, memory clock, power limit and batch, under conditions.

The search is that of `archsim.study.search`, over settings in place of devices. Energies are those of a sample, so that
batches can be compared; the delay of a sample is the latency of its batch.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from archsim.base.arguments import ARGUMENTS, chosen
from archsim.base.errors import ArgumentError, UnknownName
from archsim.base.files import data_folder
from archsim.base.record import Answer
from archsim.base.units import show
from archsim.cost.power import SLOWEST
from archsim.device.device import Gpu
from archsim.device.spec import Spec
from archsim.device.variant import first_of
from archsim.estimation.clock import ROUNDED, highest_clock, memory_clock_of
from archsim.estimation.estimate import check_budget
from archsim.estimation.hardware import find_device
from archsim.estimation.request import Request, make_request
from archsim.stack.catalog import MeasuredRows, rows_of
from archsim.study.axis import BadAxis, KnobAxis, axis_of, base_value
from archsim.study.certainty import Saving, savings
from archsim.study.knob import meaning
from archsim.study.objective import (
    OUTPUT_NAMES,
    OUTPUTS,
    SILICON,
    Condition,
    Nameable,
    Objective,
    nameable,
    output_of,
    read_conditions,
)
from archsim.study.search import Evaluator, SearchGoal, check_count, row_at, search
from archsim.study.space import Space
from archsim.study.target import limits_at
from archsim.trace.dims import BATCH

# ------------------------------------------------------------------------------------------------------------- settings

SETTINGS = (*chosen(lambda row: row.tuned and row.kind == "quantity"), *chosen(lambda row: row.tuned and row.kind == "whole"))
CLOCK_STEP = {"gpu": 15e6, "cpu": 100e6}  # Hz; of NVIDIA's drivers since 2017, and of the multiplier of x86
LIMITS = tuple(round(1.0 - 0.05 * i, 2) for i in range(13))  # power limits, as shares of the TDP: boards admit down to about 0.4
BATCHES = tuple(2.0**i for i in range(7))  # samples of a run


def axes_of(spec: Spec, vary: Sequence[str], fixed: Container[str]) -> tuple[KnobAxis, ...]:
    """The axes of a search for a setting: those of `vary` as KEY=VALUES, and the usual ones of all others that are not fixed.

    The highest clock and limit come first, so that of equal settings the one with the least restrictions is found.

    Raises BadAxis, or UnknownName for what is no setting.
    """
    named = [_named(text, spec.kind) for text in vary]
    given = {axis.knob: axis for axis in named}
    for axis in named:
        if named.count(axis) > 1 or given[axis.knob] is not axis:
            raise BadAxis(f"{axis.knob}: is varied twice")
    usual = {"clock": core_clocks(spec), "memory_clock": memory_clocks(spec), "power_limit": power_limits(spec),
             "batch": BATCHES}
    found = [given[knob] if knob in given else KnobAxis(knob=knob, written=_written(knob, usual[knob]), values=usual[knob])
             for knob in SETTINGS if knob in given or (usual.get(knob) and knob not in fixed)]  # fmt: skip
    return tuple(map(_from_above, found))


def _named(text: str, kind: str) -> KnobAxis:
    knob = text.partition("=")[0].strip()
    if knob not in SETTINGS:
        raise UnknownName("setting", knob, SETTINGS, hint=f"one of {', '.join(SETTINGS)}; `archsim search` varies the device")
    return axis_of(text, kind)


def _from_above(axis: KnobAxis) -> KnobAxis:
    values = tuple(sorted((float(value) for value in axis.values), reverse=True))
    return axis if not values else KnobAxis(knob=axis.knob, written=axis.written, values=values, whole=axis.whole)


def core_clocks(spec: Spec) -> tuple[float, ...]:
    """Core clocks from the highest that the device takes by itself down to a tenth of it, where clock tables end [Hz]; none of a
    TPU, which lets nobody set one."""
    if spec.kind not in CLOCK_STEP:
        return ()
    top = first_of(highest_clock(spec.device))
    return tuple(float(clock) for clock in np.arange(top, SLOWEST * top, -CLOCK_STEP[spec.kind]))


def memory_clocks(spec: Spec) -> tuple[float, ...]:
    """Memory clocks that a driver offers [Hz]: those at which the card was measured, and the usual one; none of a CPU.

    >>> from archsim.device.catalog import find
    >>> [round(clock / 1e6) for clock in memory_clocks(find("titan_x_maxwell"))]
    [3505, 810]
    """
    device = spec.device
    usual = device.memory_clock if isinstance(device, Gpu) else None
    if usual is None:
        return ()
    seen = [clock for clock in measured_memory_clocks().get(spec.identity.id, ()) if clock * ROUNDED < usual]
    return (usual, *sorted(seen, reverse=True))


@cache
def measured_memory_clocks() -> Mapping[str, tuple[float, ...]]:
    """For each device the memory clocks of the published powers by unit [Hz]."""
    from archsim.evidence.table import read_table

    table = read_table(data_folder("reports/published").joinpath("unit_power.csv.gz"))
    found: dict[str, set[float]] = {}
    for row in table.rows:
        if row.cells["mem_mhz"]:
            found.setdefault(row.cells["hardware"], set()).add(1e6 * float(row.cells["mem_mhz"]))
    return {device: tuple(sorted(clocks)) for device, clocks in found.items()}


def power_limits(spec: Spec) -> tuple[float, ...]:
    """Power limits from the TDP down to 40 % of it, above the idle power [W]; none of a TPU, of which they are not modelled."""
    if spec.kind not in CLOCK_STEP:
        return ()
    power = spec.device.power
    tdp, idle = (first_of(value) for value in (power.tdp, power.idle))
    return tuple(share * tdp for share in LIMITS if share * tdp > idle)


def _written(knob: str, values: Sequence[float]) -> str:
    unit = meaning("gpu", knob).unit
    return ",".join(show(value, unit, 6).replace(" ", "") for value in values)


def range_words(axis: KnobAxis, kind: str) -> str:
    """An axis in words: its values where they are few, otherwise its ends."""
    unit = meaning(kind, axis.knob).unit
    values = [show(float(value), unit) for value in sorted(float(value) for value in axis.values)]
    name = ARGUMENTS[axis.knob].title
    return f"{name} {', '.join(values)}" if len(values) < 5 else f"{name} {values[0]} to {values[-1]} ({len(values)})"


# --------------------------------------------------------------------------------------------------------- the best one

FRONT = ("latency_s", "energy_per_sample_j")
SHOWN = (*FRONT, "power_w", "throughput_per_s", "throughput_per_w", "energy_delay_js", "memory_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingPoint:
    """A setting, and what the network takes there.

    clock_hz, power_limit_w: the highest that kernels take and draw; mean_clock_hz: at which they run, over their time
    memory_clock_hz: as drivers show it; None where it is not known
    energy_per_sample_j: of one image or sequence; energy_delay_js: times the latency of its batch
    """

    clock_hz: float
    memory_clock_hz: float | None
    power_limit_w: float
    batch: int
    threads: int | None
    mean_clock_hz: float
    latency_s: float
    energy_per_sample_j: float
    power_w: float
    throughput_per_s: float
    throughput_per_w: float
    energy_delay_js: float
    memory_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning(Answer):
    """The best setting that a search has found, beside the default one.

    minimise: the output that ranks, which is the largest where more of it is better; where: the conditions as written
    energy_budget_j: of a sample; None without one
    ranges: what was tried, in words; points: settings tried, of which `feasible` meet the conditions and fit the memory, and
        `impossible` cannot be, for the reason `why`
    default: what runs without any setting; best: None where no setting meets the conditions, and then `nearest` misses them least
    saved: outputs of the best beside the default, at `interval_level`
    front: the settings of which no other has both less latency and less energy, fastest first
    limits, default_limits: what each resource would save if it were 20 % faster, as shares of the latency, largest first
    """

    network: str
    hardware: str
    hardware_name: str
    changes: Mapping[str, str]
    stack: str
    stack_rows: MeasuredRows
    task: str
    precision: str
    fidelity: str
    minimise: str
    where: tuple[str, ...]
    energy_budget_j: float | None
    ranges: tuple[str, ...]
    points: int
    feasible: int
    impossible: int
    why: str
    default: OperatingPoint
    best: OperatingPoint | None
    nearest: OperatingPoint | None
    saved: Mapping[str, Saving]
    interval_level: float
    front: tuple[OperatingPoint, ...]
    limits: Mapping[str, float]
    default_limits: Mapping[str, float]
    notes: tuple[str, ...]

    @property
    def objective(self) -> Objective:
        """What ranks."""
        return Objective(output=self.minimise, maximise=OUTPUTS[self.minimise][2])


def aim_of(name: str) -> str:
    """The output that a user wants least or, of rates, most of; energy is that of a sample. Raises UnknownName.

    >>> aim_of("energy"), aim_of("latency"), aim_of("energy_delay")
    ('energy_per_sample_j', 'latency_s', 'energy_delay_js')
    """
    output = output_of(name)
    if output in SILICON:
        raise ArgumentError(f"minimise {name}: no setting changes it; `archsim search` varies the device")
    return "energy_per_sample_j" if output == "energy_j" else output


def conditions_of(text: str) -> list[Condition]:
    """The conditions of `latency < 20ms and energy < 0.2J`, the energy that of a sample. Raises BadCondition or UnknownName."""
    known = {name: found for name, found in OUTPUT_NAMES.items() if found.key not in SILICON}
    own = nameable({knob: ARGUMENTS[knob].unit for knob in SETTINGS}, {})
    known |= {"energy": Nameable(key="energy_per_sample_j", unit="J", plain=False)}
    return read_conditions(text, known | {name: one for name, one in own.items() if name not in known})


def tune(
    net: str, hw: str, arguments: Mapping[str, Any], *, minimise: str = "energy", where: str | None = None,
    vary: Sequence[str] = (), energy_budget: float | None = None, tell: Callable[[str], None] = lambda text: None,
) -> Tuning:  # fmt: skip
    """The setting with the least of an output, among those that meet the conditions.

    arguments: of `make_request`, the same for all settings; a setting among them stays as it is
    minimise: energy, energy_delay, latency, power, ...; a throughput or an efficiency is maximised
    where: like "latency < 20ms"; energy_budget: the most energy of a sample [J]
    vary: values of settings, as KEY=VALUES, in place of the usual ones

    Raises BadAxis, BadCondition, UnknownName, and what `make_request` raises.
    """
    aim, (space, held) = aim_of(minimise), space_of_settings(net, hw, arguments, vary)
    conditions = _conditions(where, energy_budget, space)
    request = space.checked()[0]
    check_count(space)
    objective = Objective(output=aim, maximise=OUTPUTS[aim][2])
    front = tuple(Objective(output=output, maximise=False) for output in FRONT)
    goal = SearchGoal(objectives=(objective,), conditions=tuple(conditions), front=front)
    found = search(request, space, goal, top=1, tell=tell)
    own = _point(request, {}, found.base)
    first = found.best[0] if found.best else None
    best = None if first is None else _point(request, first, first)
    return Tuning(
        **request.labels, stack_rows=rows_of(request.stack), task=request.task, fidelity=request.fidelity.name,
        minimise=aim, where=tuple(c.written for c in conditions), energy_budget_j=energy_budget,
        ranges=(*(range_words(axis, request.spec.kind) for axis in space.axes), *held),
        points=found.points, feasible=found.feasible, impossible=found.broken, why=found.why, default=own, best=best,
        nearest=None if best else _nearest(request, space, replace(goal, conditions=()), conditions),
        saved={} if first is None or best is None else savings(request, found.base, first, *_differ(own, best)),
        interval_level=request.calibration.level, front=tuple(_point(request, row, row) for row in found.front),
        limits={} if first is None else limits_at(request, {knob: first[knob] for knob in space.knobs}),
        default_limits=limits_at(request, {}), notes=request.notes,
    )  # fmt: skip


def space_of_settings(
    net: str, hw: str, arguments: Mapping[str, Any], vary: Sequence[str]
) -> tuple[Space, tuple[str, ...]]:  # fmt: skip
    """All settings that are tried, and in words those that stay as they were asked for."""
    spec = find_device(hw, arguments.get("settings"), arguments.get("scales"))
    fixed = {knob for knob in chosen(lambda row: row.tuned and row.kind == "quantity") if arguments.get(knob) is not None}
    fixed |= {"clock"} if arguments.get("power_mode") is not None else set()
    free = arguments.get("batch") is None and BATCH in make_request(net, hw, **arguments).trace.symbols
    fixed |= set() if free else {"batch"}
    axes = axes_of(spec, vary, fixed)
    if not axes:
        raise ArgumentError("nothing varies: every setting is given; leave one out, or --vary batch=1:64:x2")
    held = tuple(f"{knob.replace('_', ' ')} as asked" for knob in sorted(fixed - {"batch"}))
    return Space(bases=({"net": net, "hw": hw},), asked=dict(arguments), axes=axes), held


def _conditions(where: str | None, budget: float | None, space: Space) -> list[Condition]:
    """All conditions. Raises ArgumentError for one on a setting that does not vary."""
    found = conditions_of(where) if where else []
    for condition in found:
        if condition.name in SETTINGS and condition.name not in space.knobs:
            raise ArgumentError(f"where: {condition.name} does not vary, so that a condition on it chooses nothing; leave it out")
    if budget is not None:
        check_budget(budget)
        written = f"energy_per_sample_j <= {show(budget, 'J')}"
        found.append(Condition(name="energy_per_sample_j", sign="<=", limit=budget, written=written))
    return found


def _differ(default: OperatingPoint, best: OperatingPoint) -> tuple[bool, bool]:
    """Whether two settings differ in a clock, and in the batch."""
    clocks = (default.clock_hz, default.memory_clock_hz) != (best.clock_hz, best.memory_clock_hz)
    return clocks, default.batch != best.batch


def _point(request: Request, row: Mapping[str, Any], values: Mapping[str, Any]) -> OperatingPoint:
    """A row of a search as a setting; what does not vary is as the request has it."""

    def setting(knob: str) -> float:
        return float(row[knob]) if knob in row else base_value(request, knob)

    memory = float(row["memory_clock"]) if "memory_clock" in row else memory_clock_of(request.spec, request.memory)
    threads = setting("threads")
    return OperatingPoint(
        clock_hz=setting("clock"), memory_clock_hz=memory, power_limit_w=setting("power_limit"),
        batch=round(setting("batch")), threads=None if np.isnan(threads) else round(threads),
        mean_clock_hz=float(values["clock_hz"]), **{name: float(values[name]) for name in SHOWN},
    )  # fmt: skip


def _nearest(request: Request, space: Space, goal: SearchGoal, conditions: Sequence[Condition]) -> OperatingPoint | None:
    """The setting that misses the conditions least, by the sum of the logs of the ratios by which it does."""
    evaluator, least, found = Evaluator(request), float("inf"), None
    for number in range(space.parts):
        columns = space.columns(space.part(number), request)
        values, _ = evaluator(columns)
        both: dict[str, Any] = {**columns, **values}
        missed = np.where(goal.feasible(both), sum(condition.excess(both) for condition in conditions), np.inf)
        place = int(np.argmin(missed))
        if missed[place] < least:
            least, found = float(missed[place]), row_at(both, place)
    return None if found is None else _point(request, found, found)

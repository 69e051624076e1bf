"""Predicting many cases at once: those of one device, stack and setting are lowered and costed together, as arrays.

`prepare` does what no constant changes (requests, and lowering once for each distinct layer); `evaluate` does the rest, so that
a fit repeats only that. Both call the steps of `archsim.estimation.pipeline`, which an estimate calls for one request.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from archsim.base.errors import Unsupported
from archsim.base.record import by_key
from archsim.calibration.constants import Calibration, default
from archsim.cost.cost import Array
from archsim.cost.switched import voltage
from archsim.cost.units import at_other_clocks, power_by_clock, unit_power
from archsim.device.device import Cpu, Gpu
from archsim.device.units import UnitClocks
from archsim.device.variant import first_of
from archsim.estimation.fidelity import FITTED, SIMULATED, Fidelity, find
from archsim.estimation.measured import anchored, relative, request_of, value_of
from archsim.estimation.pipeline import floor_s, lowered_of, priced, scheduled, spread
from archsim.estimation.request import Request
from archsim.evidence import case as evidence
from archsim.evidence.case import Case
from archsim.lower.kernel import Index
from archsim.lower.lower import Lowered


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Cases that share device, stack and setting, with their requests, lowered together; `plans[i]` are the plans of case i."""

    cases: tuple[Case, ...]
    requests: tuple[Request, ...]
    positions: Index
    lowered: Lowered | None  # None where the rows say how busy units are, and not with what
    plans: tuple[Index, ...]


def predict(
    cases: Sequence[Case], calibration: Calibration, fidelity: str = FITTED, without: frozenset[str] = frozenset()
) -> Array:
    """The predicted value of each case, in the unit of its metric."""
    return evaluate(prepare(cases, without), calibration, fidelity, without)


def simulated_pattern(case: Case, fidelity: str) -> float:
    """What the machine gives for the access pattern of a microbenchmark, or for a loop, in the unit of its metric.

    Raises Unsupported for another fidelity than `cycle`, and for a device or a pattern that it does not know.
    """
    device, pattern, simulated = case.spec.device, case.pattern, fidelity == SIMULATED
    if simulated and isinstance(device, Cpu) and isinstance(pattern, evidence.LoopPattern):
        from archsim.cycle.core.machine import core_machine
        from archsim.cycle.core.run import run_loop

        return run_loop(core_machine(device, case.clock or first_of(device.usual_clock)), pattern.loop).cycles
    if simulated and isinstance(device, Gpu) and isinstance(pattern, evidence.AccessPattern | evidence.ProductPattern):
        from archsim.cycle.patterns import pattern_value

        return pattern_value(device, case.clock or first_of(device.clock.boost), pattern, case.precision)
    raise Unsupported(f"an access pattern takes --fidelity {SIMULATED}")


def together(cases: Sequence[Case]) -> list[list[int]]:
    """The positions of cases that are predicted at once; a run of an engine by itself, since many do not fit their devices."""

    def key(position: int, case: Case) -> tuple[object, ...]:
        if isinstance(case.pattern, evidence.UNSIMULATED):
            return case.spec.digest, type(case.pattern), position if isinstance(case.pattern, evidence.ServingPattern) else None
        host = None if case.host_cpu is None else case.host_cpu.digest
        setting = (case.clock, case.limit, case.threads, case.training, case.timer.graph, host, case.simulated)
        return case.spec.digest, case.stack.digest, case.precision, case.stored, *setting

    return list(by_key((key(position, case), position) for position, case in enumerate(cases)).values())


def prepare(cases: Sequence[Case], without: frozenset[str] = frozenset()) -> list[Group]:
    """Group and lower the cases."""
    return [_group([cases[i] for i in positions], positions, without) for positions in together(cases)]


def _group(cases: list[Case], positions: list[int], without: frozenset[str]) -> Group:
    if isinstance(cases[0].pattern, evidence.UNSIMULATED):
        return Group(cases=tuple(cases), requests=(), positions=np.array(positions, dtype=np.intp), lowered=None, plans=())
    requests = [request_of(case, default(), without=without) for case in cases]
    networks = {id(case.ops): case.ops for case in cases}
    lengths = tuple(len(ops) for ops in networks.values())
    lowered = lowered_of(requests[0], [op for ops in networks.values() for op in ops], lengths)
    plans = dict(zip(networks, np.split(lowered.plan_of, np.cumsum(lengths)[:-1]), strict=True))
    return Group(
        cases=tuple(cases), requests=tuple(requests), positions=np.array(positions, dtype=np.intp),
        lowered=replace(lowered, ops=()), plans=tuple(plans[id(case.ops)] for case in cases),
    )  # fmt: skip


def evaluate(
    groups: Sequence[Group], calibration: Calibration, fidelity: str = FITTED, without: frozenset[str] = frozenset(),
    size: int | None = None,
) -> Array:  # fmt: skip
    """Predicted values of prepared cases, in the order in which `prepare` got them.

    size: how many it got, where these are not all their groups; NaN for the cases of others
    """
    model = find(fidelity)
    result = np.full(sum(len(group.cases) for group in groups) if size is None else size, math.nan)
    for group in groups:
        result[group.positions] = _evaluate(group, calibration, model, without)
    return result


def floors(groups: Sequence[Group], size: int | None = None) -> Array:
    """What a roofline needs for the ops of each prepared case [s], as `evaluate` orders them; NaN for those without ops."""
    result = np.full(sum(len(group.cases) for group in groups) if size is None else size, math.nan)
    for group in groups:
        if group.lowered is not None:
            plans = floor_s(group.requests[0], group.lowered.kernels)
            result[group.positions] = [spread(plans, plan_of)[0].sum() for plan_of in group.plans]
    return result


def _evaluate(group: Group, calibration: Calibration, fidelity: Fidelity, without: frozenset[str]) -> list[float]:
    if group.lowered is None:
        return _without_ops(group.cases, calibration)
    requests = [replace(request, calibration=calibration, fidelity=fidelity, without=without) for request in group.requests]
    values = _values(group, list(enumerate(requests)))
    anchors = by_key((case.anchor.limit, (i, case.anchor)) for i, case in enumerate(group.cases) if case.anchor is not None)
    for same in anchors.values():
        there = _values(group, [(i, anchored(requests[i], anchor)) for i, anchor in same])
        for (i, anchor), other in zip(same, there, strict=True):
            values[i] = relative(anchor, values[i], other)
    return values


def _without_ops(cases: Sequence[Case], calibration: Calibration) -> list[float]:
    """Powers and voltages that follow from no op, but from clocks and from what is known at others."""
    if isinstance(cases[0].pattern, evidence.ServingPattern):
        from archsim.generation.measured import serving_value

        return [serving_value(case, calibration) for case in cases]
    if isinstance(cases[0].pattern, evidence.UnitPattern):
        return [float(power) for power in unit_powers(cases, calibration)]
    return [_at_clock(case, calibration) for case in cases]


def _at_clock(case: Case, calibration: Calibration) -> float:
    """The power of a workload [W], or the core voltage [V], at a lower clock than one at which it is known."""
    device, pattern, clock = case.spec.device, case.pattern, case.clock
    assert isinstance(device, Gpu)
    assert clock is not None
    if isinstance(pattern, evidence.VoltagePattern):
        now, top = (first_of(voltage(at, device, calibration)) for at in (clock, pattern.top))
        return pattern.volts * now / top
    assert isinstance(pattern, evidence.ClockPattern)
    return power_by_clock(device, pattern.power, pattern.top, clock, pattern.rate, pattern.free, calibration)


def unit_powers(cases: Sequence[Case], calibration: Calibration) -> Array:
    """Power of rows that say how busy the units of one GPU are [W], [cases]."""
    device, patterns = cases[0].spec.device, [case.pattern for case in cases if isinstance(case.pattern, evidence.UnitPattern)]
    assert isinstance(device, Gpu)
    names = sorted({name for pattern in patterns for name in pattern.shares})
    shares = {name: np.array([pattern.shares.get(name, 0.0) for pattern in patterns]) for name in names}
    was = UnitClocks(core=np.array([pattern.core for pattern in patterns]), memory=np.array([p.memory for p in patterns]))
    now = UnitClocks(core=np.array([case.clock or p.core for case, p in zip(cases, patterns, strict=True)]),
                     memory=np.array([pattern.memory_now for pattern in patterns]))  # fmt: skip
    there = at_other_clocks(shares, was, now, device.memory.achievable) if shares else {}
    toggling = np.where([pattern.alike for pattern in patterns], calibration["energy.zeros"], 1.0)
    busy, idle = (sum(unit_power(device, at, now, calibration, toggling).values()) for at in (there, {}))
    running = np.array([pattern.running for pattern in patterns])
    return np.asarray(running * busy + (1.0 - running) * idle)


def _values(group: Group, requests: Sequence[tuple[int, Request]]) -> list[float]:
    """The values of some of a group's cases, given by their positions and requests, which agree in all that costs depend on."""
    assert group.lowered is not None
    costs, found = priced(requests[0][1], group.lowered.kernels), []
    for i, request in requests:
        lowered = replace(group.lowered, ops=group.cases[i].ops, plan_of=group.plans[i])
        found.append(value_of(group.cases[i], request, scheduled(request, lowered, costs)))
    return found

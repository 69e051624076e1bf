"""Predicting many cases at once: rows of one device, stack and setting share one set of columns.

`prepare` does what no constant changes (lowering, once for each distinct layer); `evaluate` does the rest, so that a fit
repeats only that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from archsim.calibration.constants import Calibration
from archsim.cost.cost import Array
from archsim.cost.plan import PlanCost
from archsim.device.device import Cpu, Device
from archsim.estimation.fidelity import find
from archsim.estimation.pipeline import HostTime, arithmetic, feed_time, host_time, in_order, input_bytes, on_tensor_cores, spread
from archsim.estimation.request import clock_of, highest_clock_of, limit_of
from archsim.evidence.case import Case, Shared
from archsim.lower.kernel import Index
from archsim.lower.lower import Lowered, lower
from archsim.schedule.buckets import device_step
from archsim.schedule.simulated import Plans, simulated
from archsim.schedule.timeline import Timeline
from archsim.schedule.training import Pipeline, train
from archsim.schedule.waves import phases_of
from archsim.stack import catalog as stacks
from archsim.stack.stack import Stack

PARTS = ("waves", "l2", "latency", "algorithms", "clock", "sustained", "launch", "host", "passes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Cases that share device, stack and setting, lowered together; `plans[i]` are case i's plans, `fed[i]` its input [B]."""

    cases: tuple[Case, ...]
    positions: Index
    lowered: Lowered
    plans: tuple[Index, ...]
    fed: tuple[float, ...]
    clock: float
    threads: int
    limit: float | None


def predict(
    cases: Sequence[Case], calibration: Calibration, fidelity: str = "analytical", without: frozenset[str] = frozenset()
) -> Array:
    """The predicted value of each case, in the unit of its metric."""
    return evaluate(prepare(cases, without), calibration, fidelity, without)


def prepare(cases: Sequence[Case], without: frozenset[str] = frozenset()) -> list[Group]:
    """Group and lower the cases."""
    grouped: dict[object, list[int]] = {}
    for position, case in enumerate(cases):
        key = (case.spec.digest, case.stack.digest, case.precision, case.clock, case.limit, case.threads, case.training)
        grouped.setdefault(key, []).append(position)
    return [_group([cases[i] for i in positions], positions, without) for positions in grouped.values()]


def _group(cases: list[Case], positions: list[int], without: frozenset[str]) -> Group:
    first = cases[0]
    device = first.spec.device
    networks = {id(case.ops): case.ops for case in cases}
    ops = [op for network in networks.values() for op in network]
    tensor = on_tensor_cores(first.stack, device, first.precision)
    lowered = lower(ops, _reduced(first.stack, without), device.kind, first.precision, first.training, tensor,
                    device.identity.architecture)  # fmt: skip
    plans, begin = {}, 0
    for key, network in networks.items():
        plans[key] = lowered.plan_of[begin : begin + len(network)]
        begin += len(network)
    fed = {key: input_bytes(network) for key, network in networks.items()}
    clock, limit = _clock(first, without)
    threads = first.threads or 1
    if first.threads is None and isinstance(device, Cpu):
        threads = first.stack.usual_threads(int(device.core.count), int(device.core.threads))
    return Group(
        cases=tuple(cases), positions=np.array(positions, dtype=np.intp), lowered=replace(lowered, ops=()),
        plans=tuple(plans[id(case.ops)] for case in cases), fed=tuple(fed[id(case.ops)] for case in cases), clock=clock,
        threads=threads, limit=limit,
    )  # fmt: skip


def _clock(case: Case, without: frozenset[str]) -> tuple[float, float | None]:
    """The highest clock [Hz] of a case and the power that it keeps to [W], None where the clock is known.

    Without `clock` kernels run at the rated boost; without `sustained` all clocks are those that the power model finds.
    """
    device = case.spec.device
    if case.clock is not None:
        return case.clock, case.limit
    if "clock" in without:
        return float(device.clock.boost), None
    if "sustained" in without:
        return float(highest_clock_of(device)), case.limit or float(device.power.tdp)
    limit = limit_of(case.spec, None, case.limit)
    return float(clock_of(case.spec, None, case.limit, case.precision)), None if limit is None else float(limit)


def _reduced(stack: Stack, without: frozenset[str]) -> Stack:
    """The stack without its algorithm menu (only the product that always applies) or without its pass counts."""
    if "passes" in without:
        base = stacks.find("ideal")
        stack = replace(stack, passes=base.passes, optimiser_passes=base.optimiser_passes, digest=stack.digest + "-passes")
    if "algorithms" in without:
        menu = {phase: dict([next(iter(rows.items()))]) for phase, rows in stack.conv.algorithms.items()}
        stack = replace(stack, conv=replace(stack.conv, algorithms=menu), digest=stack.digest + "-algorithms")
    return stack


def evaluate(
    groups: Sequence[Group], calibration: Calibration, fidelity: str = "analytical", without: frozenset[str] = frozenset()
) -> Array:
    """Predicted values of prepared cases, in the order in which `prepare` got them."""
    result = np.full(sum(len(group.cases) for group in groups), math.nan)
    for group in groups:
        result[group.positions] = _evaluate(group, calibration, fidelity, without)
    return result


def _evaluate(group: Group, calibration: Calibration, fidelity: str, without: frozenset[str]) -> list[float]:
    values = _values(group, calibration, fidelity, without, group.limit)
    anchors = sorted({case.anchor.limit for case in group.cases if case.anchor is not None})
    for limit in anchors:
        there = _values(group, calibration, fidelity, without, limit)
        for i, case in enumerate(group.cases):
            if case.anchor is not None and case.anchor.limit == limit:
                values[i] *= case.anchor.measured / there[i]
    return values


def _values(
    group: Group, calibration: Calibration, fidelity: str, without: frozenset[str], limit: float | None
) -> list[float]:
    """What each case of a group gives in its own metric under a power limit."""
    model, first = find(fidelity), group.cases[0]
    device, kernels = first.spec.device, group.lowered.kernels
    multiplied = arithmetic(first.stack, device, first.precision)
    cost = model.cost(kernels, device, multiplied, group.clock, group.threads, calibration, without, limit)
    host = host_time(kernels, cost, first.stack, device, calibration)
    plans = phases_of(kernels, cost, device) if model.events else []
    values = []
    for case, plan_of, fed in zip(group.cases, group.plans, group.fed, strict=True):
        counts = case.host * float(model.overheads and "host" not in without)
        feed = feed_time(fed, case.stack, device, calibration) * counts
        if model.events:
            lowered = replace(group.lowered, ops=case.ops, plan_of=plan_of)
            timeline = _played(lowered, cost, host.scaled(counts), device, feed, case.stack.waits, plans)
        else:
            timeline = in_order(cost.time_s, host.scaled(counts), plan_of, device, feed, case.stack.waits)
        latency = float(timeline.latency_s[0])
        if case.shared is not None and model.overheads:
            latency = _together(case, case.shared, timeline)
        if case.metric in ("power_w", "energy_j"):
            idle = float(np.ravel(device.power.idle)[0]) * float(timeline.wait_s.sum())
            energy = float(spread(cost.total_energy_j, plan_of).sum()) + idle
            values.append(energy / latency if case.metric == "power_w" else energy)
        elif case.metric == "clock_hz":
            values.append(float(spread(cost.clocks, plan_of).sum() / spread(cost.time_s, plan_of).sum()))
        else:
            values.append(latency if case.metric == "latency_s" else case.batch / latency)
    return values


def _played(
    lowered: Lowered, cost: PlanCost, host: HostTime, device: Device, feed_s: Array | float, waits: bool, plans: Plans
) -> Timeline:
    """The schedule of a case in events, on one stream."""
    issue_s, stall_s = spread(host.issue_s, lowered.plan_of), spread(host.stall_s, lowered.plan_of)
    issue_s[..., :1] += feed_s
    return simulated(lowered, cost, device, issue_s, stall_s, waits=waits, plans=[plans])


def _together(case: Case, shared: Shared, timeline: Timeline) -> float:
    """Time of a step of several devices [s], one of which alone runs this timeline."""
    step = device_step(case.ops, timeline.end_s[0].tolist())
    return train(shared.node, shared.devices, step, Pipeline(samples=case.batch), overlap=shared.overlaps).step_s

"""Predicting many cases at once: rows of one device, stack and setting share one set of columns.

`prepare` does what no constant changes (lowering, once for each distinct layer); `evaluate` does the rest, so that a fit
repeats only that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from archsim.cost.constants import Calibration
from archsim.cost.cost import Array
from archsim.cost.energy import kernel_energy
from archsim.device.device import Cpu, Gpu
from archsim.fidelity import find
from archsim.lower.kernel import Index
from archsim.lower.lower import Lowered, lower
from archsim.run import arithmetic, feed_time, host_time, in_order, input_bytes, spread
from archsim.stack import catalog as stacks
from archsim.stack.stack import Stack
from archsim.validate.case import Case

PARTS = ("waves", "l2", "latency", "algorithms", "clock", "launch", "host", "passes")


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


def predict(
    cases: Sequence[Case], calibration: Calibration, fidelity: str = "analytical", without: frozenset[str] = frozenset()
) -> Array:
    """The predicted value of each case, in the unit of its metric."""
    return evaluate(prepare(cases, without), calibration, fidelity, without)


def prepare(cases: Sequence[Case], without: frozenset[str] = frozenset()) -> list[Group]:
    """Group and lower the cases."""
    grouped: dict[object, list[int]] = {}
    for position, case in enumerate(cases):
        key = (case.spec.digest, case.stack.digest, case.precision, case.clock, case.threads, case.training)
        grouped.setdefault(key, []).append(position)
    return [_group([cases[i] for i in positions], positions, without) for positions in grouped.values()]


def _group(cases: list[Case], positions: list[int], without: frozenset[str]) -> Group:
    first = cases[0]
    device = first.spec.device
    networks = {id(case.ops): case.ops for case in cases}
    ops = [op for network in networks.values() for op in network]
    tensor = isinstance(device, Gpu) and device.has_tensor(first.precision)
    lowered = lower(ops, _reduced(first.stack, without), device.kind, first.precision, first.training, tensor,
                    device.identity.architecture)  # fmt: skip
    plans, begin = {}, 0
    for key, network in networks.items():
        plans[key] = lowered.plan_of[begin : begin + len(network)]
        begin += len(network)
    fed = {key: input_bytes(network) for key, network in networks.items()}
    clock = first.clock or float(device.clock.boost if "clock" in without else device.default_clock)
    threads = first.threads or 1
    if first.threads is None and isinstance(device, Cpu):
        threads = first.stack.usual_threads(int(device.core.count), int(device.core.threads))
    return Group(
        cases=tuple(cases), positions=np.array(positions, dtype=np.intp), lowered=replace(lowered, ops=()),
        plans=tuple(plans[id(case.ops)] for case in cases), fed=tuple(fed[id(case.ops)] for case in cases), clock=clock,
        threads=threads,
    )  # fmt: skip


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
    model, first = find(fidelity), group.cases[0]
    device, kernels = first.spec.device, group.lowered.kernels
    multiplied = arithmetic(first.stack, device, first.precision)
    cost = model.cost(kernels, device, multiplied, group.clock, group.threads, calibration, without)
    host = host_time(kernels, cost, first.stack, device, calibration)
    values = []
    for case, plan_of, fed in zip(group.cases, group.plans, group.fed, strict=True):
        counts = float(model.overheads and "host" not in without and case.host)
        feed = feed_time(fed, case.stack, device, calibration) * counts
        timeline = in_order(cost.time_s, host.scaled(counts), plan_of, device, feed, case.stack.waits)
        latency = float(timeline.latency_s[0])
        if case.metric in ("power_w", "energy_j"):
            flop, dram = spread(cost.flop, plan_of), spread(cost.dram_bytes, plan_of)
            spent = kernel_energy(flop, dram, timeline.op_time_s, device, case.precision, group.clock, calibration)
            energy = float(spent.sum())
            values.append(energy / latency if case.metric == "power_w" else energy)
        else:
            values.append(latency if case.metric == "latency_s" else case.batch / latency)
    return values

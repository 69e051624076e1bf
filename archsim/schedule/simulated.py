"""The event fidelity on one device: the ops of a network as launches on CUDA streams, with the result as a `Timeline`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from archsim.cost.bounds import DRAM
from archsim.cost.plan import PlanCost
from archsim.device.device import Device, Gpu
from archsim.lower.lower import Lowered
from archsim.schedule.events import Phase
from archsim.schedule.observer import Observer
from archsim.schedule.streams import IssuedOp, assign, run_streams
from archsim.schedule.timeline import Array, Timeline
from archsim.schedule.waves import POWER, capacity, device_row, phases_of
from archsim.trace.trace import BoundOp

Plans = Sequence[tuple[Phase, ...]]
BEYOND_IDLE = "power beyond idle [W]"  # counter


def simulated(
    lowered: Lowered, cost: PlanCost, device: Device, issue_s: Array, stall_s: Array, *, waits: bool = False,
    streams: int = 1, observers: Sequence[Observer] = (), plans: Sequence[Plans] | None = None,
) -> Timeline:  # fmt: skip
    """Run the ops on `streams` CUDA streams of a GPU, or one after the other on a CPU, on each of D devices separately.

    issue_s, stall_s: host times of each op [s], [D, N]. A host that waits for each op (`waits`) spends both before it
    plans: what `phases_of` returns for each device, where the caller has it already

    Observers are told of the first device only. On one stream the result equals `serial.asynchronous` to 1e-9.
    """
    if waits and isinstance(device, Gpu):
        issue_s = issue_s + stall_s
    waits = waits or not isinstance(device, Gpu)
    devices = max(len(cost.time_s), len(issue_s), len(stall_s))
    start, end = np.zeros((devices, len(lowered.ops))), np.zeros((devices, len(lowered.ops)))
    for device_index in range(devices):
        watched = observers if device_index == 0 else ()
        launches = issued_ops(lowered, cost, device, issue_s, 0.0 * stall_s if waits else stall_s, streams=streams,
                               power=bool(watched), device_index=device_index,
                               plans=None if plans is None or watched else plans[device_index])  # fmt: skip
        counters = _counters(device) if watched else None
        ran = run_streams(launches, capacity(), waits=waits, observers=watched, counters=counters)
        start[device_index], end[device_index] = ran.start_s, ran.end_s
    timeline = Timeline(start_s=start, end_s=end, wait_s=np.zeros_like(end))
    wait = np.maximum(0.0, timeline.op_time_s - (end - start))
    return Timeline(start_s=start, end_s=end, wait_s=wait)


def issued_ops(
    lowered: Lowered, cost: PlanCost, device: Device, issue_s: Array, stall_s: Array, *, streams: int = 1,
    power: bool = False, device_index: int = 0, plans: Plans | None = None,
) -> list[IssuedOp]:  # fmt: skip
    """The ops in order of issue, each on one of `streams` streams; with `power` their phases carry power beyond idle [W]."""
    plans = plans or phases_of(lowered.kernels, cost, device, power, device_index)
    index = lowered.plan_of.tolist()
    phases: list[tuple[Phase, ...]] = [plans[plan] if plan >= 0 else () for plan in index]
    after = dependencies(lowered.ops)
    chosen = assign(after, [sum(phase.work for phase in each) for each in phases], streams)
    launched, issue, stall = (device_row(values, device_index).tolist() for values in (cost.launches, issue_s, stall_s))
    return [
        IssuedOp(
            name=op.name, issue_s=issue[i], phases=phases[i], stall_s=stall[i], stream=chosen[i],
            after=tuple([before for before in after[i] if chosen[before] != chosen[i]]),
            launches=launched[index[i]] if index[i] >= 0 else 0.0, words={"kind": op.kind.op, "phase": op.phase},
        )
        for i, op in enumerate(lowered.ops)
    ]  # fmt: skip


def dependencies(ops: Sequence[BoundOp]) -> list[tuple[int, ...]]:
    """For each of N ops the positions of the ops whose outputs it reads, [N].

    >>> from archsim.trace.file import load
    >>> dependencies(load("alexnet").bind(N=1).ops)[:3]
    [(), (0,), (1,)]
    """
    position: dict[str, int] = {}
    found = []
    for i, op in enumerate(ops):
        found.append(tuple(sorted({position[name] for name in op.inputs if name in position})))
        position[op.name] = i
    return found


def _counters(device: Device) -> Mapping[str, tuple[str, float]]:
    if not isinstance(device, Gpu):
        return {}
    bandwidth = float(np.ravel(device.memory.bandwidth * device.memory.achievable)[0])
    shares = {resource: (f"{resource} [%]", 100.0) for resource in capacity()}
    return {**shares, DRAM: ("memory [GB/s]", bandwidth / 1e9), POWER: (BEYOND_IDLE, 1.0)}

"""Running a query through the layers: lower, cost, schedule. Arrays in, arrays out; nothing for people here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from archsim.cost.cost import Array
from archsim.cost.energy import kernel_energy
from archsim.cost.plan import PlanCost
from archsim.device.device import Gpu
from archsim.lower.lower import Lowered, lower
from archsim.query import Query
from archsim.schedule.serial import asynchronous, synchronous
from archsim.schedule.timeline import Timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A network on D variants of a device. Arrays are [D, N], N ops in execution order."""

    lowered: Lowered
    cost: PlanCost
    timeline: Timeline
    dram_bytes: Array
    energy_j: Array

    @property
    def latency_s(self) -> Array:
        """Time of one batch, [D]."""
        return self.timeline.latency_s


def run(query: Query) -> Run:
    """Lower the network, cost every distinct plan once, and put the ops in order."""
    device, constants = query.spec.device, query.calibration
    training = query.task != "inference"
    lowered = lower(query.trace.ops, query.stack, device.kind, query.precision, training)
    threads = query.threads or 1
    cost = query.fidelity.cost(lowered.kernels, device, query.precision, query.clock, threads, constants)
    plans = lowered.plan_of
    device_s = _spread(cost.time_s, plans)
    host_s = _host_time(query, lowered, cost) if query.fidelity.overheads else np.zeros(plans.size)
    schedule = asynchronous if isinstance(device, Gpu) else synchronous
    timeline = schedule(device_s, host_s)
    dram = _spread(cost.dram_bytes, plans)
    energy = kernel_energy(
        _spread(cost.flop, plans), dram, timeline.op_time_s, device, query.precision, query.clock, constants
    )
    return Run(lowered=lowered, cost=cost, timeline=timeline, dram_bytes=dram, energy_j=energy)


def _spread(per_plan: Array, plan_of: Array | np.ndarray[tuple[int, ...], np.dtype[np.intp]]) -> Array:
    """Values per plan as values per op, [D, N]; 0 for ops that launch nothing."""
    index = np.asarray(plan_of, dtype=np.intp)
    return np.where(index >= 0, per_plan[..., np.maximum(index, 0)], 0.0)


def _host_time(query: Query, lowered: Lowered, cost: PlanCost) -> Array:
    """Time that the host spends on each op [s]: framework calls, and on a GPU the driver's time for each launch."""
    per_call = query.calibration[query.stack.host] if query.stack.host else 0.0
    host = lowered.kernels.host_ops * per_call
    if query.stack.host and query.spec.device.kind == "gpu":
        host = host + cost.launches * query.calibration["host.launch"]
    return _spread(np.broadcast_to(host, cost.launches.shape), lowered.plan_of)

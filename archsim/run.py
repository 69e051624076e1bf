"""Running a query through the layers: lower, cost, schedule. Arrays in, arrays out; nothing for people here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from archsim.cost.constants import Calibration
from archsim.cost.cost import Array
from archsim.cost.energy import kernel_energy
from archsim.cost.plan import PlanCost
from archsim.device.device import Device, Gpu
from archsim.lower.kernel import Index, Kernels
from archsim.lower.lower import Lowered, lower
from archsim.query import Query
from archsim.schedule.serial import asynchronous, synchronous
from archsim.schedule.timeline import Timeline
from archsim.stack.stack import Stack


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A network on D variants of a device. Arrays are [D, N], N ops in execution order."""

    lowered: Lowered
    cost: PlanCost
    timeline: Timeline
    dram_bytes: Array
    energy_j: Array
    host_s: Array  # what the host spends on each op

    @property
    def latency_s(self) -> Array:
        """Time of one batch, [D]."""
        return self.timeline.latency_s


def run(query: Query) -> Run:
    """Lower the network, cost every distinct plan once, and put the ops in order."""
    device, constants = query.spec.device, query.calibration
    lowered = lower(query.trace.ops, query.stack, device.kind, query.precision, query.task != "inference",
                    tensor=isinstance(device, Gpu) and device.has_tensor(query.precision))  # fmt: skip
    multiplied = arithmetic(query.stack, device, query.precision)
    cost = query.fidelity.cost(
        lowered.kernels, device, multiplied, query.clock, query.threads or 1, constants, frozenset()
    )
    host = host_time(lowered.kernels, cost, query.stack, device, constants) * query.fidelity.overheads
    timeline = in_order(cost.time_s, host, lowered.plan_of, device)
    dram = spread(cost.dram_bytes, lowered.plan_of)
    flop = spread(cost.flop, lowered.plan_of)
    energy = kernel_energy(flop, dram, timeline.op_time_s, device, query.precision, query.clock, constants)
    return Run(lowered=lowered, cost=cost, timeline=timeline, dram_bytes=dram, energy_j=energy,
               host_s=spread(host, lowered.plan_of))  # fmt: skip


def arithmetic(stack: Stack, device: Device, precision: str) -> str:
    """How operands of `precision` are multiplied: as `half` where the stack insists on it and the chip can."""
    if precision == "fp16" and stack.half == "native" and isinstance(device, Gpu) and device.rate.fp16 is not None:
        return "half"
    return precision


def in_order(plan_s: Array, host_s: Array, plan_of: Index, device: Device) -> Timeline:
    """The serial schedule of ops whose plans take `plan_s` on the device and `host_s` on the host, both [D, O]."""
    schedule = asynchronous if isinstance(device, Gpu) else synchronous
    return schedule(spread(plan_s, plan_of), spread(host_s, plan_of))


def spread(per_plan: Array, plan_of: Index) -> Array:
    """Values per plan as values per op, [D, N]; 0 for ops that launch nothing."""
    return np.where(plan_of >= 0, per_plan[..., np.maximum(plan_of, 0)], 0.0)


def host_time(kernels: Kernels, cost: PlanCost, stack: Stack, device: Device, constants: Calibration) -> Array:
    """Time that the host spends on each plan [s], [D, O]: framework calls, and on a GPU the driver's work per launch."""
    if not stack.host:
        return np.zeros_like(cost.time_s)
    per_launch = constants["host.launch"] if isinstance(device, Gpu) else 0.0
    return np.asarray(kernels.host_ops * constants[stack.host] + cost.launches * per_launch)

"""The pipeline: a request is lowered to kernels, each kernel is costed, and its ops are put in time.

`run` is the whole of it. Its steps are functions of their own, so that many requests of one device, stack and setting can be
lowered and costed together: `lowered_of`, `priced`, `scheduled`.

Shapes: D variants of a device, N ops in execution order, O plans (the different layers among the ops, each with its kernels).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from archsim.base.errors import ArgumentError, Unsupported
from archsim.base.record import kept
from archsim.calibration.constants import Calibration
from archsim.cost import dispatch
from archsim.cost.cost import Array
from archsim.cost.dispatch import InputStage, SampleBatch
from archsim.cost.energy import IDLE
from archsim.cost.idle import idle_parts, idle_power, waiting_parts
from archsim.cost.plan import PlanCost
from archsim.cost.roofline import RooflineTerms, compute_bound, memory_bound
from archsim.device.device import Cpu, Device, Gpu
from archsim.device.variant import first_of
from archsim.estimation.fidelity import ExecutionSetting
from archsim.estimation.hardware import arithmetic, in_halves, on_tensor_cores
from archsim.estimation.request import Request
from archsim.lower.kernel import Index, Kernels
from archsim.lower.lower import CacheState, Lowered, lower
from archsim.schedule.observer import Observer
from archsim.schedule.timeline import Timeline, asynchronous, synchronous
from archsim.trace.dims import BATCH
from archsim.trace.kind import FORWARD, UPDATE
from archsim.trace.trace import BoundOp, BoundTrace

if TYPE_CHECKING:
    from archsim.schedule.streams import Plans

ROUNDING = 1e-6  # relative; by less an op's time differs from that of its kernels only as floats do


@dataclass(frozen=True, kw_only=True)
class Run:
    """The outcome of a request on D variants of a device; arrays are of ops, [D, N], and computed on first use."""

    lowered: Lowered
    cost: PlanCost
    timeline: Timeline
    host: Array
    idle_w: Mapping[str, Array]  # power while the device waits for the host CPU [W], by component
    order: Callable[..., Timeline]  # the same ops one after the other, with other times: see `scheduled`
    stage: InputStage | None = None  # of samples that the host decodes
    late_s: Array | None = None  # what the device waits for them before the first op [s], [D]
    overlaps: bool = False  # whether ops may run at the same time
    group_step_s: Array | None = None  # of several devices that share the batch, [1]

    @cached_property
    def dram_bytes(self) -> Array:
        """Memory traffic of each op [B], in whole bytes."""
        return spread(np.rint(self.cost.dram_bytes), self.lowered.plan_of)

    @cached_property
    def energy(self) -> Mapping[str, Array]:
        """Energy of each op by component [J]: that of its kernels, and the idle power while the device waits for the host CPU.

        Static power (what stands, leakage, the clock tree that always runs) is drawn once, whatever runs at the same time: an op
        that overlaps with others is charged for the time that it adds to the latency, not for the time that it takes alone.
        """
        energy = {name: spread(part, self.lowered.plan_of) for name, part in self.cost.energy_j.items()}
        waited_s = self.timeline.wait_s
        if self.overlaps:
            added, alone = self.timeline.op_time_s, spread(self.cost.time_s, self.lowered.plan_of)
            shadowed = added < alone * (1.0 - ROUNDING)
            share = np.where(shadowed, added / np.maximum(alone, np.finfo(float).tiny), 1.0)
            energy |= {name: energy[name] * share for name in IDLE if name in energy}
            waited_s = np.maximum(added - alone, 0.0)
        return energy | {name: energy[name] + power * waited_s for name, power in self.idle_w.items()}

    @property
    def energy_j(self) -> Array:
        """Energy of each op [J]: the sum of its components."""
        return np.asarray(reduce(np.add, self.energy.values()))

    @cached_property
    def share(self) -> Array:
        """The share of its kernels' time that each op adds to the latency, [D, N]: 1 unless others run at the same time.

        share = (op time - wait for the host CPU) / time alone, 1 where they differ by rounding
        """
        own = spread(self.cost.time_s, self.lowered.plan_of)
        added = self.timeline.op_time_s - self.timeline.wait_s
        return np.where(np.abs(added - own) <= ROUNDING * own, 1.0, added / np.maximum(own, np.finfo(float).tiny))

    @cached_property
    def host_s(self) -> Array:
        """Time of the host CPU for each op [s]: calls and launches."""
        return spread(self.host, self.lowered.plan_of)

    @property
    def latency_s(self) -> Array:
        """Time of one batch [s], [D]; of devices that share it, the time of their step."""
        return self.timeline.latency_s if self.group_step_s is None else self.group_step_s

    @property
    def total_energy_j(self) -> Array:
        """Energy of one batch [J], [D]."""
        if self.overlaps:
            return np.asarray(self.energy_j.sum(axis=-1))
        of_plans = (self.cost.total_energy_j * self._times).sum(axis=-1)
        idle = np.ravel(reduce(np.add, self.idle_w.values()))
        return np.asarray(of_plans + idle * self.timeline.wait_s.sum(axis=-1))

    @property
    def total_dram_bytes(self) -> Array:
        """Memory traffic of one batch [B], [D]."""
        return np.asarray((np.rint(self.cost.dram_bytes) * self._times).sum(axis=-1))

    @property
    def _times(self) -> Array:
        """How many ops each plan is of, [O]."""
        plans = self.lowered.plan_of
        return np.bincount(plans[plans >= 0], minlength=self.cost.time_s.shape[-1]).astype(float)


@dataclass(frozen=True, kw_only=True)
class Priced:
    """Kernels with their cost on D variants of a device: what requests of one device, stack and setting share.

    `host` is the host CPU's time for each plan, all of it; how much counts depends on the request.
    """

    device: Device
    kernels: Kernels
    cost: PlanCost
    host: Array

    @cached_property
    def phases(self) -> Sequence[Plans]:
        """The plans as phases of the event simulation, for each of the D variants."""
        from archsim.schedule.waves import phases_of

        devices = max(len(self.cost.time_s), len(self.host))
        return [phases_of(self.kernels, self.cost, self.device, device_index=index) for index in range(devices)]


def run(request: Request, observers: Sequence[Observer] = ()) -> Run:
    """The outcome of a request: lowered, each different plan costed once, ops put in time.

    With `observers` the ops of any fidelity are simulated, one after the other where it has no events, and observers are told.

    Raises Unsupported for a network of ops that take no time, like views: it would have infinite rates.
    """
    lowered = lowered_of(request)
    result = scheduled(request, lowered, priced(request, lowered.kernels), observers)
    if request.work is not None and not np.all(np.asarray(result.latency_s) > 0):
        raise Unsupported(f"network {request.network}: no op of it takes time with stack {request.stack.id}; nothing to estimate")
    return result


def priced(request: Request, kernels: Kernels) -> Priced:
    """The cost of kernels, and the host CPU's time for them, by all of a request but its ops."""
    device = device_of(request)
    pipe = arithmetic(request.stack, device, request.precision)
    cost = request.fidelity.cost(kernels, ExecutionSetting(device=device, precision=pipe, request=request))
    host = dispatch.host_time(kernels, cost, request.stack, device, request.host, request.calibration)
    return Priced(device=device, kernels=kernels, cost=cost, host=host)


def floor_s(request: Request, kernels: Kernels) -> Array:
    """What the roofline needs for each plan [s], [D, O]: the larger of its arithmetic and of its traffic at the peaks."""
    pipe = arithmetic(request.stack, request.device, request.precision)
    terms = RooflineTerms(kernels=kernels, device=request.device, precision=pipe, clock=request.clock,
                          threads=1 if request.threads is None else request.threads)  # fmt: skip
    return np.maximum(compute_bound(terms), memory_bound(terms))


def scheduled(request: Request, lowered: Lowered, costs: Priced, observers: Sequence[Observer] = ()) -> Run:
    """The ops of a request in time. `lowered` has its own ops, but kernels that other requests may share; `costs` are of these.

    The host CPU's time and the copy of the input count by the request's `dispatch`, and not in a fidelity without overheads. A
    replayed graph is launched once, before its first op. The step of a group of devices follows from that of one.
    """
    device, cost, constants = costs.device, costs.cost, request.calibration
    counted = request.dispatch * float(request.fidelity.calibrated and "host" not in request.without)
    host = costs.host * counted
    copy_s = host_transfer_s(request, device) * counted
    if request.graph:
        copy_s = copy_s + dispatch.graph_launch(host, lowered.plan_of, request.host, constants)
        host = host * 0.0
    stage = decoding(request, device) if counted else None

    def alone(plan_s: Array, host: Array, copy_factor: float = 1.0, share: Array | float = 1.0) -> Timeline:
        """The ops one after the other. A host that waits for each one, as a CPU's does, issues none ahead."""
        device_s, issue_s = (spread(part, lowered.plan_of) for part in (plan_s, host))
        issue_s[..., :1] += copy_s * copy_factor
        if request.stack.waits or not isinstance(device, Gpu):
            return synchronous(device_s * share, issue_s)
        return asynchronous(device_s * share, issue_s, spread(costs.kernels.synchronous, lowered.plan_of))

    def order(
        plan_s: Array, host: Array, copy_factor: float = 1.0, share: Array | float = 1.0, input_factor: float = 1.0
    ) -> Timeline:  # fmt: skip
        """With these times of plans [s], [D, O], and of the host, and factors of the copy of the input and of its decoding."""
        first = alone(plan_s, host, copy_factor, share)
        return first if stage is None else first.delayed(stage.late(first.latency_s, input_factor * counted))

    late_s = None
    if request.fidelity.events or observers:
        if stage is not None:
            late_s = stage.late(_simulated(request, lowered, costs, host, copy_s, ()).latency_s, counted)
        before = copy_s if late_s is None else copy_s + late_s[:, None]
        timeline = _simulated(request, lowered, costs, host, before, observers)
    else:
        timeline = order(cost.time_s, host)
        if stage is not None:
            late_s = timeline.latency_s - alone(cost.time_s, host).latency_s
    return Run(lowered=lowered, cost=cost, timeline=timeline, host=host, order=order, stage=stage, idle_w=waiting(request),
               late_s=late_s, overlaps=request.fidelity.events, group_step_s=_group_step(request, lowered, timeline))  # fmt: skip


def waiting(request: Request) -> dict[str, Array]:
    """Power while the kernels wait for the host CPU [W], by component: a GPU or TPU idles, of a CPU one core works."""
    if not isinstance(request.device, Cpu):
        return idle_parts(request.device, request.clock, request.calibration, request.limit)
    return waiting_parts(request.device, request.calibration, None if request.turbo else request.clock, request.limit)


def _simulated(
    request: Request, lowered: Lowered, costs: Priced, host: Array, copy_s: Array | float, observers: Sequence[Observer]
) -> Timeline:
    """The schedule by event simulation. Observers also see power, which the phases that requests share leave out."""
    from archsim.schedule.streams import simulated

    issue_s = spread(host, lowered.plan_of)
    issue_s[..., :1] += copy_s
    return simulated(lowered, costs.cost, costs.device, issue_s, waits=request.stack.waits, streams=request.streams,
                     observers=observers, plans=None if observers else costs.phases)  # fmt: skip


def _group_step(request: Request, lowered: Lowered, timeline: Timeline) -> Array | None:
    """Time of a training step of several devices [s], [1], of which each alone runs this timeline; None for one device."""
    group = request.group
    if group is None or not request.fidelity.calibrated:
        return None
    from archsim.schedule.training import Pipeline, device_step, train

    step = device_step(lowered.ops, timeline.end_s[0].tolist(), request.value_bytes)
    return np.array([train(group.node, group.devices, step, Pipeline(samples=request.batch), overlap=group.overlaps).step_s])


def lowered_of(
    request: Request, ops: Sequence[BoundOp] | None = None, lengths: tuple[int, ...] = (), cache: CacheState | None = None
) -> Lowered:  # fmt: skip
    """The kernels of a request, or of other `ops` by its device, stack, precision and task.

    lengths: ops of each of several networks; cache: what a run leaves to the next (`lower`)
    """
    device = request.device
    found = lower(request.trace.ops if ops is None else ops, request.stack, device.kind, request.precision, request.training,
                  tensor=on_tensor_cores(device, request.precision),
                  architecture=device.identity.kernels_of, narrowed=request.narrowed, lengths=lengths,
                  stored=request.stored, halves=in_halves(request.stack, device), cache=cache)  # fmt: skip
    return replace(found, kernels=replace(found.kernels, run_bytes=np.inf)) if request.cold else found


def mean_clock(request: Request, result: Run) -> Array:
    """The core clock of a run [Hz], [D]: the one asked for; under a power limit, the mean over the time of all kernels.

    clock = sum of core clocks that pass / sum of time, over all ops
    """
    asked = np.ravel(np.asarray(request.clock, dtype=float))
    index = result.lowered.plan_of
    live = index[index >= 0]
    time = result.cost.time_s[..., live].sum(axis=-1)
    if request.limit is None or not (time > 0).all():
        return asked
    return np.asarray(result.cost.clocks[..., live].sum(axis=-1) / time)


def idle_of(request: Request) -> Array:
    """Idle power of the device, the core's clocks up and the memory at its clock [W], a float or [D, 1]."""
    return idle_power(request.device, request.calibration, request.memory)


def device_of(request: Request) -> Device:
    """The device as a request runs it: in a replayed graph the gap between dependent kernels is at most `graph.gap_s`."""
    device = request.device
    if not request.graph or not isinstance(device, Gpu):
        return device
    return replace(device, launch=replace(device.launch, latency=replayed_gap(device, request.calibration)))


def replayed_gap(device: Gpu, constants: Calibration) -> Array:
    """Gap between two kernels of a replayed graph [s]: that of a stream, or `graph.gap_s` where that is less."""
    return np.minimum(device.launch.latency, constants["graph.gap_s"])


def spread(per_plan: Array, plan_of: Index) -> Array:
    """Values of plans as values of ops.

    per_plan: [D, O]; plan_of: the plan of each op, -1 where it launches nothing, [N]; returns [D, N], 0 for these

    >>> spread(np.array([[1.0, 2.0]]), np.array([1, -1, 0])).tolist()
    [[2.0, 0.0, 1.0]]
    """
    values = per_plan[..., plan_of]  # that of the last plan where there is none
    values[..., plan_of < 0] = 0.0
    return values


# ------------------------------------------------------------------- what crosses between host and device for a step


def host_transfer_s(request: Request, device: Device) -> Array | float:
    """Time in which inputs and weights cross to the device and back before a step, as the stack has it [s]."""
    stack, trace = request.stack, request.trace
    time_s: Array | float = 0.0
    if stack.inputs == "host" or (stack.inputs == "decoded" and stack.reader.ahead != "batch"):
        time_s = dispatch.host_transfer_time(input_bytes(trace), stack, device, request.host)
    if stack.parameter_store != "none":
        time_s = time_s + dispatch.store_time(updated_bytes(trace), stack, device, request.host)
    return time_s


def decoding(request: Request, device: Device) -> InputStage | None:
    """What the samples of a batch take that the host decodes; None where it decodes none."""
    if request.stack.inputs != "decoded" or not isinstance(device, Gpu):
        return None
    copy_s = dispatch.host_transfer_time(input_bytes(request.trace), request.stack, device, request.host)
    cores = first_of(request.host.core.count)
    return dispatch.input_stage(samples_of(request), request.stack.reader, request.host, cores, request.calibration, copy_s)


def samples_of(request: Request) -> SampleBatch:
    """The samples of a batch as a reader prepares them. Raises ArgumentError for JPEG images of a network that takes none.

    >>> from archsim.estimation.request import make_request
    >>> samples_of(make_request("alexnet_r", "gtx_1080", batch=8))
    SampleBatch(count=8, values=3072.0, pixels=1024.0)
    """
    count, images = int(request.trace.symbols.get(BATCH, request.batch)), request.trace.images
    if not images and request.stack.reader.stored == "jpeg":
        raise ArgumentError(f"inputs decoded: network {request.network} reads no images, as the reader of {request.stack.id} "
                            "prepares; decoded,stored=array is for other samples")  # fmt: skip
    return SampleBatch(count=count, values=input_bytes(request.trace) / 4.0 / count,
                       pixels=float(sum(prod(shape[2:]) for shape in images)))  # fmt: skip


@kept(4096)
def input_bytes(trace: BoundTrace) -> float:
    """Size of a network's input [B]: tensors that forward ops read and no op writes, 4 B a value.

    >>> from archsim.trace.task import prepared
    >>> input_bytes(prepared("alexnet", "inference").bind(N=2)) == 2 * 3 * 227 * 227 * 4
    True
    """
    written = {op.name for op in trace.ops}
    read = [(op.inputs, op.input_shapes) for op in trace.ops if op.phase == FORWARD]
    sizes = {name: prod(shape) for names, shapes in read for name, shape in zip(names, shapes, strict=False)}
    return 4.0 * sum(size for name, size in sizes.items() if name not in written)


@kept(4096)
def updated_bytes(trace: BoundTrace) -> float:
    """Size of the weights that a step updates [B], 4 B a value."""
    return 4.0 * sum(prod(op.shape) for op in trace.ops if op.phase == UPDATE)

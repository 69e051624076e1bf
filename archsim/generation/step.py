"""One step of an engine: some sequences, some new tokens of each, and the tokens that are cached already.

The ops of a step are lowered in groups by what they multiply and how their operands are stored, priced group by group, and put in
time together; collectives of the devices that share a layer come on top.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from math import prod

import numpy as np

from archsim.base.record import ByIdentity
from archsim.cost.dispatch import graph_launch
from archsim.cost.team import dispatch_clock
from archsim.device.device import PRECISION_BYTES, Cpu
from archsim.estimation.arithmetic import on_tensor_cores
from archsim.estimation.fidelity import FITTED, find
from archsim.estimation.pipeline import lowered_ops, priced
from archsim.estimation.request import Request
from archsim.generation.formats import CACHE_BYTES, HEAD, WEIGHTS
from archsim.generation.plan import ServingPlan
from archsim.lower.context import AS_MULTIPLIED, Stored
from archsim.lower.lower import Again
from archsim.node.node import Node
from archsim.schedule.collective import all_reduce, unloaded_time_s
from archsim.schedule.timeline import asynchronous
from archsim.trace.huggingface.graph import Layout, step_of
from archsim.trace.huggingface.model import TransformerModel
from archsim.trace.kinds.dense import Experts, Linear
from archsim.trace.kinds.sequence import Attention, LatentAttention
from archsim.trace.trace import BoundOp, BoundTrace

LINKS, ENGINE_HOST, WAIT = "links", "engine", "host"  # what limits a step beside the bounds of kernels
VALUE = 2  # B of an activation between devices


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCost:
    """What a step takes on all devices.

    time_s: from its schedule to its results [s]; bound_s: the same by what limits it
    energy_j: of all devices [J]; dram_bytes: of all devices [B]; flop: of the model [FLOP]
    """

    time_s: float
    bound_s: Mapping[str, float]
    energy_j: float
    dram_bytes: float
    flop: float

    def plus(self, other: StepCost, times: float = 1.0) -> StepCost:
        """This step and another one, `times` over."""
        names = dict.fromkeys((*self.bound_s, *other.bound_s))
        return StepCost(
            time_s=self.time_s + times * other.time_s,
            bound_s={name: self.bound_s.get(name, 0.0) + times * other.bound_s.get(name, 0.0) for name in names},
            energy_j=self.energy_j + times * other.energy_j, dram_bytes=self.dram_bytes + times * other.dram_bytes,
            flop=self.flop + times * other.flop,
        )  # fmt: skip

    @property
    def limited_by(self) -> str:
        """What most of the time is spent on."""
        return max(self.bound_s, key=lambda name: self.bound_s[name]) if self.bound_s else "none"


OpSetting = tuple[str, Stored]  # the precision in which ops multiply, and how their weights and cached values are stored
NOTHING = StepCost(time_s=0.0, bound_s={}, energy_j=0.0, dram_bytes=0.0, flop=0.0)


def step_cost(plan: ServingPlan, sequences: int, tokens: int, context: int, *, decode: bool) -> StepCost:
    """A step of `sequences`, each with `tokens` new ones, `context` cached ones with these among them.

    time = host + sum over stages of (kernels + links)        host: between two steps, as `ServingEngine` says

    A decode step is replayed as a CUDA graph where the plan says so. With several stages the sequences of a step are as many
    groups, of which each stage works on one.
    """
    return _step(ByIdentity(plan), sequences, tokens, context, decode)


@lru_cache(maxsize=4096)
def _step(plan: ByIdentity[ServingPlan], sequences: int, tokens: int, context: int, decode: bool) -> StepCost:
    one = plan.it
    found = NOTHING
    groups = min(one.stages, sequences)
    share = -(-sequences // groups)
    for first, last in stages_of(one.model, one.stages):
        layout = Layout(engine=True, decode=decode, tensor=one.tensor, experts=one.experts, first=first, last=last)
        found = found.plus(_stage(one, layout, share, tokens, context, decode))
        if last < one.model.layers:
            found = found.plus(_moved(one, share * tokens * one.model.width * VALUE))
    if one.stages > 1 and decode:  # groups follow each other through the stages, so that each waits for the slowest
        found = replace(found, energy_j=found.energy_j * groups, dram_bytes=found.dram_bytes * groups, flop=found.flop * groups)
    host = host_step(one, sequences)
    if one.stack.serving.overlapped:  # the host is ready before the device, or the device waits for the rest
        return found.plus(waiting(one, ENGINE_HOST, max(0.0, host.time_s - found.time_s), one.devices))
    return found.plus(host)


def stages_of(model: TransformerModel, stages: int) -> list[tuple[int, int]]:
    """The layers of each stage, from the first up to the last, not included.

    >>> from archsim.trace.huggingface.catalog import find
    >>> stages_of(find("gpt2_small"), 5)
    [(0, 2), (2, 4), (4, 7), (7, 9), (9, 12)]
    """
    cuts = [model.layers * i // stages for i in range(stages + 1)]
    return list(pairwise(cuts))


def host_step(plan: ServingPlan, sequences: int) -> StepCost:
    """The host's part of a step, in which the devices idle.

    t = (step_clocks + (devices - 1) device_clocks + sequences sequence_clocks) / f

    f: `dispatch_clock` of the host [Hz]
    """
    engine, host = plan.stack.serving, plan.host.device
    assert isinstance(host, Cpu)
    clocks = engine.step_clocks + (plan.devices - 1) * engine.device_clocks + sequences * engine.sequence_clocks
    return waiting(plan, ENGINE_HOST, clocks / float(np.ravel(dispatch_clock(host))[0]), plan.devices)


def waiting(plan: ServingPlan, name: str, time: float, devices: int) -> StepCost:
    """A time in which devices idle."""
    return StepCost(time_s=time, bound_s={name: time}, energy_j=time * _idle(plan) * devices, dram_bytes=0.0, flop=0.0)


def _idle(plan: ServingPlan) -> float:
    return float(np.ravel(plan.spec.device.power.idle)[0])


def _stage(plan: ServingPlan, layout: Layout, sequences: int, tokens: int, context: int, decode: bool) -> StepCost:
    """The kernels of the layers of one stage on the devices that share them, and their collectives."""
    engine = plan.stack.serving
    replays = plan.graph and decode and sequences <= engine.graph_sequences
    rows = padded(sequences, engine.graph_multiple) if replays else sequences
    trace = _bound(plan.model, layout, rows, tokens, context)
    settings = [_setting(plan, op) for op in trace.ops]
    kernels = _priced(plan, trace, settings, replays)
    return kernels.plus(_collectives(plan, layout, rows * tokens))


def padded(sequences: int, multiple: int) -> int:
    """Sequences of a recorded step that serves so many: 1, 2, 4, and then multiples.

    >>> [padded(n, 8) for n in (1, 3, 5, 9, 16)]
    [1, 4, 8, 16, 16]
    """
    small = next((size for size in (1, 2, 4) if sequences <= size < multiple), 0)
    return small or -(-sequences // multiple) * multiple


@lru_cache(maxsize=512)
def _bound(model: TransformerModel, layout: Layout, sequences: int, tokens: int, context: int) -> BoundTrace:
    trace = step_of(model, layout)
    sizes = {"N": sequences, "T": tokens, "S": context}
    return trace.bind(**{name: sizes[name] for name in trace.free_symbols})


def _setting(plan: ServingPlan, op: BoundOp) -> OpSetting:
    """How an op of this plan multiplies."""
    if isinstance(op.kind, Attention | LatentAttention):
        narrower = CACHE_BYTES[plan.cache] < CACHE_BYTES[plan.precision]
        emulated = plan.cache == "fp8" and not on_tensor_cores(plan.stack, plan.spec.device, "fp8")
        return plan.precision, Stored(cache_bytes=CACHE_BYTES[plan.cache] if narrower else 0.0, emulated=emulated)
    if isinstance(op.kind, Linear | Experts):
        if plan.both_narrow and op.name != HEAD and not plan.model.keeps(op.name):
            return plan.weights, AS_MULTIPLIED
        weight = WEIGHTS[plan.weights].bytes_of(op, plan.model)
        if weight != PRECISION_BYTES[plan.precision]:
            return plan.precision, Stored(weight_bytes=weight)
    return plan.precision, AS_MULTIPLIED


def _priced(plan: ServingPlan, trace: BoundTrace, settings: Sequence[OpSetting], replays: bool) -> StepCost:
    """The kernels of a trace in time, one device's; times the devices that share the layers in energy and traffic."""
    count = len(trace.ops)
    device_s, issue_s, stall_s = np.zeros((1, count)), np.zeros((1, count)), np.zeros((1, count))
    energy = dram = 0.0
    bounds: dict[str, float] = {}
    first = 0.0
    left = _left(plan, trace, settings)
    whole = Request(
        network=plan.model.name, trace=trace, work=None, spec=plan.spec, stack=plan.stack, task="inference",
        batch=trace.symbols.get("N", 1), precision=plan.precision, threads=None, clock=plan.clock, turbo=plan.turbo,
        limit=plan.limit, fidelity=find(FITTED), calibration=plan.calibration, graph=replays, host_cpu=plan.host,
    )  # fmt: skip
    for precision, stored in dict.fromkeys(settings):
        own = [i for i, each in enumerate(settings) if each == (precision, stored)]
        request = replace(whole, precision=precision, stored=stored)
        lowered = lowered_ops(request, tuple([trace.ops[i] for i in own]), left=left)
        costs = priced(request, lowered.kernels)
        index = np.asarray(lowered.plan_of)
        live, places = index[index >= 0], np.array(own)[index >= 0]
        device_s[0, places] = costs.cost.time_s[0, live]
        issue_s[0, places], stall_s[0, places] = costs.host.issue_s[0, live], costs.host.stall_s[0, live]
        energy += float(costs.cost.total_energy_j[0, live].sum())
        dram += float(costs.cost.dram_bytes[0, live].sum())
        for name, values in costs.cost.bound_s.items():
            bounds[name] = bounds.get(name, 0.0) + float(values[0, live].sum())
        if replays and own[0] == 0:
            first = float(np.ravel(graph_launch(costs.host.issue_s, index, request.host, plan.calibration))[0])
    if replays:
        issue_s, stall_s = np.zeros_like(issue_s), np.zeros_like(stall_s)
        issue_s[0, 0] = first
    timeline = asynchronous(device_s, issue_s, stall_s)
    waited = float(timeline.wait_s[0].sum())
    bounds[WAIT] = waited
    return StepCost(
        time_s=float(device_s.sum()) + waited, bound_s=bounds, energy_j=(energy + waited * _idle(plan)) * plan.tensor,
        dram_bytes=dram * plan.tensor, flop=float(trace.flop) * plan.tensor,
    )  # fmt: skip


def _left(plan: ServingPlan, trace: BoundTrace, settings: Sequence[OpSetting]) -> Again:
    """What a step leaves in the L2 to the next one, whichever of its ops are lowered together.

    run_bytes = weights, and keys and values of all sequences, as they are stored + twice the largest result
    """
    weights = sum(op.parameters * (stored.weight_bytes or PRECISION_BYTES[precision])
                  for op, (precision, stored) in zip(trace.ops, settings, strict=True))  # fmt: skip
    kept = sum(prod(shape) for shape in trace.inputs.values()) * CACHE_BYTES[plan.cache]
    return Again(cold=True, run_bytes=weights + kept + 2 * VALUE * max(prod(op.shape) for op in trace.ops), short_lived=True)


def _collectives(plan: ServingPlan, layout: Layout, rows: int) -> StepCost:
    """Sums of partial results over the devices that share a layer: after attention and after the feed-forward part.

    Where experts are spread, tokens go to the devices of their experts and come back (two all-to-alls) instead of the second.
    """
    if plan.tensor == 1 or plan.node is None:
        return NOTHING
    model = plan.model
    size = float(rows * model.width * VALUE)
    first, last = layout.first, layout.last or model.layers
    once = reduced_s(plan, plan.node, size)
    calls, time = 0, 0.0
    for layer in range(first, last):
        spread_out = plan.experts > 1 and model.experts is not None and model.experts.has(layer)
        parallel = model.order.startswith("parallel")  # both parts are summed at once
        calls += 1 if parallel or spread_out else 2
        time += 2.0 * exchanged_s(plan, plan.node, size * model.experts.top) if spread_out and model.experts else 0.0
    calls += int(first == 0)  # the table of words is shared out too
    time += calls * once
    return waiting(plan, LINKS, time, plan.tensor)


def reduced_s(plan: ServingPlan, node: Node, size: float) -> float:
    """An all-reduce of `size` bytes over the devices that share a layer [s]: of the node's library, or of the engine.

    t = start + min((n - 1) size, 2 (n - 1) / n x size + ...) / bandwidth

    The engine's own reads the buffers of all others at once, whole where they are small, in parts otherwise; of more than two
    devices only where no processor lies between them (vLLM's custom_all_reduce.py).
    """
    engine, count = plan.stack.serving, plan.tensor
    phases = all_reduce(node, count, size)
    library = unloaded_time_s(phases, node)
    joined = count == 2 or not any("cpu" in hop for hop in node.path("gpu0", f"gpu{count - 1}"))
    if not engine.all_reduce_start or size > engine.all_reduce_most or not joined:
        return library
    return min(library, engine.all_reduce_start + unloaded_time_s(phases[1:], node))


def exchanged_s(plan: ServingPlan, node: Node, size: float) -> float:
    """An all-to-all of `size` bytes in all, of which each device keeps its own share [s]."""
    engine, count = plan.stack.serving, plan.tensor
    start = engine.all_reduce_start or node.collective.start
    return start + size / count * (count - 1) / count / rate_to(node, 1)


def rate_to(node: Node, device: int) -> float:
    """Bandwidth from the first device to another one [B/s]."""
    return min(node.capacity()[name] for name in node.path("gpu0", f"gpu{device}"))


def _moved(plan: ServingPlan, size: float) -> StepCost:
    """Activations that go from one stage to the next."""
    node = plan.node
    assert node is not None
    time = node.collective.start + size / rate_to(node, min(plan.tensor, node.devices - 1))
    return waiting(plan, LINKS, time, plan.tensor)

"""Steps of an engine, each with some sequences, new tokens and cached ones, and what they add up to: prefill and decode.

The ops of a step are lowered in groups by what they multiply and how their operands are stored, priced group by group, and put in
time together; collectives of the devices that share a layer come on top.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from itertools import pairwise
from math import prod

import numpy as np

from archsim.base.record import kept
from archsim.cost.dispatch import graph_launch
from archsim.cost.team import dispatch_clock
from archsim.device.device import PRECISION_BYTES, Cpu
from archsim.device.variant import first_of
from archsim.estimation.fidelity import FITTED, find
from archsim.estimation.pipeline import lowered_of, priced
from archsim.estimation.request import Request
from archsim.generation.plan import CACHE_BYTES, HEAD, WEIGHTS, ServingPlan
from archsim.lower.context import AS_MULTIPLIED, Stored
from archsim.lower.lower import CacheState
from archsim.node.node import Node
from archsim.schedule.collective import all_reduce, unloaded_time_s
from archsim.schedule.timeline import asynchronous
from archsim.trace.huggingface.graph import Layout, step_of
from archsim.trace.huggingface.model import TransformerModel
from archsim.trace.kinds.dense import Experts, Linear
from archsim.trace.kinds.sequence import Attention, LatentAttention
from archsim.trace.trace import BoundOp, BoundTrace

LINKS, ENGINE_HOST, WAIT = "links", "engine", "host"  # what limits a step besides the bounds of kernels
VALUE = 2  # B of an activation between devices
OpSetting = tuple[str, Stored]  # the precision in which ops multiply, and how their weights and cached values are stored
# Points and weights of Gauss-Legendre quadrature on [0, 1] with three points (Abramowitz and Stegun, table 25.4).
POINTS = ((0.1127016653792583, 5 / 18), (0.5, 8 / 18), (0.8872983346207417, 5 / 18))
PIECES = 2  # parts of the range of contexts, each with those points
MOST_CHUNKS = 4  # chunks of one prompt that are priced one by one; of more, as many between the first and the last


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


NOTHING = StepCost(time_s=0.0, bound_s={}, energy_j=0.0, dram_bytes=0.0, flop=0.0)


@kept(4096)
def step_cost(plan: ServingPlan, sequences: int, tokens: int, context: int, *, decode: bool) -> StepCost:
    """A step of `sequences`, each with `tokens` new ones, `context` cached ones with these among them.

    time = host + sum over stages of (kernels + links)        host: between two steps, as `ServingEngine` says

    A decode step is replayed as a CUDA graph where the plan says so. With several stages the sequences of a step are as many
    groups, of which each stage works on one.
    """
    found = NOTHING
    groups = min(plan.stages, sequences)
    share = -(-sequences // groups)
    for first, last in stages_of(plan.model, plan.stages):
        layout = Layout(engine=True, decode=decode, tensor=plan.tensor, experts=plan.experts, first=first, last=last)
        found = found.plus(_stage(plan, layout, share, tokens, context, decode))
        if last < plan.model.layers:
            found = found.plus(_moved(plan, share * tokens * plan.model.width * VALUE))
    if plan.stages > 1 and decode:  # groups follow each other through the stages, so that each waits for the slowest
        found = replace(found, energy_j=found.energy_j * groups, dram_bytes=found.dram_bytes * groups, flop=found.flop * groups)
    host = host_step(plan, sequences)
    if plan.stack.serving.overlapped:  # the host is ready before the device, or the device waits for the rest
        return found.plus(waiting(plan, ENGINE_HOST, max(0.0, host.time_s - found.time_s), plan.devices))
    return found.plus(host)


def stages_of(model: TransformerModel, stages: int) -> list[tuple[int, int]]:
    """The layers of each stage, from the first up to the last, not included.

    >>> from archsim.trace.huggingface.catalog import find
    >>> stages_of(find("gpt2_small"), 5)
    [(0, 2), (2, 4), (4, 7), (7, 9), (9, 12)]
    """
    return list(pairwise(model.layers * i // stages for i in range(stages + 1)))


def host_step(plan: ServingPlan, sequences: int) -> StepCost:
    """The host's part of a step, in which the devices idle.

    t = (step_clocks + sequences sequence_clocks) / f

    f: `dispatch_clock` of the host [Hz]
    """
    engine, host = plan.stack.serving, plan.follows["host_cpu"].device
    assert isinstance(host, Cpu)
    clocks = engine.step_clocks + sequences * engine.sequence_clocks
    return waiting(plan, ENGINE_HOST, clocks / first_of(dispatch_clock(host)), plan.devices)


def waiting(plan: ServingPlan, name: str, time: float, devices: int) -> StepCost:
    """A time in which devices idle."""
    return StepCost(time_s=time, bound_s={name: time}, energy_j=time * _idle(plan) * devices, dram_bytes=0.0, flop=0.0)


def _idle(plan: ServingPlan) -> float:
    return first_of(plan.spec.device.power.idle)


def _stage(plan: ServingPlan, layout: Layout, sequences: int, tokens: int, context: int, decode: bool) -> StepCost:
    """The kernels of the layers of one stage on the devices that share them, and their collectives."""
    replays = plan.graph and decode and sequences <= plan.stack.serving.graph_sequences
    trace = _bound(plan.model, layout, sequences, tokens, context)
    kernels = _priced(plan, trace, [_setting(plan, op) for op in trace.ops], replays)
    return kernels.plus(_collectives(plan, layout, sequences * tokens))


@lru_cache(maxsize=512)
def _bound(model: TransformerModel, layout: Layout, sequences: int, tokens: int, context: int) -> BoundTrace:
    trace, sizes = step_of(model, layout), {"N": sequences, "T": tokens, "S": context}
    return trace.bind(**{name: sizes[name] for name in trace.free_symbols})


def _setting(plan: ServingPlan, op: BoundOp) -> OpSetting:
    """How an op of this plan multiplies."""
    if isinstance(op.kind, Attention | LatentAttention):
        narrower = CACHE_BYTES[plan.cache] < CACHE_BYTES[plan.precision]
        return plan.precision, Stored(cache_bytes=CACHE_BYTES[plan.cache] if narrower else 0.0)
    if isinstance(op.kind, Linear | Experts):
        if plan.both_narrow and op.name != HEAD and not plan.model.keeps(op.name):
            return plan.weights, AS_MULTIPLIED
        weight = WEIGHTS[plan.weights].bytes_of(op, plan.model)
        if weight != PRECISION_BYTES[plan.precision]:
            return plan.precision, Stored(weight_bytes=weight)
    return plan.precision, AS_MULTIPLIED


def _priced(plan: ServingPlan, trace: BoundTrace, settings: Sequence[OpSetting], replays: bool) -> StepCost:
    """The kernels of a trace in time, one device's; times the devices that share the layers in energy and traffic."""
    device_s, issue_s = np.zeros((2, 1, len(trace.ops)))
    energy = dram = first = 0.0
    bounds: dict[str, float] = defaultdict(float)
    cache = _cache_state(plan, trace, settings)
    whole = Request(
        network=plan.model.name, trace=trace, work=None, spec=plan.spec, stack=plan.stack, task="inference",
        batch=trace.symbols.get("N", 1), precision=plan.precision, fidelity=find(FITTED), calibration=plan.calibration,
        graph=replays, **plan.follows,
    )  # fmt: skip
    for precision, stored in dict.fromkeys(settings):
        own = [i for i, each in enumerate(settings) if each == (precision, stored)]
        request = replace(whole, precision=precision, stored=stored)
        lowered = lowered_of(request, tuple([trace.ops[i] for i in own]), cache=cache)
        costs = priced(request, lowered.kernels)
        index = np.asarray(lowered.plan_of)
        live, places = index[index >= 0], np.array(own)[index >= 0]
        device_s[0, places] = costs.cost.time_s[0, live]
        issue_s[0, places] = costs.host[0, live]
        energy += float(costs.cost.total_energy_j[0, live].sum())
        dram += float(costs.cost.dram_bytes[0, live].sum())
        for name, values in costs.cost.bound_s.items():
            bounds[name] += float(values[0, live].sum())
        if replays and own[0] == 0:
            first = first_of(graph_launch(costs.host, index, request.host, plan.calibration))
    if replays:
        issue_s[:] = 0.0
        issue_s[0, 0] = first
    timeline = asynchronous(device_s, issue_s)
    waited = float(timeline.wait_s[0].sum())
    return StepCost(
        time_s=float(device_s.sum()) + waited, bound_s={**bounds, WAIT: waited},
        energy_j=(energy + waited * _idle(plan)) * plan.tensor, dram_bytes=dram * plan.tensor,
        flop=float(trace.flop) * plan.tensor,
    )  # fmt: skip


def _cache_state(plan: ServingPlan, trace: BoundTrace, settings: Sequence[OpSetting]) -> CacheState:
    """What a step leaves in the L2 to the next one, whichever of its ops are lowered together.

    run_bytes = weights, and keys and values of all sequences, as they are stored + twice the largest result
    """
    weights = sum(op.parameters * (stored.weight_bytes or PRECISION_BYTES[precision])
                  for op, (precision, stored) in zip(trace.ops, settings, strict=True))  # fmt: skip
    kept = sum(prod(shape) for shape in trace.inputs.values()) * CACHE_BYTES[plan.cache]
    return CacheState(run_bytes=weights + kept + 2 * VALUE * max(prod(op.shape) for op in trace.ops), short_lived=True)


def _collectives(plan: ServingPlan, layout: Layout, rows: int) -> StepCost:
    """Sums of partial results over the devices that share a layer: after attention and after the feed-forward part.

    Where experts are spread, tokens go to the devices of their experts and come back (two all-to-alls) instead of the second.
    """
    if plan.tensor == 1 or plan.node is None:
        return NOTHING
    model = plan.model
    size = float(rows * model.width * VALUE)
    first, last = layout.first, layout.last or model.layers
    # of an all-to-all each device keeps its own share
    sent = size * (model.experts.top if model.experts else 0)
    exchanged = plan.node.collective.start + sent / plan.tensor * (plan.tensor - 1) / plan.tensor / rate_to(plan.node, 1)
    spread_out = sum(model.experts.has(layer) for layer in range(first, last)) if plan.experts > 1 and model.experts else 0
    both = 0 if model.order.startswith("parallel") else last - first - spread_out  # layers whose parts are summed one by one
    calls = last - first + both + (first == 0)  # the table of words is shared out too
    time = 2.0 * exchanged * spread_out + calls * unloaded_time_s(all_reduce(plan.node, plan.tensor, size), plan.node)
    return waiting(plan, LINKS, time, plan.tensor)


def rate_to(node: Node, device: int) -> float:
    """Bandwidth from the first device to another one [B/s]."""
    return min(node.capacity()[name] for name in node.path("gpu0", f"gpu{device}"))


def _moved(plan: ServingPlan, size: float) -> StepCost:
    """Activations that go from one stage to the next."""
    node = plan.node
    assert node is not None
    time = node.collective.start + size / rate_to(node, min(plan.tensor, node.devices - 1))
    return waiting(plan, LINKS, time, plan.tensor)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillCost:
    """What it takes to read the prompts of a batch.

    cost: until all have their first token; first_s: until the first ones have it; mean_s: on average over the requests [s]
    steps: of the engine
    """

    cost: StepCost
    first_s: float
    mean_s: float
    steps: int


def step_tokens(plan: ServingPlan, context: int) -> int:
    """Most new tokens of a step that reads prompts: what the engine says, or the longest prompt."""
    return plan.stack.serving.step_tokens or max(2048, min(plan.model.context, context))


def prefill(plan: ServingPlan, batch: int, tokens: int) -> PrefillCost:
    """The prompts of `batch` requests that arrive at once, of `tokens` each.

    A step takes whole prompts until they are more than the engine's most tokens; one longer prompt is cut into chunks.
    """
    most = max(1, step_tokens(plan, tokens))
    if tokens > most:
        one = _chunks(plan, tokens, most)
        return PrefillCost(cost=NOTHING.plus(one, batch), first_s=one.time_s, mean_s=one.time_s * (batch + 1) / 2,
                           steps=-(-tokens // most) * batch)  # fmt: skip
    together = min(batch, max(1, most // tokens), plan.stack.serving.sequences)
    whole, rest = divmod(batch, together)
    step = step_cost(plan, together, tokens, tokens, decode=False)
    last = step_cost(plan, rest, tokens, tokens, decode=False) if rest else NOTHING
    cost = NOTHING.plus(step, whole).plus(last)
    ends = [(i + 1) * step.time_s for i in range(whole)]
    waited = together * sum(ends) + rest * cost.time_s
    return PrefillCost(cost=cost, first_s=step.time_s if whole else last.time_s, mean_s=waited / batch,
                       steps=whole + bool(rest))  # fmt: skip


def _chunks(plan: ServingPlan, tokens: int, most: int) -> StepCost:
    """One prompt in chunks, each of which attends to those before it; of many, some are priced and the others lie between."""
    whole, rest = divmod(tokens, most)
    points = [(number, 1.0) for number in range(whole)]
    if whole > MOST_CHUNKS:  # trapezoids between evenly spaced chunks
        steps = MOST_CHUNKS - 1
        points = [(round(i * (whole - 1) / steps), whole / steps * (0.5 if i in (0, steps) else 1.0)) for i in range(MOST_CHUNKS)]
    found = _sum((step_cost(plan, 1, most, most * (number + 1), decode=False), share) for number, share in points)
    return found.plus(step_cost(plan, 1, rest, tokens, decode=False)) if rest else found


def decode(plan: ServingPlan, batch: int, first: int, steps: int) -> StepCost:
    """`steps` tokens of each of `batch` sequences, whose contexts grow from `first` on: all steps together.

    sum over contexts of t(context) = steps x the mean over the range, by Gauss-Legendre quadrature with 3 points in each of
    `PIECES` parts; a range of few contexts is added up
    """
    points = [(number, 1.0) for number in range(steps)]
    if steps > len(POINTS) * PIECES:
        points = [(round((piece + at) / PIECES * (steps - 1)), weight / PIECES * steps)
                  for piece in range(PIECES) for at, weight in POINTS]  # fmt: skip
    return _sum((token_cost(plan, batch, first + number), share) for number, share in points)


def token_cost(plan: ServingPlan, batch: int, context: int) -> StepCost:
    """A token of each sequence: a step, or with guesses ahead a checking step over what it yields on average."""
    guess = plan.speculation
    if guess is None:
        return step_cost(plan, batch, 1, context, decode=True)
    cost = step_cost(plan, batch, guess.tokens + 1, context + guess.tokens, decode=True)
    if guess.draft is not None:  # which guesses in as many steps of its own
        own = replace(plan, model=guess.draft, tensor=1, stages=1, experts=1, node=None, speculation=None)
        cost = cost.plus(step_cost(own, batch, 1, context, decode=True), guess.tokens)
    return NOTHING.plus(cost, 1.0 / guess.yielded)


def _sum(costs: Iterable[tuple[StepCost, float]]) -> StepCost:
    """All of these, each as often as is said."""
    return reduce(lambda found, one: found.plus(*one), costs, NOTHING)


def answered(plan: ServingPlan, most: int) -> tuple[PrefillCost, StepCost, int]:
    """The prompts of a batch, its tokens after the first ones, and in how many waves.

    A wave is as large as fits at full length, `most` requests at most. With several, prompts and tokens of all are added up, and
    the times to a first token are those of the first wave, delayed by the waves before for the others.
    """
    sizes = [min(most, plan.batch - begun) for begun in range(0, plan.batch, most)]
    reads, rest, begun, waited = NOTHING, NOTHING, 0.0, 0.0
    first, steps = 0.0, 0
    for number, size in enumerate(sizes):
        read = prefill(plan, size, plan.input)
        tokens = decode(plan, size, plan.input + 1, plan.output - 1)
        first = first if number else read.first_s
        waited += size * (begun + read.mean_s)
        steps += read.steps
        begun += read.cost.time_s + tokens.time_s
        reads, rest = reads.plus(read.cost), rest.plus(tokens)
    return PrefillCost(cost=reads, first_s=first, mean_s=waited / plan.batch, steps=steps), rest, len(sizes)

"""Memory that a network takes on a device: parameters, activations, gradients, optimiser state, workspace, context.

Parameters, activations, gradients and optimiser state are counted tensor by tensor; the workspace is that of the algorithms
that run. Assumed are the size of the context (`reserved` of a stack), that all layers share one workspace, and the share of
the memory that is `USABLE`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

import numpy as np

from archsim.base.arguments import LARGEST_BATCH
from archsim.base.record import kept
from archsim.base.units import show, show_capacity
from archsim.cost.cost import Array
from archsim.cost.retention import NOTICED, resident_share
from archsim.device.device import Gpu
from archsim.device.variant import first_of
from archsim.estimation.pipeline import Run, run
from archsim.estimation.request import Request, with_batch
from archsim.stack.stack import Stack
from archsim.trace.kinds.pointwise import KEPT_BYTES, OPTIMISERS
from archsim.trace.trace import BoundTrace

USABLE = 0.95  # of the capacity; allocators lose the rest to granularity
STRAIGHT = 8  # steps along straight lines before a search halves what is left


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Device memory by use [B]."""

    parameters: float
    activations: float
    gradients: float
    optimiser: float
    workspace: float
    reserved: float

    @property
    def total(self) -> float:
        """The sum of all uses [B]."""
        return self.parameters + self.activations + self.gradients + self.optimiser + self.workspace + self.reserved


VIEWS = ("reshape",)  # the same values, indexed differently


def footprint(
    trace: BoundTrace, element: int, workspace: float, reserved: float, keeps: bool = False,
    in_place: Collection[str] = ("relu", "relu6"),
) -> Footprint:  # fmt: skip
    """Device memory that running `trace`, of any task, takes [B].

    parameters  = learned values x element, or their own bits
    activations = inference: the most values alive at once x element; training: inputs and all forward outputs x element
    gradients   = training: (learned values + twice the widest gradient) x element
    optimiser   = (state values of each parameter, and a master copy where values have fewer than 4 B) x 4 B
                  (Micikevicius et al. 2018, section 3.1)

    element: bytes of a value
    workspace, reserved: of the algorithms, and of the context [B]; passed through
    keeps: each layer keeps its output and gradient (Caffe, Torch7), so that in training gradients of all activations count,
        and in inference all outputs; otherwise memory is used again after its last reader
    in_place: kinds of op that overwrite their first input

    >>> from archsim.trace.task import prepared
    >>> vgg = prepared("vgg_16", "inference").bind(N=1)
    >>> found = footprint(vgg, 4, 0.0, 0.0)
    >>> round(found.parameters / 1e6), round(found.activations / 1e6)  # 138 million parameters of 4 B
    (553, 26)
    """
    in_place = {*in_place, *VIEWS}
    owners = [op for op in trace.ops if op.parameters] or [op for op in trace.ops if op.phase in ("backward_filter", "backward")]
    learned, stored = sum(op.learned for op in owners), sum(op.stored(element) for op in owners)
    training = any(op.phase != "forward" for op in trace.ops)
    inputs = sum(prod(shape) for shape in trace.inputs.values())
    written = sum(prod(op.shape) for op in trace.ops if op.phase == "forward" and op.kind.op not in in_place)
    live = inputs + written if training or keeps else _peak(trace, in_place)
    gradients = state = 0
    if training:
        widest = max((prod(op.shape) for op in trace.ops if op.phase.startswith("backward")), default=0)
        gradients = learned + (max(2 * widest, _sent_back(trace, in_place)) if keeps else 2 * widest)
        copies, updates = int(element < KEPT_BYTES), [op for op in trace.ops if op.phase == "update"]
        state = sum((copies + OPTIMISERS[getattr(op.kind, "optimiser", "sgd")].state) * prod(op.shape) for op in updates)
    return Footprint(
        parameters=float(stored), activations=float(live * element), gradients=float(gradients * element),
        optimiser=float(state * KEPT_BYTES), workspace=workspace, reserved=reserved,
    )  # fmt: skip


def _workspace(result: Run) -> Array:
    """The largest workspace of the algorithms that run, on each of D variants of a device [B], [D]."""
    plans = np.unique(result.lowered.plan_of)
    return np.asarray(result.cost.workspace[..., plans[plans >= 0]].max(axis=-1, initial=0.0))


def footprint_of(request: Request, result: Run) -> Footprint:
    """Device memory of a request, with the workspace of the algorithms that were chosen for it."""
    return _with(request, float(_workspace(result)[0]))


def needed_bytes(request: Request, result: Run) -> Array:
    """Device memory of a request on each of D variants of a device [B], shape [D]."""
    return np.asarray(_with(request, 0.0).total + _workspace(result))


def fits(need: Footprint, capacity: float) -> bool:
    """Whether a footprint is within the usable part of the memory; `capacity` in bytes."""
    return need.total <= USABLE * capacity


def largest_batch(request: Request, result: Run) -> int | None:
    """The largest batch that fits the device, 0 if not even one sample does; None for a network whose batch is fixed.

    Algorithms are chosen anew for each batch that is tried, so that the batch fits with its own workspace, and one sample more
    does not fit with the workspace that it would have.
    """
    if "N" not in request.trace.symbols:
        return None
    room, here = USABLE * float(request.device.memory.capacity), footprint_of(request, result)
    kernels = result.lowered.kernels
    ends = [*kernels.plan_start.tolist(), len(kernels.options)]
    wide = [any(option.workspace > 0 for option in kernels.options[first:end]) for first, end in pairwise(ends)]
    with_workspace = {plan: i for i, plan in reversed([*enumerate(result.lowered.plan_of.tolist())]) if plan >= 0 and wide[plan]}

    def need(batch: int) -> float:
        try:
            other = with_batch(request, batch)
        except ValueError:  # a tensor larger than any device's memory
            return math.inf
        ops = tuple([other.trace.ops[i] for i in with_workspace.values()])
        workspace = _workspace(run(replace(other, trace=replace(other.trace, ops=ops)))) if ops else [0.0]
        return _with(other, float(workspace[0])).total

    # At first as if activations and workspace grew in proportion to the batch and nothing else did.
    grows = here.activations + here.workspace
    guess = int(min(LARGEST_BATCH, request.batch * max(0.0, room - (here.total - grows)) / max(grows, 1.0)))
    return largest(need, room, (request.batch, here.total), guess, LARGEST_BATCH)


def largest(need: Callable[[int], float], room: float, known: tuple[int, float], guess: int, limit: int) -> int:
    """The largest whole number from 0 to `limit` whose `need` is within `room`; the need grows with the number.

    A secant search: memory is almost a straight line over the batch, so the line through the last two points, from `known` (a
    number and its need) and a `guess` on, ends in a few steps. After `STRAIGHT` steps it halves the interval instead.

    >>> largest(lambda n: n * n, 50, (1, 1), 100, 1000)
    7
    """
    low, high, steps = 0, limit + 1, 0
    while high - low > 1:
        at = min(max(guess, low + 1), high - 1)
        needed, steps = need(at), steps + 1
        low, high = (at, high) if needed <= room else (low, at)
        rise = (needed - known[1]) / (at - known[0]) if at != known[0] else needed / at
        straight = steps < STRAIGHT and 0 < rise < math.inf
        guess = int(at + (room - needed) / rise) if straight else (low + high) // 2
        known = (at, needed)
    return low


def assumptions(request: Request) -> str:
    """How the memory was counted, as one sentence."""
    stack, kept = request.stack, "memory is used again after its last reader"
    if stack.activations == "kept":
        kept = "each layer keeps its output" + (" and its gradient" if request.task not in ("inference", "forward") else "")
    if request.optimiser and request.value_bytes < KEPT_BYTES:
        kept += ", the optimiser keeps its state and a copy of the weights in fp32"
    return (f"memory: {kept}, layers share one workspace, {stack.reserved / 1e6:g} MB of context, "
            f"{100 * USABLE:g} % is usable")  # fmt: skip


def caches_note(request: Request, result: Run) -> tuple[str, ...]:
    """What of a run the L2 of a GPU still has in the next one, as a sentence; none where that is nothing."""
    if not isinstance(request.device, Gpu):
        return ()
    touched = first_of(result.lowered.kernels.run_bytes)
    share = first_of(resident_share(touched, request.device))
    if share < NOTICED:
        return ()
    stays = f"all {show(touched, 'B', 3)}" if share == 1.0 else f"{100 * share:.2g} % of {show(touched, 'B', 3)}"
    size = show_capacity(float(request.device.l2.size))
    return (f"caches: {stays} of weights and activations stay in the L2 of {size} from run to run; --cold is a single run",)


@kept(256)
def _without_workspace(trace: BoundTrace, stack: Stack, element: int) -> Footprint:
    """The footprint without the only part that depends on the device."""
    return footprint(trace, element, 0.0, stack.reserved, stack.activations == "kept", stack.in_place)


def _with(request: Request, workspace: float) -> Footprint:
    return replace(_without_workspace(request.trace, request.stack, request.value_bytes), workspace=workspace)


def _sent_back(trace: BoundTrace, in_place: Collection[str]) -> int:
    """Values in the gradients of all layers' outputs; the network's inputs have none."""
    gradients = [op for op in trace.ops if op.phase.startswith("backward") and op.kind.op not in in_place]
    return sum({op.parent: prod(op.shape) for op in gradients}.values())


def _peak(trace: BoundTrace, in_place: Collection[str]) -> int:
    """The largest number of values alive at once, inputs included; an op in place writes where its input is."""
    place = {name: name for name in trace.inputs}
    last: dict[str, int] = {}
    for step, op in enumerate(trace.ops):
        place[op.name] = place.get(op.inputs[0], op.inputs[0]) if op.kind.op in in_place else op.name
        last.update((place.get(name, name), step) for name in op.inputs)
    sizes = {name: prod(shape) for name, shape in trace.inputs.items()}
    alive = peak = sum(sizes.values())
    for step, op in enumerate(trace.ops):
        if place[op.name] == op.name:
            sizes[op.name] = prod(op.shape)
            alive += sizes[op.name]
        peak = max(peak, alive)
        read = {place.get(name, name) for name in op.inputs}
        alive -= sum(sizes[name] for name in read if last[name] == step and name in sizes)
    return peak

"""Memory that a network takes on a device: parameters, activations, gradients, optimiser state, workspace, context."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from archsim.trace.op import OPTIMISERS
from archsim.trace.trace import BoundTrace

USABLE = 0.95  # of the capacity; allocators lose the rest to granularity
MASTER = 4  # B, optimisers keep parameters in fp32


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Bytes by use."""

    parameters: float
    activations: float
    gradients: float
    optimiser: float
    workspace: float
    reserved: float

    @property
    def total(self) -> float:
        """All of it [B]."""
        return self.parameters + self.activations + self.gradients + self.optimiser + self.workspace + self.reserved


def footprint(trace: BoundTrace, element: int, workspace: float, reserved: float) -> Footprint:
    """What running `trace` (of any task) needs.

    Inference keeps a tensor until its last reader has run. With gradients in the trace every forward tensor stays, and
    the largest gradient tensors are there beside them.
    """
    learned = sum(op.parameters for op in trace.ops) or _learned(trace)
    training = any(op.phase != "forward" for op in trace.ops)
    inputs = sum(prod(shape) for shape in trace.inputs.values())
    if not training:
        live = _peak(trace) * element
        return Footprint(parameters=float(learned * element), activations=float(live), gradients=0.0, optimiser=0.0,
                         workspace=workspace, reserved=reserved)  # fmt: skip
    kept = inputs + sum(prod(op.shape) for op in trace.ops if op.phase == "forward" and not _in_place(op.kind.op))
    widest = max((prod(op.shape) for op in trace.ops if op.phase.startswith("backward")), default=0)
    updates = [op for op in trace.ops if op.phase == "update"]
    state = sum(OPTIMISERS[getattr(op.kind, "optimiser", "sgd")].state * prod(op.shape) for op in updates)
    return Footprint(
        parameters=float(learned * element), activations=float(kept * element), gradients=float((learned + 2 * widest) * element),
        optimiser=float(state * MASTER), workspace=workspace, reserved=reserved,
    )  # fmt: skip


def _in_place(kind: str) -> bool:
    """Ops whose result overwrites their input, or is a view of it."""
    return kind in ("relu", "relu6", "reshape")


def _learned(trace: BoundTrace) -> int:
    """Parameters of a trace that holds gradients only: those that its filter gradients belong to."""
    ops = [op for op in trace.ops if op.phase in ("backward_filter", "backward")]
    return sum(op.kind.parameters(op.input_shapes, op.shape) for op in ops)


def _peak(trace: BoundTrace) -> int:
    """Largest number of values alive at once, inputs included. What works in place lives where its input lives."""
    place = {name: name for name in trace.inputs}
    last: dict[str, int] = {}
    for step, op in enumerate(trace.ops):
        place[op.name] = place.get(op.inputs[0], op.inputs[0]) if _in_place(op.kind.op) else op.name
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

"""Ops that stream through memory: activations, pooling, normalisation, copies, look-ups, the optimiser."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from archsim.lower.context import Context, plan, single, stream
from archsim.lower.kernel import Option, Plan
from archsim.stack.stack import Passes
from archsim.trace.trace import BoundOp

VIEWS = ("reshape",)  # change how a tensor is indexed, not where it lies
SHORT_ROW = 1024  # values that the threads of one warp hold in registers, so that a row is read once


def pointwise(op: BoundOp, context: Context) -> Plan | None:
    """A streaming op with the passes of its stack; None where the stack does nothing for it."""
    if op.kind.op in VIEWS or (op.kind.op == "dropout" and not context.training):
        return None
    phase = "forward" if op.phase == "forward" else "backward"
    # The gradient of an add is its incoming gradient; where two of them meet they are added, which is a forward add.
    meets = getattr(op.kind, "accumulate", False)
    own = "accumulate" if meets else f"short_{op.kind.op}" if op.shape[-1:] <= (SHORT_ROW,) else op.kind.op
    rows = context.passes(own if own in context.stack.passes else op.kind.op, "forward" if meets else phase)
    if rows.launches == 0:
        return None
    inputs, out = context.bytes(*op.input_shapes), context.bytes(op.shape)
    reads, writes = (inputs, out) if phase == "forward" or meets else (out, inputs)
    moved = rows.inputs * inputs + rows.outputs * out
    # The passes say how much moves; what is not the result itself is read.
    written = min(writes, moved)
    return _streamed(op, context, rows, max(moved - written, min(reads, moved)), written)


def part(op: BoundOp, context: Context) -> Plan | None:
    """A slice moves what it selects; its gradient also fills the rest of the tensor with zeros. None where it is a view."""
    phase = "forward" if op.phase == "forward" else "backward"
    rows = context.passes("slice", phase)
    if rows.launches == 0:
        return None
    selected = context.bytes(op.shape)
    written = selected if phase == "forward" else context.bytes(*op.input_shapes)
    kernel = stream("slice", rows.inputs * selected, rows.outputs * written, element=context.vector)
    return single("copy", op, context, kernel)


def quantise(op: BoundOp, context: Context) -> Plan | None:
    """Values as results have them are read, in a pass before for a scale that has to be found, and written as operands have them.

    The gradient is the incoming one.
    """
    if op.phase != "forward":
        return None
    count = float(prod(op.shape))
    reads, writes = count * context.result, context.bytes(op.shape)
    kernels = [stream("quantise", reads, writes, flop=2.0 * count, element=context.vector)]
    if getattr(op.kind, "dynamic", False):
        kernels.insert(0, stream("largest", reads, 0.0, flop=2.0 * count, element=context.vector))
    return single("stream", op, context, *kernels)


def _streamed(op: BoundOp, context: Context, rows: Passes, reads: float, writes: float) -> Plan:
    launches = rows.launches * (len(op.input_shapes) if op.kind.op == "concat" else 1)
    one = context.stack.elementwise_threads == "all"
    windows = _window_bytes(op, context) / launches
    slots = context.stack.window_slots * _window_values(op) / launches
    efficiency = context.efficiency(op.kind.op) if context.training and op.kind.op in context.stack.efficiency else "one"
    kernel = stream(
        op.kind.op, reads / launches, writes / launches, flop=op.flop / launches, element=context.vector, repeat=launches,
        threaded=one, efficiency=efficiency,
    )  # fmt: skip
    return plan(op, context, Option(algorithm="stream", kernels=(replace(kernel, cache_bytes=windows, slots=slots),)))


def _window_bytes(op: BoundOp, context: Context) -> float:
    """What windows read through the cache [B], of pixels (pooling) or channels (LRN): each value once for every window.

    The gradient looks up, for each input value, the windows that cover it: value and gradient of each.
    """
    covered = float(context.element) * _window_values(op)
    return covered if op.phase == "forward" else 2.0 * covered


def _window_values(op: BoundOp) -> float:
    """Values of all windows together."""
    kernel = getattr(op.kind, "kernel", None) or (getattr(op.kind, "size", 0), 1)
    return float(prod(op.shape) * kernel[0] * kernel[1])


def embedding(op: BoundOp, context: Context) -> Plan:
    """A gather of rows, or the scatter of their gradients; only the rows that are looked up move."""
    moved = context.bytes(op.shape)
    return single("gather", op, context, stream("gather", moved, moved, flop=op.flop, element=context.vector))


def update(op: BoundOp, context: Context) -> Plan:
    """The optimiser's chain of passes over the parameters: `inputs` are read, `outputs` written, in `launches` kernels."""
    optimiser = getattr(op.kind, "optimiser", "sgd")
    rows = context.stack.optimiser_passes.get(optimiser) or context.stack.optimiser_passes["default"]
    size = 4.0 * prod(op.shape)  # master copies are fp32
    kernel = stream(
        "update", rows.inputs * size / rows.launches, rows.outputs * size / rows.launches, flop=op.flop / rows.launches,
        element=max(4, context.stack.vector), repeat=rows.launches,
    )  # fmt: skip
    return plan(op, context, Option(algorithm=optimiser, kernels=(kernel,)))

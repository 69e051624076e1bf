"""Ops of element-wise kernels: activations, pooling, normalisation, copies, look-ups, the optimiser."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from archsim.calibration.constants import FULL
from archsim.lower.columns import GpuColumns, Role
from archsim.lower.context import HALF, Context, element_wise, plan, single
from archsim.lower.kernel import Option, Plan
from archsim.stack.parts import Passes
from archsim.trace.kinds.pointwise import KEPT_BYTES
from archsim.trace.trace import BoundOp

ALONG_AXIS = ("layer_norm", "rms_norm", "softmax")  # ops that sum up the rows of their last axis
ROW_THREADS = 512  # most threads of a CTA that sums up a row, where a stack says nothing (PyTorch, SoftMax_getBlockSize; cuDNN)
OF_ITS_OWN = 2  # kernels of an op; in a chain of more the sums are kernels of their own


def pointwise(op: BoundOp, context: Context, times: int = 1) -> Plan | None:
    """An op that the stack computes in element-wise kernels, by the row of `passes` for its kind and phase.

    moved = inputs x size of the inputs + outputs x size of the output [B]
    writes = min(size of the result, moved)
    reads = max(moved - writes, min(size of what it is made from, moved))

    inputs, outputs: of the row; the result is the output or, in a gradient, as large as the inputs. The launches are those of
    the row, `times` over; None where it has none, as the op is part of another kernel. The row `apart_OP` is for an op written
    as several, `stored_OP` for one with stored statistics, `last_OP` for images whose channels lie side by side, `half_OP` for
    values of two bytes, `native_OP` for a kernel of the framework in place of a library's. The gradient of an add is its
    incoming gradient; where two of them meet, they are added, as the row `accumulate` says.
    """
    phase, stack = "forward" if op.phase == "forward" else "backward", context.stack
    meets = getattr(op.kind, "accumulate", False)
    special = next((f"{word}_" for word in ("apart", "stored") if getattr(op.kind, word, False)), "")
    settings = {"last_": stack.conv.layout_copies == "none", "half_": context.element == HALF, "native_": True}
    special = next((word for word, holds in settings.items() if holds and f"{word}{op.kind.op}" in stack.passes), special)
    own = "accumulate" if meets else f"{special}{op.kind.op}"
    rows = context.passes(own if own in context.stack.passes else op.kind.op, "forward" if meets else phase)
    if rows.launches == 0:
        return None
    inputs = context.bytes(*op.input_shapes, (getattr(op.kind, "learned", 0),))
    out = context.bytes(op.shape)
    reads, writes = (inputs, out) if phase == "forward" or meets else (out, inputs)
    moved = rows.inputs * inputs + rows.outputs * out
    written = min(writes, moved)
    return _passes(op, context, rows.launches * times, max(moved - written, min(reads, moved)), written, rows)


def view(op: BoundOp, context: Context) -> None:
    """No kernel: a reshape changes how a tensor is indexed, not where its values lie."""


def dropout(op: BoundOp, context: Context) -> Plan | None:
    """An element-wise kernel in training, none at inference."""
    return pointwise(op, context) if context.training else None


def concat(op: BoundOp, context: Context) -> Plan | None:
    """A copy of each input to its place in the output, one launch each."""
    return pointwise(op, context, len(op.input_shapes))


def part(op: BoundOp, context: Context) -> Plan | None:
    """A slice copies what it selects; its gradient also fills the rest of the tensor with zeros. None where it is a view.

    The gradients of slices that are the whole tensor together are copied to their places.
    """
    phase = "forward" if op.phase == "forward" else "backward"
    rows = context.passes("slice", phase)
    if rows.launches == 0:
        return None
    selected = context.bytes(op.shape)
    filled = phase == "backward" and not getattr(op.kind, "whole", False)
    written = context.bytes(*op.input_shapes) if filled else selected
    kernel = element_wise("slice", Role.PASS, rows.inputs * selected, rows.outputs * written, element=context.vector)
    return single("copy", op, context, kernel)


def quantise(op: BoundOp, context: Context) -> Plan | None:
    """Values rounded from the format of results to that of operands; a `dynamic` scale is found by a kernel of its own before.

    The gradient is the incoming one: no kernel.
    """
    if op.phase != "forward":
        return None
    count = float(prod(op.shape))
    reads, writes = count * context.result, context.bytes(op.shape)
    kernels = [element_wise("quantise", Role.QUANTISE, reads, writes, flop=2.0 * count, element=context.vector)]
    if getattr(op.kind, "dynamic", False):
        kernels.insert(0, element_wise("largest", Role.QUANTISE, reads, 0.0, flop=2.0 * count, element=context.vector))
    return single("element_wise", op, context, *kernels)


def _passes(op: BoundOp, context: Context, launches: int, reads: float, writes: float, rows: Passes) -> Plan:
    """One kernel for each of the launches, which share `reads` and `writes` [B] and the windows of a pooling or an LRN.

    A CTA that sums up a row has `row_threads` threads at most, or as many as the row has loads.

    slots = values value_slots        of a lane alone: row / threads value_slots
    """
    covered = _window_values(op)
    # The gradient looks up, for each input value, the windows that cover it: value and gradient of each.
    windows = (covered if op.phase == "forward" else 2.0 * covered) / launches
    # A loop of a CPU works through windows of pixels; over channels it keeps a running sum.
    largest = max(prod(shape) for shape in (*op.input_shapes, op.shape)) / launches
    looped = windows if windows and _window(op) else largest
    family = op.kind.op if context.training else f"{op.kind.op}_inference"
    efficiency = context.efficiency(family) if family in context.stack.efficiency else FULL
    kernel = element_wise(
        op.kind.op, Role.PASS, reads / launches, writes / launches, flop=op.flop / launches, element=context.vector,
        repeat=launches, efficiency=efficiency,
    )  # fmt: skip
    loop = context.stack.window_loop
    row, piece = _row_of(op, context, launches)
    arrays = op.input_shapes[:1] if op.phase == "forward" else (op.input_shapes[0], op.shape)  # and the gradient of the result
    walked = reads / launches / context.bytes(*arrays)
    together = row * context.element * (len(arrays) if op.shape == op.input_shapes[0] else 1)  # of all that is read [B]
    cta = min(rows.row_threads or ROW_THREADS, row * context.element / context.vector)
    loads = covered * context.element / context.vector  # an unrolled loop goes through the windows of a whole load at once
    gpu = GpuColumns(slots=prod(op.shape) / launches * rows.value_slots,
                     lane_slots=row / cta * rows.value_slots if cta else 0.0, cache_bytes=context.element * windows,
                     checked=covered / launches * (loop == "checked"), unrolled=loads / launches * (loop == "unrolled"),
                     row=row, row_piece=piece, row_reads=walked if row else 0.0,
                     row_in_flight=together / cta if cta else 0.0)  # fmt: skip
    kernel = replace(kernel, values=looped, operand_a=context.element, gpu=gpu)
    return plan(op, context, Option(algorithm="element_wise", kernels=(kernel,)))


def _window(op: BoundOp) -> tuple[int, int] | None:
    """Height and width of the window of pixels from which a pooling takes each result; None for other ops."""
    return getattr(op.kind, "kernel", None)


def _window_values(op: BoundOp) -> float:
    """Values of all windows, of pixels (pooling) or channels (LRN): each is read through the cache once for every window."""
    height, width = _window(op) or (getattr(op.kind, "size", 0), 1)
    return float(prod(op.shape) * height * width)


def gathered(op: BoundOp, context: Context) -> Plan:
    """Values copied from or to places: only those that the kind says move, the other way round in a gradient."""
    moved = [float(count) * context.element for count in op.kind.moved(op.input_shapes, op.shape)]  # type: ignore[attr-defined]
    reads, writes = moved if op.phase == "forward" else moved[::-1]
    return single("gather", op, context, element_wise("gather", Role.GATHER, reads, writes, flop=op.flop, element=context.vector))


def traffic(op: BoundOp, context: Context) -> Plan:
    """An unknown operator: the bytes that its file or function states, or each of its tensors once; twice as many backward."""
    times = 1.0 if op.phase == "forward" else 2.0
    _, moved = op.kind.work(op.input_shapes, op.shape, context.element)  # type: ignore[attr-defined]
    written = min(context.bytes(op.shape), moved)
    kernel = element_wise("traffic", Role.PASS, times * (moved - written), times * written, flop=op.flop, element=context.vector)
    return single("element_wise", op, context, kernel)


def update(op: BoundOp, context: Context) -> Plan:
    """The optimiser's passes over the parameters, as the row of `optimiser_passes` says, all values in fp32.

    Where layers compute in half precision, a pass reads gradients of half the size and writes the weights once more, at half the
    size: as many bytes in all.
    """
    optimiser = getattr(op.kind, "optimiser", "sgd")
    rows = context.stack.optimiser_passes.get(optimiser) or context.stack.optimiser_passes["default"]
    size = float(KEPT_BYTES * prod(op.shape))
    kernel = element_wise(
        "update", Role.UPDATE, rows.inputs * size / rows.launches, rows.outputs * size / rows.launches,
        flop=op.flop / rows.launches, element=max(4, context.stack.vector_bytes), repeat=rows.launches,
    )  # fmt: skip
    kernel = replace(kernel, values=prod(op.shape) / rows.launches)
    return plan(op, context, Option(algorithm=optimiser, kernels=(kernel,)))


def _row_of(op: BoundOp, context: Context, launches: float) -> tuple[float, float]:
    """Values whose sum a CTA needs before it writes any of them, and how many of these lie side by side; 0, 0: it needs none.

    batch_norm [N, C, ...]      N ... values of a channel, in N pieces; only in training, else the sums are known
    along the last axis         the values of a row, in one piece

    >>> from types import SimpleNamespace
    >>> from archsim.trace.kinds.normalise import Softmax
    >>> op = BoundOp(name="s", kind=Softmax(axis=-1), inputs=("x",), input_shapes=((8, 512),), shape=(8, 512))
    >>> _row_of(op, SimpleNamespace(training=False), 1)
    (512.0, 512.0)
    """
    shape, kind = op.input_shapes[0], op.kind.op
    if launches > OF_ITS_OWN:
        return 0.0, 0.0
    if kind == "batch_norm" and (context.training or op.phase != "forward"):
        piece = float(prod(shape[2:]))
        return shape[0] * piece, piece
    axis = getattr(op.kind, "axis", -1) % len(shape)
    if kind in ALONG_AXIS and prod(shape[axis + 1 :]) == 1:
        return float(shape[axis]), float(shape[axis])
    return 0.0, 0.0

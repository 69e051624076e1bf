"""Recurrent layers: an input product over the whole sequence, then one small product per time step."""

from __future__ import annotations

from archsim.lower.context import Context, plan, stream
from archsim.lower.gemm import product
from archsim.lower.kernel import Kernel, Option, Plan
from archsim.trace.kinds.recurrent import Lstm
from archsim.trace.trace import BoundOp

GATES = 4


def lstm(op: BoundOp, context: Context) -> Plan:
    """`layers` LSTM layers over [T, N, I]: the input product is batched over time, the recurrent one runs step by step."""
    steps, batch, features = op.input_shapes[0]
    kind, hidden = op.kind, op.shape[-1]
    assert isinstance(kind, Lstm)
    kernels: list[Kernel] = []
    for multiplied in kind.multiplied(features):
        kernels += _layer(context, op.phase, steps, batch, multiplied, hidden)
    calls = steps * kind.layers * context.stack.recurrent_launches if context.stack.recurrent == "steps" else 1
    return plan(op, context, Option(algorithm="lstm", kernels=tuple(kernels)), host_ops=calls)


def lstm_cell(op: BoundOp, context: Context) -> Plan:
    """One time step: the products of input and state, and the gates."""
    batch, features = op.input_shapes[0]
    kernels = _layer(context, op.phase, 1, batch, features, op.shape[-1])
    return plan(op, context, Option(algorithm="lstm", kernels=tuple(kernels)), host_ops=context.stack.recurrent_launches)


def _layer(context: Context, phase: str, steps: int, batch: int, features: int, hidden: int) -> list[Kernel]:
    """The kernels of one layer; one that multiplies no `features` of its input has no input product."""
    rows, gates = steps * batch, GATES * hidden
    if phase == "backward_filter":  # both weight gradients are products over the whole sequence
        of_input = [product("gemm_input_weights", context, gates, features, rows, family="gemm")] if features else []
        return [*of_input, product("gemm_recurrent_weights", context, gates, hidden, rows, family="gemm")]
    forward = phase == "forward"
    whole = (gates, rows, features) if forward else (features, rows, gates)
    # The library adds up the state's gradient from one product per gate; a framework calls one product for all.
    library = _library_kernels(context)
    apart = GATES if library and not forward else 1
    step = (gates, batch, hidden) if forward else (hidden, batch, gates / apart)
    state = float(batch * hidden * context.element)
    moved = (GATES + 1) * state
    of_input = [product("gemm_input", context, *whole)] if features else []
    return [
        *of_input,
        product("gemm_recurrent", context, *step, count=apart, menu="recurrent" if library else "gemm", family="recurrent",
                repeat=steps),
        stream("gates", moved, 2 * state, flop=25.0 * batch * hidden, element=context.element,
               repeat=steps * max(1, context.stack.recurrent_launches - 1)),
    ]  # fmt: skip


def _library_kernels(context: Context) -> bool:
    """Whether the library's sequence call has kernels of its own for the product of a step."""
    return context.stack.recurrent == "fused" and "recurrent" in context.stack.menus and not context.tensor

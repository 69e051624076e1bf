"""Recurrent layers: an input product over the whole sequence, then one small product per time step."""

from __future__ import annotations

from archsim.lower.context import Context, plan, stream
from archsim.lower.gemm import product
from archsim.lower.kernel import Kernel, Option, Plan
from archsim.trace.trace import BoundOp

GATES = 4


def lstm(op: BoundOp, context: Context) -> Plan:
    """`layers` LSTM layers over [T, N, I]: the input product is batched over time, the recurrent one runs step by step."""
    steps, batch, features = op.input_shapes[0]
    layers, hidden = getattr(op.kind, "layers", 1), op.shape[-1]
    kernels: list[Kernel] = []
    for layer in range(layers):
        kernels += _layer(context, op.phase, steps, batch, features if layer == 0 else hidden, hidden)
    calls = steps * layers * context.stack.recurrent_launches if context.stack.recurrent == "steps" else 1
    return plan(op, context, Option(algorithm="lstm", kernels=tuple(kernels)), host_ops=calls)


def lstm_cell(op: BoundOp, context: Context) -> Plan:
    """One time step: the products of input and state, and the gates."""
    batch, features = op.input_shapes[0]
    kernels = _layer(context, op.phase, 1, batch, features, op.shape[-1])
    return plan(op, context, Option(algorithm="lstm", kernels=tuple(kernels)), host_ops=context.stack.recurrent_launches)


def _layer(context: Context, phase: str, steps: int, batch: int, features: int, hidden: int) -> list[Kernel]:
    rows, gates = steps * batch, GATES * hidden
    if phase == "backward_filter":  # both weight gradients are products over the whole sequence
        return [
            product("gemm_input_weights", context, gates, features, rows, family="gemm"),
            product("gemm_recurrent_weights", context, gates, hidden, rows, family="gemm"),
        ]
    forward = phase == "forward"
    whole = (gates, rows, features) if forward else (features, rows, gates)
    step = (gates, batch, hidden) if forward else (hidden, batch, gates)
    state = float(batch * hidden * context.element)
    moved = (GATES + 1) * state
    return [
        product("gemm_input", context, *whole),
        product("gemm_recurrent", context, *step, family="recurrent", repeat=steps),
        stream("gates", moved, 2 * state, flop=25.0 * batch * hidden, element=context.element,
               repeat=steps * max(1, context.stack.recurrent_launches - 1)),
    ]  # fmt: skip

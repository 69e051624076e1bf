"""Recurrent layers: an input product over the whole sequence, then one small product for each time step.

The product of a step adds to that of the input, gate by gate, and the element-wise kernel of the gates reads the sums and the
state; where a reset gate acts between the two products (GRU), it reads both products.
"""

from __future__ import annotations

from math import ceil

from archsim.lower.context import Context, element_wise, plan
from archsim.lower.gemm import product
from archsim.lower.kernel import Kernel, Option, Plan
from archsim.lower.role import Role
from archsim.trace.kinds.sequence import GATES, Lstm, Recurrent
from archsim.trace.trace import BoundOp

ACTIVATION_FLOP = 5.0  # issue slots of a sigmoid or tangent, with the arithmetic around it, in those of an addition


def sequence(op: BoundOp, context: Context) -> Plan:
    """Layers over a sequence [T, N, features]: the input product is batched over time, the recurrent one runs step by step.

    The two directions of a layer run one after the other: kernels of one CUDA stream do not overlap.
    """
    steps, batch, features = op.input_shapes[0]
    kind = op.kind
    assert isinstance(kind, Recurrent)
    kernels: list[Kernel] = []
    for multiplied in kind.multiplied(features):
        kernels += _layer(context, type(kind), op.phase, steps, batch, multiplied, kind.hidden)
    calls = steps * kind.layers * kind.directions * _launches(context, type(kind)) if context.stack.recurrent == "steps" else 1
    return plan(op, context, Option(algorithm=kind.op, kernels=tuple(kernels)), host_ops=calls)


def lstm_cell(op: BoundOp, context: Context) -> Plan:
    """One time step of an LSTM, [N, features] to [N, hidden]: the products of input and state, and the gates."""
    batch, features = op.input_shapes[0]
    kernels = _layer(context, Lstm, op.phase, 1, batch, features, op.shape[-1])
    return plan(op, context, Option(algorithm="lstm", kernels=tuple(kernels)), host_ops=context.stack.recurrent_launches)


def _launches(context: Context, kind: type[Recurrent]) -> int:
    """Kernels for each step and layer: one product, and element-wise ones in proportion to the gates; the stack has an LSTM's."""
    return 1 + max(1, ceil((context.stack.recurrent_launches - 1) * kind.gates / GATES))


def _layer(
    context: Context, kind: type[Recurrent], phase: str, steps: int, batch: int, features: int, hidden: int
) -> list[Kernel]:
    """The kernels of one layer; one that adds its input without weights (`features` = 0) has no input product.

        forward            input: m = gates hidden, n = steps batch, k = features
                           step:  m = gates hidden, n = batch, k = hidden
        backward_data      input: m = features, n = steps batch, k = gates hidden
                           step:  m = hidden, n = batch, k = gates hidden
        backward_filter    input: m = gates hidden, n = features, k = steps batch
                           state: m = gates hidden, n = hidden, k = steps batch

    In the data gradient the library's kernels compute one product for each gate and add up, a framework's one for all.
    """
    rows, gates = steps * batch, kind.gates * hidden
    if phase == "backward_filter":
        of_input = [product(context, gates, features, rows, suffix="_input_weights")] if features else []
        return [*of_input, product(context, gates, hidden, rows, suffix="_recurrent_weights")]
    forward = phase == "forward"
    whole = (gates, rows, features) if forward else (features, rows, gates)
    library = _library_kernels(context)
    apart = kind.gates if library and not forward else 1
    step = (gates, batch, hidden) if forward else (hidden, batch, gates / apart)
    state = float(batch * hidden * context.element)
    of_input = [product(context, *whole, suffix="_input")] if features else []
    return [
        *of_input,
        product(context, *step, count=apart, menu="recurrent" if library else "gemm", family="recurrent", repeat=steps,
                suffix="_recurrent"),
        element_wise("gates", Role.GATES, _read(kind) * state, kind.states * state,
                     flop=ACTIVATION_FLOP * kind.activations * batch * hidden, element=context.element,
                     repeat=steps * (_launches(context, kind) - 1)),
    ]  # fmt: skip


def _read(kind: type[Recurrent]) -> int:
    """Values that the gates of a unit read: for each gate the sum of both products, or both (reset); and the state if gated."""
    mixed = 1 if kind.gates > 1 else 0
    return kind.gates * (2 if kind.reset else 1) + mixed


def _library_kernels(context: Context) -> bool:
    """Whether the library's call for a sequence has a kernel of its own for the product of a step."""
    return context.stack.recurrent == "fused" and "recurrent" in context.stack.menus and not context.tensor

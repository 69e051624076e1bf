"""Mixtures of experts: the choice, two products grouped by expert, and the weighted sum."""

from __future__ import annotations

from math import prod

from archsim.lower.context import Context, element_wise, single
from archsim.lower.gemm import narrowed, product, weights_menu
from archsim.lower.kernel import Kernel, Plan
from archsim.lower.role import Role
from archsim.lower.rounding import quantised
from archsim.trace.kinds.experts import Experts
from archsim.trace.trace import BoundOp

CHOICES = 3  # kernels before the products: scores to choices, tokens sorted by expert, their order stored


def experts(op: BoundOp, context: Context) -> Plan:
    """Products of the experts that any token chose, one for each in one launch, with the rows of its tokens (vLLM's fused_moe).

        choice                        scores read and a place for each row written, `CHOICES` kernels
        up     m = hidden (x 2)       n = rows / active      k = features    count = active
        gate   an element-wise kernel over the rows
        down   m = features           n = rows / active      k = hidden      count = active
        sum    rows read, tokens written

    Where operands have one byte, tokens are rounded before they are chosen, and each row again before `down`.

    rows: tokens times experts of each; active: experts that any token chose, whose weights are read
    """
    kind = op.kind
    assert isinstance(kind, Experts)
    tokens, scores = op.input_shapes
    features, rows, active = tokens[-1], kind.rows(op.input_shapes), kind.active(op.input_shapes)
    each, value = rows / active, float(context.result)
    wide = kind.hidden * (kind.projections - 1)
    chosen = element_wise("choose", Role.PASS, context.bytes(scores) / CHOICES, 4.0 * rows, element=context.vector,
                          repeat=CHOICES)  # fmt: skip
    gated = element_wise("gate", Role.PASS, rows * wide * value, rows * kind.hidden * value, element=context.vector,
                         flop=6.0 * rows * kind.hidden)  # fmt: skip
    summed = element_wise("sum", Role.PASS, rows * features * value, context.bytes(op.shape), element=context.vector,
                          flop=2.0 * rows * features)  # fmt: skip

    def grouped(m: float, k: float) -> Kernel:
        made = product(context, m, each, k, count=active, menu=weights_menu(context), family="gemm.transposed", transposed=True,
                       suffix="_grouped")  # fmt: skip
        return narrowed(made, context)

    up, down = grouped(wide, features), grouped(features, kind.hidden)
    rounding = "quantise_experts"
    narrow = quantised(context, float(prod(tokens[:-1])), tokens[-1], rounding)
    again = quantised(context, rows, kind.hidden, rounding)
    return single("grouped", op, context, chosen, *narrow, up, gated, *again, down, summed)

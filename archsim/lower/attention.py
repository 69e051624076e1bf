"""Attention: two products around a softmax, in one kernel that never writes the scores."""

from __future__ import annotations

from archsim.lower.context import Context, plan
from archsim.lower.gemm import THIN
from archsim.lower.kernel import Kernel, Option, Plan
from archsim.trace.kinds.attention import Attention
from archsim.trace.trace import BoundOp

RECOMPUTED = 2.5  # products of the backward pass over those of the forward pass: five instead of two (Dao 2023, section 3)


def attention(op: BoundOp, context: Context) -> Plan:
    """Fused attention (Dao et al. 2022, algorithm 1).

    Heads that share keys are rows of one product: m = queries x heads per key head, n = keys, k = 2 x head size for the two
    products, `work` the share of pairs that a causal mask leaves. With few rows (decoding) it is a stream over the keys.
    """
    kind = op.kind
    assert isinstance(kind, Attention)
    queries, keys, _ = op.input_shapes
    shared = kind.kv_heads or kind.heads
    size, group = queries[2] // kind.heads, kind.heads // shared
    times = 1.0 if op.phase == "forward" else RECOMPUTED
    m, n, count = queries[1] * group, keys[1], queries[0] * shared
    work = times * op.kind.macs(op.input_shapes, op.shape) / (2.0 * m * n * size * count)
    rows = times * context.bytes(queries)
    pairs = times * context.bytes(keys, keys)
    out = times * context.bytes(op.shape)
    matrix = m > THIN * group or m > 4 * THIN
    kernel = Kernel(
        name="attention", efficiency=context.efficiency("attention"), menu=context.menu("gemm") if matrix else "",
        m=m, n=n, k=2 * size, count=count, work=work, operand_a=context.element / 2, operand_b=context.element / 2,
        a_bytes=pairs, b_bytes=rows, c_bytes=out, flop=times * op.flop, items=max(1.0, pairs / context.element), dense=1,
    )  # fmt: skip
    return plan(op, context, Option(algorithm="fused", kernels=(kernel,)))

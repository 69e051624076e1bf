"""Matrix products and fully connected layers."""

from __future__ import annotations

from math import prod

from archsim.lower.context import Context, plan, quantised, single, stream
from archsim.lower.kernel import Kernel, Option, Plan
from archsim.trace.trace import BoundOp

# A stack without menus (ideal) runs every product as one kernel that loses nothing.
THIN = 4  # a product with so few rows or columns is a matrix-vector product to every library; one of a batch only with one


def product(
    name: str, context: Context, m: float, n: float, k: float, *, count: float = 1, a: float | None = None,
    b: float | None = None, c: float | None = None, menu: str = "gemm", family: str = "gemm", repeat: float = 1,
    transposed: bool = False,
) -> Kernel:  # fmt: skip
    """A dense product C[m, n] = A[m, k] B[k, n], `count` times; a, b, c are unique bytes where they are not m k, k n, m n."""
    element = float(context.element)
    a_bytes = m * k * count * element if a is None else a
    b_bytes = k * n * count * element if b is None else b
    c_bytes = m * n * count * float(context.result) if c is None else c
    flop = 2.0 * m * n * k * count
    thin = min(m, n) <= (THIN if context.device_kind == "gpu" and count == 1 else 1)
    if thin or (context.device_kind == "gpu" and not context.stack.menus):
        name = name.replace("gemm", "gemv") if thin else name
        return stream(name, b_bytes, c_bytes, flop=flop, weights=a_bytes, element=context.vector, repeat=repeat,
                      efficiency=context.efficiency("gemv"), dense=True)  # fmt: skip
    return Kernel(
        name=name, efficiency=context.efficiency(family), menu=context.menu(menu, "gemm"), m=m, n=n, k=k, count=count,
        operand_a=element, operand_b=element, a_bytes=a_bytes, b_bytes=b_bytes, c_bytes=c_bytes, flop=flop,
        items=m * n * count, row_bytes=k * element * transposed, repeat=repeat,
    )  # fmt: skip


def linear(op: BoundOp, context: Context) -> Plan:
    """Fully connected: weights are A, activations B; the bias is a pass of its own over the output, or fused."""
    rows, features = prod(op.shape[:-1]), op.shape[-1]
    inner = op.input_shapes[0][-1]
    m, n, k = {
        "backward_data": (inner, rows, features),
        "backward_filter": (features, inner, rows),
    }.get(op.phase, (features, rows, inner))
    transposed = op.phase == "forward"  # weights [features, inner], activations [rows, inner]: both row by row along k
    family = "gemm.transposed" if transposed else "gemm"
    kernels = [*quantised(context, rows * inner), product("gemm", context, m, n, k, family=family, transposed=transposed)]
    out = context.bytes(op.shape)
    if getattr(op.kind, "bias", False) and context.stack.linear_bias == "separate":
        if op.phase == "forward":
            kernels.append(stream("bias", out, out, flop=out / context.element, element=context.element))
        elif op.phase == "backward_filter":
            kernels.append(stream("bias_gradient", out, 0, flop=out / context.element, element=context.element))
    return plan(op, context, Option(algorithm="gemm", kernels=tuple(kernels)))


def matmul(op: BoundOp, context: Context) -> Plan:
    """A batched product of two activations, or one of its two gradients.

    Libraries count columns first, so that the rows of a matrix [m, n] in memory are the n of a kernel.
    """
    n, m = op.shape[-2:]
    count = prod(op.shape[:-2])
    k = prod(op.input_shapes[0]) / (n * count)
    sizes = {"backward_data": (k, n, m), "backward_filter": (m, k, n)}.get(op.phase, (m, n, k))
    narrow = quantised(context, prod(op.input_shapes[0]), "quantise_batched")
    batched = product("gemm_batched", context, *sizes, count=count, menu="gemm_batched")
    return single("gemm", op, context, *narrow, batched)

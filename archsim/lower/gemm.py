"""Matrix products and fully connected layers."""

from __future__ import annotations

from math import prod

from archsim.lower.context import Context, plan, single, stream
from archsim.lower.kernel import Kernel, Option, Plan
from archsim.trace.trace import BoundOp

# A stack without menus (ideal) runs every product as one kernel that loses nothing.
THIN = 4  # a product with so few rows or columns is a matrix-vector product to every GPU library


def product(
    name: str, context: Context, m: float, n: float, k: float, *, count: float = 1, a: float | None = None,
    b: float | None = None, c: float | None = None, menu: str = "gemm", family: str = "gemm", repeat: float = 1,
) -> Kernel:  # fmt: skip
    """A dense product C[m, n] = A[m, k] B[k, n], `count` times; a, b, c are unique bytes where they are not m k, k n, m n."""
    element = float(context.element)
    a_bytes = m * k * count * element if a is None else a
    b_bytes = k * n * count * element if b is None else b
    c_bytes = m * n * count * element if c is None else c
    flop = 2.0 * m * n * k * count
    thin = min(m, n) <= (THIN if context.device_kind == "gpu" else 1)
    if thin or (context.device_kind == "gpu" and not context.stack.menus):
        name = name.replace("gemm", "gemv") if thin else name
        return stream(name, b_bytes, c_bytes, flop=flop, weights=a_bytes, element=element, repeat=repeat,
                      efficiency=context.efficiency("gemv"), dense=True)  # fmt: skip
    return Kernel(
        name=name, efficiency=context.efficiency(family), menu=context.menu(menu), m=m, n=n, k=k, count=count,
        operand_a=element, operand_b=element, a_bytes=a_bytes, b_bytes=b_bytes, c_bytes=c_bytes, flop=flop,
        items=m * n * count, repeat=repeat,
    )  # fmt: skip


def linear(op: BoundOp, context: Context) -> Plan:
    """Fully connected: weights are A, activations B; the bias is a pass of its own over the output, or fused."""
    rows, features = prod(op.shape[:-1]), op.shape[-1]
    inner = op.input_shapes[0][-1]
    m, n, k = {
        "backward_data": (inner, rows, features),
        "backward_filter": (features, inner, rows),
    }.get(op.phase, (features, rows, inner))
    kernels = [product("gemm", context, m, n, k)]
    out = context.bytes(op.shape)
    if getattr(op.kind, "bias", False) and context.stack.linear_bias == "separate":
        if op.phase == "forward":
            kernels.append(stream("bias", out, out, flop=out / context.element, element=context.element))
        elif op.phase == "backward_filter":
            kernels.append(stream("bias_gradient", out, 0, flop=out / context.element, element=context.element))
    return plan(op, context, Option(algorithm="gemm", kernels=tuple(kernels)))


def matmul(op: BoundOp, context: Context) -> Plan:
    """A batched product of two activations, or one of its two gradients."""
    m, n = op.shape[-2:]
    count = prod(op.shape[:-2])
    k = prod(op.input_shapes[0]) / (m * count)
    sizes = {"backward_data": (m, k, n), "backward_filter": (k, n, m)}.get(op.phase, (m, n, k))
    return single("gemm", op, context, product("gemm_batched", context, *sizes, count=count))

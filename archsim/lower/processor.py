"""What a CPU's software adds to the kernels of a plan: who runs them, what its loops cost, what its library copies."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from archsim.lower.context import Context, stream
from archsim.lower.kernel import Kernel, Option, Plan
from archsim.trace.trace import BoundOp

# Products smaller than this stay on one thread: SMP_THRESHOLD_MIN x GEMM_MULTITHREAD_THRESHOLD of OpenBLAS (interface/gemm.c).
THREADED_PRODUCT = 65536 * 4


def on_cpu(plan: Plan, op: BoundOp, context: Context) -> Plan:
    """The plan with every kernel as the framework and library of this CPU stack run it."""
    return replace(plan, options=tuple([_option(option, op, context) for option in plan.options]))


def _option(option: Option, op: BoundOp, context: Context) -> Option:
    kernels = [_product(k, op, context) if k.menu else _loop(k, op, context) for k in option.kernels]
    if option.algorithm == "im2col" and context.stack.conv.images == "parallel":
        kernels = _images_at_once(kernels, op, context)
    local, spin = float(context.stack.elementwise_threads == "all"), float(context.stack.waiting == "spin")
    vector = float(context.stack.vectorised)
    return replace(option, kernels=tuple([replace(kernel, local=local, spin=spin, vector=vector) for kernel in kernels]))


def _product(kernel: Kernel, op: BoundOp, context: Context) -> Kernel:
    """A product by a library of BLAS copies both operands into panels (Goto and van de Geijn 2008); a direct loop does not.

    BLAS sees the rows of C as columns, so the side that it cuts for its threads is n here. In fully connected and recurrent
    layers these are the features, which stand as m where weights come first.
    """
    blas = kernel.name.endswith("gemm") or kernel.name.startswith("gemm")
    operands = (kernel.m + kernel.n) * kernel.k * kernel.count
    small = kernel.m * kernel.n * kernel.k * kernel.count <= THREADED_PRODUCT
    if op.kind.op != "conv2d" and op.phase != "backward_filter":
        kernel = replace(kernel, m=kernel.n, n=kernel.m)
    return replace(
        kernel, packed=context.stack.packing * operands if blas else 0.0, clocks=context.stack.gather_clocks * operands,
        pipe=context.stack.multiply_adds, grain=context.stack.grain if blas else 0.0,
        threaded=0.0 if small and blas else kernel.threaded,
    )  # fmt: skip


def _loop(kernel: Kernel, op: BoundOp, context: Context) -> Kernel:
    """A streaming kernel: on how many threads, and the clocks of its loop where that is not vectorised."""
    stack = context.stack
    phase = "backward" if op.phase != "forward" else "training" if context.training else ""
    name = f"{kernel.name}.{phase}"
    if kernel.name == "update" or (op.phase == "forward" and kernel.name in stack.in_place):
        kernel = replace(kernel, b_bytes=max(0.0, kernel.b_bytes - kernel.c_bytes))
    each = stack.loops.get(name, stack.loops.get(kernel.name, 0.0))
    if stack.elementwise_threads == "all" or kernel.dense:
        return replace(kernel, clocks=each * _values(kernel, op), pipe=stack.multiply_adds)
    own = kernel.name in ("im2col", "col2im", "swap_axes")  # the stack says so apart
    threaded = kernel.threaded if own else float(kernel.name in stack.threaded_ops)
    return replace(kernel, clocks=each * _values(kernel, op), threaded=threaded)


def _values(kernel: Kernel, op: BoundOp) -> float:
    """Values that one launch of a loop works through: window elements of a pooling, else elements of the op's largest tensor."""
    if kernel.cache_bytes and op.kind.op != "lrn":  # its loop keeps a running sum of the window
        return kernel.cache_bytes / kernel.operand_a
    if kernel.name != op.kind.op:
        return kernel.items
    return max(prod(shape) for shape in (*op.input_shapes, op.shape)) / kernel.repeat


def _images_at_once(kernels: list[Kernel], op: BoundOp, context: Context) -> list[Kernel]:
    """Forward and data gradient: each thread takes whole images. The filter gradient reuses the columns, image after image."""
    if op.phase == "backward_filter":
        return [kernel for kernel in kernels if kernel.name != "im2col"]
    images = float(op.shape[0])
    batched = [_batched(k, images) if k.name in ("gemm", "im2col", "col2im") else k for k in kernels]
    if op.phase != "backward_data":
        return batched
    columns = sum(k.b_bytes for k in batched if k.name == "col2im")
    return [stream("zero_columns", 0.0, columns, element=context.element, threaded=False), *batched]


def _batched(kernel: Kernel, images: float) -> Kernel:
    """All images of a loop as one launch whose parts are the images; the weights stay the same."""
    return replace(
        kernel, repeat=kernel.repeat / images, count=kernel.count * images, b_bytes=kernel.b_bytes * images,
        c_bytes=kernel.c_bytes * images, flop=kernel.flop * images, items=kernel.items * images,
        clocks=kernel.clocks * images, packed=kernel.packed * images, parts=images, grain=0.0, threaded=1.0,
    )  # fmt: skip

"""What a CPU's software adds to the kernels of a plan: how many threads, the clocks of its loops, the copies of its BLAS."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from archsim.lower.columns import CpuColumns
from archsim.lower.context import Context, element_wise
from archsim.lower.kernel import Kernel, Option, Plan
from archsim.lower.role import Role
from archsim.stack.stack import APART, ISAS, LOOP, Stack
from archsim.trace.kind import BACKWARD_DATA, BACKWARD_FILTER
from archsim.trace.trace import BoundOp


def depthwise(op: BoundOp) -> bool:
    """Whether each channel of the input [N, C, H, W] has filters of its own."""
    groups = getattr(op.kind, "groups", 1)
    return groups > 1 and groups == op.input_shapes[0][1]


UNFOLDING = (Role.IM2COL, Role.COL2IM, Role.LAYOUT)  # loops of a convolution: on as many threads as `conv.unfold_threads` says
PER_IMAGE = (Role.PRODUCT, Role.IM2COL, Role.COL2IM)  # kernels that `conv.images = "parallel"` runs for all images at once
GRADIENTS = (BACKWARD_DATA, BACKWARD_FILTER)  # of one layer: neither waits for the other


def on_cpu(plan: Plan, op: BoundOp, context: Context) -> Plan:
    """The plan with every kernel as the framework and library of this CPU stack run it."""
    return replace(plan, options=tuple([_option(option, op, context) for option in plan.options]))


def rewriting(plan: Plan, flop: float) -> Plan:
    """The plan whose last kernel goes over its result once more, with `flop` arithmetic [FLOP]."""
    if not flop:
        return plan
    options = []
    for option in plan.options:
        *before, last = option.kernels
        assert last.cpu is not None
        options.append(replace(option, kernels=(*before, replace(last, cpu=replace(last.cpu, rewritten=flop / last.repeat)))))
    return replace(plan, options=tuple(options))


def _option(option: Option, op: BoundOp, context: Context) -> Option:
    shared = _shared(context.stack)
    kernels = [_product(k, op, context, shared) if k.menu else _loop(k, op, context, shared) for k in option.kernels]
    if option.algorithm == "im2col" and context.stack.conv.images == "parallel":
        kernels = _images_at_once(kernels, op, context, shared)
    return replace(option, kernels=tuple(kernels))


def _shared(stack: Stack) -> CpuColumns[float]:
    """What all kernels of a stack have in common: where pages lie, how threads wait, the instructions of the binary."""
    return CpuColumns(local=float(stack.elementwise_threads == "all"), spin=float(stack.idle_threads == "spin"),
                      vector=float(stack.vectorised), simd=ISAS[stack.instructions],
                      fused=float(stack.instructions not in APART), forked=float(stack.fork_lines))  # fmt: skip


def _product(kernel: Kernel, op: BoundOp, context: Context, shared: CpuColumns[float]) -> Kernel:
    """A matrix kernel: a BLAS copies both operands into panels before it multiplies, a direct loop does not.

    packed = (m + n) k count     values of both operands, which a BLAS copies into panels (Goto and van de Geijn 2008)
    gathers = (m + n) k count    where operands are fetched value by value

    A BLAS stores matrices by columns, so that the side which it cuts for its threads is n. In fully connected and recurrent
    layers this side has the features, which lowering puts first, as m; so m and n change places. Weights that pass by for each
    few rows (`linear_rows`) are loaded and spread over the lanes each time, as if they were copied. A library that takes output
    channels in blocks of registers has them in its lanes, as rows of weights are, so that m and n of its convolutions change
    places too; it copies transformed images once more into the order of its blocks.

    A direct loop over a depthwise convolution has channels in its SIMD lanes and pixels in the rows of a register block: there is
    no sum over channels, and lanes of one channel's pixels would leave the other rows of the block empty.
    """
    stack, blas, blocks = context.stack, kernel.role is Role.PRODUCT, context.stack.conv.product_registers
    across = not blas and depthwise(op)
    operands = (kernel.m + kernel.n) * kernel.k * kernel.count
    small = kernel.m * kernel.n * kernel.k * kernel.count <= stack.max_serial_product
    unfolded = op.kind.op == "conv2d" and kernel.count == 1 and kernel.k > 1  # no points of a transform, and no bias
    columns = kernel.n * kernel.k * unfolded
    turned = kernel.n * kernel.k * kernel.count * (op.kind.op == "conv2d" and kernel.count > 1 and blocks > 0)
    passed = kernel.m * kernel.k * (op.kind.op == "linear" and stack.linear_rows > 0 and kernel.repeat > 1)
    simd = {"simd": operands, "weights": columns + passed + turned}.get(stack.packing, 0.0)
    own = replace(
        shared, packed=operands * blas, copied=operands * (blas and stack.packing == "scalar"),
        copied_simd=simd * blas, gathers=operands * (stack.gathers and not across),
        grain=stack.min_rows_per_thread if blas else 0.0, threaded=0.0 if small and blas else 1.0,
        fed=float(op.kind.op == "matmul"), subnormal=getattr(op.kind, "subnormal", 0.0) if op.phase in GRADIENTS else 0.0,
    )  # fmt: skip
    if op.kind.op == "conv2d" and blocks:
        rows = kernel.m * kernel.count if across else kernel.m
        own = replace(own, parts=1.0, channels=float(rows), block=float(blocks), swept=float(blas),
                      tiled=columns * kernel.operand_b * blas)  # fmt: skip
    if across:
        own = replace(own, depthwise=1.0)
        return replace(kernel, m=kernel.n, n=kernel.m * kernel.count, count=1, cpu=own)
    if blocks if op.kind.op == "conv2d" else op.phase != "backward_filter":
        return replace(kernel, m=kernel.n, n=kernel.m, cpu=own)
    return replace(kernel, cpu=own)


def _loop(kernel: Kernel, op: BoundOp, context: Context, shared: CpuColumns[float]) -> Kernel:
    """An element-wise kernel: its threads, and the clocks of its loop, `loops` of the stack for each value.

    A loop in place reads no line only to overwrite it: its result is the line that it has read.
    """
    stack, whole = context.stack, kernel.role is Role.PASS
    stored = "stored_" if getattr(op.kind, "stored", False) else ""
    loop = f"{stored}{op.kind.op}" if whole else kernel.role.value
    phase = "backward" if op.phase != "forward" else "training" if context.training else ""
    each = stack.loops.get(f"{loop}.{phase}") or stack.loops.get(loop) or {}
    values = kernel.values or kernel.items
    if kernel.role in UNFOLDING:
        threaded = stack.conv.unfold_threads == "all"
    else:
        threaded = kernel.dense > 0 or (stack.elementwise_threads == "all" and loop not in stack.serial_ops)
    own = replace(
        shared, **{name: count * values for name, count in each.items()}, **_nest(kernel, op), threaded=float(threaded),
        fed=float(op.kind.op == "matmul"),
        tiled=kernel.c_bytes if kernel.role is Role.IM2COL and stack.conv.product_registers else 0.0,
    )  # fmt: skip
    if stack.lossless:  # stored past the caches: no line is read to be overwritten, which would count as a second write
        return replace(kernel, c_bytes=kernel.c_bytes / 2.0, dense=1.0, cpu=own)
    in_place = kernel.role is Role.UPDATE or (whole and op.phase == "forward" and loop in stack.in_place)
    return replace(kernel, b_bytes=max(0.0, kernel.b_bytes - kernel.c_bytes) if in_place else kernel.b_bytes, cpu=own)


def _images_at_once(kernels: list[Kernel], op: BoundOp, context: Context, shared: CpuColumns[float]) -> list[Kernel]:
    """An unfolding whose threads take whole images, forward and in the data gradient, which first fills the columns with zeros.

    The filter gradient uses the columns of the forward pass, and multiplies image after image.
    """
    if op.phase == "backward_filter":
        return [kernel for kernel in kernels if kernel.role is not Role.IM2COL]
    images = float(op.shape[0])
    batched = [_batched(k, images) if k.role in PER_IMAGE else k for k in kernels]
    if op.phase != "backward_data":
        return batched
    columns = sum(k.b_bytes for k in batched if k.role is Role.COL2IM)
    zeros = element_wise("zero_columns", Role.FILL, 0.0, columns, element=context.element)
    return [replace(zeros, cpu=replace(shared, threaded=0.0)), *batched]


def _batched(kernel: Kernel, images: float) -> Kernel:
    """`images` launches as one whose parts are the images: everything but the weights times the images."""
    assert kernel.cpu is not None
    counts = {name: getattr(kernel.cpu, name) * images for name in (*LOOP, "packed", "copied", "copied_simd")}
    own = replace(kernel.cpu, **counts, parts=images, grain=0.0, threaded=1.0)
    return replace(
        kernel, repeat=kernel.repeat / images, count=kernel.count * images, b_bytes=kernel.b_bytes * images,
        c_bytes=kernel.c_bytes * images, flop=kernel.flop * images, items=kernel.items * images, cpu=own,
    )  # fmt: skip


def _nest(kernel: Kernel, op: BoundOp) -> dict[str, float]:
    """The innermost loop of an unfolding, a row of the result; that of a pooling, a row of its window, and all of the window."""
    if kernel.role in (Role.IM2COL, Role.COL2IM):
        return {"trips": float(op.shape[-1])}
    window = getattr(op.kind, "kernel", None) if kernel.role is Role.PASS else None
    return {"trips": float(window[-1]), "window": float(prod(window))} if window else {}

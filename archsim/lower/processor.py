"""What a CPU's software adds to the kernels of a plan: how many threads, the clocks of its loops, the copies of its BLAS."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from archsim.lower.columns import CpuColumns, CpuRuntime, Role
from archsim.lower.context import Context
from archsim.lower.kernel import Kernel, Plan
from archsim.stack.loop import UNKNOWN, ScalarLoop
from archsim.stack.stack import APART, ISAS, Stack
from archsim.trace.kind import BACKWARD_DATA, BACKWARD_FILTER
from archsim.trace.trace import BoundOp


def depthwise(op: BoundOp) -> bool:
    """Whether each channel of the input [N, C, H, W] has filters of its own."""
    groups = getattr(op.kind, "groups", 1)
    return groups > 1 and groups == op.input_shapes[0][1]


UNFOLDING = (Role.IM2COL, Role.COL2IM, Role.LAYOUT)  # loops of a convolution: on as many threads as `serial_ops` says of unfold
GRADIENTS = (BACKWARD_DATA, BACKWARD_FILTER)  # of one layer: neither waits for the other


def on_cpu(plan: Plan, op: BoundOp, context: Context) -> Plan:
    """The plan with every kernel as the framework and library of this CPU stack run it."""
    return plan.with_kernels(lambda own: [_product(k, op, context) if k.menu else _loop(k, op, context) for k in own])


def rewriting(plan: Plan, flop: float) -> Plan:
    """The plan whose last kernel goes over its result once more, with `flop` arithmetic [FLOP]."""

    def more(kernels: tuple[Kernel, ...]) -> tuple[Kernel, ...]:
        *before, last = kernels
        assert last.cpu is not None
        return *before, replace(last, cpu=replace(last.cpu, rewritten=flop / last.repeat))

    return plan.with_kernels(more) if flop else plan


def runtime_of(stack: Stack) -> CpuRuntime:
    """What all kernels of a stack have in common: where pages lie, how threads wait, the instructions of the binary."""
    return CpuRuntime(
        local=float("elementwise" not in stack.serial_ops), spin=float(stack.idle_threads == "spin"),
        fork_cache_lines=float(stack.fork_lines), vectorised=float(stack.vectorised), simd=ISAS[stack.instructions],
        fused=float(stack.instructions not in APART), scalar_copies=float(stack.packing == "scalar"),
        block_registers=float(stack.conv.product_registers),
    )  # fmt: skip


def _product(kernel: Kernel, op: BoundOp, context: Context) -> Kernel:
    """A matrix kernel: a BLAS copies both operands into panels before it multiplies, a direct loop does not.

    copied = (m + n) k count    values of both operands, which a BLAS copies into panels (Goto and van de Geijn 2008)
    values = (m + n) k count    where operands are fetched value by value

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
    copied = {"scalar": operands, "simd": operands, "weights": columns + passed + turned}.get(stack.packing, 0.0)
    fetched = stack.gathers and not across
    own = CpuColumns(
        packed=float(blas), copied=copied * blas, values=operands * fetched,
        min_rows_per_thread=stack.min_rows_per_thread if blas else 0.0, threaded=0.0 if small and blas else 1.0,
        both_activations=float(op.kind.op == "matmul"),
        subnormal=getattr(op.kind, "subnormal", 0.0) if op.phase in GRADIENTS else 0.0,
    )  # fmt: skip
    if op.kind.op == "conv2d" and blocks:
        rows = kernel.m * kernel.count if across else kernel.m
        own = replace(own, channels=float(rows), tiled=columns * kernel.operand_b * blas)
    kernel = replace(kernel, loop=ScalarLoop(gathers=1.0) if fetched else UNKNOWN)
    if across:
        own = replace(own, depthwise=1.0)
        return replace(kernel, m=kernel.n, n=kernel.m * kernel.count, count=1, cpu=own)
    if blocks if op.kind.op == "conv2d" else op.phase != "backward_filter":
        return replace(kernel, m=kernel.n, n=kernel.m, cpu=own)
    return replace(kernel, cpu=own)


def _loop(kernel: Kernel, op: BoundOp, context: Context) -> Kernel:
    """An element-wise kernel: its threads, and its loop, that of the op or role among the `loops` of the stack.

    A loop in place reads no line only to overwrite it: its result is the line that it has read.
    """
    stack, whole = context.stack, kernel.role is Role.PASS
    stored = "stored_" if getattr(op.kind, "stored", False) else ""
    loop = f"{stored}{op.kind.op}" if whole else kernel.role.value
    phase = "backward" if op.phase != "forward" else "training" if context.training else ""
    if kernel.role in UNFOLDING:
        threaded = "unfold" not in stack.serial_ops
    else:
        threaded = kernel.dense > 0 or {"elementwise", loop}.isdisjoint(stack.serial_ops)
    trips, window = _nest(kernel, op)
    own = CpuColumns(threaded=float(threaded), values=kernel.values or kernel.items,
                     both_activations=float(op.kind.op == "matmul"),
                     tiled=kernel.c_bytes if kernel.role is Role.IM2COL and stack.conv.product_registers else 0.0)  # fmt: skip
    kernel = replace(kernel, loop=stack.loop_of(loop, phase), trips=trips, window=window)
    if stack.lossless:  # stored past the caches: no line is read to be overwritten, which would count as a second write
        return replace(kernel, c_bytes=kernel.c_bytes / 2.0, dense=1.0, cpu=own)
    in_place = kernel.role is Role.UPDATE or (whole and op.phase == "forward" and loop in stack.in_place)
    return replace(kernel, b_bytes=max(0.0, kernel.b_bytes - kernel.c_bytes) if in_place else kernel.b_bytes, cpu=own)


def _nest(kernel: Kernel, op: BoundOp) -> tuple[float, float]:
    """Trips of the innermost loop, a row of an unfolded image or of a pooled window, and values of that window, else 1."""
    if kernel.role in (Role.IM2COL, Role.COL2IM):
        return float(op.shape[-1]), 1.0
    window = getattr(op.kind, "kernel", None) if kernel.role is Role.PASS else None
    return (float(window[-1]), float(prod(window))) if window else (0.0, 1.0)

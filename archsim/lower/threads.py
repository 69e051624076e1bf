"""How a CPU's library divides a loop among threads: into which pieces, and how few threads it takes for little work."""

from __future__ import annotations

from math import ceil, floor, inf

from archsim.lower.kernel import Kernel
from archsim.stack.stack import ISAS, Stack
from archsim.trace.trace import BoundOp

LANE_BITS = 32  # bit of a value in a SIMD register
BYTE_COST = 11 / 64  # Eigen, TensorCostModel.h: 11 clocks for a line of 64 B from the second cache level
ROUNDED = 0.9  # Eigen, TensorCostModel.h: what is added before the number of threads is cut to a whole number


def depthwise(op: BoundOp) -> bool:
    """Whether each channel of the input [N, C, H, W] has filters of its own."""
    groups = getattr(op.kind, "groups", 1)
    return groups > 1 and groups == op.input_shapes[0][1]


def row_blocks(op: BoundOp, stack: Stack) -> dict[str, float]:
    """The pieces of a direct convolution: rows of the images of all groups, each cut into blocks of the group's channels.

    parts = images groups rows [1]; depthwise images rows, whose channels are those of all groups

    The result of a data gradient is the layer's input [N, C, H, W]. A filter gradient has no rows: its sums go over them.
    """
    if not stack.conv.block_registers or op.phase == "backward_filter":
        return {}
    images, channels, rows, _ = op.input_shapes[0] if op.phase == "backward_data" else op.shape
    groups = 1 if depthwise(op) else getattr(op.kind, "groups", 1)
    return {"parts": float(images * groups * rows), "channels": channels / groups, "block": float(stack.conv.block_registers)}


def product_threads(kernel: Kernel, stack: Stack) -> float:
    """Threads that the library gives a product at most [1].

    floor(multiply-adds / least) + 1        (MLAS, MLAS_SGEMM_THREAD_COMPLEXITY)

    or `eigen_threads`, with the multiply-adds of whole SIMD registers as cost; inf for a library without a rule
    """
    size = kernel.flop / 2.0
    if stack.multiply_adds_per_thread:
        return floor(size / stack.multiply_adds_per_thread) + 1.0
    lanes = ISAS[stack.instructions] / LANE_BITS
    if stack.cost_per_thread and lanes < inf:
        return eigen_threads(size / lanes, stack.cost_per_thread)
    return inf


def loop_threads(kernel: Kernel, stack: Stack) -> float:
    """Threads that the framework gives an element-wise loop at most [1]; `product_threads` where it multiplies as a product.

    ceil(values / least)        (PyTorch, at::parallel_for with GRAIN_SIZE)

    or `eigen_threads`, with a cost of `BYTE_COST` for each byte and one for each operation; inf for a framework without a rule
    """
    if kernel.dense:
        return product_threads(kernel, stack)
    if stack.values_per_thread:
        return float(max(1, ceil((kernel.values or kernel.items) / stack.values_per_thread)))
    if stack.cost_per_thread:
        moved = kernel.a_bytes + kernel.b_bytes + kernel.c_bytes
        return eigen_threads(BYTE_COST * moved + kernel.flop, stack.cost_per_thread)
    return inf


def eigen_threads(cost: float, least: float) -> float:
    """Threads for work of some cost, of which the first one and each further one must have `least` [1] (Eigen's model).

    max(1, floor((cost - least) / least + 0.9))

    >>> [eigen_threads(cost, 100000.0) for cost in (0.0, 200000.0, 210001.0, 1e6)]
    [1.0, 1.0, 2.0, 9.0]
    """
    return float(max(1, floor((cost - least) / least + ROUNDED)))

"""The runs of pixels that a direct convolution multiplies with one block of channels, and the taps that lie in the image."""

from __future__ import annotations

from functools import lru_cache

from archsim.lower.threads import depthwise
from archsim.stack.stack import Stack
from archsim.trace.kind import FORWARD
from archsim.trace.kinds.convolution import sides
from archsim.trace.trace import BoundOp


def pixel_runs(op: BoundOp, stack: Stack) -> dict[str, float]:
    """The columns of a convolution whose kernel goes along rows (`conv.block_pixels`); none for a stack without such a kernel.

    runs, run, taps, edges, edge_taps [1]: see `CpuColumns`

    Rows of 1 x 1 filters without stride are one run. Taps outside the image are skipped, and a pixel that has some left or right
    of it is taken alone. Depthwise kernels take one register of channels at a time.
    """
    if not stack.conv.block_pixels or op.phase != FORWARD:
        return {}
    images, _, height, width = op.shape
    _, channels, rows, columns = op.input_shapes[0]
    groups, own = getattr(op.kind, "groups", 1), depthwise(op)
    kernel, stride, dilation = (getattr(op.kind, name) for name in ("kernel", "stride", "dilation"))
    top, left, _, _ = sides(op.kind.pad)  # type: ignore[attr-defined]
    down = taps_inside(height, rows, kernel[0], stride[0], top, dilation[0])
    along = taps_inside(width, columns, kernel[1], stride[1], left, dilation[1])
    edge = [taps for taps in along if taps < kernel[1]]
    high, runs = sum(down) / len(down), float(images * (1 if own else groups))
    point = not own and kernel == (1, 1) and not any(op.kind.pad)  # type: ignore[attr-defined]
    whole = point and stride == (1, 1)
    alone = {"block": 1.0} if own else {}
    return alone | {
        "pixels": float(stack.conv.block_pixels), "runs": runs * (1 if whole else height),
        "run": float(height * width if whole else width - len(edge)), "taps": high * kernel[1], "edges": float(len(edge)),
        "edge_taps": high * sum(edge) / max(1, len(edge)), "depth": 1.0 if own else channels / groups,
        "deep": float(stack.conv.step_channels) if point else 0.0,
    }  # fmt: skip


@lru_cache(maxsize=4096)
def taps_inside(results: int, values: int, taps: int, stride: int, pad: int, dilation: int) -> tuple[int, ...]:
    """For each result along one side of an image, how many taps of its filter lie on one of the `values` there.

    >>> taps_inside(4, 4, 3, 1, 1, 1)
    (2, 3, 3, 2)
    """
    return tuple([sum(0 <= at * stride - pad + tap * dilation < values for tap in range(taps)) for at in range(results)])

"""Single ops with concrete shapes, checked by the shape rule of their kind."""

from __future__ import annotations

from archsim.evidence.resolve import Refused
from archsim.trace.op import FORWARD, Conv2d, Kind, Shape
from archsim.trace.trace import BoundOp, BoundTrace


def alone(name: str, *ops: BoundOp) -> BoundTrace:
    """Single ops as what was timed; they read nothing from each other."""
    return BoundTrace(name=name, inputs={}, ops=ops, symbols={})


def forward(kind: Kind, out: Shape, *inputs: Shape) -> BoundOp:
    """The forward op; Refused when the shapes do not fit the kind."""
    return op(kind, FORWARD, out, *inputs)


def op(kind: Kind, phase: str, out: Shape, *inputs: Shape) -> BoundOp:
    """One op in one phase; `inputs` and `out` are the shapes of its forward op. Refused when they do not fit the kind."""
    try:
        shape = kind.shape(inputs, out)
    except (ValueError, IndexError) as error:
        raise Refused(f"{kind.op} {error}") from None
    if shape != out:
        raise Refused(f"{kind.op} has the output {list(shape)}, not {list(out)}")
    return BoundOp(name=kind.op, kind=kind, inputs=(), input_shapes=inputs, shape=out, phase=phase)


def conv(
    *, image: Shape, filters: int, window: tuple[int, int], stride: tuple[int, int], pad: tuple[int, int], groups: int = 1,
    bias: bool = True, phase: str = FORWARD,
) -> BoundOp:  # fmt: skip
    """A convolution of [N, C, H, W] with `filters` filters; the output size follows."""
    if min(stride) < 1 or min(window) < 1 or groups < 1:
        raise Refused("a convolution has no window or no stride")
    kind = Conv2d(kernel=window, stride=stride, pad=pad, groups=groups, bias=bias)
    try:
        out = kind.shape((image,), (image[0], filters, 0, 0))
    except ValueError as error:
        raise Refused(f"convolution {error}") from None
    return op(kind, phase, out, image)

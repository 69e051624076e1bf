"""Pooling over windows and over whole planes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from archsim.trace.attributes import flag, padding, pair
from archsim.trace.dims import Shape, elements
from archsim.trace.kind import Kind, image
from archsim.trace.kinds.convolution import sides, windows


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool(Kind):
    """What maximum and average pooling share: [N, C, H, W] to [N, C, H', W'].

    With `ceil_mode` a partial window at the far edge counts too (Caffe, and Torch's `ceil()`).
    FLOP: 1 per tap of each window.
    """

    kernel: tuple[int, int] = pair(least=1)
    stride: tuple[int, int] = pair(least=1, default=(1, 1))
    pad: tuple[int, ...] = padding()
    ceil_mode: bool = flag(default=False)

    def shape(self, inputs: Sequence[Shape], recorded: Shape) -> Shape:
        """[N, C, H', W']."""
        n, c, h, w = image(inputs)
        top, left, bottom, right = sides(self.pad)
        if max(top, bottom) >= self.kernel[0] or max(left, right) >= self.kernel[1]:
            raise ValueError(f"has padding {list(self.pad)} as large as its window {list(self.kernel)}")
        return (
            n,
            c,
            windows(h, self.kernel[0], self.stride[0], top, bottom, ceil=self.ceil_mode),
            windows(w, self.kernel[1], self.stride[1], left, right, ceil=self.ceil_mode),
        )

    def flop(self, inputs: Sequence[Shape], out: Shape) -> int:
        """1 per tap."""
        return elements(out) * self.kernel[0] * self.kernel[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxPool(Pool):
    """Largest value of each window. Gradient: 1 add per output element, to where the maximum stood."""

    op: ClassVar[str] = "max_pool"
    backward_flop_per_element: ClassVar[int] = 1
    backward_reads: ClassVar[tuple[str, ...]] = ("inputs", "output")


@dataclass(frozen=True, slots=True, kw_only=True)
class AvgPool(Pool):
    """Mean of each window; `count_include_pad` says whether padding counts in the divisor. Gradient: 1 add per tap."""

    op: ClassVar[str] = "avg_pool"

    count_include_pad: bool = flag(default=True)

    def gradient_flop(self, phase: str, inputs: Sequence[Shape], out: Shape) -> int:
        """1 per tap."""
        return elements(out) * self.kernel[0] * self.kernel[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalAvgPool(Kind):
    """Mean of each plane, [N, C, H, W] to [N, C, 1, 1]. FLOP: 1 per input element, forward and backward."""

    op: ClassVar[str] = "global_avg_pool"

    def shape(self, inputs: Sequence[Shape], recorded: Shape) -> Shape:
        """[N, C, 1, 1]."""
        n, c, _, _ = image(inputs)
        return (n, c, 1, 1)

    def flop(self, inputs: Sequence[Shape], out: Shape) -> int:
        """1 per input element."""
        return elements(inputs[0])

    def gradient_flop(self, phase: str, inputs: Sequence[Shape], out: Shape) -> int:
        """1 per input element."""
        return elements(inputs[0])

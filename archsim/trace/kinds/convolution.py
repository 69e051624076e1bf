"""Convolution, and the sliding window that it shares with pooling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from archsim.trace.attributes import flag, integer, padding, pair
from archsim.trace.dims import Shape, elements
from archsim.trace.kind import BACKWARD_DATA, BACKWARD_FILTER, Kind, chosen, gradient_with_bias, image, with_bias


def sides(pad: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Padding as (top, left, bottom, right).

    >>> sides((1, 2)), sides((0, 0, 1, 1))
    ((1, 2, 1, 2), (0, 0, 1, 1))
    """
    return (*pad, *pad) if len(pad) == 2 else pad  # type: ignore[return-value]


def windows(size: int, kernel: int, stride: int, before: int, after: int, dilation: int = 1, ceil: bool = False) -> int:
    """Number of window positions along one axis.

    With `ceil` a last, partial window counts too, unless it would start beyond the input and its leading padding
    (the rule of Caffe and Torch). Raises ValueError when not even one window fits.

    >>> windows(227, 11, 4, 0, 0), windows(112, 3, 2, 0, 0), windows(112, 3, 2, 0, 0, ceil=True)
    (55, 55, 56)
    """
    extent = dilation * (kernel - 1) + 1
    room = size + before + after - extent
    if room < 0:
        raise ValueError(f"has a window of {extent}, too large for an input of {size + before + after} with padding")
    count = -(-room // stride) + 1 if ceil else room // stride + 1
    if ceil and (count - 1) * stride >= size + before:
        count -= 1
    return count


@dataclass(frozen=True, slots=True, kw_only=True)
class Conv2d(Kind):
    """Convolution of [N, C, H, W] with K filters of [C / groups, kernel] to [N, K, H', W'].

    FLOP: 2 per MAC, and 1 per output element for the bias.
    """

    op: ClassVar[str] = "conv2d"
    backward_reads: ClassVar[tuple[str, ...]] = ("inputs",)
    input_gradient: ClassVar[tuple[str, ...]] = (BACKWARD_DATA,)
    parameter_gradient: ClassVar[str] = BACKWARD_FILTER

    kernel: tuple[int, int] = pair(least=1)
    stride: tuple[int, int] = pair(least=1, default=(1, 1))
    pad: tuple[int, ...] = padding()
    dilation: tuple[int, int] = pair(least=1, default=(1, 1))
    groups: int = integer(least=1, default=1)
    bias: bool = flag(default=True)

    def shape(self, inputs: Sequence[Shape], recorded: Shape) -> Shape:
        """[N, K, H', W'], with K as recorded."""
        n, c, h, w = image(inputs)
        k = chosen(recorded, 1, "output channels")
        if c % self.groups or k % self.groups:
            raise ValueError(f"has {self.groups} groups, which do not divide {c} input and {k} output channels")
        top, left, bottom, right = sides(self.pad)
        return (
            n,
            k,
            windows(h, self.kernel[0], self.stride[0], top, bottom, self.dilation[0]),
            windows(w, self.kernel[1], self.stride[1], left, right, self.dilation[1]),
        )

    def macs(self, inputs: Sequence[Shape], out: Shape) -> int:
        """Output elements x taps of one filter."""
        return elements(out) * (inputs[0][1] // self.groups) * self.kernel[0] * self.kernel[1]

    flop = with_bias

    def parameters(self, inputs: Sequence[Shape], out: Shape) -> int:
        """Weights and biases."""
        return out[1] * ((inputs[0][1] // self.groups) * self.kernel[0] * self.kernel[1] + self.bias)

    gradient_flop = gradient_with_bias


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvTranspose2d(Kind):
    """Transposed convolution of [N, C, H, W] to K channels: each pixel adds a window of values to a larger image.

    It is the data gradient of the convolution that leads from its output to its input, and so is what libraries run.
    FLOP: 2 per MAC, and 1 per output element for the bias.
    """

    op: ClassVar[str] = "conv_transpose2d"
    backward_reads: ClassVar[tuple[str, ...]] = ("inputs",)
    input_gradient: ClassVar[tuple[str, ...]] = (BACKWARD_DATA,)
    parameter_gradient: ClassVar[str] = BACKWARD_FILTER

    kernel: tuple[int, int] = pair(least=1)
    stride: tuple[int, int] = pair(least=1, default=(1, 1))
    pad: tuple[int, ...] = padding()
    bias: bool = flag(default=True)

    def shape(self, inputs: Sequence[Shape], recorded: Shape) -> Shape:
        """[N, K, H', W'], with K as recorded."""
        n, _, h, w = image(inputs)
        top, left, bottom, right = sides(self.pad)
        height = (h - 1) * self.stride[0] + self.kernel[0] - top - bottom
        width = (w - 1) * self.stride[1] + self.kernel[1] - left - right
        if min(height, width) < 1:
            raise ValueError(f"has padding {list(self.pad)} that leaves nothing of its output")
        return (n, chosen(recorded, 1, "output channels"), height, width)

    def macs(self, inputs: Sequence[Shape], out: Shape) -> int:
        """Input elements x taps of one window in every output channel."""
        return elements(inputs[0]) * out[1] * self.kernel[0] * self.kernel[1]

    flop = with_bias

    def parameters(self, inputs: Sequence[Shape], out: Shape) -> int:
        """Weights and biases."""
        return out[1] * (inputs[0][1] * self.kernel[0] * self.kernel[1] + self.bias)

    gradient_flop = gradient_with_bias

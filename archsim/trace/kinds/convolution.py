"""Convolution and pooling, which share a sliding window; and pooling over whole planes."""

from __future__ import annotations

from archsim.trace.dims import Shape, Shapes, elements
from archsim.trace.kind import Kind, WeightedKind, chosen, image
from archsim.trace.values import flag, integer, padding, pair


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


class Convolution(WeightedKind):
    """What a convolution and a transposed one share: `groups` of channels, each with filters [C / groups, kernel] of its own."""

    kernel: tuple[int, int] = pair(least=1)
    stride: tuple[int, int] = pair(least=1, default=(1, 1))
    pad: tuple[int, ...] = padding()
    dilation: tuple[int, int] = pair(least=1, default=(1, 1))
    groups: int = integer(least=1, default=1)
    bias: bool = flag(default=True)

    def shape(self, inputs: Shapes, recorded: Shape) -> Shape:
        """[N, K, H', W'], with K as recorded."""
        n, c, h, w = image(inputs)
        k = chosen(recorded, 1, "output channels")
        if c % self.groups or k % self.groups:
            raise ValueError(f"has {self.groups} groups, which do not divide {c} input and {k} output channels")
        top, left, bottom, right = sides(self.pad)
        return (n, k, self.along(0, h, top, bottom), self.along(1, w, left, right))

    def along(self, axis: int, size: int, before: int, after: int) -> int:
        """Size of the output along an axis, from that of the input and its padding."""
        return windows(size, self.kernel[axis], self.stride[axis], before, after, self.dilation[axis])

    def macs(self, inputs: Shapes, out: Shape) -> int:
        """Output elements x taps of one filter."""
        return elements(out) * (inputs[0][1] // self.groups) * self.kernel[0] * self.kernel[1]

    def parameters(self, inputs: Shapes, out: Shape) -> int:
        """Weights and biases."""
        return out[1] * ((inputs[0][1] // self.groups) * self.kernel[0] * self.kernel[1] + self.bias)


class Conv2d(Convolution, op="conv2d"):
    """Convolution of [N, C, H, W] with K filters to [N, K, H', W']."""


class ConvTranspose2d(Convolution, op="conv_transpose2d"):
    """Transposed convolution of [N, C, H, W] to K channels: each pixel adds a window of values to a larger image.

    It is the data gradient of the convolution that leads from its output to its input, and so is what libraries run.
    `output_pad`: rows and columns more at the far edges, on which that convolution has no whole window.
    """

    output_pad: tuple[int, int] = pair(least=0, default=(0, 0))

    def along(self, axis: int, size: int, before: int, after: int) -> int:
        """Windows one stride apart, without the padding."""
        extent = self.dilation[axis] * (self.kernel[axis] - 1) + 1
        made = (size - 1) * self.stride[axis] + extent - before - after + self.output_pad[axis]
        if made < 1:
            raise ValueError(f"has padding {list(self.pad)} that leaves nothing of its output")
        return made

    def macs(self, inputs: Shapes, out: Shape) -> int:
        """Input elements x taps of one window in every output channel of its group."""
        return elements(inputs[0]) * (out[1] // self.groups) * self.kernel[0] * self.kernel[1]


# -------------------------------------------------------------------------------------------------------------- pooling


class Pool(Kind):
    """What maximum and average pooling share: [N, C, H, W] to [N, C, H', W'].

    With `ceil_mode` a partial window at the far edge counts too (Caffe, and Torch's `ceil()`).
    FLOP: 1 per tap of each window.
    """

    kernel: tuple[int, int] = pair(least=1)
    stride: tuple[int, int] = pair(least=1, default=(1, 1))
    pad: tuple[int, ...] = padding()
    ceil_mode: bool = flag(default=False)

    def shape(self, inputs: Shapes, recorded: Shape) -> Shape:
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

    def flop(self, inputs: Shapes, out: Shape) -> int:
        """1 per tap."""
        return elements(out) * self.kernel[0] * self.kernel[1]


class MaxPool(Pool, op="max_pool", backward_flop_per_element=1, backward_reads=("inputs", "output")):
    """Largest value of each window. Gradient: 1 add per output element, to where the maximum stood."""


class AvgPool(Pool, op="avg_pool"):
    """Mean of each window; `count_include_pad` says whether padding counts in the divisor. Gradient: 1 add per tap."""

    count_include_pad: bool = flag(default=True)

    def gradient_flop(self, phase: str, inputs: Shapes, out: Shape) -> int:
        """1 per tap."""
        return elements(out) * self.kernel[0] * self.kernel[1]


class GlobalAvgPool(Kind, op="global_avg_pool", flop_per_input=1, backward_flop_per_input=1):
    """Mean of each plane, [N, C, H, W] to [N, C, 1, 1]. FLOP: 1 per input element, forward and backward."""

    def shape(self, inputs: Shapes, recorded: Shape) -> Shape:
        """[N, C, 1, 1]."""
        n, c, _, _ = image(inputs)
        return (n, c, 1, 1)

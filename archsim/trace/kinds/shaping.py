"""Ops that move, select or repeat values; all but an interpolation do so without arithmetic, and so do their gradients."""

from __future__ import annotations

from archsim.trace.dims import Shape, Shapes, elements, show
from archsim.trace.kind import Kind, axis_of, chosen, image, only
from archsim.trace.values import choice, flag, integer, integers


class Concat(Kind, op="concat"):
    """Inputs one after the other along `axis`."""

    axis: int = integer(least=-8, most=7, default=1)

    def shape(self, inputs: Shapes, recorded: Shape) -> Shape:
        """That of the inputs, their sizes added along the axis."""
        if not inputs:
            raise ValueError("takes at least 1 input, got 0")
        axis = axis_of(self.axis, inputs[0])
        rest = {(*shape[:axis], *shape[axis + 1 :]) for shape in inputs}
        if len(rest) != 1 or len({len(shape) for shape in inputs}) != 1:
            listed = ", ".join(map(show, inputs))
            raise ValueError(f"joins along axis {self.axis} inputs that differ elsewhere: {listed}")
        first = inputs[0]
        return (*first[:axis], sum(shape[axis] for shape in inputs), *first[axis + 1 :])


class Pad(Kind, op="pad"):
    """Zeros added `before` and `after` the input, one number for each dimension."""

    before: tuple[int, ...] = integers()
    after: tuple[int, ...] = integers()

    def shape(self, inputs: Shapes, recorded: Shape) -> Shape:
        """That of the input, made larger."""
        data = only(inputs)
        if not len(self.before) == len(self.after) == len(data):
            raise ValueError(f"has {len(self.before)} and {len(self.after)} paddings for an input {show(data)}")
        return tuple([b + size + a for b, size, a in zip(self.before, data, self.after, strict=True)])


class Reshape(Kind, op="reshape"):
    """The same values in the same order under another shape, the recorded one (flatten included)."""

    def shape(self, inputs: Shapes, recorded: Shape) -> Shape:
        """The recorded one, if it holds as many values."""
        data = only(inputs)
        if elements(data) != elements(recorded):
            raise ValueError(f"cannot turn {show(data)} into {show(recorded)}: {elements(data)} and {elements(recorded)} values")
        return tuple(recorded)


class Transpose(Kind, op="transpose"):
    """Dimensions in another `order`: output dimension i is input dimension order[i]."""

    order: tuple[int, ...] = integers()

    def shape(self, inputs: Shapes, recorded: Shape) -> Shape:
        """The dimensions, reordered."""
        data = only(inputs)
        if sorted(self.order) != list(range(len(data))):
            raise ValueError(f"has order {list(self.order)}, which does not name each dimension of {show(data)} once")
        return tuple([data[i] for i in self.order])


class Slice(Kind, op="slice"):
    """Indices `start` to `stop` (not included) along `axis`.

    `whole`: one of the slices that together are the input, so that their gradients lie side by side and none are added.
    """

    axis: int = integer(least=-8, most=7)
    start: int = integer(default=0)
    stop: int = integer(least=1)
    whole: bool = flag(default=False)

    def shape(self, inputs: Shapes, recorded: Shape) -> Shape:
        """That of the input, shorter along the axis."""
        data = only(inputs)
        axis = axis_of(self.axis, data)
        if not self.start < self.stop <= data[axis]:
            raise ValueError(f"takes {self.start} to {self.stop} along axis {self.axis} of {show(data)}")
        return (*data[:axis], self.stop - self.start, *data[axis + 1 :])


class Upsample(Kind, op="upsample"):
    """[N, C, H, W] to the recorded, larger height and width: each pixel repeated, or `bilinear` between four of them.

    FLOP per output element: bilinear 8 (4 weights, 4 products, sums counted with them), nearest none; backward the adds to the
    pixels that were read, 8 and 1.
    """

    mode: str = choice("nearest", "bilinear", default="nearest")

    def shape(self, inputs: Shapes, recorded: Shape) -> Shape:
        """[N, C, H', W'], with H' and W' as recorded."""
        n, c, h, w = image(inputs)
        height, width = chosen(recorded, 2, "a height"), chosen(recorded, 3, "a width")
        if height < h or width < w:
            raise ValueError(f"cannot enlarge {show(inputs[0])} to {show(recorded)}")
        return (n, c, height, width)

    def flop(self, inputs: Shapes, out: Shape) -> int:
        """8 per element between pixels, none where they are repeated."""
        return 8 * elements(out) if self.mode == "bilinear" else 0

    def gradient_flop(self, phase: str, inputs: Shapes, out: Shape) -> int:
        """The adds to the pixels that were read."""
        return (8 if self.mode == "bilinear" else 1) * elements(out)

"""Element-wise ops, whose output element depends on the input elements at the same position; activations have their own module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from archsim.trace.attributes import flag, fraction, integer
from archsim.trace.dims import Shape, elements, show
from archsim.trace.kind import Kind, kept_along, only


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointwise(Kind):
    """One input, an output of the same shape."""

    def shape(self, inputs: Sequence[Shape], recorded: Shape) -> Shape:
        """That of the input."""
        return only(inputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotary(Pointwise):
    """Rotary position embedding: value pairs of each head of `width` features turn by angles of their position (Su et al. 2021,
    equation 34), [N, T, heads * width].

    FLOP: 2 multiplies by stored sines and cosines, 1 add; backward the same, turned back.
    """

    op: ClassVar[str] = "rotary"
    flop_per_element: ClassVar[int] = 3
    backward_flop_per_element: ClassVar[int] = 3

    width: int = integer(least=2)

    def shape(self, inputs: Sequence[Shape], recorded: Shape) -> Shape:
        """That of the input."""
        data = only(inputs, 3, "[N, T, heads * width]")
        if self.width % 2 or data[2] % self.width:
            raise ValueError(f"turns heads of {self.width} features, an even number that must divide those of {show(data)}")
        return data


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropout(Pointwise):
    """Zeroes a share `ratio` of the elements while training; nothing at all at inference.

    FLOP: in training a compare and a multiply, backward 1 multiply by the kept mask.
    """

    op: ClassVar[str] = "dropout"
    backward_flop_per_element: ClassVar[int] = 1
    backward_reads: ClassVar[tuple[str, ...]] = ("output",)

    ratio: float = fraction(default=0.5)
    training: bool = flag(default=False)

    def flop(self, inputs: Sequence[Shape], out: Shape) -> int:
        """2 per element in training, none at inference."""
        return 2 * elements(out) if self.training else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleBy(Pointwise):
    """Product with one fixed number, such as 0.1 for a residual. FLOP: 1; backward 1."""

    op: ClassVar[str] = "scale_by"
    flop_per_element: ClassVar[int] = 1
    backward_flop_per_element: ClassVar[int] = 1

    factor: float = fraction()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mask(Pointwise):
    """A fixed number in the place of every value that a mask hides, such as the scores of tokens that come later.

    FLOP: 1 select; backward 1 select.
    """

    op: ClassVar[str] = "mask"
    flop_per_element: ClassVar[int] = 1
    backward_flop_per_element: ClassVar[int] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor(Pointwise):
    """max(x, least) with one fixed number, as scores are kept finite after a mask was added.

    FLOP: 1 compare; backward 1 select.
    """

    op: ClassVar[str] = "floor"
    flop_per_element: ClassVar[int] = 1
    backward_flop_per_element: ClassVar[int] = 1
    backward_reads: ClassVar[tuple[str, ...]] = ("inputs",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale(Pointwise):
    """Product with a learned value for each index along one axis. FLOP: 1; backward 3: the gradient, and a sum of products."""

    op: ClassVar[str] = "scale"
    flop_per_element: ClassVar[int] = 1
    backward_flop_per_element: ClassVar[int] = 3
    backward_reads: ClassVar[tuple[str, ...]] = ("inputs",)

    axis: int = integer(least=-8, most=7, default=1)

    shape = kept_along

    def parameters(self, inputs: Sequence[Shape], out: Shape) -> int:
        """One for each index along the axis."""
        return out[self.axis]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantise(Pointwise):
    """Values divided by one scale and rounded to the format of the products; a `dynamic` scale is found first, from the largest.

    FLOP: divide, round; a dynamic scale takes an absolute value and a compare before. The gradient passes as it is (straight
    through, Bengio et al. 2013).
    """

    op: ClassVar[str] = "quantise"

    dynamic: bool = flag(default=False)

    def flop(self, inputs: Sequence[Shape], out: Shape) -> int:
        """2 per element, 4 with the search for the scale."""
        return (4 if self.dynamic else 2) * elements(out)


def _broadcast(inputs: Sequence[Shape]) -> Shape:
    """The shape that all inputs stretch to: aligned at the last dimension, sizes equal or 1."""
    if len(inputs) < 2:
        raise ValueError(f"takes at least 2 inputs, got {len(inputs)}")
    rank = max(map(len, inputs))
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in inputs]
    found = tuple(max(sizes) for sizes in zip(*padded, strict=True))
    if any(size not in (1, whole) for shape in padded for size, whole in zip(shape, found, strict=True)):
        raise ValueError(f"cannot join inputs of unlike shapes {' and '.join(map(show, inputs))}")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Add(Kind):
    """Sum of tensors; dimensions of size 1 stretch. FLOP: 1 per element and input after the first.

    Its gradient does no arithmetic: what arrives passes on to every input. With `accumulate` the op itself is part of a
    backward pass: it sums two gradients of one tensor, in the phase "backward", and does the work of a forward add.
    """

    op: ClassVar[str] = "add"

    accumulate: bool = flag(default=False)

    def shape(self, inputs: Sequence[Shape], recorded: Shape) -> Shape:
        """That of the inputs."""
        return _broadcast(inputs)

    def flop(self, inputs: Sequence[Shape], out: Shape) -> int:
        """1 per element and input after the first."""
        return (len(inputs) - 1) * elements(out)

    def gradient_flop(self, phase: str, inputs: Sequence[Shape], out: Shape) -> int:
        """That of a forward add for an accumulation, else none."""
        return self.flop(inputs, out) if self.accumulate else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mul(Kind):
    """Product of tensors, element by element. FLOP: 1 per element and input after the first; backward 1 per input."""

    op: ClassVar[str] = "mul"
    backward_reads: ClassVar[tuple[str, ...]] = ("inputs",)

    def shape(self, inputs: Sequence[Shape], recorded: Shape) -> Shape:
        """That of the inputs."""
        return _broadcast(inputs)

    def flop(self, inputs: Sequence[Shape], out: Shape) -> int:
        """1 per element and input after the first."""
        return (len(inputs) - 1) * elements(out)

    def gradient_flop(self, phase: str, inputs: Sequence[Shape], out: Shape) -> int:
        """1 per element and input."""
        return len(inputs) * elements(out)

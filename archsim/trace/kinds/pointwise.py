"""Element-wise ops: arithmetic on the elements at one position, activations, and the optimiser's step."""

from __future__ import annotations

from typing import NamedTuple

from archsim.trace.dims import LARGEST, Shape, Shapes, elements, show
from archsim.trace.kind import Kind, only
from archsim.trace.values import choice, flag, fraction, integer


class Pointwise(Kind):
    """One input, an output of the same shape."""


class Rotary(Pointwise, op="rotary", flop_per_element=3, backward_flop_per_element=3):
    """Rotary position embedding: value pairs of each head of `width` features turn by angles of their position (Su et al. 2021,
    equation 34), [N, T, heads * width].

    FLOP: 2 multiplies by stored sines and cosines, 1 add; backward the same, turned back.
    """

    width: int = integer(least=2)

    def shape(self, inputs: Shapes, recorded: Shape) -> Shape:
        """That of the input."""
        data = only(inputs, 3, "[N, T, heads * width]")
        if self.width % 2 or data[2] % self.width:
            raise ValueError(f"turns heads of {self.width} features, an even number that must divide those of {show(data)}")
        return data


class Dropout(Pointwise, op="dropout", backward_flop_per_element=1, backward_reads=("output",)):
    """Zeroes a share `ratio` of the elements while training; nothing at all at inference.

    FLOP: in training a compare and a multiply, backward 1 multiply by the kept mask.
    """

    ratio: float = fraction(default=0.5)
    training: bool = flag(default=False)

    def flop(self, inputs: Shapes, out: Shape) -> int:
        """2 per element in training, none at inference."""
        return 2 * elements(out) if self.training else 0


class ScaleBy(Pointwise, op="scale_by", flop_per_element=1, backward_flop_per_element=1):
    """Product with one fixed number, such as 0.1 for a residual. FLOP: 1; backward 1."""

    factor: float = fraction()


class Mask(Pointwise, op="mask", flop_per_element=1, backward_flop_per_element=1):
    """A fixed number in the place of every value that a mask hides, such as the scores of tokens that come later.

    FLOP: 1 select; backward 1 select.
    """


class Floor(Pointwise, op="floor", flop_per_element=1, backward_flop_per_element=1, backward_reads=("inputs",)):
    """max(x, least) with one fixed number, as scores are kept finite after a mask was added.

    FLOP: 1 compare; backward 1 select.
    """


class Scale(Pointwise, op="scale", flop_per_element=1, backward_flop_per_element=3, backward_reads=("inputs",)):
    """Product with a learned value for each index along one axis. FLOP: 1; backward 3: the gradient, and a sum of products."""

    axis: int = integer(least=-8, most=7, default=1)

    def parameters(self, inputs: Shapes, out: Shape) -> int:
        """One for each index along the axis."""
        return out[self.axis]


class Quantise(Pointwise, op="quantise"):
    """Values divided by one scale and rounded to the format of the products; a `dynamic` scale is found first, from the largest.

    FLOP: divide, round; a dynamic scale takes an absolute value and a compare before. The gradient passes as it is (straight
    through, Bengio et al. 2013).
    """

    dynamic: bool = flag(default=False)

    def flop(self, inputs: Shapes, out: Shape) -> int:
        """2 per element, 4 with the search for the scale."""
        return (4 if self.dynamic else 2) * elements(out)


def _broadcast(inputs: Shapes) -> Shape:
    """The shape that all inputs stretch to: aligned at the last dimension, sizes equal or 1."""
    if len(inputs) < 2:
        raise ValueError(f"takes at least 2 inputs, got {len(inputs)}")
    rank = max(map(len, inputs))
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in inputs]
    found = tuple(max(sizes) for sizes in zip(*padded, strict=True))
    if any(size not in (1, whole) for shape in padded for size, whole in zip(shape, found, strict=True)):
        raise ValueError(f"cannot join inputs of unlike shapes {' and '.join(map(show, inputs))}")
    return found


class _Joining(Kind):
    """Tensors joined element by element; dimensions of size 1 stretch."""

    def shape(self, inputs: Shapes, recorded: Shape) -> Shape:
        """That of the inputs."""
        return _broadcast(inputs)

    def flop(self, inputs: Shapes, out: Shape) -> int:
        """1 per element and input after the first."""
        return (len(inputs) - 1) * elements(out)


class Add(_Joining, op="add"):
    """Sum of tensors. FLOP: 1 per element and input after the first.

    Its gradient does no arithmetic: what arrives passes on to every input. With `accumulate` the op itself is part of a
    backward pass: it sums two gradients of one tensor, in the phase "backward", and does the work of a forward add.
    """

    accumulate: bool = flag(default=False)

    def gradient_flop(self, phase: str, inputs: Shapes, out: Shape) -> int:
        """That of a forward add for an accumulation, else none."""
        return self.flop(inputs, out) if self.accumulate else 0


class Mul(_Joining, op="mul", backward_reads=("inputs",)):
    """Product of tensors, element by element. FLOP: 1 per element and input after the first; backward 1 per input."""

    def gradient_flop(self, phase: str, inputs: Shapes, out: Shape) -> int:
        """1 per element and input."""
        return len(inputs) * elements(out)


# ---------------------------------------------------------------------------------------------------------- activations


class Relu(Pointwise, op="relu", flop_per_element=1, backward_flop_per_element=1, backward_reads=("output",)):
    """max(x, 0). FLOP: 1 compare; backward 1 select."""


class Relu6(Pointwise, op="relu6", flop_per_element=2, backward_flop_per_element=1, backward_reads=("output",)):
    """min(max(x, 0), 6). FLOP: 2 compares; backward 1 select."""


class LeakyRelu(Pointwise, op="leaky_relu", flop_per_element=2, backward_flop_per_element=1, backward_reads=("output",)):
    """max(x, a x) with a small fixed slope a (Maas et al. 2013). FLOP: multiply, compare; backward 1 multiply by 1 or a."""


class Sigmoid(Pointwise, op="sigmoid", flop_per_element=4, backward_flop_per_element=3, backward_reads=("output",)):
    """1 / (1 + exp(-x)). FLOP: negate, exp, add, divide; backward dy * y * (1 - y)."""


class Tanh(Pointwise, op="tanh", flop_per_element=1, backward_flop_per_element=3, backward_reads=("output",)):
    """Hyperbolic tangent. FLOP: 1 transcendental; backward dy * (1 - y * y)."""


class Gelu(Pointwise, op="gelu", flop_per_element=5, backward_flop_per_element=8, backward_reads=("inputs",)):
    """x / 2 * (1 + erf(x / sqrt 2)). FLOP: 2 scalings, erf, add, multiply; backward 8 (adds the density term)."""


class GeluTanh(Pointwise, op="gelu_tanh", flop_per_element=8, backward_flop_per_element=14, backward_reads=("inputs",)):
    """x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) (Hendrycks and Gimpel 2016, section 2), GPT-2's form of GELU.

    FLOP: power, 3 scalings, 2 adds, tanh, multiply; backward 14, the gradients of each of these.
    """


class Silu(Pointwise, op="silu", flop_per_element=5, backward_flop_per_element=9, backward_reads=("inputs",)):
    """x * sigmoid(x). FLOP: sigmoid (4), multiply; backward s * (1 + x * (1 - s)) * dy with the sigmoid s anew (9)."""


class HardSigmoid(Pointwise, op="hard_sigmoid", flop_per_element=4, backward_flop_per_element=3, backward_reads=("inputs",)):
    """min(max(x + 3, 0), 6) / 6 (Howard et al. 2019, section 5.2).

    FLOP: add, 2 compares, scaling; backward 2 compares, 1 scaling.
    """


class HardSwish(Pointwise, op="hard_swish", flop_per_element=5, backward_flop_per_element=5, backward_reads=("inputs",)):
    """x * hard_sigmoid(x). FLOP: hard sigmoid (4), multiply; backward 2 compares, and (x / 3 + 1 / 2) * dy (3)."""


class Gated(Kind, op="gated", flop_per_element=6, backward_flop_per_element=10, backward_reads=("inputs",)):
    """act(a) * b of the halves a and b of the last axis, [..., 2 K] to [..., K] (Shazeer 2020, equation 6, as engines fuse it).

    FLOP per result: a sigmoid (4), two multiplies; backward 10.
    """

    def shape(self, inputs: Shapes, recorded: Shape) -> Shape:
        """That of a half."""
        data = only(inputs)
        if len(data) < 1 or data[-1] % 2:
            raise ValueError(f"needs two halves along the last axis, got {show(data)}")
        return (*data[:-1], data[-1] // 2)


# ------------------------------------------------------------------------------------------------- the optimiser's step


class Optimiser(NamedTuple):
    """Cost of one optimiser per learned value."""

    flop: int
    """Arithmetic [FLOP]."""
    state: int
    """Values kept between steps, each read and written once a step."""
    title: str = ""
    """As people call it."""


KEPT_BYTES = 4  # of a value that an optimiser keeps from step to step, and of a weight that it updates: fp32
OPTIMISERS = {
    "accumulate": Optimiser(flop=1, state=0),  # G += g; no weight changes
    "sgd": Optimiser(flop=2, state=0, title="SGD"),  # w -= rate * g
    "sgd_momentum": Optimiser(flop=4, state=1, title="SGD with momentum"),  # v = momentum * v + g; w -= rate * v
    "adam": Optimiser(flop=12, state=2, title="AdamW"),  # m, v (3 + 4), then w -= rate * m / (sqrt v + eps) (5)
}


class Update(Kind, op="update"):
    """One optimiser step over the `count` learned values of one op, [count] gradients to [count] values."""

    count: int = integer(least=1, most=LARGEST)
    optimiser: str = choice(*OPTIMISERS, default="sgd_momentum")

    def shape(self, inputs: Shapes, recorded: Shape) -> Shape:
        """[count]."""
        if only(inputs, 1, "[count]") != (self.count,):
            raise ValueError(f"updates {self.count} values from {inputs[0][0]} gradients")
        return (self.count,)

    def flop(self, inputs: Shapes, out: Shape) -> int:
        """As the optimiser's table row says."""
        return OPTIMISERS[self.optimiser].flop * self.count

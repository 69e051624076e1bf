"""Matrix products: linear layers, batched products of two activations, lookup tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from archsim.trace.attributes import flag, fraction, integer
from archsim.trace.dims import Shape, elements, show
from archsim.trace.kind import BACKWARD_DATA, BACKWARD_FILTER, Kind, WeightedKind, chosen, only


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear(WeightedKind):
    """Fully connected layer, [..., K] to [..., F].

    With `inner_first` the weights lie in memory as [K, F], as those of
    GPT-2 do, else as [F, K]. `subnormal` is the share of its result's gradient that is too small for a normal number, as a script
    draws weights and data: multipliers of many CPUs leave such a value to microcode. `weight_bits` are those of a weight in
    memory, where they are fewer than those of a value that is multiplied; 0: as many.
    """

    op: ClassVar[str] = "linear"

    bias: bool = flag(default=True)
    inner_first: bool = flag(default=False)
    subnormal: float = fraction(default=0.0)
    weight_bits: int = integer(most=16, default=0)

    @property
    def weight_bytes(self) -> float:
        """Size of a weight in memory [B]; 0: that of a value."""
        return self.weight_bits / 8

    def shape(self, inputs: Sequence[Shape], recorded: Shape) -> Shape:
        """[..., F], with F as recorded."""
        data = only(inputs)
        if len(data) < 2:
            raise ValueError(f"needs an input of the form [..., features], got {show(data)}")
        return (*data[:-1], chosen(recorded, -1, "output features"))

    def macs(self, inputs: Sequence[Shape], out: Shape) -> int:
        """Output elements x input features."""
        return elements(out) * inputs[0][-1]

    def parameters(self, inputs: Sequence[Shape], out: Shape) -> int:
        """Weights and biases."""
        return out[-1] * (inputs[0][-1] + self.bias)


@dataclass(frozen=True, slots=True, kw_only=True)
class Matmul(Kind):
    """Batched product of two tensors, [..., M, K] x [..., K, N] to [..., M, N], with equal leading dimensions.

    The flags say that the last two dimensions of an input are swapped. In gradients the second input stands in the
    filter's place: `backward_data` is the gradient of the first input, `backward_filter` that of the second.
    """

    op: ClassVar[str] = "matmul"
    backward_reads: ClassVar[tuple[str, ...]] = ("inputs",)
    data_gradient_reads: ClassVar[tuple[str, ...]] = ("inputs",)
    input_gradient: ClassVar[tuple[str, ...]] = (BACKWARD_DATA, BACKWARD_FILTER)

    transpose_a: bool = flag(default=False)
    transpose_b: bool = flag(default=False)

    def shape(self, inputs: Sequence[Shape], recorded: Shape) -> Shape:
        """[..., M, N]."""
        if len(inputs) != 2:
            raise ValueError(f"takes 2 inputs, got {len(inputs)}")
        a, b = inputs
        if len(a) < 2 or len(a) != len(b) or a[:-2] != b[:-2]:
            raise ValueError(f"needs two inputs with equal leading dimensions, got {show(a)} and {show(b)}")
        m, k = (a[-1], a[-2]) if self.transpose_a else (a[-2], a[-1])
        rows, n = (b[-1], b[-2]) if self.transpose_b else (b[-2], b[-1])
        if k != rows:
            raise ValueError(f"cannot multiply {show(a)} by {show(b)}: the inner dimensions are {k} and {rows}")
        return (*a[:-2], m, n)

    def macs(self, inputs: Sequence[Shape], out: Shape) -> int:
        """Output elements x inner dimension."""
        return elements(out) * inputs[0][-2 if self.transpose_a else -1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedding(Kind):
    """Lookup of rows in a learned table, [...] indices to [..., features].

    A second input says where bags of indices begin: the rows of each bag are summed, [indices] and [bags] to [bags, features].
    FLOP: none forward, or 1 add per value of the rows of bags; 1 add per gradient of a row backward. Its inputs are indices, so
    it has only a filter gradient.
    """

    op: ClassVar[str] = "embedding"
    backward_reads: ClassVar[tuple[str, ...]] = ("inputs",)
    parameter_gradient: ClassVar[str] = BACKWARD_FILTER

    vocabulary: int = integer(least=1)
    features: int = integer(least=1)

    def shape(self, inputs: Sequence[Shape], recorded: Shape) -> Shape:
        """[..., features]."""
        return (*(inputs[1] if len(inputs) == 2 else only(inputs)), self.features)

    def moved(self, inputs: Sequence[Shape], out: Shape) -> tuple[int, int]:
        """Values that are read and written: the rows that are looked up, and the result."""
        return elements(inputs[0]) * self.features, elements(out)

    def flop(self, inputs: Sequence[Shape], out: Shape) -> int:
        """1 add per value of the rows of bags."""
        return self.moved(inputs, out)[0] if len(inputs) == 2 else 0

    def parameters(self, inputs: Sequence[Shape], out: Shape) -> int:
        """The table."""
        return self.vocabulary * self.features

    def gradient_flop(self, phase: str, inputs: Sequence[Shape], out: Shape) -> int:
        """1 add per value of the rows."""
        return self.moved(inputs, out)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasAdd(Kind):
    """A learned value added along one axis.

    FLOP: 1 per element forward; 1 per element backward for the sum that is the bias gradient.
    """

    op: ClassVar[str] = "bias_add"
    flop_per_element: ClassVar[int] = 1
    backward_flop_per_element: ClassVar[int] = 1

    axis: int = integer(least=-8, most=7, default=1)

    def parameters(self, inputs: Sequence[Shape], out: Shape) -> int:
        """One for each index along the axis."""
        return out[self.axis]

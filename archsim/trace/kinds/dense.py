"""Matrix products: linear layers, batched products of two activations, lookup tables, and mixtures of experts."""

from __future__ import annotations

from archsim.trace.dims import Shape, Shapes, elements, show
from archsim.trace.kind import BACKWARD_DATA, BACKWARD_FILTER, Kind, WeightedKind, chosen, only
from archsim.trace.values import flag, fraction, integer


class Linear(WeightedKind, op="linear"):
    """Fully connected layer, [..., K] to [..., F].

    With `inner_first` the weights lie in memory as [K, F], as those of
    GPT-2 do, else as [F, K]. `subnormal` is the share of its result's gradient that is too small for a normal number, as a script
    draws weights and data: multipliers of many CPUs leave such a value to microcode. `weight_bits` are those of a weight in
    memory, where they are fewer than those of a value that is multiplied; 0: as many.
    """

    bias: bool = flag(default=True)
    inner_first: bool = flag(default=False)
    subnormal: float = fraction(default=0.0)
    weight_bits: int = integer(most=16, default=0)

    @property
    def weight_bytes(self) -> float:
        """Size of a weight in memory [B]; 0: that of a value."""
        return self.weight_bits / 8

    def shape(self, inputs: Shapes, recorded: Shape) -> Shape:
        """[..., F], with F as recorded."""
        data = only(inputs)
        if len(data) < 2:
            raise ValueError(f"needs an input of the form [..., features], got {show(data)}")
        return (*data[:-1], chosen(recorded, -1, "output features"))

    def macs(self, inputs: Shapes, out: Shape) -> int:
        """Output elements x input features."""
        return elements(out) * inputs[0][-1]

    def parameters(self, inputs: Shapes, out: Shape) -> int:
        """Weights and biases."""
        return out[-1] * (inputs[0][-1] + self.bias)


class Matmul(
    Kind, op="matmul", backward_reads=("inputs",), data_gradient_reads=("inputs",),
    input_gradient=(BACKWARD_DATA, BACKWARD_FILTER),
):  # fmt: skip
    """Batched product of two tensors, [..., M, K] x [..., K, N] to [..., M, N], with equal leading dimensions.

    The flags say that the last two dimensions of an input are swapped. In gradients the second input stands in the
    filter's place: `backward_data` is the gradient of the first input, `backward_filter` that of the second.
    """

    transpose_a: bool = flag(default=False)
    transpose_b: bool = flag(default=False)

    def shape(self, inputs: Shapes, recorded: Shape) -> Shape:
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

    def macs(self, inputs: Shapes, out: Shape) -> int:
        """Output elements x inner dimension."""
        return elements(out) * inputs[0][-2 if self.transpose_a else -1]


class Embedding(Kind, op="embedding", backward_reads=("inputs",), parameter_gradient=BACKWARD_FILTER):
    """Lookup of rows in a learned table, [...] indices to [..., features].

    A second input says where bags of indices begin: the rows of each bag are summed, [indices] and [bags] to [bags, features].
    FLOP: none forward, or 1 add per value of the rows of bags; 1 add per gradient of a row backward. Its inputs are indices, so
    it has only a filter gradient.
    """

    vocabulary: int = integer(least=1)
    features: int = integer(least=1)

    def shape(self, inputs: Shapes, recorded: Shape) -> Shape:
        """[..., features]."""
        return (*(inputs[1] if len(inputs) == 2 else only(inputs)), self.features)

    def moved(self, inputs: Shapes, out: Shape) -> tuple[int, int]:
        """Values that are read and written: the rows that are looked up, and the result."""
        return elements(inputs[0]) * self.features, elements(out)

    def flop(self, inputs: Shapes, out: Shape) -> int:
        """1 add per value of the rows of bags."""
        return self.moved(inputs, out)[0] if len(inputs) == 2 else 0

    def parameters(self, inputs: Shapes, out: Shape) -> int:
        """The table."""
        return self.vocabulary * self.features

    def gradient_flop(self, phase: str, inputs: Shapes, out: Shape) -> int:
        """1 add per value of the rows."""
        return self.moved(inputs, out)[0]


class BiasAdd(Kind, op="bias_add", flop_per_element=1, backward_flop_per_element=1):
    """A learned value added along one axis.

    FLOP: 1 per element forward; 1 per element backward for the sum that is the bias gradient.
    """

    axis: int = integer(least=-8, most=7, default=1)

    def parameters(self, inputs: Shapes, out: Shape) -> int:
        """One for each index along the axis."""
        return out[self.axis]


# -------------------------------------------------------------------------------------------------- mixtures of experts

WEIGHTED_FLOP = 2  # a result times its weight, and the sum over the experts of a token


class Experts(WeightedKind, op="experts"):
    """Each token through the `top` of `total` feed-forward parts that its scores choose, and their weighted sum (Shazeer et al.
    2017, equation 1): tokens [..., K] and scores [..., total] to [..., K].

    A part has two projections, K to `hidden` and back; with `gated` a third that is multiplied in; with `bias` each has one.
    `experts` of them are here (0: all), and so is their share of the tokens. Tokens are taken to be spread evenly.

    FLOP: 2 per MAC, 1 per bias, and 2 per weighted result. The choice itself is part of the scores' op.
    """

    total: int = integer(least=1)
    top: int = integer(least=1)
    hidden: int = integer(least=1)
    experts: int = integer(default=0)
    gated: bool = flag(default=True)
    bias: bool = flag(default=False)

    @property
    def here(self) -> int:
        """Experts of this device."""
        return self.experts or self.total

    @property
    def projections(self) -> int:
        """Matrices of an expert."""
        return 3 if self.gated else 2

    def shape(self, inputs: Shapes, recorded: Shape) -> Shape:
        """That of the tokens."""
        if len(inputs) != 2:
            raise ValueError(f"takes tokens and the scores of experts, got {len(inputs)} inputs")
        tokens, scores = inputs
        if len(tokens) < 2 or tuple(scores) != (*tokens[:-1], self.total):
            raise ValueError(f"needs scores of {self.total} experts for each token of {show(tokens)}, got {show(scores)}")
        if self.top > self.total or self.here > self.total:
            raise ValueError(f"has {self.top} chosen and {self.here} present of only {self.total} experts")
        return tuple(tokens)

    def rows(self, inputs: Shapes) -> float:
        """Tokens times experts that this device computes: tokens top here / total."""
        tokens = elements(inputs[0]) // inputs[0][-1]
        return tokens * self.top * self.here / self.total

    def active(self, inputs: Shapes) -> float:
        """Experts of this device that any token chooses, as they are drawn evenly.

        active = here (1 - (1 - top / total)^tokens)

        >>> Experts(total=8, top=2, hidden=64).active([(1, 1, 32), (1, 1, 8)])
        2.0
        """
        tokens = elements(inputs[0]) // inputs[0][-1]
        return self.here * (1.0 - (1.0 - self.top / self.total) ** tokens)

    def macs(self, inputs: Shapes, out: Shape) -> int:
        """Rows x projections x features x hidden."""
        return round(self.rows(inputs) * self.projections * inputs[0][-1] * self.hidden)

    def flop(self, inputs: Shapes, out: Shape) -> int:
        """2 per MAC, the biases, and the weighted sum."""
        return 2 * self.macs(inputs, out) + round(self.rows(inputs) * (WEIGHTED_FLOP * inputs[0][-1] + self._biases(inputs)))

    def parameters(self, inputs: Shapes, out: Shape) -> int:
        """The projections of all experts that are here."""
        return self.here * (self.projections * inputs[0][-1] * self.hidden + self._biases(inputs))

    def _biases(self, inputs: Shapes) -> int:
        """Biases of an expert."""
        return self.bias * ((self.projections - 1) * self.hidden + inputs[0][-1])

"""Recurrent layers over whole sequences (vanilla, gated recurrent unit, long short-term memory) and single steps of the last.

The gates of each unit are one product with [input, hidden]; what follows, per unit and step, besides one add for each gate and
bias vector:

- `rnn`: h' = tanh(.) or max(., 0) (1). Backward 3.
- `gru`: r, z and n (3 activations), n = tanh(Wx + r * Rh) (1), h' = (1 - z) * n + z * h (4). Backward 17. The reset acts after
  the product with the state, as in cuDNN (developer guide, cudnnRNNMode_t), and not before as in Cho et al. 2014.
- `lstm`: i, f, g and o (4), c' = f * c + i * g (3), h' = o * tanh(c') (2). Backward 16.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from archsim.trace.attributes import flag, integer
from archsim.trace.dims import Shape, elements, show
from archsim.trace.kind import BACKWARD_DATA, BACKWARD_FILTER, WeightedKind, only

GATES = 4
POINTWISE_FLOP = 9
BACKWARD_FLOP = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrent(WeightedKind):
    """`layers` recurrent layers of `hidden` units over a whole sequence, [T, N, I] to [T, N, hidden].

    `bidirectional` layers have as many units again that read the sequence from its end (Schuster and Paliwal 1997); both halves
    stand side by side, [T, N, 2 hidden], and both are read by each half of the next layer.
    `biases` is the number of bias vectors of `gates` x hidden values per layer: 1 as published, 2 in cuDNN's form. With
    `skip_input` the first layer adds its input, as wide as its state, to every gate without weights (CUDNN_SKIP_INPUT). The
    data gradient runs back through time, so it is there even when the first layer's input needs none.
    """

    gates: ClassVar[int]
    """Products with [input, hidden] for each unit."""
    activations: ClassVar[int]
    """Sigmoids and hyperbolic tangents for each unit and step."""
    states: ClassVar[int] = 1
    """Values that a unit hands to its next step."""
    reset: ClassVar[bool] = False
    """Whether a gate acts between the product with the state and its sum with that of the input."""
    pointwise_flop: ClassVar[int]
    backward_pointwise_flop: ClassVar[int]

    backward_reads: ClassVar[tuple[str, ...]] = ("inputs", "data_gradient")
    data_gradient_reads: ClassVar[tuple[str, ...]] = ("inputs", "output")

    hidden: int = integer(least=1)
    layers: int = integer(least=1, most=1024, default=1)
    biases: int = integer(most=2, default=1)
    skip_input: bool = flag(default=False)
    bidirectional: bool = flag(default=False)

    @property
    def directions(self) -> int:
        """1, or 2 for both."""
        return 2 if self.bidirectional else 1

    def shape(self, inputs: Sequence[Shape], recorded: Shape) -> Shape:
        """[T, N, directions x hidden]."""
        t, n, features = only(inputs, 3, "[T, N, features]")
        if self.skip_input and features != self.hidden:
            raise ValueError(f"adds its input to a state of {self.hidden}, got {features} features")
        return (t, n, self.directions * self.hidden)

    def multiplied(self, features: int) -> list[int]:
        """Input features that each layer and direction multiplies by weights: the data's, or all of the layer below."""
        first, later = 0 if self.skip_input else features, self.directions * self.hidden
        return [first] * self.directions + [later] * self.directions * (self.layers - 1)

    def macs(self, inputs: Sequence[Shape], out: Shape) -> int:
        """T x N x gates x hidden x (input + hidden), summed over layers and directions."""
        rows = out[0] * out[1]
        sizes = self.multiplied(inputs[0][2])
        return sum(rows * self.gates * self.hidden * (size + self.hidden) for size in sizes)

    def flop(self, inputs: Sequence[Shape], out: Shape) -> int:
        """2 per MAC, and the gates' pointwise work."""
        return 2 * self.macs(inputs, out) + self.layers * elements(out) * (self.pointwise_flop + self.gates * self.biases)

    def parameters(self, inputs: Sequence[Shape], out: Shape) -> int:
        """Gates x hidden x (input + hidden + biases), summed over layers and directions."""
        sizes = self.multiplied(inputs[0][2])
        return sum(self.gates * self.hidden * (size + self.hidden + self.biases) for size in sizes)

    def gradients(self, inputs: Sequence[Shape], out: Shape, needed: Sequence[bool]) -> tuple[str, ...]:
        """Back through time first, then the weights."""
        return (BACKWARD_DATA, BACKWARD_FILTER)

    def gradient_flop(self, phase: str, inputs: Sequence[Shape], out: Shape) -> int:
        """2 per MAC; the gates' derivatives with the data, the sums of the bias gradient with the filter."""
        per_unit = self.backward_pointwise_flop if phase == BACKWARD_DATA else self.gates * min(self.biases, 1)
        return 2 * self.gradient_macs(phase, inputs, out) + self.layers * elements(out) * per_unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Rnn(Recurrent):
    """Vanilla recurrent layers: h' = activation(W x + R h) (Elman 1990), [T, N, I] to [T, N, hidden]."""

    op: ClassVar[str] = "rnn"
    gates: ClassVar[int] = 1
    activations: ClassVar[int] = 1
    pointwise_flop: ClassVar[int] = 1
    backward_pointwise_flop: ClassVar[int] = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Gru(Recurrent):
    """Layers of gated recurrent units, their reset after the product (cuDNN), [T, N, I] to [T, N, hidden]."""

    op: ClassVar[str] = "gru"
    gates: ClassVar[int] = 3
    activations: ClassVar[int] = 3
    reset: ClassVar[bool] = True
    pointwise_flop: ClassVar[int] = 8
    backward_pointwise_flop: ClassVar[int] = 17


@dataclass(frozen=True, slots=True, kw_only=True)
class Lstm(Recurrent):
    """Long short-term memory with a forget gate (Gers et al. 2000), [T, N, I] to [T, N, hidden]."""

    op: ClassVar[str] = "lstm"
    gates: ClassVar[int] = GATES
    activations: ClassVar[int] = 5
    states: ClassVar[int] = 2
    pointwise_flop: ClassVar[int] = POINTWISE_FLOP
    backward_pointwise_flop: ClassVar[int] = BACKWARD_FLOP


@dataclass(frozen=True, slots=True, kw_only=True)
class LstmCell(WeightedKind):
    """One LSTM step: data [N, I] and state [2, N, hidden] (h, then c) to the next state [2, N, hidden]."""

    op: ClassVar[str] = "lstm_cell"
    backward_reads: ClassVar[tuple[str, ...]] = ("inputs", "data_gradient")
    data_gradient_reads: ClassVar[tuple[str, ...]] = ("inputs", "output")

    hidden: int = integer(least=1)
    biases: int = integer(most=2, default=1)

    def shape(self, inputs: Sequence[Shape], recorded: Shape) -> Shape:
        """[2, N, hidden]."""
        if len(inputs) != 2:
            raise ValueError(f"takes the data and the state, got {len(inputs)} inputs")
        data, state = inputs
        if len(data) != 2 or tuple(state) != (2, data[0], self.hidden):
            given = f"{show(data)} and {show(state)}"
            raise ValueError(f"needs data [N, features] and state [2, N, {self.hidden}], got {given}")
        return tuple(state)

    def macs(self, inputs: Sequence[Shape], out: Shape) -> int:
        """N x 4 hidden x (input + hidden)."""
        n, features = inputs[0]
        return n * GATES * self.hidden * (features + self.hidden)

    def flop(self, inputs: Sequence[Shape], out: Shape) -> int:
        """2 per MAC, and the gates' pointwise work."""
        units = inputs[0][0] * self.hidden
        return 2 * self.macs(inputs, out) + units * (POINTWISE_FLOP + GATES * self.biases)

    def parameters(self, inputs: Sequence[Shape], out: Shape) -> int:
        """4 hidden x (input + hidden + biases)."""
        return GATES * self.hidden * (inputs[0][1] + self.hidden + self.biases)

    def gradients(self, inputs: Sequence[Shape], out: Shape, needed: Sequence[bool]) -> tuple[str, ...]:
        """Back through the gates first, then the weights."""
        return (BACKWARD_DATA, BACKWARD_FILTER)

    def gradient_flop(self, phase: str, inputs: Sequence[Shape], out: Shape) -> int:
        """2 per MAC; the gates' derivatives with the data, the sums of the bias gradient with the filter."""
        per_unit = BACKWARD_FLOP if phase == BACKWARD_DATA else GATES * min(self.biases, 1)
        return 2 * self.gradient_macs(phase, inputs, out) + inputs[0][0] * self.hidden * per_unit

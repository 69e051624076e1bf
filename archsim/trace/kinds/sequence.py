"""Layers over sequences: scaled dot-product attention as one op; recurrent layers (vanilla, gated recurrent unit, LSTM).

Of recurrent layers, the gates of each unit are one product with [input, hidden]; what follows, per unit and step, besides one
add for each gate and bias vector:

- `rnn`: h' = tanh(.) or max(., 0) (1). Backward 3.
- `gru`: r, z and n (3 activations), n = tanh(Wx + r * Rh) (1), h' = (1 - z) * n + z * h (4). Backward 17. The reset acts after
  the product with the state, as in cuDNN (developer guide, cudnnRNNMode_t), and not before as in Cho et al. 2014.
- `lstm`: i, f, g and o (4), c' = f * c + i * g (3), h' = o * tanh(c') (2). Backward 16.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from archsim.trace.dims import Shape, Shapes, elements, show
from archsim.trace.kind import BACKWARD, BACKWARD_DATA, BACKWARD_FILTER, Kind, WeightedKind, only
from archsim.trace.values import flag, integer

SOFTMAX_FLOP = 6  # scale, compare, subtract, exp, add, divide
SOFTMAX_BACKWARD_FLOP = 5  # softmax derivative (4) and scale


class Attention(Kind, op="attention", backward_reads=("inputs", "output")):
    """softmax(Q K^T / sqrt d) V for `heads` heads of size d.

    Queries [N, T, heads * d], keys and values [N, S, kv_heads * d], output as the queries; fewer `kv_heads` are
    shared by groups of heads (0 means as many as heads). One input holds all three side by side, as one projection leaves
    them: [N, T, (heads + 2 kv_heads) * d]. With `causal` query t sees the first S - T + t + 1 keys, of which a `window` leaves
    the last so many (Beltagy et al. 2020, section 3.1; 0: all), and only these pairs are counted. Two more inputs are keys and
    values of P earlier tokens, [N, P, kv_heads * d], to which the new ones are appended in place: S counts both. With
    `sinks` each head has a learned score that joins every softmax without a value (Xiao et al. 2024).
    """

    heads: int = integer(least=1, most=65536)
    kv_heads: int = integer(most=65536, default=0)
    causal: bool = flag(default=False)
    window: int = integer(default=0)
    cached: bool = flag(default=False)
    sinks: bool = flag(default=False)

    def shape(self, inputs: Shapes, recorded: Shape) -> Shape:
        """That of the queries."""
        if len(inputs) not in (1, 3, 5) or any(len(shape) != 3 for shape in inputs):
            raise ValueError(f"takes queries, keys and values [N, T, features], got {', '.join(map(show, inputs))}")
        shared = self.kv_heads or self.heads
        if self.cached and len(inputs) != 3:
            raise ValueError(f"is over cached keys, which takes 3 inputs, got {len(inputs)}")
        if (self.cached or len(inputs) == 1) and inputs[0][2] % (self.heads + 2 * shared):
            raise ValueError(f"has {self.heads} heads and 2 x {shared} of keys and values, which do not divide {show(inputs[0])}")
        queries, keys, values = self.parts(inputs)
        if self.heads % shared or queries[2] % self.heads:
            raise ValueError(f"has {self.heads} heads and {shared} key heads, which do not divide {show(queries)}")
        wanted = (queries[0], keys[1], queries[2] // self.heads * shared)
        if tuple(keys) != wanted or tuple(values) != wanted or any((*s[:1], *s[2:]) != wanted[::2] for s in inputs[3:]):
            raise ValueError(f"needs keys and values {show(wanted)}, got {show(keys)} and {show(values)}")
        if self.window and not self.causal:
            raise ValueError(f"has a window of {self.window} keys before each query, which needs it to be causal")
        if self.causal and keys[1] < queries[1]:
            raise ValueError(f"is causal with {queries[1]} queries but only {keys[1]} keys")
        return tuple(queries)

    def parts(self, inputs: Shapes) -> tuple[Shape, Shape, Shape]:
        """Queries, keys and values, also where one input holds them all, or earlier ones are apart."""
        if len(inputs) == 5:
            keys, values = ((new[0], past[1] + new[1], new[2]) for new, past in zip(inputs[1:3], inputs[3:], strict=True))
            return inputs[0], keys, values
        if len(inputs) == 3 and not self.cached:
            return inputs[0], inputs[1], inputs[2]
        n, t, features = inputs[0]
        shared = self.kv_heads or self.heads
        size = features // (self.heads + 2 * shared)
        if self.cached:
            return (n, t, self.heads * size), inputs[1], inputs[2]
        return (n, t, self.heads * size), (n, t, shared * size), (n, t, shared * size)

    def _scores(self, inputs: Shapes) -> int:
        """Query-key pairs over all heads and samples."""
        (n, t, _), (_, s, _), _ = self.parts(inputs)
        return n * self.heads * self.seen(t, s)

    def seen(self, queries: int, keys: int) -> int:
        """Pairs of a query and a key that it sees, in one head of one sample."""
        if not self.causal:
            return queries * keys
        all_before = queries * (keys - queries) + queries * (queries + 1) // 2
        beyond = max(0, min(queries, keys - self.window)) if self.window else 0  # queries that see a window's worth of keys
        first = keys - queries + 1 if beyond == queries else self.window + 1  # keys before and at the first of these
        return all_before - beyond * (first - self.window) - beyond * (beyond - 1) // 2

    def macs(self, inputs: Shapes, out: Shape) -> int:
        """Two products of d multiply-accumulates for each pair."""
        return 2 * self._scores(inputs) * (out[2] // self.heads)

    def flop(self, inputs: Shapes, out: Shape) -> int:
        """2 per MAC, and the softmax."""
        return 2 * self.macs(inputs, out) + SOFTMAX_FLOP * self._scores(inputs)

    def parameters(self, inputs: Shapes, out: Shape) -> int:
        """The score of each head's sink."""
        return self.heads * self.sinks

    def gradient_flop(self, phase: str, inputs: Shapes, out: Shape) -> int:
        """Four products, the softmax derivative, and the row sums of dO * O."""
        own = SOFTMAX_BACKWARD_FLOP * self._scores(inputs) + 2 * elements(out) if phase == BACKWARD else 0
        return 2 * self.gradient_macs(phase, inputs, out) + own


class LatentAttention(Kind, op="latent_attention", backward_reads=("inputs", "output")):
    """Attention to cached latent vectors, which are the keys of all heads and, but for their last features, the values too
    (DeepSeek-V2, section 2.1.2, with the projections of keys and values taken into those of queries and results).

    Queries [N, T, heads * d] and vectors [N, S, d] to [N, T, heads * rank]; query t sees the first S - T + t + 1 vectors.
    """

    heads: int = integer(least=1, most=65536)
    rank: int = integer(least=1)

    def shape(self, inputs: Shapes, recorded: Shape) -> Shape:
        """[N, T, heads * rank]."""
        if len(inputs) != 2 or any(len(shape) != 3 for shape in inputs):
            raise ValueError(f"takes queries [N, T, heads * d] and vectors [N, S, d], got {', '.join(map(show, inputs))}")
        queries, cache = inputs
        if queries[0] != cache[0] or queries[2] != self.heads * cache[2] or self.rank > cache[2] or cache[1] < queries[1]:
            raise ValueError(f"has {self.heads} heads of rank {self.rank}, which {show(queries)} and {show(cache)} do not fit")
        return (queries[0], queries[1], self.heads * self.rank)

    def scores(self, inputs: Shapes) -> int:
        """Query-key pairs over all heads and samples."""
        (n, t, _), (_, s, _) = inputs
        return n * self.heads * (t * (s - t) + t * (t + 1) // 2)

    def macs(self, inputs: Shapes, out: Shape) -> int:
        """d for each score, and the rank for each weighted value."""
        return self.scores(inputs) * (inputs[1][2] + self.rank)

    def flop(self, inputs: Shapes, out: Shape) -> int:
        """2 per MAC, and the softmax."""
        return 2 * self.macs(inputs, out) + SOFTMAX_FLOP * self.scores(inputs)


# ----------------------------------------------------------------------------------------------------- recurrent layers

GATES = 4
POINTWISE_FLOP = 9
CELL_BACKWARD_FLOP = 16


class Recurrent(WeightedKind, backward_reads=("inputs", "data_gradient"), data_gradient_reads=("inputs", "output")):
    """`layers` recurrent layers of `hidden` units over a whole sequence, [T, N, I] to [T, N, hidden].

    `bidirectional` layers have as many units again that read the sequence from its end (Schuster and Paliwal 1997); both halves
    stand side by side, [T, N, 2 hidden], and both are read by each half of the next layer.
    `biases` is the number of bias vectors of `gates` x hidden values per layer: 1 as published, 2 in cuDNN's form. With
    `skip_input` the first layer adds its input, as wide as its state, to every gate without weights (CUDNN_SKIP_INPUT). The
    data gradient runs back through time, so it is there even when the first layer's input needs none.
    """

    gates: ClassVar[int] = 1
    """Products with [input, hidden] for each unit."""
    activations: ClassVar[int] = 1
    """Sigmoids and hyperbolic tangents for each unit and step."""
    states: ClassVar[int] = 1
    """Values that a unit hands to its next step."""
    reset: ClassVar[bool] = False
    """Whether a gate acts between the product with the state and its sum with that of the input."""
    pointwise_flop: ClassVar[int] = 1
    backward_pointwise_flop: ClassVar[int] = 3

    hidden: int = integer(least=1)
    layers: int = integer(least=1, most=1024, default=1)
    biases: int = integer(most=2, default=1)
    skip_input: bool = flag(default=False)
    bidirectional: bool = flag(default=False)

    @property
    def directions(self) -> int:
        """1, or 2 for both."""
        return 2 if self.bidirectional else 1

    def shape(self, inputs: Shapes, recorded: Shape) -> Shape:
        """[T, N, directions x hidden]."""
        t, n, features = only(inputs, 3, "[T, N, features]")
        if self.skip_input and features != self.hidden:
            raise ValueError(f"adds its input to a state of {self.hidden}, got {features} features")
        return (t, n, self.directions * self.hidden)

    def multiplied(self, features: int) -> list[int]:
        """Input features that each layer and direction multiplies by weights: the data's, or all of the layer below."""
        first, later = 0 if self.skip_input else features, self.directions * self.hidden
        return [first] * self.directions + [later] * self.directions * (self.layers - 1)

    def macs(self, inputs: Shapes, out: Shape) -> int:
        """T x N x gates x hidden x (input + hidden), summed over layers and directions."""
        rows = out[0] * out[1]
        sizes = self.multiplied(inputs[0][2])
        return sum(rows * self.gates * self.hidden * (size + self.hidden) for size in sizes)

    def flop(self, inputs: Shapes, out: Shape) -> int:
        """2 per MAC, and the gates' pointwise work."""
        return 2 * self.macs(inputs, out) + self.layers * elements(out) * (self.pointwise_flop + self.gates * self.biases)

    def parameters(self, inputs: Shapes, out: Shape) -> int:
        """Gates x hidden x (input + hidden + biases), summed over layers and directions."""
        sizes = self.multiplied(inputs[0][2])
        return sum(self.gates * self.hidden * (size + self.hidden + self.biases) for size in sizes)

    def gradients(self, inputs: Shapes, out: Shape, needed: Sequence[bool]) -> tuple[str, ...]:
        """Back through time first, then the weights."""
        return (BACKWARD_DATA, BACKWARD_FILTER)

    def gradient_flop(self, phase: str, inputs: Shapes, out: Shape) -> int:
        """2 per MAC; the gates' derivatives with the data, the sums of the bias gradient with the filter."""
        per_unit = self.backward_pointwise_flop if phase == BACKWARD_DATA else self.gates * min(self.biases, 1)
        return 2 * self.gradient_macs(phase, inputs, out) + self.layers * elements(out) * per_unit


class Rnn(Recurrent, op="rnn"):
    """Vanilla recurrent layers: h' = activation(W x + R h) (Elman 1990), [T, N, I] to [T, N, hidden]."""


class Gru(Recurrent, op="gru", gates=3, activations=3, reset=True, pointwise_flop=8, backward_pointwise_flop=17):
    """Layers of gated recurrent units, their reset after the product (cuDNN), [T, N, I] to [T, N, hidden]."""


class Lstm(
    Recurrent, op="lstm", gates=GATES, activations=5, states=2, pointwise_flop=POINTWISE_FLOP,
    backward_pointwise_flop=CELL_BACKWARD_FLOP,
):  # fmt: skip
    """Long short-term memory with a forget gate (Gers et al. 2000), [T, N, I] to [T, N, hidden]."""


class LstmCell(
    WeightedKind, op="lstm_cell", backward_reads=("inputs", "data_gradient"), data_gradient_reads=("inputs", "output"),
):  # fmt: skip
    """One LSTM step: data [N, I] and state [2, N, hidden] (h, then c) to the next state [2, N, hidden]."""

    hidden: int = integer(least=1)
    biases: int = integer(most=2, default=1)

    def shape(self, inputs: Shapes, recorded: Shape) -> Shape:
        """[2, N, hidden]."""
        if len(inputs) != 2:
            raise ValueError(f"takes the data and the state, got {len(inputs)} inputs")
        data, state = inputs
        if len(data) != 2 or tuple(state) != (2, data[0], self.hidden):
            given = f"{show(data)} and {show(state)}"
            raise ValueError(f"needs data [N, features] and state [2, N, {self.hidden}], got {given}")
        return tuple(state)

    def macs(self, inputs: Shapes, out: Shape) -> int:
        """N x 4 hidden x (input + hidden)."""
        n, features = inputs[0]
        return n * GATES * self.hidden * (features + self.hidden)

    def flop(self, inputs: Shapes, out: Shape) -> int:
        """2 per MAC, and the gates' pointwise work."""
        units = inputs[0][0] * self.hidden
        return 2 * self.macs(inputs, out) + units * (POINTWISE_FLOP + GATES * self.biases)

    def parameters(self, inputs: Shapes, out: Shape) -> int:
        """4 hidden x (input + hidden + biases)."""
        return GATES * self.hidden * (inputs[0][1] + self.hidden + self.biases)

    def gradients(self, inputs: Shapes, out: Shape, needed: Sequence[bool]) -> tuple[str, ...]:
        """Back through the gates first, then the weights."""
        return (BACKWARD_DATA, BACKWARD_FILTER)

    def gradient_flop(self, phase: str, inputs: Shapes, out: Shape) -> int:
        """2 per MAC; the gates' derivatives with the data, the sums of the bias gradient with the filter."""
        per_unit = CELL_BACKWARD_FLOP if phase == BACKWARD_DATA else GATES * min(self.biases, 1)
        return 2 * self.gradient_macs(phase, inputs, out) + inputs[0][0] * self.hidden * per_unit

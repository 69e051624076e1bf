"""Scaled dot-product attention as one op."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from archsim.trace.attributes import flag, integer
from archsim.trace.dims import Shape, elements, show
from archsim.trace.kind import BACKWARD, Kind

SOFTMAX_FLOP = 6  # scale, compare, subtract, exp, add, divide
BACKWARD_FLOP = 5  # softmax derivative (4) and scale


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention(Kind):
    """softmax(Q K^T / sqrt d) V for `heads` heads of size d.

    Queries [N, T, heads * d], keys and values [N, S, kv_heads * d], output as the queries; fewer `kv_heads` are
    shared by groups of heads (0 means as many as heads). One input holds all three side by side, as one projection leaves
    them: [N, T, (heads + 2 kv_heads) * d]. With `causal` query t sees the first S - T + t + 1 keys, of which a `window` leaves
    the last so many (Beltagy et al. 2020, section 3.1; 0: all), and only these pairs are counted. Two more inputs are keys and
    values of P earlier tokens, [N, P, kv_heads * d], to which the new ones are appended in place: S counts both. With
    `sinks` each head has a learned score that joins every softmax without a value (Xiao et al. 2024).
    """

    op: ClassVar[str] = "attention"
    backward_reads: ClassVar[tuple[str, ...]] = ("inputs", "output")

    heads: int = integer(least=1, most=65536)
    kv_heads: int = integer(most=65536, default=0)
    causal: bool = flag(default=False)
    window: int = integer(default=0)
    cached: bool = flag(default=False)
    sinks: bool = flag(default=False)

    def shape(self, inputs: Sequence[Shape], recorded: Shape) -> Shape:
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

    def parts(self, inputs: Sequence[Shape]) -> tuple[Shape, Shape, Shape]:
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

    def _scores(self, inputs: Sequence[Shape]) -> int:
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

    def macs(self, inputs: Sequence[Shape], out: Shape) -> int:
        """Two products of d multiply-accumulates for each pair."""
        return 2 * self._scores(inputs) * (out[2] // self.heads)

    def flop(self, inputs: Sequence[Shape], out: Shape) -> int:
        """2 per MAC, and the softmax."""
        return 2 * self.macs(inputs, out) + SOFTMAX_FLOP * self._scores(inputs)

    def parameters(self, inputs: Sequence[Shape], out: Shape) -> int:
        """The score of each head's sink."""
        return self.heads * self.sinks

    def gradient_flop(self, phase: str, inputs: Sequence[Shape], out: Shape) -> int:
        """Four products, the softmax derivative, and the row sums of dO * O."""
        own = BACKWARD_FLOP * self._scores(inputs) + 2 * elements(out) if phase == BACKWARD else 0
        return 2 * self.gradient_macs(phase, inputs, out) + own


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention(Kind):
    """Attention to cached latent vectors, which are the keys of all heads and, but for their last features, the values too
    (DeepSeek-V2, section 2.1.2, with the projections of keys and values taken into those of queries and results).

    Queries [N, T, heads * d] and vectors [N, S, d] to [N, T, heads * rank]; query t sees the first S - T + t + 1 vectors.
    """

    op: ClassVar[str] = "latent_attention"
    backward_reads: ClassVar[tuple[str, ...]] = ("inputs", "output")

    heads: int = integer(least=1, most=65536)
    rank: int = integer(least=1)

    def shape(self, inputs: Sequence[Shape], recorded: Shape) -> Shape:
        """[N, T, heads * rank]."""
        if len(inputs) != 2 or any(len(shape) != 3 for shape in inputs):
            raise ValueError(f"takes queries [N, T, heads * d] and vectors [N, S, d], got {', '.join(map(show, inputs))}")
        queries, cache = inputs
        if queries[0] != cache[0] or queries[2] != self.heads * cache[2] or self.rank > cache[2] or cache[1] < queries[1]:
            raise ValueError(f"has {self.heads} heads of rank {self.rank}, which {show(queries)} and {show(cache)} do not fit")
        return (queries[0], queries[1], self.heads * self.rank)

    def scores(self, inputs: Sequence[Shape]) -> int:
        """Query-key pairs over all heads and samples."""
        (n, t, _), (_, s, _) = inputs
        return n * self.heads * (t * (s - t) + t * (t + 1) // 2)

    def macs(self, inputs: Sequence[Shape], out: Shape) -> int:
        """d for each score, and the rank for each weighted value."""
        return self.scores(inputs) * (inputs[1][2] + self.rank)

    def flop(self, inputs: Sequence[Shape], out: Shape) -> int:
        """2 per MAC, and the softmax."""
        return 2 * self.macs(inputs, out) + SOFTMAX_FLOP * self.scores(inputs)

"""Feed-forward parts of which each token goes through a few: mixtures of experts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from archsim.trace.attributes import flag, integer
from archsim.trace.dims import Shape, elements, show
from archsim.trace.kind import WeightedKind

WEIGHTED_FLOP = 2  # a result times its weight, and the sum over the experts of a token


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts(WeightedKind):
    """Each token through the `top` of `total` feed-forward parts that its scores choose, and their weighted sum (Shazeer et al.
    2017, equation 1): tokens [..., K] and scores [..., total] to [..., K].

    A part has two projections, K to `hidden` and back; with `gated` a third that is multiplied in; with `bias` each has one.
    `experts` of them are here (0: all), and so is their share of the tokens. Tokens are taken to be spread evenly.

    FLOP: 2 per MAC, 1 per bias, and 2 per weighted result. The choice itself is part of the scores' op.
    """

    op: ClassVar[str] = "experts"

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

    def shape(self, inputs: Sequence[Shape], recorded: Shape) -> Shape:
        """That of the tokens."""
        if len(inputs) != 2:
            raise ValueError(f"takes tokens and the scores of experts, got {len(inputs)} inputs")
        tokens, scores = inputs
        if len(tokens) < 2 or tuple(scores) != (*tokens[:-1], self.total):
            raise ValueError(f"needs scores of {self.total} experts for each token of {show(tokens)}, got {show(scores)}")
        if self.top > self.total or self.here > self.total:
            raise ValueError(f"has {self.top} chosen and {self.here} present of only {self.total} experts")
        return tuple(tokens)

    def rows(self, inputs: Sequence[Shape]) -> float:
        """Tokens times experts that this device computes: tokens top here / total."""
        tokens = elements(inputs[0]) // inputs[0][-1]
        return tokens * self.top * self.here / self.total

    def active(self, inputs: Sequence[Shape]) -> float:
        """Experts of this device that any token chooses, as they are drawn evenly.

        active = here (1 - (1 - top / total)^tokens)

        >>> Experts(total=8, top=2, hidden=64).active([(1, 1, 32), (1, 1, 8)])
        2.0
        """
        tokens = elements(inputs[0]) // inputs[0][-1]
        return self.here * (1.0 - (1.0 - self.top / self.total) ** tokens)

    def macs(self, inputs: Sequence[Shape], out: Shape) -> int:
        """Rows x projections x features x hidden."""
        return round(self.rows(inputs) * self.projections * inputs[0][-1] * self.hidden)

    def flop(self, inputs: Sequence[Shape], out: Shape) -> int:
        """2 per MAC, the biases, and the weighted sum."""
        return 2 * self.macs(inputs, out) + round(self.rows(inputs) * (WEIGHTED_FLOP * inputs[0][-1] + self._biases(inputs)))

    def parameters(self, inputs: Sequence[Shape], out: Shape) -> int:
        """The projections of all experts that are here."""
        return self.here * (self.projections * inputs[0][-1] * self.hidden + self._biases(inputs))

    def _biases(self, inputs: Sequence[Shape]) -> int:
        """Biases of an expert."""
        return self.bias * ((self.projections - 1) * self.hidden + inputs[0][-1])

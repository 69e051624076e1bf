"""The optimiser's step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from archsim.trace.attributes import choice, integer
from archsim.trace.dims import LARGEST, Shape
from archsim.trace.kind import Kind, only


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Update(Kind):
    """One optimiser step over the `count` learned values of one op, [count] gradients to [count] values."""

    op: ClassVar[str] = "update"

    count: int = integer(least=1, most=LARGEST)
    optimiser: str = choice(*OPTIMISERS, default="sgd_momentum")

    def shape(self, inputs: Sequence[Shape], recorded: Shape) -> Shape:
        """[count]."""
        if only(inputs, 1, "[count]") != (self.count,):
            raise ValueError(f"updates {self.count} values from {inputs[0][0]} gradients")
        return (self.count,)

    def flop(self, inputs: Sequence[Shape], out: Shape) -> int:
        """As the optimiser's table row says."""
        return OPTIMISERS[self.optimiser].flop * self.count

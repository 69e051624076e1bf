"""What the L2 of a GPU may have of one run of a network when the next one begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, prod

from archsim.stack.stack import Stack
from archsim.trace.trace import BoundOp

FROM = 1e9  # B of a run of which no cache of today has anything left. A choice, not a fit.


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """What a run leaves to the next one, and an op to those behind it.

    cold: whether other kernels ran before, so that its code has to come again
    run_bytes: what a run touches, all of which comes again in the next [B]; infinite: more than any cache, or not known
    short_lived: whether the memory of a result is used for others once it was read
    """

    cold: bool = False
    run_bytes: float = inf
    short_lived: bool = False


NOTHING = Again()


def again(ops: Sequence[BoundOp], stack: Stack, training: bool, element: float) -> Again:
    """What the ops of a network, run again and again at inference, leave in caches; nothing of training, or of one op alone.

    run_bytes = (parameters + results) element        results = twice the largest, or all where each op keeps its own
    """
    if stack.operand_sets or len(ops) < 2:
        return NOTHING
    if training:
        return Again(cold=True)
    kept = stack.activations == "kept"
    sizes = [prod(op.shape) for op in ops]
    touched = (sum(op.parameters for op in ops) + (sum(sizes) if kept else 2 * max(sizes))) * element
    return Again(cold=True, run_bytes=touched if touched < FROM else inf, short_lived=not kept)

"""Operators of users: what a function says they cost, in place of a bound from their memory traffic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from archsim.base.errors import ArgumentError
from archsim.trace.dims import Shape

WorkRule = Callable[..., tuple[float, float]]  # (shapes of the inputs, shape of the result, bytes of a value) -> FLOP, bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnOp:
    """What is registered of an operator: its work, and the shape of its result where files do not state it.

    `number` tells one registration from the next of the same name.
    """

    work: WorkRule
    shape: Callable[[Sequence[Shape]], Sequence[int]] | None = None
    number: int = 1


NUMBERS = count(1)
OWN: dict[str, OwnOp] = {}


def register(name: str, work: WorkRule, shape: Callable[[Sequence[Shape]], Sequence[int]] | None = None) -> None:
    """Keep what an operator costs. Raises ArgumentError for what is no name or no function.

    >>> register("Twice", lambda inputs, output, element: (2 * output[0], 2 * output[0] * element))
    >>> own_work("Twice", ((8,),), (8,), 4)
    (16.0, 64.0)
    """
    if not isinstance(name, str) or not name or not name.isprintable():
        raise ArgumentError(f"register_op: {name!r} is no name of an operator")
    if not callable(work) or not (shape is None or callable(shape)):
        raise ArgumentError(f"register_op: {name}: work and shape must be functions")
    OWN[name] = OwnOp(work=work, shape=shape, number=next(NUMBERS))


def registered(name: str) -> OwnOp | None:
    """What is registered of an operator, under its name with or without the domain."""
    return OWN.get(name) or OWN.get(name.rpartition(".")[2])


def own_work(name: str, inputs: Sequence[Shape], output: Shape, element: int) -> tuple[float, float]:
    """FLOP and bytes of a registered operator. Raises ArgumentError where its function returns anything else."""
    own = registered(name)
    assert own is not None
    found: Any = own.work(list(inputs), output, element)
    try:
        flop, moved = map(float, found)
    except (TypeError, ValueError):
        flop = moved = -1.0
    if not (0 <= flop < float("inf") and 0 < moved < float("inf")):
        raise ArgumentError(
            f"register_op: the function of {name} returned {found!r}; it must return FLOP from 0 and bytes above 0"
        )
    return flop, moved

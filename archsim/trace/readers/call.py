"""`Call`: one node with what is known of its inputs, as rules of shapes and values see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from archsim.trace.dims import LARGEST, Shape, show
from archsim.trace.readers.model import Array, ModelNode, StoredTensor


class Refusal(ValueError):
    """What is wrong with one node, in a sentence."""


class Unknown(Refusal):
    """A shape that depends on values nobody knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTensor:
    """What is known of a tensor: its shape; its values, where they are few; whether it is the same whatever the inputs hold."""

    shape: Shape
    value: Array | None = None
    fixed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A node and what is known of its inputs; None for one that is left out."""

    node: ModelNode
    inputs: Sequence[KnownTensor | None]
    opset: int

    def __len__(self) -> int:
        return len(self.inputs)

    def has(self, i: int) -> bool:
        """Whether there is an input i."""
        return i < len(self.inputs) and self.inputs[i] is not None

    def known(self, i: int) -> KnownTensor:
        """Input i."""
        found = self.inputs[i] if i < len(self.inputs) else None
        if found is None:
            raise Refusal(f"needs at least {i + 1} inputs")
        return found

    def shape(self, i: int = 0) -> Shape:
        """The shape of input i."""
        return self.known(i).shape

    def value(self, i: int) -> Array | None:
        """The values of input i, None where they are not known or it is left out."""
        return self.known(i).value if self.has(i) else None

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute, or its default."""
        return self.node.attributes.get(name, default)

    def integer(self, name: str, default: int) -> int:
        """An attribute that is a whole number."""
        found = self.attribute(name, default)
        if isinstance(found, bool) or not isinstance(found, int) or abs(found) > LARGEST:
            raise Refusal(f"has the attribute {name} {found!r}, which is no whole number in range")
        return found

    def integers(self, name: str, default: Sequence[int] | None = None, *, at: int | None = None) -> list[int] | None:
        """A list of whole numbers: an attribute, or the values of input `at`. Raises Unknown where its values are not known."""
        found = self.attribute(name)
        if found is None and at is not None and self.has(at):
            value = self.value(at)
            if value is None:
                raise Unknown(
                    f"needs the values of its input {self.node.inputs[at]!r}, which depend on what the network is given"
                )
            found = [int(each) for each in np.ravel(value).tolist()]
        if found is None:
            return None if default is None else list(default)
        if not isinstance(found, list) or any(isinstance(each, bool) or not isinstance(each, int) for each in found):
            raise Refusal(f"has the attribute {name} {found!r}, which is no list of whole numbers")
        return list(found)

    def axis(self, name: str = "axis", default: int = 0, rank: int | None = None) -> int:
        """An axis counted from the front."""
        return axis_in(self.integer(name, default), len(self.shape()) if rank is None else rank)

    def text(self, name: str, default: str) -> str:
        """An attribute that is a word."""
        found = self.attribute(name, default)
        return found if isinstance(found, str) else default


def axis_in(axis: int, rank: int) -> int:
    """An axis counted from the front; raises Refusal where a tensor of this rank has none such."""
    if not -rank <= axis < max(rank, 1):
        raise Refusal(f"has the axis {axis}, but its input has {rank} dimensions")
    return axis % max(rank, 1)


def broadcast(*shapes: Shape) -> Shape:
    """The shape to which all stretch. Raises Refusal where they do not fit.

    >>> broadcast((8, 1, 5), (3, 1))
    (8, 3, 5)
    """
    rank = max((len(shape) for shape in shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    found = []
    for sizes in zip(*padded, strict=True):
        wide = {size for size in sizes if size != 1}
        if len(wide) > 1:
            raise Refusal(f"joins inputs of unlike shapes {' and '.join(map(show, shapes))}")
        found.append(wide.pop() if wide else 1)
    return tuple(found)


def constant(value: StoredTensor) -> KnownTensor:
    """What is known of a tensor of the file."""
    return KnownTensor(shape=value.shape, value=value.value, fixed=True)

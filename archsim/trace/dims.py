"""Tensor shapes with dimensions that may be symbolic: `"N"` images in a batch, `"32*N"` rows of 32 steps each."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

Shape = tuple[int, ...]
Shapes = Sequence[Shape]  # of the inputs of an op, by place
Dim = int | str  # a size, or a product such as "N", "32*N", "N*T"

BATCH, SEQUENCE = "N", "T"  # the symbols that a request can set: samples in a run, tokens of a sequence
LARGEST = 2**53  # up to which a double counts exactly
MOST_DIMS = 8

_FACTOR = re.compile(r"[A-Z][A-Za-z0-9_]{0,31}|[1-9][0-9]{0,15}", re.ASCII)


@lru_cache(maxsize=4096)
def factors(dim: str) -> tuple[int, tuple[str, ...]]:
    """The number and the symbols whose product `dim` is.

    Raises ValueError for anything but numbers and capitalised names joined by `*`, with at least one name.

    >>> factors("32*N"), factors("N*T")
    ((32, ('N',)), (1, ('N', 'T')))
    """
    number, names = 1, []
    for part in dim.split("*"):
        if _FACTOR.fullmatch(part) is None:
            raise ValueError(f"{short(dim)} is no dimension: write a number, a symbol 'N' or a product '32*N'")
        if part[0].isdigit():
            number *= int(part)
        else:
            names.append(part)
    if not names:
        raise ValueError(f"{dim!r} names no symbol; write the number without quotes")
    return number, tuple(names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """The size of a symbol that need not be given: its `usual` value, and the largest that the network allows."""

    usual: int
    most: int


def symbols_in(dims: Iterable[Dim]) -> set[str]:
    """The symbols that occur in `dims`.

    >>> sorted(symbols_in(["N", 3, "T*N"]))
    ['N', 'T']
    """
    return {name for dim in dims if isinstance(dim, str) for name in factors(dim)[1]}


def bind_dims(dims: Sequence[Dim], symbols: Mapping[str, int]) -> Shape:
    """The shape with the values of the symbols. Raises KeyError for a symbol without a value.

    >>> bind_dims(("32*N", 3), {"N": 4})
    (128, 3)
    """
    return tuple([dim if isinstance(dim, int) else _value(dim, symbols) for dim in dims])


def times(number: int, dim: Dim) -> Dim:
    """A multiple of a dimension.

    >>> times(4, 3), times(4, "N"), times(1, "N")
    (12, '4*N', 'N')
    """
    if isinstance(dim, int):
        return number * dim
    return dim if number == 1 else f"{number}*{dim}"


def _value(dim: str, symbols: Mapping[str, int]) -> int:
    number, names = factors(dim)
    for name in names:
        number *= symbols[name]
    return number


def elements(shape: Shape) -> int:
    """Number of elements of a tensor.

    >>> elements((2, 3, 4)), elements(())
    (24, 1)
    """
    return math.prod(shape)


def show(shape: Sequence[Dim]) -> str:
    """A shape as text.

    >>> show(("N", 3, 224, 224))
    '[N, 3, 224, 224]'
    """
    return "[" + ", ".join(map(str, shape)) + "]"


def short(value: object) -> str:
    """A value for an error message, cut if it is long.

    >>> short("N" * 100)
    "'NNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNN..."
    """
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."

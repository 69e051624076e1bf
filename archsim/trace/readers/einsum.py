"""Einstein sums of one or two tensors as products."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import chain

from archsim.trace.dims import Shape, show
from archsim.trace.readers.call import Call, Refusal

LONGEST = 200  # characters of an equation


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """An equation with the sizes of its letters: those that both tensors keep, one keeps, the other keeps, and none.

    order: the places in the first tensor of the result's dimensions, where it is that one turned; else empty
    """

    result: Shape
    together: int = 1
    rows: int = 1
    columns: int = 1
    inner: int = 1
    order: tuple[int, ...] = ()


def parsed(call: Call) -> Sum:
    """The equation of a node. Raises Refusal for one that is not read."""
    equation = call.text("equation", "").replace(" ", "")
    shapes = [call.shape(i) for i in range(len(call))]
    terms, right = _letters(equation, shapes)
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        if len(term) != len(shape):
            raise Refusal(f"has the letters {''.join(term)!r} for {show(shape)}")
        for letter, size in zip(term, shape, strict=True):
            if sizes.setdefault(letter, size) not in (size, 1) and size != 1:
                raise Refusal(f"has the letter {letter!r} for {sizes[letter]} and {size}")
            sizes[letter] = max(sizes[letter], size)
    if not set(right) <= set(sizes):
        raise Refusal(f"has the equation {equation[:60]!r}, whose result has letters of its own")
    first, rest = set(terms[0]), set(chain(*terms[1:]))
    found = {"together": 1, "rows": 1, "columns": 1, "inner": 1}
    for letter, size in sizes.items():
        kept = letter in right
        where = "inner" if not kept else "together" if letter in first & rest else "rows" if letter in first else "columns"
        found[where] *= size
    turned = len(terms) == 1 and sorted(terms[0]) == sorted(right) and len(first) == len(right)
    order = tuple([terms[0].index(letter) for letter in right]) if turned else ()
    return Sum(result=tuple([sizes[letter] for letter in right]), order=order, **found)


def _letters(equation: str, shapes: list[Shape]) -> tuple[list[list[str]], list[str]]:
    """The letters of each tensor and of the result; `...` stands for so many dimensions, counted from the last, "0", "1" ...

    Without an arrow the result has those that occur once, in their order, behind the dimensions of `...`.
    """
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    plain = all(re.fullmatch(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*", term) for term in (*terms, right))
    if len(terms) != len(shapes) or len(equation) > LONGEST or not plain:
        raise Refusal(f"has the equation {equation[:60]!r}, which is none of {len(shapes)} tensors")
    wide = [max(0, len(shape) - len(term) + 3) if "..." in term else 0 for term, shape in zip(terms, shapes, strict=True)]
    found = [_spelled(term, count) for term, count in zip(terms, wide, strict=True)]
    if arrow:
        return found, _spelled(right, max(wide))
    once = [letter for letter, count in Counter(chain(*found)).items() if count == 1 and letter.isalpha()]
    return found, _spelled("...", max(wide)) + sorted(once)


def _spelled(term: str, count: int) -> list[str]:
    before, _, after = term.partition("...")
    return [*before, *(map(str, range(count - 1, -1, -1)) if "..." in term else ()), *after]

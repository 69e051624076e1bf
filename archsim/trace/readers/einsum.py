"""Einstein sums of one or two tensors as products."""

from __future__ import annotations

from dataclasses import dataclass

from archsim.trace.dims import Shape, show
from archsim.trace.readers.call import Call, Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """An equation with the sizes of its letters: those that both tensors keep, one keeps, the other keeps, and none."""

    result: Shape
    together: int = 1
    rows: int = 1
    columns: int = 1
    inner: int = 1


def parsed(call: Call) -> Sum:
    """The equation of a node. Raises Refusal for one that is not read."""
    equation = call.text("equation", "").replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if not arrow or len(terms) != len(call) or "." in equation or len(equation) > 200:
        raise Refusal(f"has the equation {equation[:60]!r}; with explicit letters and '->' it is read")
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, (call.shape(i) for i in range(len(call))), strict=True):
        if len(term) != len(shape) or (not term.isalpha() and term):
            raise Refusal(f"has the letters {term!r} for {show(shape)}")
        for letter, size in zip(term, shape, strict=True):
            if sizes.setdefault(letter, size) not in (size, 1) and size != 1:
                raise Refusal(f"has the letter {letter!r} for {sizes[letter]} and {size}")
            sizes[letter] = max(sizes[letter], size)
    if not set(right) <= set(sizes):
        raise Refusal(f"has the equation {equation[:60]!r}, whose result has letters of its own")
    first, rest = set(terms[0]), set("".join(terms[1:]))
    found = {"together": 1, "rows": 1, "columns": 1, "inner": 1}
    for letter, size in sizes.items():
        kept = letter in right
        where = "inner" if not kept else "together" if letter in first & rest else "rows" if letter in first else "columns"
        found[where] *= size
    return Sum(result=tuple([sizes[letter] for letter in right]), **found)

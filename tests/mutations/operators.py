"""The kinds of small change that are tried: operators of cosmic-ray, and a few for code that is made of calls to numpy.

Of cosmic-ray's operators those are left out whose result is never a plausible equation (a shift, a bitwise operator in
arithmetic) and the removal of decorators (without `cached_property` everything fails, without `lru_cache` nothing changes): they
would only raise the score, or be equivalent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import parso.python.tree as tree
from cosmic_ray.operators import (
    binary_operator_replacement,
    boolean_replacer,
    break_continue,
    comparison_operator_replacement,
    number_replacer,
    unary_operator_replacement,
    zero_iteration_for_loop,
)
from cosmic_ray.operators.operator import Example, Operator

BINARY = {
    "Add": ("Sub", "Mul", "Div"), "Sub": ("Add", "Mul", "Div"), "Mul": ("Add", "Sub", "Div"), "Div": ("Add", "Sub", "Mul"),
    "Pow": ("Mul", "Div"), "FloorDiv": ("Div", "Mul"), "Mod": ("FloorDiv", "Mul"), "BitAnd": ("BitOr",), "BitOr": ("BitAnd",),
}  # fmt: skip
COMPARISON = {
    "Lt": ("LtE", "GtE"), "LtE": ("Lt", "Gt"), "Gt": ("GtE", "LtE"), "GtE": ("Gt", "Lt"),
    "Eq": ("NotEq", "LtE", "GtE"), "NotEq": ("Eq", "Lt", "Gt"), "Is": ("IsNot",), "IsNot": ("Is",),
}  # fmt: skip
UNARY = ("USub_UAdd", "Delete_Not", "Delete_Invert")
SWAPPED = (
    ("minimum", "maximum"), ("min", "max"), ("ceil", "floor"), ("any", "all"), ("argmin", "argmax"), ("zeros", "ones"),
    ("zeros_like", "ones_like"), ("logical_or", "logical_and"), ("add", "multiply"), ("prod", "sum"), ("sqrt", "cbrt"),
    ("equal", "not_equal"), ("append", "appendleft"), ("pop", "popleft"),
)  # fmt: skip


class SwapFunction(Operator):  # type: ignore[misc]
    """The opposite of a function, such as `np.maximum` for `np.minimum`."""

    OTHER = {one: other for pair in SWAPPED for one, other in (pair, pair[::-1])}

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if isinstance(node, tree.Name) and node.value in self.OTHER and self._called(node):
            yield (node.start_pos, node.end_pos)

    def mutate(self, node: Any, index: int) -> Any:
        node.value = self.OTHER[node.value]
        return node

    @staticmethod
    def _called(node: Any) -> bool:
        """Whether it is called, handed on (`reduce(np.maximum, ...)`) or taken a method of, rather than defined or assigned."""
        before, after = node.get_previous_leaf(), node.get_next_leaf()
        named = before is not None and before.value in ("def", "import", "as", ",") and after.value not in ("(", ".")
        return not named and after.value in ("(", ".", ",", ")") and not (before is not None and before.value == "def")

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example("x = np.minimum(a, b)", "x = np.maximum(a, b)"),)


class SwapBranches(Operator):  # type: ignore[misc]
    """`np.where` with its two values exchanged: the branch that an array takes."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if self._arguments(node):
            yield (node.start_pos, node.end_pos)

    def mutate(self, node: Any, index: int) -> Any:
        listed = self._arguments(node)
        listed.children[2], listed.children[4] = listed.children[4], listed.children[2]
        return node

    @staticmethod
    def _arguments(node: Any) -> Any:
        """The three arguments of `where`, or None."""
        if getattr(node, "type", "") != "trailer" or node.children[0].value != "(" or len(node.children) != 3:
            return None
        listed, name = node.children[1], node.get_previous_leaf()
        if name is None or name.value != "where" or listed.type != "arglist" or len(listed.children) < 5:
            return None
        return listed

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example("np.where(c, a,  b)", "np.where(c,  b, a)"),)


class SwapMembership(Operator):  # type: ignore[misc]
    """`in` for `not in`, and the other way round."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if getattr(node, "type", "") == "comparison" and self._word(node) in ("in", "notin"):
            yield (node.start_pos, node.end_pos)

    def mutate(self, node: Any, index: int) -> Any:
        other = " not in" if self._word(node) == "in" else " in"
        node.children[1] = tree.Keyword(other, node.children[1].start_pos)
        return node

    @staticmethod
    def _word(node: Any) -> str:
        return "".join(node.children[1].get_code().split())

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example("a in b", "a not in b"), Example("a not in b", "a in b"))


def _named(module: Any, form: str, pairs: dict[str, tuple[str, ...]]) -> list[Any]:
    return [getattr(module, f"{form}_{one}_{other}") for one, others in pairs.items() for other in others]


OPERATORS: dict[str, Any] = {
    made.__name__: made
    for made in (
        *_named(binary_operator_replacement, "ReplaceBinaryOperator", BINARY),
        *_named(comparison_operator_replacement, "ReplaceComparisonOperator", COMPARISON),
        *[getattr(unary_operator_replacement, f"ReplaceUnaryOperator_{name}") for name in UNARY],
        boolean_replacer.AddNot, boolean_replacer.ReplaceTrueWithFalse, boolean_replacer.ReplaceFalseWithTrue,
        boolean_replacer.ReplaceAndWithOr, boolean_replacer.ReplaceOrWithAnd, break_continue.ReplaceBreakWithContinue,
        break_continue.ReplaceContinueWithBreak, number_replacer.NumberReplacer,
        zero_iteration_for_loop.ZeroIterationForLoop, SwapFunction, SwapBranches, SwapMembership,
    )
}  # fmt: skip

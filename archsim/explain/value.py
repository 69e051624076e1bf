"""What a reader knows of an expression: what it is worth, how it is written, and what decides it."""

from __future__ import annotations

import ast
import inspect
import operator
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from archsim.base.errors import Unsupported
from archsim.device.variant import first_of
from archsim.explain.equation import OPERATORS

COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}  # fmt: skip
INVERSE: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
}  # fmt: skip


class Unreadable(Exception):
    """A function does something that cannot be followed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """What an expression is worth, and how it is written.

    `text` is None for what is no number. `free`: the device, a constant or a setting moves it. `absent`: zero, since this kernel
    has none of it. `path` is the name of a part of the spec. `reasons` are the conditions that were decided on the way.
    """

    value: Any
    text: ast.expr | None = None
    free: bool = False
    absent: bool = False
    path: str = ""
    reasons: tuple[ast.expr, ...] = ()

    @property
    def true(self) -> bool:
        """Whether a condition holds."""
        return bool(np.ravel(self.value)[0]) if isinstance(self.value, np.ndarray) else bool(self.value)

    @property
    def key(self) -> Any:
        """By what two arguments of a function are told apart."""
        if self.text is not None:
            return ast.unparse(self.text)
        return self.value if isinstance(self.value, str | bool | None) else id(self.value)

    @property
    def bare(self) -> bool:
        """Whether it needs no step of its own: a number that has a name already, a literal, and what is no number."""
        if self.text is None or isinstance(self.text, ast.Name | ast.Attribute | ast.Constant):
            return True
        return isinstance(self.value, bool | np.bool_) or (isinstance(self.value, np.ndarray) and self.value.dtype == bool)


def numeric(value: Any) -> bool:
    """Whether it is a number or an array of numbers."""
    if isinstance(value, bool | np.bool_):
        return False
    return isinstance(value, int | float | np.number) or (isinstance(value, np.ndarray) and value.dtype.kind in "fi")


def literal(value: float, absent: bool = False) -> Value:
    """A number that is written as such."""
    return Value(value=value, text=ast.Constant(int(value) if float(value).is_integer() else value), absent=absent)


def plain(value: Any) -> Value:
    """An object; a number among them is written as such."""
    return replace(literal(first_of(value)), value=value) if numeric(value) else Value(value=value)


def written(value: Value) -> Value:
    """A number that nothing gave a name, as it is written."""
    return replace(value, text=plain(value.value).text) if value.text is None and numeric(value.value) else value


def is_literal(text: ast.expr | None, value: float) -> bool:
    """Whether an expression is this number."""
    return isinstance(text, ast.Constant) and text.value == value


def inverse(text: ast.expr) -> ast.expr:
    """The opposite of a condition."""
    match text:
        case ast.Compare(ops=[op]):
            return ast.Compare(text.left, [INVERSE[type(op)]()], text.comparators)
        case ast.UnaryOp(op=ast.Not()):
            return text.operand
        case _:
            return ast.UnaryOp(ast.Not(), text)


def decided(test: Value) -> tuple[ast.expr, ...]:
    """Why a branch holds: the condition, where it is not the kernel alone that decides."""
    if not test.free or test.text is None:
        return test.reasons
    return (*test.reasons, test.text if test.true else inverse(test.text))


def operation(op: ast.operator, left: Value, right: Value) -> Value:
    """Arithmetic. What this kernel has none of is left out of sums, and so are factors of one that stand in the code."""
    reasons = (*left.reasons, *right.reasons)
    if isinstance(op, ast.BitAnd | ast.BitOr):
        return joined(isinstance(op, ast.BitAnd), left, right)
    left, right = written(left), written(right)
    if type(op) not in OPERATORS or left.text is None or right.text is None:
        raise Unreadable("arithmetic of what is no number")
    value = OPERATORS[type(op)](left.value, right.value)
    product = isinstance(op, ast.Mult | ast.Div)
    if product and (left.absent or (right.absent and isinstance(op, ast.Mult))):
        return literal(0.0, absent=True)
    nothing = is_literal(right.text, 0.0) or right.absent
    if (isinstance(op, ast.Add | ast.Sub) and nothing) or (product and is_literal(right.text, 1.0)):
        return replace(left, value=value, reasons=reasons)
    nothing = is_literal(left.text, 0.0) or left.absent
    if (isinstance(op, ast.Add) and nothing) or (isinstance(op, ast.Mult) and is_literal(left.text, 1.0)):
        return replace(right, value=value, reasons=reasons)
    return Value(value=value, text=ast.BinOp(left.text, op, right.text), free=left.free or right.free, reasons=reasons)


def unary(op: ast.unaryop, operand: Value) -> Value:
    """A sign, or the opposite of a condition."""
    if isinstance(op, ast.USub) and operand.text is not None:
        return replace(operand, value=-operand.value, text=ast.UnaryOp(op, operand.text))
    if isinstance(op, ast.Not | ast.Invert):
        return replace(operand, value=not operand.true, text=None if operand.text is None else inverse(operand.text))
    raise Unreadable("a sign")


def comparison(op: ast.cmpop, left: Value, right: Value) -> Value:
    """A comparison of numbers, or of what an object is."""
    if isinstance(op, ast.Is | ast.IsNot):
        return Value(value=(left.value is right.value) == isinstance(op, ast.Is))
    if isinstance(op, ast.In | ast.NotIn):
        listed = [each.value if isinstance(each, Value) else each for each in right.value]
        return Value(value=(left.value in listed) == isinstance(op, ast.In))
    truth = COMPARISONS[type(op)](left.value, right.value)
    known = left.text is not None and right.text is not None
    text = ast.Compare(left.text, [op], [right.text]) if known else None  # type: ignore[list-item, arg-type]
    free = (left.free or right.free) and not (left.absent or right.absent)  # of what is not there, nothing else decides
    return Value(value=bool(np.ravel(truth)[0]), text=text, free=free, reasons=(*left.reasons, *right.reasons))


def joined(every: bool, left: Value, right: Value) -> Value:
    """`left` and `right`, or `left` or `right`: what the kernel alone decides is not written."""
    reasons = (*left.reasons, *right.reasons)
    for one, other in ((left, right), (right, left)):
        if not one.free:
            return Value(value=one.true, reasons=one.reasons) if one.true != every else replace(other, reasons=reasons)
    for one in (left, right):
        if one.true != every:  # one part decides, and the other need not be written
            return replace(one, reasons=reasons)
    if left.text is None or right.text is None:
        raise Unreadable("a condition that cannot be written")
    value = (left.true and right.true) if every else (left.true or right.true)
    text = ast.BoolOp(ast.And() if every else ast.Or(), [left.text, right.text])
    return Value(value=value, text=text, free=True, reasons=reasons)


def applied(name: str, function: Callable[..., Any], arguments: list[Value]) -> Value:
    """A function of numbers; of a minimum or maximum, what this kernel has none of is left out, and one within another is not."""
    value = function(*[argument.value for argument in arguments])
    reasons = tuple([reason for argument in arguments for reason in argument.reasons])
    kept = arguments
    if name == "max":
        kept = [a for a in arguments if not a.absent and np.ravel(a.value)[0] != np.finfo(float).tiny]
        kept = arguments if all(isinstance(a.text, ast.Constant) for a in kept) else kept
    elif name == "min":
        kept = [a for a in arguments if a.free or np.isfinite(np.ravel(a.value)[0])] or arguments[:1]
    if len(kept) == 1 and len(arguments) > 1:
        return replace(kept[0], value=value, reasons=reasons)
    texts: list[ast.expr] = []
    for argument in kept:
        match argument.text:
            case None:
                raise Unreadable(f"{name} of what is no number")
            case ast.Call(func=ast.Name(id=inner), args=parts) if inner == name and name in ("min", "max"):
                texts += parts
            case text:
                texts.append(text)
    return Value(value=value, text=ast.Call(ast.Name(name), texts, []), free=any(a.free for a in kept), reasons=reasons)


@cache
def tree_of(function: Any) -> ast.FunctionDef:
    """The source of a function; Unsupported where it is not there."""
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        name = f"{function.__module__}.{function.__qualname__}"
        raise Unsupported(f"explain reads equations from the source of the program, and that of {name} is not there") from None
    tree = ast.parse(source).body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise Unreadable(source)
    return tree

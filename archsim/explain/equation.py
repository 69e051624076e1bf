"""Equations as text. The text that the reader sees is the one that is evaluated, so that the two cannot differ."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

FUNCTIONS: dict[str, Callable[..., float]] = {
    "ceil": math.ceil,
    "floor": math.floor,
    "sqrt": math.sqrt,
    "log2": math.log2,
    "hypot": math.hypot,
    "min": min,
    "max": max,
}
OPERATORS: dict[type[ast.operator], Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Equation:
    """`name` = `text`, in `unit`; `meaning` says what it stands for. Names in the text may have dots: `memory.bandwidth`."""

    name: str
    unit: str
    text: str
    meaning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """A condition that holds, and the quantities that it names, with value and unit."""

    text: str
    names: Mapping[str, tuple[float, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An equation with its numbers. `value` is the model's own where the model has one, `right` what the text gives.

    `names` are the quantities on the right-hand side, with value and unit; `because` the conditions under which it holds.
    """

    name: str
    unit: str
    value: float
    text: str
    right: float
    names: Mapping[str, tuple[float, str]]
    meaning: str
    because: tuple[Reason, ...] = ()


Quantities = Mapping[str, tuple[float, str]]  # name -> (value, unit)


def solve(equations: Iterable[Equation], known: Quantities, model: Mapping[str, float]) -> list[Step]:
    """The equations in order, each from what is known and what stands before it. `model` holds the model's own values."""
    values, steps = dict(known), []
    for equation in equations:
        used = {name: values[name] for name in names_in(equation.text)}
        right = evaluate(equation.text, {name: value for name, (value, _) in used.items()})
        value = model.get(equation.name, right)
        values[equation.name] = (value, equation.unit)
        steps.append(
            Step(name=equation.name, unit=equation.unit, value=value, text=equation.text, right=right, names=used,
                 meaning=equation.meaning)
        )  # fmt: skip
    return steps


def names_in(text: str | ast.expr) -> list[str]:
    """The quantities that a text or expression names, each once, in order.

    >>> names_in("m * n / (sm.count * m)")
    ['m', 'n', 'sm.count']
    """
    return list(dict.fromkeys(_names(_tree(text))))


def _names(node: ast.expr) -> list[str]:
    match node:
        case ast.BinOp():
            return _names(node.left) + _names(node.right)
        case ast.Compare():
            return _names(node.left) + _names(node.comparators[0])
        case ast.BoolOp():
            return [name for part in node.values for name in _names(part)]
        case ast.UnaryOp():
            return _names(node.operand)
        case ast.Call():
            return [name for argument in node.args for name in _names(argument)]
        case ast.Constant():
            return []
        case _:
            return [ast.unparse(node)]


def _tree(text: str | ast.expr) -> ast.expr:
    return ast.parse(text, mode="eval").body if isinstance(text, str) else text


def evaluate(text: str | ast.expr, values: Mapping[str, float]) -> float:
    """The value of a text or expression.

    >>> evaluate("ceil(m / tile.m) ** 2", {"m": 100.0, "tile.m": 64.0})
    4.0
    """
    return _value(_tree(text), values)


def _value(node: ast.expr, values: Mapping[str, float]) -> float:
    match node:
        case ast.BinOp():
            return OPERATORS[type(node.op)](_value(node.left, values), _value(node.right, values))
        case ast.UnaryOp(op=ast.USub()):
            return -_value(node.operand, values)
        case ast.Call(func=ast.Name()):
            return float(FUNCTIONS[ast.unparse(node.func)](*[_value(argument, values) for argument in node.args]))
        case ast.Constant():
            return float(ast.literal_eval(node))
        case _:
            return values[ast.unparse(node)]


def constant_unit(name: str) -> str:
    """The unit of a constant, which its name tells."""
    if name.endswith("_Bps"):
        return "B/s"
    if name.startswith(("energy.node.", "energy.core_node.", "energy.byte.")):
        return "J"
    if name.endswith("_s"):
        return "s"
    dispatched = name.startswith("dispatch.") and name != "dispatch.nested"
    return "clk" if dispatched or name.endswith("_clk") else "1"

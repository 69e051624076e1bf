"""Equations read from the functions that compute them.

A `Reader` follows a function of the cost layer statement by statement for one kernel on one device: it does what the function
does, and keeps beside each value the expression that gave it, over the names of spec keys, constants, columns and of the steps
before. What does not concern this kernel leaves no trace: of `np.where` the branch that holds stays, with the condition where the
device or a constant decides it. A local name, a property of a record and a call of another function are steps of their own.

It can follow assignments, returns, `if`, arithmetic, comparisons and `FUNCTIONS` of numpy; any other function is one number.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from functools import cached_property
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from archsim.base.units import COUNT
from archsim.calibration.constants import FULL, Calibration
from archsim.cost.traffic import on_columns
from archsim.device.device import PIPES, Cpu, Gpu, Tpu
from archsim.device.part import declared
from archsim.device.variant import first_of
from archsim.explain import docs
from archsim.explain.equation import Quantities, Reason, Step, constant_unit, evaluate, names_in
from archsim.explain.value import (
    Unreadable,
    Value,
    applied,
    comparison,
    decided,
    is_literal,
    joined,
    literal,
    numeric,
    operation,
    tree_of,
    unary,
)
from archsim.explain.value import plain as plain_value
from archsim.lower.columns import CpuRuntime, columns_of
from archsim.lower.kernel import Kernels
from archsim.stack.loop import ScalarLoop

FUNCTIONS: Mapping[Any, str] = {
    np.minimum: "min", np.maximum: "max", np.ceil: "ceil", np.floor: "floor", np.sqrt: "sqrt", np.log2: "log2", np.hypot: "hypot",
}  # fmt: skip
SAME = (np.asarray, np.array, np.atleast_2d, np.ravel, np.broadcast_to, np.min, np.max, float)  # of one value, that value
FILLED = {np.zeros_like: 0.0, np.ones_like: 1.0}
SPEC, CONSTANT, COLUMN, SETTING, RESULT, FIXED, COMPUTED = "spec", "constant", "column", "setting", "result", "fixed", "computed"
SETTINGS = ("clock", "threads", "limit")  # fields of records that the user or the device sets; the others are results
EVERY = slice(None)  # the columns of a function that looks at some of them only: here the one that there is


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A number that no equation gives.

    `kind`: a key of the spec, a constant of the calibration, a column of the kernel, a setting of the run, a result of equations
    that stand elsewhere, a fixed number of the model, or computed by a function that is more than an equation.
    """

    value: float
    unit: str
    kind: str
    meaning: str = ""


@dataclass(kw_only=True)
class Frame:
    """A call on the way: its function, its names, how its result is to be called and described, what was decided so far."""

    function: Any
    env: dict[str, Value]
    name: str
    doc: Any
    reasons: tuple[ast.expr, ...] = ()


@dataclass(kw_only=True)
class Reader:
    """Reads functions, and collects the steps. `model` gives the model's own value of a name, where it has one.

    `instead` has spec keys that a function replaces: the function with its arguments. `asked` has spec keys in whose place the
    run has a setting: its name and what it is. `reserved` are names of steps that no other number may take.
    """

    model: Callable[[str], float | None]
    instead: dict[str, tuple[Callable[..., Any], tuple[Value, ...]]] = field(default_factory=dict)
    asked: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    reserved: Container[str] = ()
    steps: dict[str, Step] = field(default_factory=dict)
    leaves: dict[str, Leaf] = field(default_factory=dict)
    _done: dict[Any, Value] = field(default_factory=dict)

    def read(self, function: Any, *arguments: Value, name: str = "", doc: Any = None) -> Value:
        """What a function gives for these arguments; a step called `name`, or like the function, where that is an equation.

        `doc` is what has the unit and meaning of the result, unless the function itself.
        """
        inner = inspect.unwrap(function)
        key = (inner, *[argument.key for argument in arguments])
        if key not in self._done:
            self._done[key] = self._called(inner, arguments, name or inner.__name__, doc or inner)
        return self._done[key]

    def step(self, value: Value, name: str, unit: str, meaning: str) -> Value:
        """A step of this name, whatever the value is."""
        assert value.text is not None
        text = ast.unparse(ast.fix_missing_locations(value.text))
        while name in self.leaves or (name in self.steps and self.steps[name].text != text):
            name += "_"
        if name not in self.steps:
            names = {each: self._number(each) for each in names_in(value.text)}
            match value.text:
                case ast.Call(func=ast.Name(id="min"), args=limits) if len(limits) > 2:
                    meaning += f", here {min(names, key=lambda each: names[each][0])}"
            right, model = evaluate(value.text, {each: number for each, (number, _) in names.items()}), self.model(name)
            self.steps[name] = Step(
                name=name, unit=unit, value=right if model is None else model, text=text, right=right, names=names,
                meaning=meaning, because=tuple({(reason := self._reason(one)).text: reason for one in value.reasons}.values()),
            )  # fmt: skip
        return replace(value, text=ast.Name(name), reasons=())

    def named(self, value: Value, name: str) -> str:
        """The name of a value in seconds; an expression becomes a step of that name."""
        made = value if value.bare else self.step(value, name, "s", "")
        assert made.text is not None
        return ast.unparse(made.text)

    def leaf(self, name: str, value: Any, unit: str, kind: str, meaning: str = "", free: bool = True) -> Value:
        """A number that no equation gives."""
        number = first_of(value)
        while name in self.reserved or name in self.steps or (name in self.leaves and self.leaves[name].value != number):
            name += "_"
        self.leaves[name] = Leaf(value=number, unit=unit, kind=kind, meaning=meaning)
        return Value(value=value, text=ast.Name(name), free=free, absent=number == 0.0 and not free)

    @property
    def quantities(self) -> Quantities:
        """All names with value and unit."""
        return {name: self._number(name) for name in (*self.leaves, *self.steps)}

    def _reason(self, text: ast.expr) -> Reason:
        return Reason(text=ast.unparse(text), names={name: self._number(name) for name in names_in(text)})

    def _number(self, name: str) -> tuple[float, str]:
        """Value and unit of a name; of a step as the model has it."""
        found: Step | Leaf = self.steps[name] if name in self.steps else self.leaves[name]
        return found.value, found.unit

    # ------------------------------------------------------------------------------------------ functions

    def _called(self, function: Any, arguments: tuple[Value, ...], name: str, doc: Any) -> Value:
        unit, meaning = docs.of(doc)
        try:
            tree = tree_of(function)
            env = self._arguments(tree, function, arguments)
            found = self._run(tree.body, Frame(function=function, env=env, name=name, doc=doc))
            if found and isinstance(found.text, ast.Constant) and not first_of(found.value).is_integer():
                raise Unreadable("a number that stands for no expression")
        except Unreadable:
            result = function(*[argument.value for argument in arguments])
            return self.leaf(name, result, unit, COMPUTED, meaning) if numeric(result) else Value(value=result)
        if found is None or (found.bare and not (found.reasons and isinstance(found.text, ast.Name))):
            return found or Value(value=None)
        return self.step(found, name, unit, meaning)

    def _arguments(self, tree: ast.FunctionDef, function: Any, given: tuple[Value, ...]) -> dict[str, Value]:
        """The parameters with their values; an argument that is an expression is a step of the parameter's name."""
        names, own = [argument.arg for argument in tree.args.args], docs.symbols(function)
        missing = len(names) - len(given)
        defaults = [plain_value(value) for value in (function.__defaults__ or ())[-missing:]] if missing else []
        values = zip(names, (*given, *defaults), strict=True)
        return {name: value if value.bare else self.step(value, name, *own.get(name, (COUNT, ""))) for name, value in values}

    def _run(self, body: list[ast.stmt], frame: Frame) -> Value | None:
        """The statements in order, up to a return."""
        for statement in body:
            found: Value | None = None
            match statement:
                case ast.Return(value=None):
                    found = Value(value=None)
                case ast.Return(value=ast.expr() as value):
                    found = self._value(value, frame, frame.name, frame.doc)
                    found = replace(found, reasons=(*found.reasons, *frame.reasons))
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    frame.env[name] = self._named(self._value(value, frame, name), name, frame)
                case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value):
                    self._unpack([ast.unparse(target) for target in targets], value, frame)
                case ast.If():
                    test = self._value(statement.test, frame)
                    frame.reasons += decided(test)
                    found = self._run(statement.body if test.true else statement.orelse, frame)
                case ast.With():
                    found = self._run(statement.body, frame)
                case ast.Expr(value=ast.Constant()) | ast.Assert() | ast.Pass():
                    pass
                case _:
                    raise Unreadable(ast.unparse(statement))
            if found is not None:
                return found
        return None

    def _unpack(self, names: list[str], node: ast.expr, frame: Frame) -> None:
        """Several names at once, from several expressions or from what gives several values."""
        if isinstance(node, ast.Tuple):
            found = [self._value(part, frame, name) for name, part in zip(names, node.elts, strict=True)]
        else:
            given = self._value(node, frame).value
            if not isinstance(given, tuple):
                raise Unreadable(ast.unparse(node))
            found = [part if isinstance(part, Value) else plain_value(part) for part in given]
        frame.env |= {name: self._named(value, name, frame) for name, value in zip(names, found, strict=True)}

    def _named(self, value: Value, name: str, frame: Frame) -> Value:
        """A value as the step of a local name, where it is an expression; a bare number with a unit, as that."""
        unit, meaning = docs.symbols(frame.function).get(name, (COUNT, ""))
        if isinstance(value.text, ast.Constant) and unit != COUNT and np.any(value.value):
            return self.leaf(name, value.value, unit, COMPUTED, meaning)
        return value if value.bare else self.step(value, name, unit, meaning)

    # ------------------------------------------------------------------------------------------ expressions

    def _value(self, node: ast.expr, frame: Frame, name: str = "", doc: Any = None) -> Value:
        """What an expression is worth; if it is a call, its result bears `name` and the meaning that `doc` has."""
        match node:
            case ast.Constant(value=value):
                return plain_value(value)
            case ast.Name():
                return self._of_name(node.id, frame)
            case ast.Attribute():
                return self.quantity(self._value(node.value, frame), node.attr)
            case ast.Subscript():
                return self._subscript(node, frame)
            case ast.BinOp():
                return operation(node.op, self._value(node.left, frame), self._value(node.right, frame))
            case ast.UnaryOp():
                return unary(node.op, self._value(node.operand, frame))
            case ast.Compare(ops=[op], comparators=[right]):
                return comparison(op, self._value(node.left, frame), self._value(right, frame))
            case ast.BoolOp():
                return self._boolean(node, frame)
            case ast.IfExp():
                return self._choice(self._value(node.test, frame), node.body, node.orelse, frame, name, doc)
            case ast.Tuple() | ast.List():
                return Value(value=tuple([self._value(part, frame) for part in node.elts]))
            case ast.Call():
                return self._call(node, frame, name, doc)
            case ast.JoinedStr():
                words = [part.value if isinstance(part, ast.FormattedValue) else part for part in node.values]
                return Value(value="".join([str(self._value(word, frame).value) for word in words]))
            case _:
                raise Unreadable(ast.unparse(node))

    def _of_name(self, name: str, frame: Frame) -> Value:
        if name in frame.env:
            return frame.env[name]
        scope = frame.function.__globals__
        if name in scope:
            found = scope[name]
            if not numeric(found):
                return Value(value=found)
            return self.leaf(name, found, COUNT, FIXED, docs.comment(frame.function.__module__, name), free=False)
        builtins = scope["__builtins__"]
        return Value(value=builtins[name] if isinstance(builtins, dict) else getattr(builtins, name))

    def quantity(self, base: Value, name: str) -> Value:
        """A column of the kernel, a key of the spec, a quantity of a record, or what else an object has."""
        owner = base.value
        if isinstance(owner, Kernels):
            return self._column(owner, name)
        if isinstance(owner, Gpu | Cpu | Tpu) and is_dataclass(getattr(owner, name, None)):
            return Value(value=getattr(owner, name), path=f"{base.path}.{name}" if base.path else name)
        if base.path:
            return self._spec(owner, base.path, name)
        static = inspect.getattr_static(type(owner), name, None)
        if isinstance(static, cached_property | property):
            return self.read(static.func if isinstance(static, cached_property) else static.fget, base, name=name)
        inner = getattr(owner, name)
        if isinstance(owner, Gpu | Cpu | Tpu):
            return Value(value=inner)
        if is_dataclass(owner) and numeric(inner):
            cls: Any = type(owner)
            unit, meaning = docs.symbols(cls).get(name, (COUNT, ""))
            kind = COLUMN if isinstance(owner, CpuRuntime) else SETTING if name in SETTINGS else RESULT
            return replace(self.leaf(name, inner, unit, kind, meaning, kind != COLUMN), absent=not np.any(inner))
        return Value(value=inner, free=base.free, reasons=base.reasons)

    def _column(self, kernels: Kernels, name: str) -> Value:
        found, columns = getattr(kernels, name), columns_of(type(kernels))
        if name not in columns:
            return Value(value=found)
        return self.leaf(name, found, columns[name].unit, COLUMN, columns[name].meaning, free=False)

    def _spec(self, part: Any, path: str, name: str) -> Value:
        key, found = f"{path}.{name}", getattr(part, name)
        if key in self.instead:
            function, arguments = self.instead.pop(key)  # the function itself reads that key
            value = self.read(function, *arguments)
            self.instead[key] = function, arguments
            return value
        if not numeric(found):
            return Value(value=found)
        cls: Any = type(part)
        meaning, _ = declared(cls)[name]
        if key in self.asked:
            setting, what = self.asked[key]
            return self.leaf(setting, found, meaning.unit, SETTING, what)
        return self.leaf(key, found, meaning.unit, SPEC, meaning.doc)

    def _constant(self, constants: Calibration, name: str) -> Value:
        if name == FULL:
            return literal(1.0)
        return self.leaf(name, constants[name], constant_unit(name), CONSTANT)

    def _subscript(self, node: ast.Subscript, frame: Frame) -> Value:
        match node.value:
            case ast.Call(func=ast.Attribute(attr="gather", value=constants), args=[names]):
                listed, position = self._value(names, frame).value, self._value(node.slice, frame).value
                return self._constant(self._value(constants, frame).value, listed[int(np.ravel(position)[0])])
        base, index = self._value(node.value, frame), self._value(node.slice, frame)
        if isinstance(base.value, Calibration):
            return self._constant(base.value, index.value)
        if isinstance(base.value, Mapping):  # what a scalar loop does
            unit, meaning = docs.symbols(ScalarLoop)[index.value]
            return self.leaf(index.value, base.value[index.value], unit, COLUMN, meaning, free=False)
        if isinstance(index.value, slice):
            return base
        found = base.value[index.value]
        return found if isinstance(found, Value) else plain_value(found)

    def _boolean(self, node: ast.BoolOp, frame: Frame) -> Value:
        """`and` and `or`, of which the rest is not looked at once the answer is known."""
        every = isinstance(node.op, ast.And)
        found = self._value(node.values[0], frame)
        for part in node.values[1:]:
            if found.true != every:
                break
            found = joined(every, found, self._value(part, frame))
        return found

    def _choice(self, test: Value, yes: ast.expr, no: ast.expr, frame: Frame, name: str, doc: Any) -> Value:
        """The branch that holds, with the condition where it is not the kernel alone that decides."""
        found = self._value(yes if test.true else no, frame, name, doc)
        return replace(found, absent=found.absent or is_literal(found.text, 0.0), reasons=(*found.reasons, *decided(test)))

    def _call(self, node: ast.Call, frame: Frame, name: str, doc: Any) -> Value:
        called = self._value(node.func, frame).value
        if called is np.where:
            return self._choice(self._value(node.args[0], frame), node.args[1], node.args[2], frame, name, doc)
        if called in SAME:
            return self._value(node.args[0], frame, name, doc)
        if isinstance(called, type) and is_dataclass(called) and not node.args:
            return Value(value={str(word.arg): self._value(word.value, frame) for word in node.keywords})
        if node.keywords:
            raise Unreadable(ast.unparse(node))
        arguments = [self._value(argument, frame) for argument in node.args]
        if called is on_columns:
            return self._on_columns(*arguments)
        if called in FILLED:
            return literal(FILLED[called], absent=FILLED[called] == 0.0)
        if called in FUNCTIONS:
            return applied(FUNCTIONS[called], called, arguments)
        if isinstance(called, MethodType) and called.__func__ in (Gpu.pipe, Cpu.pipe):
            of: Any = called.__self__
            return (self._rate(of, arguments[0].value) if isinstance(of, Gpu)
                    else self.read(called.__func__, Value(value=of), *arguments, name=name))  # fmt: skip
        ours = str(getattr(called, "__module__", "")).partition(".")[0] not in sys.stdlib_module_names
        if ours and (isinstance(called, FunctionType) or hasattr(called, "__wrapped__")):
            return self.read(called, *arguments, name=name, doc=doc)
        return plain_value(called(*[argument.value for argument in arguments]))

    def _on_columns(self, mask: Value, equation: Value, kernels: Value, *rest: Value) -> Value:
        """What is worked out for some kernels only."""
        found = self.read(equation.value, kernels, Value(value=EVERY), *rest) if mask.true else literal(0.0, absent=True)
        return replace(found, reasons=(*found.reasons, *decided(mask)))

    def _rate(self, device: Gpu, precision: str) -> Value:
        """The pipe that multiplies operands of a precision: the fastest that there is."""
        value = device.pipe(precision)
        key = next(name for name in PIPES[precision] if getattr(device.rate, name) == value)
        return self._spec(device.rate, "rate", key)

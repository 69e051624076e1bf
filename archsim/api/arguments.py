"""The arguments of `archsim.base.arguments` as words of Python functions: numbers with or without units, names, lists, tables."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

from archsim.base.arguments import Argument, called
from archsim.base.errors import ArgumentError
from archsim.base.values import name, names, read, table, whole

Name = str | os.PathLike[str]
Names = Name | Iterable[Name]
F = TypeVar("F", bound=Callable[..., Any])


def takes(*rows: Argument) -> Callable[[F], F]:
    """A function whose words are these arguments: they are read before it runs, and stand in its signature."""

    def add(function: F) -> F:
        signature = inspect.signature(function)
        own = {name: one for name, one in signature.parameters.items() if one.kind is not one.VAR_KEYWORD}
        known = [*rows, *(Argument(name=name, kind="name") for name in own if name not in {row.called for row in rows})]
        read_too = [row for row in rows if row.called in own]

        @wraps(function)
        def asked(*given: Any, **words: Any) -> Any:
            bound = signature.bind(*given, **{name: value for name, value in words.items() if name in own})
            others = {name: value for name, value in words.items() if name not in own}
            for row in read_too:
                value = bound.arguments.get(row.called)
                if value is not None or own[row.called].default is inspect.Parameter.empty:
                    bound.arguments[row.called] = value_of(row, value)
            return function(*bound.args, **bound.kwargs, **arguments_of(function.__name__, others, known))

        more = [inspect.Parameter(row.called, inspect.Parameter.KEYWORD_ONLY, default=row.default, annotation=row.annotation)
                for row in rows if row.called not in own]  # fmt: skip
        asked.__signature__ = signature.replace(parameters=[*own.values(), *more])  # type: ignore[attr-defined]
        return cast(F, asked)

    return add


def arguments_of(function: str, words: Mapping[str, Any], rows: Sequence[Argument]) -> dict[str, Any]:
    """The arguments of a model from words of a user; None gives nothing. Raises ArgumentError that names the word."""
    found: dict[str, Any] = {}
    for word, value in words.items():
        try:
            row = called(word, rows)
        except ValueError as error:
            raise ArgumentError(f"{function}() has {error}") from None
        if value is not None:
            found[row.name] = value_of(row, value)
    return found


def value_of(row: Argument, value: object) -> Any:
    """The value of an argument, which may be an object of this package. Raises ArgumentError that names it."""
    if row.kind == "constants":
        return constants_of(value)
    return read(row.called, row.read, held(value) if row.name == "net" else value)


def positive(word: str, value: object) -> int:
    """A whole number from 1. Raises ArgumentError that names it."""
    number = read(word, whole, value)
    if number < 1:
        raise ArgumentError(f"{word}: {value!r} is less than 1")
    return number


def held(value: object) -> object:
    """The name of a trace; any other value as it is."""
    from archsim.trace.trace import Trace

    if not isinstance(value, Trace):
        return value
    from archsim.trace.file import hold

    return hold(value)


def constants_of(value: object) -> Any:
    """Constants, or those that a file holds; None of None."""
    from archsim.calibration.constants import Calibration, load

    return value if isinstance(value, Calibration | None) else load(read("calibration", name, value))


def texts(word: str, value: object) -> list[str]:
    """Several names: a list of them, or one text with commas; networks may be traces."""
    if word == "net":
        several = isinstance(value, Iterable) and not isinstance(value, str | os.PathLike | Mapping)
        value = [held(one) for one in value] if several else held(value)  # type: ignore[attr-defined]
    return read(word, names, value)


def key_texts(word: str, given: object, example: str) -> list[str]:
    """What belongs to keys, as KEY=VALUES: a table with values or lists of them, or such texts."""
    listed = read(word, table, given, example) if given else {}
    return [f"{key}={','.join(map(str, value)) if _many(value) else value}" for key, value in listed.items()]


def _many(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str)

"""The shape of a data file's words: forms declare keys, types and limits.

What has the shape of its form is read here, by the declarations alone. Only what has not is shown to pydantic, which says in
words what it should have been; importing it takes longer than all else that a cold estimate reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from math import isfinite
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from archsim.errors import nearest


class Limits:
    """What a value must be within, beside its type. The names are those of `pydantic.Field`; a `pattern` is of the whole text."""

    def __init__(
        self, *, gt: float | None = None, ge: float | None = None, lt: float | None = None, le: float | None = None,
        min_length: int | None = None, max_length: int | None = None, pattern: str | None = None,
    ) -> None:  # fmt: skip
        given = {"gt": gt, "ge": ge, "lt": lt, "le": le, "min_length": min_length, "max_length": max_length, "pattern": pattern}
        self.given: Mapping[str, Any] = {name: limit for name, limit in given.items() if limit is not None}


WITHIN: dict[str, Callable[[Any, Any], bool]] = {
    "gt": lambda value, limit: value > limit,
    "ge": lambda value, limit: value >= limit,
    "lt": lambda value, limit: value < limit,
    "le": lambda value, limit: value <= limit,
    "min_length": lambda value, limit: len(value) >= limit,
    "max_length": lambda value, limit: len(value) <= limit,
    "pattern": lambda value, limit: re.fullmatch(limit, value) is not None,
}
Word = Annotated[str, Limits(min_length=1, max_length=2000)]


Reader = Callable[[Any], Any]


class Form:
    """Base of all forms: annotations are keys, class attributes their defaults. No unknown keys, no coercion, no NaN or infinity.

    A key that Python cannot name so is written with `_` at its end: `schema_` is `schema` in the file.
    """

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be changed")

    @classmethod
    @cache
    def _hints(cls) -> dict[str, Any]:
        """The annotations, those of the bases first."""
        return get_type_hints(cls, include_extras=True)

    @classmethod
    @cache
    def _keys(cls) -> dict[str, tuple[str, Reader]]:
        """Key in the file -> attribute and what reads it."""
        return {name.rstrip("_"): (name, _reader(hint)) for name, hint in cls._hints().items()}

    @classmethod
    @cache
    def _model(cls) -> Any:
        """The form as pydantic knows it."""
        from pydantic import ConfigDict, Field, create_model

        strict = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
        fields = {name: (_declared(hint), Field(getattr(cls, name, ...), alias=name.rstrip("_")))
                  for name, hint in cls._hints().items()}  # fmt: skip
        return create_model(cls.__name__, __config__=strict, **fields)  # type: ignore[call-overload]


F = TypeVar("F", bound=Form)


class Misshapen(ValueError):
    """A value that is not what its form declares."""


def values_of(form: Form) -> dict[str, Any]:
    """Every attribute of a form, given or by default."""
    return {name: getattr(form, name) for name in form._hints()}


def with_values(form: F, **values: Any) -> F:
    """The same form with other values, which nobody checks."""
    return _filled(type(form), {**vars(form), **values})


def problems_of(form: type[F], words: dict[str, Any], prefix: str) -> tuple[F | None, list[str]]:
    """The checked form, or None and one sentence for each problem, each beginning with `prefix` and the key."""
    try:
        return read(form, words), []
    except Misshapen as error:
        return None, _sentences(form, words, prefix) or [f"{prefix}{error}"]


def read(form: type[F], words: Any) -> F:
    """The form that `words` fill. Raises Misshapen at the first key that they do not."""
    keys = form._keys()
    if type(words) is not dict:
        raise Misshapen("is not a table")
    values = {}
    for key, value in words.items():
        if key not in keys:
            raise Misshapen(f"{key}: unknown key")
        name, reader = keys[key]
        try:
            values[name] = reader(value)
        except Misshapen as error:
            raise Misshapen(f"{key}: {error}") from None
    for key, (name, _) in keys.items():
        if name not in values and not hasattr(form, name):
            raise Misshapen(f"{key}: is missing")
    return _filled(form, values)


def _filled(form: type[F], values: dict[str, Any]) -> F:
    made = object.__new__(form)
    vars(made).update(values)
    return made


def _reader(hint: Any) -> Reader:
    """What takes a value of the type `hint` as it is, whole numbers as floats where these are meant, and no other."""
    if isinstance(hint, type) and issubclass(hint, Form):
        return lambda value: read(hint, value)
    if hint in PLAIN:
        return PLAIN[hint]
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _limited(_reader(inner[0]), inner[1])
    if origin is Literal:
        return lambda value: _one_of(value, inner)
    if origin in (Union, UnionType):
        return _first_of([_reader(each) for each in inner])
    if origin is list:
        one = _reader(inner[0])
        return lambda value: [one(each) for each in _is(list, value)]
    if origin is dict:
        key, one = map(_reader, inner)
        return lambda value: {key(name): one(each) for name, each in _is(dict, value).items()}
    raise TypeError(f"forms have no values of type {hint}")


def _is(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise Misshapen(f"is no {kind.__name__}")
    return value


def _real(value: Any) -> float:
    if type(value) not in (float, int) or not -1e308 <= value <= 1e308 or not isfinite(value):
        raise Misshapen("is no finite number")
    return float(value)


PLAIN: dict[Any, Reader] = {
    str: lambda value: _is(str, value),
    int: lambda value: _is(int, value),
    bool: lambda value: _is(bool, value),
    NoneType: lambda value: _is(NoneType, value),
    float: _real,
}


def _limited(reader: Reader, limits: Limits) -> Reader:
    checks = [(WITHIN[name], limit) for name, limit in limits.given.items()]

    def within(value: Any) -> Any:
        found = reader(value)
        if not all(holds(found, limit) for holds, limit in checks):
            raise Misshapen("is outside its limits")
        return found

    return within


def _one_of(value: Any, known: tuple[Any, ...]) -> Any:
    if not any(type(value) is type(each) and value == each for each in known):
        raise Misshapen("is none of those that are known")
    return value


def _first_of(readers: list[Reader]) -> Reader:
    def first(value: Any) -> Any:
        for reader in readers:
            try:
                return reader(value)
            except Misshapen:
                pass
        raise Misshapen("is of none of its types")

    return first


def _sentences(form: type[Form], words: dict[str, Any], prefix: str) -> list[str]:
    """What pydantic says about words that do not fill their form."""
    from pydantic import ValidationError

    try:
        form._model().model_validate(words)
    except ValidationError as error:
        return [_sentence(form, item, prefix) for item in _first_per_key(error.errors(include_url=False))]
    return []


def _declared(hint: Any) -> Any:
    """A type as pydantic declares it."""
    if isinstance(hint, type) and issubclass(hint, Form):
        return hint._model()
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        from pydantic import Field

        return Annotated[_declared(inner[0]), Field(**inner[1].given)]
    if origin in (Union, UnionType):
        return Union[tuple(map(_declared, inner))]  # noqa: UP007, the members are known only here
    return origin[tuple(map(_declared, inner))] if origin in (list, dict) else hint


def _first_per_key(errors: list[Any]) -> list[Any]:
    """One error for each key: a union (`str | int | float`) would otherwise report every member.

    That a number is not finite says more than that it is no text, so it goes first.
    """
    firsts: dict[str, Any] = {}
    for item in sorted(errors, key=lambda item: item["type"] != "finite_number"):
        firsts.setdefault(str(item["loc"][0]), item)
    return list(firsts.values())


def _sentence(form: type[Form], item: Any, prefix: str) -> str:
    key = str(item["loc"][0])
    if item["type"] == "extra_forbidden":
        known = list(form._keys())
        return f"{prefix}{key}: unknown key; nearest: {', '.join(nearest(key, known) or known)}"
    if item["type"] == "missing":
        return f"{prefix}{key}: is missing"
    if item["type"] == "finite_number":
        return f"{prefix}{key}: must be a finite number"
    return f"{prefix}{key}: {item['msg'][:1].lower()}{item['msg'][1:]}, is {item['input']!r}"

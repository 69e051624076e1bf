"""Reading a record from the tables of a file: types, ranges and names as its keys declare them, every problem at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, is_dataclass
from math import isfinite
from typing import Any, TypeVar, get_args, get_origin

from archsim.base.errors import nearest
from archsim.base.units import parse
from archsim.stack.key import Key, declared

R = TypeVar("R")
Path = tuple[str, ...]
Problems = list[str]

LONGEST = 4000  # characters of a text


def read(record: type[R], table: Mapping[str, Any], **beside: Any) -> tuple[R | None, Problems]:
    """The record, or None and one sentence for each problem, which begins with the key's full path.

    `beside`: the fields of the record that are no keys of a file.
    """
    problems: Problems = []
    found = _record(record, table, "", problems, **beside)
    return (None if problems else found), problems


def leaves(record: type, table: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The values that a table sets, each with its path: what one component sets, another one can set anew.

    A record within the record is merged key by key and a table name by name, so they are taken apart; a row of a table (a menu,
    the passes of an op in a phase) and a table declared `whole` are one value. A name `a, b` in a table stands for both.
    """
    keys = declared(record)
    for name, value in table.items():
        kind, about, _ = keys.get(name, (None, None, None))
        if is_dataclass(kind) and isinstance(kind, type) and isinstance(value, dict):
            yield from leaves(kind, value, (*path, name))
        elif about is not None and about.whole:
            yield (*path, name), _spelled_out(kind, value)
        elif about is not None:
            yield from _rows(kind, value, (*path, name))
        else:
            yield (*path, name), value


def _rows(kind: Any, value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if get_origin(kind) in (None, tuple) or not isinstance(value, dict):
        yield path, value
        return
    for names, row in value.items():
        for name in split(names):
            yield from _rows(get_args(kind)[1], row, (*path, name))


def _spelled_out(kind: Any, value: Any) -> Any:
    """A table with a row for each of the names that share one."""
    if get_origin(kind) in (None, tuple) or not isinstance(value, dict):
        return value
    return {name: _spelled_out(get_args(kind)[1], row) for names, row in value.items() for name in split(names)}


def split(names: str) -> list[str]:
    """The names that share a row of a table or a source.

    >>> split("relu, relu6")
    ['relu', 'relu6']
    """
    return [name.strip() for name in names.split(",")]


def _record(record: type[R], table: Any, at: str, problems: Problems, **beside: Any) -> R | None:
    if not isinstance(table, dict):
        problems.append(f"{at}: must be a table, is {table!r}")
        return None
    keys: Mapping[str, Any] = declared(record)  # type: ignore[arg-type]
    prefix, before = f"{at}." if at else "", len(problems)
    for name in table.keys() - keys.keys():
        problems.append(f"{prefix}{name}: unknown key; nearest: {', '.join(nearest(name, keys) or keys)}")
    problems += [f"{prefix}{k}: is missing" for k, (_, _, default) in keys.items() if default is MISSING and k not in table]
    given = {
        name: _value(kind, about, table[name], f"{prefix}{name}", problems)
        for name, (kind, about, _) in keys.items()
        if name in table
    }
    return record(**given, **beside) if len(problems) == before else None


def _value(kind: Any, about: Key, value: Any, at: str, problems: Problems, level: int = 0) -> Any:
    if is_dataclass(kind) and isinstance(kind, type):
        return _record(kind, value, at, problems)
    if get_origin(kind) is tuple:
        return _list(kind, about, value, at, problems)
    if get_origin(kind) is None:
        problem = _unfit(kind, about, value)
        if problem is not None:
            problems.append(f"{at}: {problem}")
            return None
        return parse(value, about.unit) if about.unit else kind(value)
    if not isinstance(value, dict):
        problems.append(f"{at}: must be a table, is {value!r}")
        return None
    names = about.names[level] if level < len(about.names) else ()
    for name in value:
        if names and name not in names:
            problems.append(f"{at}.{name}: unknown name; known: {', '.join(names)}")
    return {n: _value(get_args(kind)[1], about, v, f"{at}.{n}", problems, level + 1) for n, v in value.items()}


def _list(kind: Any, about: Key, value: Any, at: str, problems: Problems) -> tuple[Any, ...]:
    parts = get_args(kind)
    if not isinstance(value, list):
        problems.append(f"{at}: must be a list, is {value!r}")
        return ()
    if about.some and not value:
        problems.append(f"{at}: must not be empty")
    if parts[-1] is not Ellipsis and len(value) != len(parts):
        problems.append(f"{at}: must have {len(parts)} values, is {value!r}")
    return tuple([_value(parts[0], about, item, f"{at}[{i}]", problems) for i, item in enumerate(value)])


def _unfit(kind: type, about: Key, value: Any) -> str | None:
    """Why a value of a file is none for this key, or None."""
    if about.unit:
        return _no_size(about, value)
    fits = isinstance(value, (int, float) if kind is float else kind)
    if not fits or (isinstance(value, bool) and kind is not bool):
        wanted = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}[kind]
        return f"must be {wanted}, is {value!r}"
    if about.choices and value not in about.choices:
        return f"must be {' or '.join(about.choices)}, is {value!r}"
    if isinstance(value, str):
        return f"is longer than {LONGEST} characters" if len(value) > LONGEST else None
    if not isfinite(value):
        return "must be a finite number"
    if value < about.low or (about.above and value == about.low):
        return f"must be {'more than' if about.above else 'at least'} {about.low:g}, is {value:g}"
    return None


def _no_size(about: Key, value: Any) -> str | None:
    if not isinstance(value, str):
        return f"must be text with its unit, is {value!r}"
    try:
        size = parse(value, about.unit)
    except ValueError as error:
        return str(error)
    return f"{value} is less than nothing" if size < 0 else None

"""How a record of a stack declares its keys, and how it is read from the tables of a file: types, ranges and names as declared.

The schema of the files, the table of keys in `traces/stacks/README.md`, `archsim show stack` and its JSON are all read off these
declarations, so a key is added by one line in `archsim/stack/stack.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from functools import cache
from math import inf, isfinite
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from archsim.base.errors import near_words
from archsim.base.units import parse


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What a key means and which values it takes.

    `unit`: "B" for a size, which a file writes as text with its unit; empty for counts and words. `low`: the least number.
    `choices`: the words that it takes, () for any. `names`: for a table, the names it may have at each level, () for any.
    `some`: a list must not be empty. `whole`: a table that is not merged with that of a component below but replaces it.
    """

    doc: str
    unit: str = ""
    low: float = -inf
    choices: tuple[str, ...] = ()
    names: tuple[tuple[str, ...], ...] = ()
    some: bool = False
    whole: bool = False


def key(doc: str, *, default: Any = MISSING, **about: Any) -> Any:
    """Declare a field that is a key of the files; one without `default` is required. `about`: the fields of `Key`."""
    meaning = {"key": Key(doc=doc, **about)}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=meaning)
    if is_dataclass(default):
        return field(default_factory=type(default), metadata=meaning)
    return field(default=default, metadata=meaning)


@cache
def declared(record: type) -> dict[str, tuple[Any, Key, Any]]:
    """The keys of a record: name -> (type, meaning, default or MISSING), in the order of their declaration."""
    as_text = any(isinstance(f.type, str) for f in fields(record))  # annotations of a module that does not evaluate them
    types = get_type_hints(record) if as_text else {f.name: f.type for f in fields(record)}
    return {f.name: (types[f.name], f.metadata["key"], _default(f)) for f in fields(record) if "key" in f.metadata}


def _default(declaration: Field[Any]) -> Any:
    factory = declaration.default_factory
    return declaration.default if factory is MISSING else factory()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLine:
    """One line of the table of keys: where the key stands, the values it takes, its default as a file writes it, its meaning."""

    path: str
    takes: str
    default: str
    doc: str


def lines(record: type, path: str = "") -> Iterator[KeyLine]:
    """Every key of a record and of the records in it; NAME stands for a name that the file chooses."""
    for name, (kind, about, default) in declared(record).items():
        inner, levels = _innermost(kind)
        is_record = isinstance(inner, type) and is_dataclass(inner)
        at = ".".join((path + name, *(_level(about, level) for level in range(levels))))
        if is_record and not levels and get_origin(kind) is not tuple:
            yield from lines(inner, f"{at}.")
            continue
        takes = "table" if is_record else values(inner, about)
        plural = " (list)" if get_origin(kind) is tuple else ""
        yield KeyLine(path=at, takes=takes + plural, default=written(default, about), doc=about.doc)
        if is_record:
            yield from lines(inner, f"{at}.")


def optional(record: type, path: str = "") -> Iterator[str]:
    """The keys of a record, and of the records in it, that have a default, without the names of a table's entries.

    >>> from archsim.stack.menu import Menu
    >>> [path for path in optional(Menu) if path.startswith("least")]
    ['least', 'least_results']
    """
    for name, (kind, _, default) in declared(record).items():
        inner, levels = _innermost(kind)
        if is_record := isinstance(inner, type) and is_dataclass(inner):
            yield from optional(inner, f"{path}{name}.")
        if default is not MISSING and (levels or get_origin(kind) is tuple or not is_record):
            yield f"{path}{name}"


def defaulted(value: Any, path: str) -> Any:
    """A record, or a table of them, with the default of one key, `conv.stem`; itself where that is what it has."""
    if isinstance(value, Mapping):
        changed = {name: defaulted(one, path) for name, one in value.items()}
        return changed if any(changed[name] is not one for name, one in value.items()) else value
    kind: type = type(value)
    name, _, rest = path.partition(".")
    own = getattr(value, name)
    other = defaulted(own, rest) if rest else declared(kind)[name][2]
    return value if other is own or other == own else replace(value, **{name: other})


def markdown(record: type) -> str:
    """The table of the keys in `traces/stacks/README.md`: where each stands, the values it takes, its default, its meaning."""
    rows = [f"| `{line.path}` | {line.takes} | {line.default} | {line.doc} |" for line in lines(record)]
    return "\n".join(["| key | takes | default | meaning |", "| --- | --- | --- | --- |", *rows]) + "\n"


def values(kind: Any, about: Key) -> str:
    """The values that a key takes, in words: its choices, or its type with unit and range.

    >>> values(float, Key(doc="rows", low=0)), values(str, Key(doc="where", choices=("device", "host")))
    ('number >= 0', 'device, host')
    """
    if about.choices:
        return ", ".join(about.choices)
    if get_origin(kind) is tuple:
        kind = get_args(kind)[0]
    if about.unit:
        return f"text with its unit, {about.unit}"
    word = {bool: "true, false", int: "whole number", float: "number", str: "text"}[kind]
    return word if about.low == -inf else f"{word} >= {about.low:g}"


def written(value: Any, about: Key) -> str:
    """A value as people read it: `none` for what is unlimited or empty, a size with its unit."""
    if value is MISSING:
        return "required"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return "none" if value == inf else f"{value:g} {about.unit}".rstrip()
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value) if value and not isinstance(value, Mapping) else "none"


def _innermost(kind: Any) -> tuple[Any, int]:
    """The type of what a key holds in the end, and through how many tables of names."""
    levels = 0
    while get_origin(kind) is not None:
        levels += get_origin(kind) is not tuple
        kind = get_args(kind)[0 if get_origin(kind) is tuple else 1]
    return kind, levels


def _level(about: Key, level: int) -> str:
    names = about.names[level] if level < len(about.names) else ()
    return f"({' or '.join(names)})" if names else "NAME"


# ------------------------------------------------------------------------------------------------------ reading a table

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
        problems.append(f"{prefix}{name}: unknown key; nearest: {near_words(name, keys)}")
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
    if value < about.low:
        return f"must be at least {about.low:g}, is {value:g}"
    return None


def _no_size(about: Key, value: Any) -> str | None:
    if not isinstance(value, str):
        return f"must be text with its unit, is {value!r}"
    try:
        size = parse(value, about.unit)
    except ValueError as error:
        return str(error)
    return f"{value} is less than nothing" if size < 0 else None

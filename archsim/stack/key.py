"""How a record of a stack declares its keys: each field carries what it means, its unit, its range and its choices.

The schema of the files, the table of keys in `traces/stacks/README.md`, `archsim show stack` and its JSON are all read off these
declarations, so a key is added by one line in `archsim/stack/stack.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from functools import cache
from math import inf
from typing import Any, get_args, get_origin, get_type_hints


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What a key means and which values it takes.

    `unit`: "B" for a size, which a file writes as text with its unit; empty for counts and words. `low`: the least number, itself
    excluded where `above`. `choices`: the words that it takes, () for any. `names`: for a table, the names it may have at each
    level, () for any. `some`: a list must not be empty. `whole`: a table that is not merged with that of a component
    below but replaces it.
    """

    doc: str
    unit: str = ""
    low: float = -inf
    above: bool = False
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
    return word if about.low == -inf else f"{word} {'>' if about.above else '>='} {about.low:g}"


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

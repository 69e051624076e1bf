"""The text of a spec file: a whole device with the source of every value, or what differs from a known one (`new hw`)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from archsim.base.errors import nearest, refuse
from archsim.base.units import COUNT
from archsim.device.device import OPTIONAL_PARTS, Identity
from archsim.device.entry import Entry, quantity
from archsim.device.file import SCHEMA
from archsim.device.part import declared
from archsim.device.spec import Spec, keys, unit_of

SLUG_WORDS = 3  # of a source that its short name has

Words = Mapping[str, str | float | list[str]]


def to_toml(spec: Spec, remark: str) -> str:
    """A file without a parent that gives the same device, with the same sources; `remark` is its first line."""
    short = _short_names(entry.source for entry in (*spec.entries.values(), *spec.stated.values()))
    identity = {name: getattr(spec.identity, name) for name in declared(Identity)}
    head = {"schema": SCHEMA, "kind": spec.kind, **identity, "aliases": list(spec.identity.aliases)}
    head |= {"faster": spec.identity.faster} if spec.identity.faster else {}
    rows = [(key, _words(entry, short, unit_of(spec.kind, key).unit)) for key, entry in spec.entries.items()]
    stated = [(f"stated.{name}", {**_words(entry, short, ""), "clock": entry.clock}) for name, entry in spec.stated.items()]
    sources = ["", "[sources]", *(f"{name} = {_toml(source)}" for source, name in short.items())]
    return "\n".join([f"# {remark}", *header_lines(head), *sources, *table_lines([*rows, *stated])]) + "\n"


def header_lines(words: Words) -> Iterator[str]:
    """The words before the first table."""
    return (f"{key} = {_toml(value)}" for key, value in words.items())


def table_lines(values: Iterable[tuple[str, Words]]) -> Iterator[str]:
    """Values with their words, (dotted key, {"value": ..., "source": ...}), as tables; keys of one table follow each other.

    >>> list(table_lines([("sm.count", {"value": 2, "source": "a guess"})]))
    ['', '[sm]', 'count = { value = 2, source = "a guess" }']
    """
    table = ""
    for dotted, words in values:
        part, _, key = dotted.partition(".")
        if part != table:
            yield from ("", f"[{part}]")
            table = part
        yield f"{key} = {{ {', '.join(header_lines(words))} }}"


def file_value(entry: Entry, unit: str) -> str | float:
    """A value as a file has it: what counts as a bare number, all else as text with its unit."""
    bare = unit == COUNT and not isinstance(entry.value, str)
    return _plain(float(entry.number)) if bare else entry.written


def _words(entry: Entry, short: Mapping[str, str], unit: str) -> dict[str, str | float]:
    words: dict[str, str | float] = {"value": file_value(entry, unit), "source": short[entry.source], "kind": entry.kind}
    return words | ({"note": entry.note} if entry.note else {})


def _plain(value: float) -> float:
    return int(value) if value.is_integer() else value


def _toml(value: str | float | list[str]) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _short_names(sources: Iterable[str]) -> dict[str, str]:
    """A short name for each source, of its first words: source -> name."""
    names: dict[str, str] = {}
    for source in dict.fromkeys(sources):
        words = re.findall(r"[a-z0-9]+", source.lower())[:SLUG_WORDS]
        name = base = "_".join(words) or "source"
        count = 1
        while name in names.values():
            count += 1
            name = f"{base}_{count}"
        names[source] = name
    return names


# --------------------------------------------------------------------------------------------------------- a new device

NOT_ID = re.compile(r"[^a-z0-9_]+")


def new_file(
    base: Spec, parent: str, settings: Mapping[str, str], *, id: str, name: str = "", year: int | None = None, source: str = ""
) -> str:  # fmt: skip
    """The text of a spec file that inherits from `base` and has the values `settings`, by dotted key.

    What no device inherits though every one has it (a GPU's sustained clock and idle power) is that of `base`, marked as the
    value of another chip.

    parent: what the file calls `base`: its id, or a path
    source: where the values are from; without it they are marked as assumed

    Raises InputError with every problem of the settings.
    """
    refuse("--set", _problems(base, settings))
    changed = base.with_settings(settings)
    of = base.identity.id
    told = {"source": source, "kind": "datasheet"} if source else {
        "source": "archsim new", "kind": "assumed", "note": f"set by hand; all else is that of {of}"}  # fmt: skip
    kept = {"source": of, "kind": "sibling", "note": f"that of {of}, where nobody has measured this device"}
    rows = []
    for key, unit, required in keys(base.kind):
        own = key in settings
        needed = required and not unit.inherited and key.partition(".")[0] not in OPTIONAL_PARTS
        if (own or needed) and key in changed.entries:
            rows.append((key, {"value": file_value(changed.entries[key], unit.unit), **(told if own else kept)}))
    called = name or f"{base.identity.name} with {', '.join(f'{key} = {value}' for key, value in settings.items())}"
    head: Words = {"schema": SCHEMA, "id": NOT_ID.sub("_", id.lower()).strip("_"), "name": called, "inherits": parent,
            "year": base.identity.year if year is None else year}  # fmt: skip
    return "\n".join([*header_lines(head), *table_lines(rows)]) + "\n"


def _problems(base: Spec, settings: Mapping[str, str]) -> list[str]:
    """Everything that is wrong with the settings, one sentence each."""
    known, found = {key for key, _, _ in keys(base.kind)}, list[str]()
    for key, written in settings.items():
        if key not in known:
            found.append(f"{key}: no {base.kind} has such a key; nearest: {', '.join(nearest(key, sorted(known)))}")
        elif (problem := quantity(written, unit_of(base.kind, key))[1]) is not None:
            found.append(f"{key}: {problem}")
    return found

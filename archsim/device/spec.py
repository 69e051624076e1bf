"""The spec file: one device in TOML, every value with unit, source and kind; all problems reported at once."""

from __future__ import annotations

import hashlib
import math
import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archsim.base.errors import InputError, MissingFile, UnknownName, nearest
from archsim.base.files import read_text
from archsim.base.schema import problems_of
from archsim.base.units import COUNT, TEXT, parse, show
from archsim.device.device import CLASSES, OPTIONAL_PARTS, PARTS, SHOWN_ONLY, Device, Identity
from archsim.device.form import DeviceHeaderForm, EntryForm, StatedForm
from archsim.device.part import Unit, declared

if TYPE_CHECKING:
    from archsim.device.part import Number

SCHEMA = 1
SIZE_LIMIT = 256 * 1024  # a TOML key with thousands of dots costs seconds to parse, so size and dots are capped first
DOTS_LIMIT = 16
_DOTTED = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*"|'[^'\n]*')[ \t]*+\.[ \t]*+)""" f"{{{DOTS_LIMIT + 1}}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One value of a spec: `value` in the base unit (or a word), as `written`, with its source.

    `kind` is datasheet, measured, derived or assumed; `set` marks a value that the user changed for a what-if, which may be
    an array of shape [D, 1].
    """

    key: str
    value: Number | str
    written: str
    source: str
    kind: str
    note: str = ""
    clock: str = ""  # stated peaks only: the clock (base, boost, ...) at which the vendor states it

    @property
    def number(self) -> Number:
        """The value of an entry that is no word."""
        if isinstance(self.value, str):
            raise ValueError(f"{self.key} is a word, {self.value!r}")
        return self.value


@dataclass(frozen=True, kw_only=True)
class Spec:
    """A device with the provenance of every number."""

    path: str
    kind: str
    identity: Identity
    entries: Mapping[str, Entry]
    stated: Mapping[str, Entry]

    @cached_property
    def device(self) -> Device:
        """The device as the models see it."""
        parts: dict[str, dict[str, Any]] = {}
        places = _places(self.kind)
        for key, entry in self.entries.items():
            part, name = places[key]
            parts.setdefault(part, {})[name] = entry.value
        classes = PARTS[self.kind]
        return CLASSES[self.kind](identity=self.identity, **{part: classes[part](**values) for part, values in parts.items()})

    @property
    def assumed(self) -> list[Entry]:
        """The values that nobody published, in file order."""
        return [entry for entry in self.entries.values() if entry.kind == "assumed"]

    @cached_property
    def digest(self) -> str:
        """A hash of what the models see: every key and value, not the words about them."""
        body = "\n".join(f"{key}={entry.value!r}" for key, entry in sorted(self.entries.items()))
        return hashlib.sha256(f"{self.identity.id}\n{body}".encode()).hexdigest()[:16]

    def with_settings(self, settings: Mapping[str, str], scales: Mapping[str, float] | None = None) -> Spec:
        """This spec with some values replaced, `{"memory.bandwidth": "51.2 GB/s"}`, and then some scaled, `{"sm.count": 2.0}`.

        Raises UnknownName for a key that the device kind does not have, InputError for a value that does not fit it.
        """
        changed, problems = dict(self.entries), []
        for key, written in settings.items():
            value, problem = _quantity(written, unit_of(self.kind, key))
            if problem is not None:
                problems.append(f"{key}: {problem}")
            else:
                changed[key] = Entry(key=key, value=value, written=written, source="set by the user", kind="set")
        if problems:
            raise InputError("--set", problems)
        for key, factor in (scales or {}).items():
            entry, problem = _scaled(changed.get(key), unit_of(self.kind, key), factor)
            if entry is None:
                problems.append(f"{key}: {problem}")
            else:
                changed[key] = entry
        if problems:
            raise InputError("--scale", problems)
        problems = self._incomplete(changed) or _relations(self.kind, changed)
        if problems:
            raise InputError("--scale" if scales and not settings else "--set", problems)
        return replace(self, entries=changed)

    def with_values(self, values: Mapping[str, Number]) -> Spec:
        """This spec with some numbers replaced, in base units, floats or [D, 1]. Ranges are the caller's to check.

        Raises UnknownName for a key that the device kind does not have, InputError for a word and where a table is incomplete.
        """
        changed = dict(self.entries)
        for key, value in values.items():
            if unit_of(self.kind, key).unit == TEXT:
                raise InputError(self.identity.id, f"{key}: is a word, not a number")
            changed[key] = Entry(key=key, value=value, written="varied", source="set by the user", kind="set")
        problems = self._incomplete(changed)
        if problems:
            raise InputError(self.identity.id, problems)
        return replace(self, entries=changed)

    def _incomplete(self, changed: Mapping[str, Entry]) -> list[str]:
        """What a new key lacks beside it; other values of the keys that this spec has leave nothing to be missed."""
        return _missing(self.kind, changed) if len(changed) > len(self.entries) else []


@cache
def keys(kind: str) -> tuple[tuple[str, Unit, bool], ...]:
    """Every key of a spec of this kind: (dotted key, meaning, required inside its table)."""
    return tuple([(key, replace(unit, informational=True) if key in SHOWN_ONLY else unit, required)
                  for part, cls in PARTS[kind].items() for name, (unit, required) in declared(cls).items()
                  for key in [f"{part}.{name}"]])  # fmt: skip


@cache
def _places(kind: str) -> dict[str, tuple[str, str]]:
    """The table and the name in it of every key."""
    return {key: (part, name) for key, _, _ in keys(kind) for part, _, name in [key.partition(".")]}


@cache
def _units(kind: str) -> dict[str, Unit]:
    return {name: unit for name, unit, _ in keys(kind)}


def unit_of(kind: str, key: str) -> Unit:
    """The meaning of one dotted key; UnknownName with the nearest keys when there is none."""
    known = _units(kind)
    if key not in known:
        raise UnknownName(f"{kind} key", key, list(known), hint="`archsim show hw NAME` prints every key")
    return known[key]


def load(place: Path | Traversable, parent: Callable[[str], Spec]) -> Spec:
    """Read one spec file. `parent(name)` gives the spec named by `inherits`.

    Raises InputError with every problem of the file, each beginning with its key.
    """
    return loads(read_text(place, SIZE_LIMIT), str(place), parent)


def loads(text: str, path: str, parent: Callable[[str], Spec]) -> Spec:
    """The spec that `text` holds; `path` is what an error calls it."""
    words = document(text, path)
    header_words = {key: value for key, value in words.items() if not isinstance(value, dict)}
    header, problems = problems_of(DeviceHeaderForm, header_words, "")
    if header is None:
        raise InputError(path, problems)
    base = _parent(path, header.inherits, parent)
    kind = header.kind or (base.kind if base else "")
    if kind not in PARTS:
        raise InputError(path, "kind: is missing; write kind = \"gpu\" or kind = \"cpu\"")
    if base is not None and base.kind != kind:
        raise InputError(path, f"inherits: {header.inherits} is a {base.kind}, this is a {kind}")
    sources = words.pop("sources", {})
    stated_table = words.pop("stated", {})
    found = dict(base.entries) if base else {}
    for table, content in ((name, value) for name, value in words.items() if isinstance(value, dict)):
        problems += _read_table(kind, table, content, sources, found)
    stated = dict(base.stated) if base else {}
    problems += _read_stated(kind, stated_table, sources, stated)
    # A key that was written and refused is not missing as well.
    written = {f"{table}.{name}" for table, content in words.items() if isinstance(content, dict) for name in content}
    problems += _missing(kind, found, written) or _relations(kind, found)
    identity, lacking = _identity(header, base)
    problems += lacking
    if problems:
        raise InputError(path, dict.fromkeys(problems))
    ordered = {key: found[key] for key, _, _ in keys(kind) if key in found}
    assert identity is not None
    return Spec(path=path, kind=kind, identity=identity, entries=ordered, stated=stated)


def _parent(path: str, name: str | None, parent: Callable[[str], Spec]) -> Spec | None:
    if name is None:
        return None
    try:
        return parent(name)
    except (UnknownName, MissingFile) as error:
        raise InputError(path, f"inherits: {error}") from None


def document(text: str, path: str) -> dict[str, Any]:
    """The tables of a spec file; InputError where it is no TOML or of another schema."""
    dotted = _DOTTED.search(text)
    if dotted is not None:
        line = text.count("\n", 0, dotted.start()) + 1
        raise InputError(path, f"line {line}: a key with more than {DOTS_LIMIT} dots")
    try:
        words = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise InputError(path, f"is not valid TOML: {error}") from None
    if type(words.get("schema")) is not int or words["schema"] != SCHEMA:
        raise InputError(path, f"schema: must be {SCHEMA}, is {words.get('schema', 'missing')!r}")
    return words


def _identity(header: DeviceHeaderForm, base: Spec | None) -> tuple[Identity | None, list[str]]:
    words: dict[str, Any] = {}
    for name in ("vendor", "architecture", "year", "default_stack"):
        words[name] = getattr(header, name) or (getattr(base.identity, name) if base else None)
    lacking = [f"{name}: is missing" for name, value in words.items() if not value]
    if lacking:
        return None, lacking
    return Identity(id=header.id, name=header.name, aliases=tuple(header.aliases), **words), []


def _read_table(kind: str, table: str, content: dict[str, Any], sources: Any, found: dict[str, Entry]) -> list[str]:
    if table not in PARTS[kind]:
        near = nearest(table, PARTS[kind]) or list(PARTS[kind])
        return [f"[{table}]: no such table in a {kind} spec; nearest: {', '.join(near)}"]
    problems, known = [], declared(PARTS[kind][table])
    for name, raw in content.items():
        key = f"{table}.{name}"
        if name not in known:
            problems.append(f"{key}: unknown key; nearest: {', '.join(nearest(name, known) or list(known))}")
            continue
        entry, wrong = read_entry(key, raw, known[name][0], sources)
        problems += wrong
        if entry is not None:
            found[key] = entry
    return problems


def _read_stated(kind: str, table: Any, sources: Any, stated: dict[str, Entry]) -> list[str]:
    problems = []
    rates = declared(PARTS["gpu"]["rate"]) if kind == "gpu" else {"fp32": None, "fp64": None}
    known = ["bandwidth", *(f"peak_{name}" for name in rates)]
    for name, raw in table.items() if isinstance(table, dict) else ():
        if name not in known:
            problems.append(f"stated.{name}: unknown key; nearest: {', '.join(nearest(name, known) or known)}")
            continue
        unit = Unit(unit="B/s" if name == "bandwidth" else "FLOP/s", doc="stated by the vendor")
        entry, wrong = read_entry(f"stated.{name}", raw, unit, sources, StatedForm)
        problems += wrong
        if entry is not None:
            stated[name] = entry
    return problems


def read_entry(
    key: str, raw: Any, unit: Unit, sources: Any, form: type[EntryForm] = EntryForm
) -> tuple[Entry | None, list[str]]:
    """One value of a file with its provenance, or None and the reasons why it is none."""
    if not isinstance(raw, dict):
        return None, [f'{key}: is a bare value; write {{ value = "...", source = "...", kind = "datasheet" }}']
    parsed, problems = problems_of(form, raw, f"{key}.")
    if parsed is None:
        return None, problems
    value, problem = _quantity(parsed.value, unit)
    if problem is not None:
        return None, [f"{key}: {problem}"]
    if parsed.kind == "assumed" and not parsed.note:
        return None, [f"{key}: an assumed value needs a note that says why"]
    source = sources.get(parsed.source, parsed.source) if isinstance(sources, dict) else parsed.source
    if not isinstance(source, str):
        return None, [f"sources.{parsed.source}: must be text"]
    written = str(parsed.value)
    clock = getattr(parsed, "clock", "")
    entry = Entry(key=key, value=value, written=written, source=source, kind=parsed.kind, note=parsed.note, clock=clock)
    return entry, []


def _quantity(written: str | float, unit: Unit) -> tuple[float | str, str | None]:
    """A written value in the base unit, or the reason why it is none."""
    if unit.unit == TEXT:
        return str(written), None if isinstance(written, str) and written.strip() else "must be text"
    if not isinstance(written, str) and unit.unit != COUNT:
        return 0.0, f"the bare number {str(written)[:40]} lacks its unit; write it like \"{_like(written, unit)}\""
    try:
        value = parse(str(written), unit.unit)
    except ValueError as error:
        return 0.0, str(error)
    problem = unit.problem(value)
    return value, None if problem is None else f"{written} {problem}"


def _scaled(entry: Entry | None, unit: Unit, factor: float) -> tuple[Entry | None, str]:
    """An entry times a factor, or the reason why there is none."""
    if entry is None or isinstance(entry.value, str):
        return None, "has no number to scale on this device" if entry is None else "is a word, not a number"
    value = float(entry.number) * factor
    if unit.whole and math.isclose(value, round(value), rel_tol=1e-12):
        value = float(round(value))
    written = show(value, unit.unit, digits=6)
    problem = unit.problem(value)
    if problem is not None:
        return None, f"{written}, {factor:g} times {entry.written}, {problem}"
    return replace(entry, value=value, written=written, source=f"{factor:g} times {entry.written}", kind="set", note=""), ""


def _like(written: float, unit: Unit) -> str:
    return show(float(written), unit.unit) if 0 < abs(written) < 1e30 else f"1 {unit.unit}"


def _missing(kind: str, found: Mapping[str, Entry], written: Collection[str] = ()) -> list[str]:
    present = {key.partition(".")[0] for key in (*found, *written)}
    absent = [part for part in PARTS[kind] if part not in present and part not in OPTIONAL_PARTS]
    problems = [f"[{part}]: the table is missing" for part in absent]
    for key, unit, required in keys(kind):
        if required and key not in found and key not in written and key.partition(".")[0] in present:
            problems.append(f"{key}: is missing ({unit.doc})")
    return problems


# Pairs (small, large): the first value may not exceed the second.
ORDER = {
    "gpu": [
        ("clock.base", "clock.boost"), ("sm.shared_memory_cta", "sm.shared_memory"), ("l1.sector", "l1.line"),
        ("l2.sector", "l2.line"), ("l1.line", "l1.size"), ("l2.line", "l2.size"), ("power.idle", "power.tdp"),
    ],
    "cpu": [
        ("core.sockets", "core.count"), ("core.count", "core.threads"), ("clock.base", "clock.boost"),
        ("clock.all_core", "clock.boost"), ("clock.simd", "clock.boost"), ("power.idle", "power.tdp"),
    ],
}  # fmt: skip


def _relations(kind: str, found: Mapping[str, Entry]) -> list[str]:
    problems = []
    for small, large in ORDER[kind]:
        low, high = found.get(small), found.get(large)
        if low and high and isinstance(low.value, float) and isinstance(high.value, float) and low.value > high.value:
            problems.append(f"{small}: {low.written} is more than {large} ({high.written})")
    return problems

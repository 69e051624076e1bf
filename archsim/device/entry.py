"""One value of a spec file: its form, its reading, and what is kept of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from archsim.base.errors import near_words
from archsim.base.record import LABEL
from archsim.base.schema import Form, Word, problems_of
from archsim.base.units import COUNT, TEXT, parse, show
from archsim.device.part import Unit, declared

if TYPE_CHECKING:
    from archsim.device.part import Number

UNPUBLISHED = ("assumed", "sibling")  # kinds of values that nobody has published of the product itself
ABSENT = "absent"  # the value of an optional key that the device does not have, though the spec it inherits does


class EntryForm(Form):
    """One value with its provenance."""

    value: str | int | float
    source: Word
    kind: Literal["datasheet", "measured", "derived", "sibling", "assumed"]
    note: str = ""


class StatedForm(EntryForm):
    """A peak as the vendor states it, at one of the device's clocks."""

    clock: Literal["base", "boost", "sustained", "all_core", "simd", "simd512", "none"] = "boost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One value of a spec with its provenance.

    key: dotted name, `memory.bandwidth`
    value: the number in the base unit, [D, 1] of a what-if over D devices, or a word
    written: the value as its file has it
    source, kind, note: where it is from; kind is datasheet, measured, derived, sibling or assumed, or set (changed by the user)
    file: id of the spec whose file has it, which is another one where it is inherited
    clock: of a stated peak, the clock (base, boost, ...) at which the vendor states it
    """

    key: str
    value: Number | str
    written: str = field(metadata=LABEL)
    source: str = field(metadata=LABEL)
    kind: str
    note: str = field(default="", metadata=LABEL)
    file: str = field(default="", metadata=LABEL)
    clock: str = ""

    @property
    def number(self) -> Number:
        """The value of an entry that is no word."""
        if isinstance(self.value, str):
            raise ValueError(f"{self.key} is a word, {self.value!r}")
        return self.value

    @property
    def absent(self) -> bool:
        """Whether the file says that the device has no such thing."""
        return isinstance(self.value, str) and self.written == ABSENT

    @property
    def unpublished(self) -> bool:
        """Whether nobody has published the value of this very product: a guess, or the value of another chip."""
        return self.kind in UNPUBLISHED

    def inherited(self) -> Entry:
        """The entry in a spec that inherits it: a measured value of the parent is one of a sibling of the child."""
        if self.kind != "measured" or self.file.startswith(ARCHITECTURE):
            return self
        note = f"of {self.file}" + (f": {self.note}" if self.note else "")
        return replace(self, kind="sibling", note=note)


ARCHITECTURE = "architectures/"  # how the file is called that holds what all devices of an architecture share


def set_entry(key: str, value: Number | str, written: str, source: str = "set by the user") -> Entry:
    """The entry of a value that a what-if changes."""
    return Entry(key=key, value=value, written=written, source=source, kind="set", file="what-if")


def read_entry(
    key: str, raw: Any, unit: Unit, sources: Any, file: str, *, form: type[EntryForm] = EntryForm, absent: bool = False
) -> tuple[Entry | None, list[str]]:
    """One value of the file of the spec `file`, or None and the reasons why it is none.

    raw: what TOML gave; unit: what the key means; sources: the table [sources], whose names `source` may use
    absent: whether the value may be "absent"
    """
    if not isinstance(raw, dict):
        shown = raw if isinstance(raw, int | float) and not isinstance(raw, bool) else f'"{str(raw)[:40]}"'
        return None, [f'{key}: is a bare value; write {{ value = {shown}, source = "where it is from", kind = "datasheet" }}']
    parsed, problems = problems_of(form, raw, f"{key}.")
    if parsed is None:
        return None, problems
    value, problem = (ABSENT, None) if absent and parsed.value == ABSENT else quantity(parsed.value, unit)
    if problem is not None:
        return None, [f"{key}: {problem}"]
    if parsed.kind == "assumed" and not parsed.note:
        return None, [f"{key}: an assumed value needs a note that says why"]
    if parsed.kind == "sibling" and not parsed.note:
        return None, [f"{key}: a value of a sibling needs a note that names the chip"]
    source = sources.get(parsed.source, parsed.source) if isinstance(sources, dict) else parsed.source
    if not isinstance(source, str):
        return None, [f"sources.{parsed.source}: must be text"]
    return Entry(key=key, value=value, written=str(parsed.value), source=source, kind=parsed.kind, note=parsed.note, file=file,
                 clock=getattr(parsed, "clock", "")), []  # fmt: skip


def read_table(
    table: str, content: Mapping[str, Any], known: Mapping[str, Unit], sources: Any, file: str, found: dict[str, Entry], *,
    absent: bool = False, form: type[EntryForm] = EntryForm,
) -> list[str]:  # fmt: skip
    """Read the values of one table into `found`, by dotted key; return what is wrong with them."""
    problems = []
    for name, raw in content.items():
        key = f"{table}.{name}"
        if name not in known:
            problems.append(f"{key}: unknown key; nearest: {near_words(name, known)}")
            continue
        entry, wrong = read_entry(key, raw, known[name], sources, file, absent=absent, form=form)
        problems += wrong
        if entry is not None:
            found[key] = entry
    return problems


def values_of(table: str, part: type, entries: Mapping[str, Entry]) -> dict[str, Any]:
    """The values of the fields of a part that its table gives."""
    return {name: entries[key].value for name in declared(part) if (key := f"{table}.{name}") in entries}


def quantity(written: str | float, unit: Unit) -> tuple[float | str, str | None]:
    """A written value in the base unit, or the reason why it is none.

    >>> quantity("51.2 GB/s", Unit(unit="B/s", doc="bandwidth"))
    (51200000000.0, None)
    """
    if unit.unit == TEXT:
        if not isinstance(written, str) or not written.strip():
            return str(written), "must be text"
        return written, None if unit.wrong is None else unit.wrong(written)
    if not isinstance(written, str) and unit.unit != COUNT:
        return 0.0, f"the bare number {str(written)[:40]} lacks its unit; write it like \"{_like(written, unit)}\""
    try:
        value = parse(str(written), unit.unit)
    except ValueError as error:
        return 0.0, str(error)
    problem = unit.problem(value)
    return value, None if problem is None else f"{written} {problem}"


def scaled(entry: Entry | None, unit: Unit, factor: float) -> tuple[Entry | None, str]:
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
    return set_entry(entry.key, value, written, f"{factor:g} times {entry.written}"), ""


def _like(written: float, unit: Unit) -> str:
    return show(float(written), unit.unit) if 0 < abs(written) < 1e30 else f"1 {unit.unit}"

"""A device with the provenance of every number, and what-ifs that replace some of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from archsim.base.errors import InputError, UnknownName
from archsim.base.identity import LABEL, Identified
from archsim.base.units import TEXT
from archsim.device.device import CACHE_ONLY, CLASSES, OPTIONAL_PARTS, PARTS, Device, Identity
from archsim.device.entry import Entry, quantity, scaled, set_entry
from archsim.device.follow import contradiction, followed
from archsim.device.part import Unit, declared

if TYPE_CHECKING:
    from archsim.device.part import Number


@dataclass(frozen=True, kw_only=True)
class Spec(Identified):
    """A device with the provenance of every number.

    base: what it was changed from: the device before a what-if, the parent of a file that inherits, the shipped device whose id a
        file bears; None for a device of its own
    """

    path: str = field(metadata=LABEL)
    kind: str
    identity: Identity
    entries: Mapping[str, Entry]
    stated: Mapping[str, Entry]
    base: Spec | None = field(default=None, compare=False, repr=False)

    @cached_property
    def device(self) -> Device:
        """The device as the models see it."""
        parts: dict[str, dict[str, Any]] = {}
        for key, entry in self.entries.items():
            part, _, name = key.partition(".")
            parts.setdefault(part, {})[name] = entry.value
        classes = PARTS[self.kind]
        return CLASSES[self.kind](identity=self.identity, **{part: classes[part](**values) for part, values in parts.items()})

    @property
    def assumed(self) -> list[Entry]:
        """The values that nobody published of this device, in file order, but for those that only the cycle fidelity reads."""
        return self.unpublished(cycle=False)

    def unpublished(self, cycle: bool) -> list[Entry]:
        """The values that nobody published of this device and that only the `cycle` fidelity reads, or those of all."""
        return [entry for key, entry in self.entries.items() if entry.unpublished and unit_of(self.kind, key).cycle == cycle]

    def with_settings(self, settings: Mapping[str, str], scales: Mapping[str, float] | None = None) -> Spec:
        """This spec with some values replaced, `{"memory.bandwidth": "51.2 GB/s"}`, and then some scaled, `{"sm.count": 2.0}`.

        Another product has no price but one that is set. Raises UnknownName for a key that the device kind does not have,
        InputError for a value that does not fit it.
        """
        changed, problems = dict(self.entries), []
        for key, written in settings.items():
            value, problem = quantity(written, unit_of(self.kind, key))
            if problem is not None:
                problems.append(f"{key}: {problem}")
            elif key not in changed or changed[key].value != value:  # the same value is no change
                changed[key] = set_entry(key, value, written)
        if problems:
            raise InputError("--set", problems)
        for key, factor in (scales or {}).items():
            entry, problem = scaled(changed.get(key), unit_of(self.kind, key), factor)
            if entry is None:
                problems.append(f"{key}: {problem}")
            elif entry.value != changed[key].value:
                changed[key] = entry
        if problems:
            raise InputError("--scale", problems)
        found = self._changed(changed, {*settings, *(scales or {})})
        problems = self._incomplete(changed) or relations(self.kind, found.entries)
        if problems:
            raise InputError("--scale" if scales and not settings else "--set", problems)
        return found

    def with_values(self, values: Mapping[str, Number]) -> Spec:
        """This spec with some numbers replaced, in base units, floats or [D, 1]. Ranges are the caller's to check.

        Raises UnknownName for a key that the device kind does not have, InputError for a word and where a table is incomplete.
        """
        changed = dict(self.entries)
        for key, value in values.items():
            if unit_of(self.kind, key).unit == TEXT:
                raise InputError(self.identity.id, f"{key}: is a word, not a number")
            changed[key] = set_entry(key, value, "varied")
        problems = self._incomplete(changed)
        if problems:
            raise InputError(self.identity.id, problems)
        return self._changed(changed, values)

    def _changed(self, entries: Mapping[str, Entry], named: Collection[str]) -> Spec:
        """The spec of a what-if with these entries and what follows from them. Another product has no price and no month of
        launch unless set. `named`: keys that were given, be it with the value that they had."""
        before = self.base if self.base is not None and self.base.path == self.path else self
        units = _units(self.kind)
        given = {key for key, entry in entries.items() if entry.kind == "set"}
        entries = followed(before.entries, entries, {*given, *named})
        if any(units[key].product and not units[key].informational for key in given):
            entries = {key: entry for key, entry in entries.items() if key in given or not key.startswith("market.")}
        return replace(self, entries=entries, base=before)

    def _incomplete(self, changed: Mapping[str, Entry]) -> list[str]:
        """What a new key lacks beside it; other values of the keys that this spec has leave nothing to be missed."""
        return missing(self.kind, changed) if len(changed) > len(self.entries) else []


@cache
def keys(kind: str) -> tuple[tuple[str, Unit, bool], ...]:
    """Every key of a spec of this kind: (dotted key, meaning, required inside its table)."""
    return tuple([(key, _marked(kind, key, unit), required) for part, cls in PARTS[kind].items()
                  for name, (unit, required) in declared(cls).items() for key in [f"{part}.{name}"]])  # fmt: skip


def _marked(kind: str, key: str, unit: Unit) -> Unit:
    """The declaration of a key, with who reads it in the part where it stands."""
    return replace(unit, cache=True) if key in CACHE_ONLY[kind] else unit


def read_by(unit: Unit) -> str:
    """What a key of a device moves, in words: which fidelities, or another command; empty for names, dates, prices and the like.

    >>> [read_by(unit_of("gpu", key)) for key in ("sm.count", "sm.alu_latency", "l2.ways", "market.price")]
    ['analytical, event, cycle', 'cycle', 'cycle, archsim cache', '']
    """
    if unit.informational:
        return ""
    if unit.cache:
        return "cycle, archsim cache" if unit.cycle else "archsim cache"
    return "cycle" if unit.cycle else "analytical, event, cycle"


@cache
def _units(kind: str) -> dict[str, Unit]:
    return {name: unit for name, unit, _ in keys(kind)}


def unit_of(kind: str, key: str) -> Unit:
    """The meaning of one dotted key; UnknownName with the nearest keys when there is none."""
    known = _units(kind)
    if key not in known:
        raise UnknownName(f"{kind} key", key, list(known), hint="`archsim show hw NAME` prints every key")
    return known[key]


def missing(kind: str, found: Mapping[str, Entry], written: Collection[str] = ()) -> list[str]:
    """What a device of this kind lacks among the keys `found`, besides those `written` and refused: one sentence each."""
    present = {key.partition(".")[0] for key in (*found, *written)}
    absent = [part for part in PARTS[kind] if part not in present and part not in OPTIONAL_PARTS]
    problems = [f"[{part}]: the table is missing" for part in absent]
    for key, unit, required in keys(kind):
        if required and key not in found and key not in written and key.partition(".")[0] in present:
            problems.append(f"{key}: is missing ({unit.doc})")
    return problems


EQUAL = 1.0 + 1e-12  # a value that follows another one may differ from it by rounding
# Pairs (small, large): the first value may not exceed the second.
ORDER = {
    "gpu": [
        ("clock.base", "clock.boost"), ("sm.shared_memory_cta", "sm.shared_memory"), ("l1.sector", "l1.line"),
        ("l2.sector", "l2.line"), ("l1.line", "l1.size"), ("l2.line", "l2.size"), ("power.idle", "power.tdp"),
    ],
    "cpu": [
        ("core.sockets", "core.count"), ("core.count", "core.threads"), ("clock.base", "clock.boost"),
        ("clock.all_core", "clock.boost"), ("clock.simd", "clock.all_core"), ("clock.simd512", "clock.all_core"),
        ("power.idle", "power.tdp"),
    ],
    "tpu": [("power.idle", "power.busy"), ("power.busy", "power.tdp"), ("accumulator.buffers", "accumulator.rows")],
}  # fmt: skip


def relations(kind: str, found: Mapping[str, Entry]) -> list[str]:
    """Which pairs of ORDER are the wrong way round, and whether the memory is one, one sentence each."""
    problems = [said] if (said := contradiction(found)) else []
    for small, large in ORDER[kind]:
        low, high = found.get(small), found.get(large)
        if low and high and isinstance(low.value, float) and isinstance(high.value, float) and low.value > high.value * EQUAL:
            problems.append(f"{small}: {low.written} is more than {large} ({high.written})")
    return problems

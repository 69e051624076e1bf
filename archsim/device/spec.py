"""A device with the provenance of every number, what-ifs that replace some of them, and values that follow those.

A device with one number changed may be no device: a bus of 256 pins at 10 Gbit/s moves 320 GB/s and no more, and no core runs
dense SIMD code faster than all cores run any. Such a value follows what was changed; the answer says so (`FOLLOWS`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from archsim.base.errors import InputError, UnknownName, refuse
from archsim.base.record import LABEL, Identified
from archsim.base.units import COUNT, TEXT, show
from archsim.device.device import CACHE_ONLY, CLASSES, OPTIONAL_PARTS, PARTS, Device, Identity
from archsim.device.entry import Entry, quantity, scaled, set_entry
from archsim.device.part import Unit, declared
from archsim.device.silicon import silicon

if TYPE_CHECKING:
    from archsim.device.part import Number


# --------------------------------------------------------------------------------------------------------- what follows

FOLLOWS = "follows"  # the kind of such an entry
TOLERANCE = 0.015  # makers round what they state to two or three digits
BANDWIDTH, BUS, RATE, TYPE = (f"memory.{name}" for name in ("bandwidth", "bus", "data_rate", "type"))
MEMORY = (BANDWIDTH, BUS, RATE)
LEADERS = {  # key -> the key whose changes it takes part in, by the same factor
    "clock.simd": "clock.all_core", "clock.simd512": "clock.all_core", "clock.sustained": "clock.boost",
}  # fmt: skip
UNITS = ("port.fma", "port512.fma", "pipeline.datapath", "hold.fma")  # of multiply-adds
WIDEST = 512  # bit from which a table of ports of its own counts
MEGA = 1e6  # transfers a second, which modules are called by: DDR4-3200

Entries = Mapping[str, Entry]
Found = tuple[str, "Number", str]  # key, value, why


def followed(before: Entries, after: Entries, given: Collection[str], clocks: bool = True) -> dict[str, Entry]:
    """The entries of a changed device, `after`, with what follows from the keys that were `given` in place of those `before`.

    clocks: whether clocks follow too; a file that inherits states its own

    >>> from archsim.device.catalog import find
    >>> wider = find("gtx_1080").with_settings({"memory.bandwidth": "512 GB/s"})
    >>> wider.entries["memory.bus"].written, wider.entries["memory.bus"].source
    ('409.6 bit', 'as memory.bandwidth and memory.data_rate have it')
    """
    found = dict(after)
    clocked = _clocks(before, after, given) if clocks else ()
    for key, value, why in (*_memory(before, after, given), *_units_of(before, after, given), *clocked):
        unit = {BANDWIDTH: "B/s", BUS: "bit", RATE: "bit/s", "core.fma_ports": COUNT}.get(key, "Hz")
        written = show(float(np.ravel(value)[0]), unit, digits=6)
        found[key] = Entry(key=key, value=value, written=written, source=why, kind=FOLLOWS, file="what-if")
    return found


def _memory(before: Entries, after: Entries, given: Collection[str]) -> Iterator[Found]:
    """Bandwidth = bus x rate: of what is given the others follow, the bus before the rate and the bandwidth last.

    Another family comes with a rate of its own, and needs another bus for the same bandwidth, unless its name has the rate.
    """
    told = {key for key in MEMORY if key in given and key in before}
    now = {key: after[key].number for key in MEMORY if key in after}
    was, written = (str(entries[TYPE].value) if TYPE in entries else "" for entries in (before, after))
    family, named = silicon().family(written), re.search(r"-(\d{3,5})\b", written)
    other = family is not silicon().family(was)
    if family is not None and (other or (named and written != was)) and RATE in before and not {BANDWIDTH, BUS} <= told:
        if RATE not in given:
            now[RATE] = family.rate if named is None else MEGA * float(named[1])
            yield RATE, now[RATE], f"usual of {family.name} ({family.source})" if named is None else f"as {written} is called"
        told |= {RATE} if BUS in told or named else {RATE, BANDWIDTH}
    free = BANDWIDTH if BANDWIDTH not in told else RATE if BUS in told else BUS
    if not told or told == {*MEMORY} or free not in before or (free != BANDWIDTH and np.max(gap(now)) <= TOLERANCE):
        return
    bandwidth, bus, rate = (now[key] / before[key].number if key in told else 1.0 for key in MEMORY)
    by = {BANDWIDTH: bus * rate, BUS: bandwidth / rate, RATE: bandwidth / bus}[free]
    yield free, before[free].number * by, f"as {' and '.join(key for key in MEMORY if key != free)} have it"


def gap(numbers: Mapping[str, Number]) -> Number:
    """By how much the bandwidth differs from bus x rate, as a share of it [1], a number or [D, 1]; 0 where one is not known."""
    if not numbers.keys() >= {*MEMORY}:
        return 0.0
    return np.abs(8.0 * numbers[BANDWIDTH] / (numbers[BUS] * numbers[RATE]) - 1.0)


def _clocks(before: Entries, after: Entries, given: Collection[str]) -> Iterator[Found]:
    """Clocks keep their share of the clock that they follow; the voltage of a clock stays that of the chip before."""
    for key, leader in LEADERS.items():
        if leader in given and leader in before and key in before and key not in given:
            yield key, before[key].number * after[leader].number / before[leader].number, f"its share of {leader}"
    own = [np.max(before[key].number) for key in ("clock.boost", "clock.sustained", "clock.all_core") if key in before]
    if "clock.boost" in given and len(own) > 1 and "clock.silicon" not in {*before, *given}:
        yield "clock.silicon", float(max(own)), "the highest clock, and so voltage, before the change"


def _units_of(before: Entries, after: Entries, given: Collection[str]) -> Iterator[Found]:
    """Multiply-adds that a core starts are what its ports start, where these, their width or their hold are given."""
    key = "core.fma_ports"
    if {key, "pipeline.datapath"} <= before.keys() and key not in given and not {*UNITS}.isdisjoint(given):
        was, now = (_started(entries) for entries in (before, after))
        yield key, before[key].number * now / was, f"as {', '.join(UNITS)} have it"


def _started(found: Entries) -> Number:
    """Multiply-adds of the width of a register that ports start per clock [1]."""
    simd, hold = found["core.simd"].number, found["hold.fma"].number if "hold.fma" in found else 1.0
    ports = next(found[key] for key in ("port512.fma", "port.fma", "port.mul")
                 if key in found and (key != "port512.fma" or np.max(simd) >= WIDEST))  # fmt: skip
    return len({*str(ports.value).split()}) * np.minimum(found["pipeline.datapath"].number / simd, 1.0) / hold


def contradiction(found: Entries) -> str:
    """What is wrong with bandwidth, bus and rate of a memory that has all three; empty where they agree."""
    numbers = {key: found[key].number for key in MEMORY if key in found and not found[key].absent}
    if np.max(gap(numbers)) <= TOLERANCE:
        return ""
    moved = show(float(np.ravel(numbers[BUS] * numbers[RATE])[0]) / 8.0, "B/s")
    return (f"{BANDWIDTH}: {found[BANDWIDTH].written} is not {moved}, what {BUS} ({found[BUS].written}) moves at {RATE} "
            f"({found[RATE].written}); leave one of the three out")  # fmt: skip


def follow_notes(found: Entries) -> list[str]:
    """What is said of the values that follow."""
    return [f"{key} {entry.written}: {entry.source}" for key, entry in found.items() if entry.kind == FOLLOWS]


# ------------------------------------------------------------------------------------------------------------- the spec


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
        refuse("--set", problems)
        for key, factor in (scales or {}).items():
            entry, problem = scaled(changed.get(key), unit_of(self.kind, key), factor)
            if entry is None:
                problems.append(f"{key}: {problem}")
            elif entry.value != changed[key].value:
                changed[key] = entry
        refuse("--scale", problems)
        found = self._changed(changed, {*settings, *(scales or {})})
        lacking = self._incomplete(changed) or relations(self.kind, found.entries)
        refuse("--scale" if scales and not settings else "--set", lacking)
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
        refuse(self.identity.id, self._incomplete(changed))
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
    return "cycle" if unit.cycle else "analytical, event" if unit.closed else "analytical, event, cycle"


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

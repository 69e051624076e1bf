"""What follows in a changed device: a value that nobody changed, but that belongs to one that somebody did.

A device with one number changed may be no device: a bus of 256 pins at 10 Gbit/s moves 320 GB/s and no more, and no core runs
dense SIMD code faster than all cores run any. Such a value follows what was changed; the answer says so (`FOLLOWS`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from archsim.base.units import show
from archsim.device.entry import Entry
from archsim.device.silicon import silicon

if TYPE_CHECKING:
    from archsim.device.part import Number

FOLLOWS = "follows"  # the kind of such an entry
TOLERANCE = 0.015  # makers round what they state to two or three digits
BANDWIDTH, BUS, RATE, TYPE = (f"memory.{name}" for name in ("bandwidth", "bus", "data_rate", "type"))
MEMORY = (BANDWIDTH, BUS, RATE)
LEADERS = {  # key -> the key whose changes it takes part in, by the same factor
    "clock.simd": "clock.all_core", "clock.simd512": "clock.all_core", "clock.sustained": "clock.boost",
}  # fmt: skip
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
    for key, value, why in (*_memory(before, after, given), *(_clocks(before, after, given) if clocks else ())):
        unit = {BANDWIDTH: "B/s", BUS: "bit", RATE: "bit/s"}.get(key, "Hz")
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


def contradiction(found: Entries) -> str:
    """What is wrong with bandwidth, bus and rate of a memory that has all three; empty where they agree."""
    numbers = {key: found[key].number for key in MEMORY if key in found and not found[key].absent}
    if np.max(gap(numbers)) <= TOLERANCE:
        return ""
    moved = show(float(np.ravel(numbers[BUS] * numbers[RATE])[0]) / 8.0, "B/s")
    return (f"{BANDWIDTH}: {found[BANDWIDTH].written} is not {moved}, what {BUS} ({found[BUS].written}) moves at {RATE} "
            f"({found[RATE].written}); leave one of the three out")  # fmt: skip


def notes(found: Entries) -> list[str]:
    """What is said of the values that follow."""
    return [f"{key} {entry.written}: {entry.source}" for key, entry in found.items() if entry.kind == FOLLOWS]

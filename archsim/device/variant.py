"""What a device was changed from, which values differ, what it is called; and one of several whose numbers are columns, [D, 1].

A what-if (`with_settings`), a file that inherits, and a file that bears the id of a shipped device all have a `base`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from archsim.base.record import digest_of
from archsim.device.entry import ABSENT, Entry
from archsim.device.spec import BUS, FOLLOWS, RATE, Spec, unit_of

MOST_NAMED = 3  # changes that a name lists
LONGEST = 60  # characters of a changed word in a name


def changes(spec: Spec) -> dict[str, str]:
    """The values of which `spec` has another one than its base, as written, by key; empty without a base.

    Of keys that no model reads, only those that a what-if set, and none that follows from others. A value that the base has and
    `spec` lacks is "absent".

    >>> from archsim.device.catalog import find
    >>> changes(find("gtx_1080").with_settings({"sm.count": "80", "l2.size": "2 MiB"}))  # it has 2 MiB
    {'sm.count': '80'}
    """
    base = spec.base
    if base is None:
        return {}
    found = {}
    if spec.identity.architecture != base.identity.architecture:
        found["architecture"] = spec.identity.architecture
    for key in dict.fromkeys((*base.entries, *spec.entries)):
        before, after = base.entries.get(key), spec.entries.get(key)
        told = not unit_of(spec.kind, key).informational or (after is not None and after.kind == "set")
        if told and not same_value(before, after) and not (after is not None and after.kind == FOLLOWS):
            found[key] = ABSENT if after is None else after.written
    return found


def same_value(one: Entry | None, other: Entry | None) -> bool:
    """Whether two entries have the same value, or neither is there."""
    if one is None or other is None:
        return one is other
    return bool(np.array_equal(np.asarray(one.value), np.asarray(other.value)))


def called(spec: Spec, short: bool = False) -> str:
    """What people call a device: its id, with what makes it another device than the one that it was changed from.

    short: without what a file of its own id inherits and changes

    >>> from archsim.device.catalog import find
    >>> called(find("gtx_1080")), called(find("gtx_1080").with_settings({"sm.count": "80"}))
    ('gtx_1080', 'gtx_1080 with sm.count = 80')
    """
    found = changes(spec)
    if spec.base is None or not found:
        return spec.identity.id
    words = f"{called(spec.base, short)} with {_listed(found)}"
    if spec.identity.id == spec.base.identity.id:
        return words
    return spec.identity.id if short else f"{spec.identity.id} ({words})"


def device_fields(spec: Spec) -> dict[str, Any]:
    """What JSON says of a device: its id, what it is called, and what was changed."""
    return {"hardware": spec.identity.id, "hardware_name": called(spec), "changes": changes(spec)}


def _listed(found: Mapping[str, str]) -> str:
    named = [f"{key} = {_plain(text)}" for key, text in found.items()]
    if len(named) <= MOST_NAMED:
        return ", ".join(named)
    return f"{', '.join(named[: MOST_NAMED - 1])} and {len(named) - MOST_NAMED + 1} other values"


def _plain(text: str) -> str:
    """A written value on one line, without control characters."""
    shown = "".join(c if c.isprintable() else "?" for c in text)
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 3]}..."


def values_digest(spec: Spec) -> str:
    """A hash of what the models read of a device: the values of every key that is not only shown, and whose kernels it runs.

    The id, sources and notes do not count, and the bandwidth stands for the bus and its rate: two devices with one digest have
    the same predictions.
    """
    read = sorted(key for key in spec.entries if not unit_of(spec.kind, key).informational and key not in (BUS, RATE))
    return digest_of([spec.kind, spec.identity.kernels_of, {key: spec.entries[key].value for key in read}])


PER_CORE = ("sm.", "rate.", "l1.", "core.")  # keys of one SM or core
OF_ALL = ("sm.count", "core.count", "core.threads", "core.sockets")
LACKING = math.log(8.0)  # a unit that one of two devices lacks, or another word, counts as eight times the rate
YEAR = 0.05  # of a year between two devices, so that of two equal SMs the nearer in time is taken


def of_one_core(key: str) -> bool:
    """Whether a key tells of one SM or core, not of how many there are or of what they share.

    >>> of_one_core("sm.warps"), of_one_core("sm.count"), of_one_core("memory.bandwidth")
    (True, False, False)
    """
    return key.startswith(PER_CORE) and key not in OF_ALL


def distance(one: Spec, other: Spec) -> float:
    """How far the SMs or cores of two devices are apart: the sum of |ln(value / other value)| over what one of them has.

    >>> from archsim.device.catalog import find
    >>> distance(find("gtx_1080"), find("gtx_1080_ti")) < distance(find("gtx_1080"), find("tesla_t4"))
    True
    """
    total = YEAR * abs(one.identity.year - other.identity.year)
    for key in {*one.entries, *other.entries}:
        if of_one_core(key) and not unit_of(one.kind, key).cycle:
            a, b = one.entries.get(key), other.entries.get(key)
            if a is None or b is None:
                total += LACKING
            elif isinstance(a.value, str):
                total += LACKING * (a.value != b.value)
            else:
                total += abs(math.log(float(a.number) / float(b.number)))
    return total


# ------------------------------------------------------------------------------------------------------- one of several


def rows_of(device: Any) -> int:
    """How many devices a record with columns stands for.

    >>> from archsim.device.catalog import find
    >>> rows_of(find("gtx_1080").device), rows_of(find("gtx_1080").with_values({"sm.count": np.array([[10.0], [20.0]])}).device)
    (1, 2)
    """
    if is_dataclass(device) and not isinstance(device, type):
        return max((rows_of(getattr(device, one.name)) for one in fields(device)), default=1)
    return int(device.size) if isinstance(device, np.ndarray) else 1


def first_of(numbers: Any) -> float:
    """A number as such, or that of the first device of a column.

    >>> first_of(2), first_of(np.array([[10.0], [20.0]]))
    (2.0, 10.0)
    """
    return float(np.ravel(numbers)[0])


def at_row(device: Any, row: int) -> Any:
    """The device of a row, with a number for each column; the record itself where it has no columns.

    >>> from archsim.device.catalog import find
    >>> at_row(find("gtx_1080").with_values({"sm.count": np.array([[10.0], [20.0]])}).device, 1).sm.count
    20.0
    """
    if isinstance(device, np.ndarray):
        return float(np.ravel(device)[row if device.size > 1 else 0])
    if not is_dataclass(device) or isinstance(device, type) or rows_of(device) == 1:
        return device
    return replace(device, **{one.name: at_row(getattr(device, one.name), row) for one in fields(device) if one.init})

"""The file of a device that differs from a known one in some values: what `archsim new hw` writes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from archsim.base.errors import InputError, nearest
from archsim.device.device import OPTIONAL_PARTS
from archsim.device.entry import quantity
from archsim.device.file import SCHEMA
from archsim.device.spec import Spec, keys, unit_of
from archsim.device.write import Words, file_value, header_lines, table_lines

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
    problems = _problems(base, settings)
    if problems:
        raise InputError("--set", problems)
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

"""Rows of a file that say how busy the units of a device were, and the power of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from archsim.base.errors import ArchsimError, InputError
from archsim.base.limits import LIMITS
from archsim.base.units import parse
from archsim.device.counters import package_unit_named, unit_named
from archsim.estimation.hardware import find_device
from archsim.estimation.power import PowerEstimate, power_by_unit
from archsim.evidence.table import MOST_TOLD, Row, read_table, refuse

UNITS = {"clock": "Hz", "memory_clock": "Hz", "power": "W"}  # of columns that are no unit of the device; `power` was measured
OWN = ("name", *UNITS)


def powers_of_file(path: str | Path, hw: str, **asked: Any) -> tuple[PowerEstimate, ...]:
    """The power of each row of a file.

    A row has the share of each unit in its column, and may have a `name`, a `clock` and a `memory_clock` with their units, and
    the `power` that was measured (`231 W`). An empty cell says nothing.

    asked: arguments of `power_by_unit`; a clock of a row goes before the one that is given here

    Raises MissingFile, or InputError with every problem and its line.
    """
    table, problems = read_table(path, LIMITS["shares"]), []
    named = package_unit_named if find_device(hw, asked.get("settings"), asked.get("scales")).kind == "cpu" else unit_named
    units = [name for name in table.header if name not in OWN]
    for name in units:
        try:
            named(name)
        except ArchsimError as error:
            problems.append(f"line 1: column {name!r}: {error}")
    if not units:
        problems.append("line 1: no column for a unit; columns are units, name, clock, memory_clock and power")
    refuse(table.path, problems)
    power_by_unit(hw, {}, **asked)  # what is wrong with the device or the words of the question is no problem of a line
    found: list[PowerEstimate] = []
    for row in table.rows:
        try:
            found.append(_power(row, hw, asked))
        except (ArchsimError, ValueError) as error:
            problems.append(f"line {row.line}: {error}")
            if len(problems) >= MOST_TOLD:
                break
    refuse(table.path, problems)
    return tuple(found)


def _power(row: Row, hw: str, asked: Mapping[str, Any]) -> PowerEstimate:
    cells = {name: text.strip() for name, text in row.cells.items() if text.strip()}
    numbers = {name: _number(name, cells.pop(name)) for name in UNITS if name in cells}
    name, measured = cells.pop("name", ""), numbers.pop("power", None)
    found = power_by_unit(hw, cells, **{**asked, **numbers, "name": name})
    if measured is None:
        return found
    if not measured > 0.0:
        raise InputError("power", "must be more than 0 W")
    return replace(found, measured_w=measured, error=found.power_w / measured - 1.0)


def _number(column: str, text: str) -> float:
    try:
        return parse(text, UNITS[column])
    except ValueError as error:
        raise InputError(column, str(error)) from None

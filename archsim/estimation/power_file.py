"""Rows of a file that say how busy the units of a device were, and the power of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from archsim.base.errors import ArchsimError, InputError
from archsim.base.files import LIMITS
from archsim.base.units import parse
from archsim.device.units import package_unit_named, unit_named
from archsim.estimation.power import power_by_unit
from archsim.estimation.power_estimate import PowerEstimate
from archsim.estimation.request import find_device
from archsim.evidence.table import MOST_TOLD, Row, read_table, refuse

CLOCKS = ("clock", "memory_clock")
MEASURED = "power"  # the column of what was measured
OWN = ("name", *CLOCKS, MEASURED)


def powers_of_file(path: str | Path, hw: str, **asked: Any) -> tuple[PowerEstimate, ...]:
    """The power of each row of a file.

    A row has the share of each unit in its column, and may have a `name`, a `clock` and a `memory_clock` with their units, and
    the `power` that was measured (`231 W`). An empty cell says nothing.

    asked: arguments of `power_by_unit`; a clock of a row goes before the one that is given here

    Raises MissingFile, or InputError with every problem and its line.
    """
    table = read_table(path, LIMITS["shares"])
    named = package_unit_named if find_device(hw, asked.get("settings"), asked.get("scales")).kind == "cpu" else unit_named
    problems = [problem for name in table.header if name not in OWN for problem in _column(name, named)]
    if not set(table.header) - set(OWN):
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


def _column(name: str, named: Callable[[str], str]) -> list[str]:
    try:
        named(name)
    except ArchsimError as error:
        return [f"line 1: column {name!r}: {error}"]
    return []


def _power(row: Row, hw: str, asked: Mapping[str, Any]) -> PowerEstimate:
    cells = {name: text.strip() for name, text in row.cells.items() if text.strip()}
    clocks = {column: _clock(column, cells[column]) for column in CLOCKS if column in cells}
    shares = {name: text for name, text in cells.items() if name not in OWN}
    found = power_by_unit(hw, shares, **{**asked, **clocks, "name": cells.get("name", "")})
    if MEASURED not in cells:
        return found
    try:
        measured = parse(cells[MEASURED], "W")
    except ValueError as error:
        raise InputError(MEASURED, str(error)) from None
    if not measured > 0.0:
        raise InputError(MEASURED, "must be more than 0 W")
    return replace(found, measured_w=measured, error=found.power_w / measured - 1.0)


def _clock(column: str, text: str) -> float:
    try:
        return parse(text, "Hz")
    except ValueError as error:
        raise InputError(column, str(error)) from None

"""Rows of a file that say how busy the units of a GPU were, and the power of each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from archsim.base.errors import ArchsimError, InputError
from archsim.base.limits import LIMITS
from archsim.base.units import parse
from archsim.device.counters import unit_named
from archsim.estimation.power import PowerEstimate, power_by_unit
from archsim.evidence.table import MOST_TOLD, Row, read_table, refuse

CLOCKS = {"clock": "clock", "memory_clock": "memory_clock_hz"}  # column -> argument
OWN = ("name", *CLOCKS)


def powers_of_file(path: str | Path, hw: str, **asked: Any) -> tuple[PowerEstimate, ...]:
    """The power of each row of a file.

    A row has the share of each unit in its column, and may have a `name`, a `clock` and a `memory_clock` with their units. An
    empty cell says nothing of a unit or a clock.

    asked: arguments of `power_by_unit`; a clock of a row goes before the one that is given here

    Raises MissingFile, or InputError with every problem and its line.
    """
    table = read_table(path, LIMITS["shares"])
    problems = [problem for name in table.header if name not in OWN for problem in _column(name)]
    if not set(table.header) - set(OWN):
        problems.append("line 1: no column for a unit; columns are units, name, clock and memory_clock")
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


def _column(name: str) -> list[str]:
    try:
        unit_named(name)
    except ArchsimError as error:
        return [f"line 1: column {name!r}: {error}"]
    return []


def _power(row: Row, hw: str, asked: Mapping[str, Any]) -> PowerEstimate:
    cells = {name: text.strip() for name, text in row.cells.items() if text.strip()}
    clocks = {argument: _clock(column, cells[column]) for column, argument in CLOCKS.items() if column in cells}
    shares = {name: text for name, text in cells.items() if name not in OWN}
    return power_by_unit(hw, shares, **{**asked, **clocks, "name": cells.get("name", "")})


def _clock(column: str, text: str) -> float:
    try:
        return parse(text, "Hz")
    except ValueError as error:
        raise InputError(column, str(error)) from None

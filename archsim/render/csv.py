"""Rows as CSV, as a spreadsheet may open them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

NUMBER = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?")  # rounded, and so a text

def csv_lines(rows: Iterable[Sequence[Any]]) -> str:
    r"""CSV with `\n` line ends; text that a spreadsheet would run as a formula is escaped."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerows([[_harmless(cell) for cell in row] for row in rows])
    return buffer.getvalue()


def records_csv(records: Iterable[Mapping[str, Any]], every: Mapping[str, Any] | None = None) -> str:
    """CSV of the numbers and texts of records, one row each, behind those that `every` row has; "" without records.

    Tables in a record are columns NAME.KEY, lists are left out.
    """
    rows = [_flat({**(every or {}), **record}) for record in records]
    head = tuple(dict.fromkeys(name for row in rows for name in row))
    return csv_lines([head, *([row.get(name) for name in head] for row in rows)]) if rows else ""


def _flat(record: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{before}{name}.")
        elif not isinstance(value, list | tuple):
            found[f"{before}{name}"] = value
    return found


def _harmless(cell: Any) -> Any:
    risky = isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") and not NUMBER.fullmatch(cell)
    return f"'{cell}" if risky else cell

"""Price lists: CSV with the columns device, price, per_hour, source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from archsim.base.errors import ArchsimError, nearest
from archsim.base.limits import LIMITS
from archsim.evidence.table import MOST_TOLD, Row, read_table, refuse
from archsim.study.price import Price, price_of

COLUMNS = ("device", "price", "per_hour", "source")


def read_prices(path: str | Path, exchange: Mapping[str, float], id_of: Callable[[str], str]) -> dict[str, Price]:
    """The prices of a file by id of the device.

    A row has the name of a device, a price to buy (`599 USD`), a price to rent (`2.5 USD/h`) or both, and where they are from.
    exchange: dollars for one unit of other currencies; id_of: the id of a device by its name

    Raises MissingFile, or InputError with every problem and its line.
    """
    table = read_table(path, LIMITS["prices"])
    problems = [f"line 1: no column {name!r}; a price list has {', '.join(COLUMNS)}" for name in ("device", "source")
                if name not in table.header]  # fmt: skip
    if not {"price", "per_hour"} & set(table.header):
        problems.append("line 1: neither a column 'price' nor a column 'per_hour'")
    for name in table.header:
        if name not in COLUMNS:
            near = nearest(name, COLUMNS) or COLUMNS
            problems.append(f"line 1: unknown column {name!r}; nearest: {', '.join(near)}")
    refuse(table.path, problems)
    found: dict[str, Price] = {}
    lines: dict[str, int] = {}
    for row in table.rows:
        try:
            identity, price = _read(row, table.path, exchange, id_of)
        except ArchsimError as error:
            problems.append(f"line {row.line}: {error}")
            if len(problems) >= MOST_TOLD:  # the nearest names of each take long
                break
            continue
        if identity in found:
            problems.append(f"line {row.line}: {identity} has a price in line {lines[identity]} already")
        found[identity], lines[identity] = price, row.line
    refuse(table.path, problems)
    return found


def _read(row: Row, path: str, exchange: Mapping[str, float], id_of: Callable[[str], str]) -> tuple[str, Price]:
    cells = {name: text.strip() for name, text in row.cells.items()}
    if not cells.get("price") and not cells.get("per_hour"):
        raise ArchsimError("neither a price nor a price per hour")
    if not cells["source"]:
        raise ArchsimError("no source; say where the price is from, or when it was asked")
    return id_of(cells["device"]), price_of(cells, "given", f"{cells['source']} ({path})", exchange)

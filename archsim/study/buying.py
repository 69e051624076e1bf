"""What a buyer says: prices of devices, how they are used, and how much work there is; from texts and numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from archsim.base.arguments import ARGUMENTS
from archsim.base.errors import ArchsimError, ArgumentError, nearest
from archsim.base.files import LIMITS
from archsim.base.units import COUNT
from archsim.base.values import quantity
from archsim.detect.catalog import selected
from archsim.estimation.request import find_device
from archsim.evidence.table import MOST_TOLD, Row, read_table, refuse
from archsim.study.price import Price, merged, money, price_of
from archsim.study.usage import TRAINING, Usage, Workload
from archsim.trace.task import task_of

COLUMNS = ("device", "price", "per_hour", "source")


def read_prices(path: str | Path, id_of: Callable[[str], str]) -> dict[str, Price]:
    """The prices of a file by id of the device.

    A row has the name of a device, a price to buy (`599 USD`), a price to rent (`2.5 USD/h`) or both, and where they are from.
    id_of: the id of a device by its name

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
            identity, price = _read(row, table.path, id_of)
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


def _read(row: Row, path: str, id_of: Callable[[str], str]) -> tuple[str, Price]:
    cells = {name: text.strip() for name, text in row.cells.items()}
    if not cells.get("price") and not cells.get("per_hour"):
        raise ArchsimError("neither a price nor a price per hour")
    if not cells["source"]:
        raise ArchsimError("no source; say where the price is from, or when it was asked")
    return id_of(cells["device"]), price_of(cells, "given", f"{cells['source']} ({path})")


YEARS = {"years": 1.0, "year": 1.0, "y": 1.0, "months": 1 / 12, "month": 1 / 12, "days": 1 / 365, "day": 1 / 365, "h": 1 / 8760}
LIFETIMES = (1 / 8760, 100.0)  # years of use that can be asked for
T = TypeVar("T")
_TIME = re.compile(r"\s*([-+.eE\d]+)\s*([a-z]+)\s*", re.ASCII)


def bought(
    said: Mapping[str, Any], compared: Sequence[str], task: str
) -> tuple[dict[str, Price], Usage, Workload | None]:
    """Prices by id of the device, the use, and the size of the work, from what a buyer says (group `buyer` of `ARGUMENTS`)."""
    for name in ("duty", "pue", "samples", "epochs"):
        if said.get(name) is not None:
            ARGUMENTS[name].check(said[name])
    usage = usage_of(*map(said.get, ("lifetime", "duty", "electricity", "pue")))
    prices = device_prices(said.get("price") or (), said.get("prices"), compared)
    return prices, usage, workload_of(said.get("samples"), said.get("epochs"), task)


def device_prices(said: Iterable[tuple[str, str]], file: str | Path | None, compared: Sequence[str]) -> dict[str, Price]:
    """Prices by id of the device: those of a file, and in their place those that are said, as (device or pattern, amount).

    compared: the devices that are compared; a price of another one that is said is an error, one in a file is not used

    Raises ArgumentError, UnknownName, or what `read_prices` raises.
    """
    ids = {name: find_device(name, None).identity.id for name in compared}

    def id_of(name: str) -> str:
        return ids[name] if name in ids else find_device(name, None).identity.id

    found = {} if file is None else read_prices(file, id_of)
    seen = set[tuple[str, str]]()
    for name, amount in said:
        key = "per_hour" if "/" in amount else "price"
        price = _named(f"price {name}", price_of, {key: amount}, "given", "--price")
        named = [identity for identity in map(id_of, selected([name])) if identity in ids.values()]
        if not named:
            raise ArgumentError(f"price {name}: is not among the devices that are compared")
        for identity in named:
            if (identity, key) in seen:
                raise ArgumentError(f"price {name}: that of {identity} is given twice")
            seen.add((identity, key))
            found[identity] = merged(found.get(identity), price)
    return found


def usage_of(lifetime: str | None, duty: float | None, electricity: str | None, pue: float | None) -> Usage:
    """How devices are used: `3years`, a share, `0.25USD/kWh`, a factor. Raises ArgumentError.

    >>> usage_of("18months", 0.5, None, None).years, usage_of(None, None, "0.25USD/kWh", 1.2).overhead
    (1.5, 1.2)
    """
    if pue is not None and electricity is None:
        raise ArgumentError("pue: needs the price of electricity, which it multiplies (--electricity 0.25USD/kWh)")
    return Usage(
        lifetime_years=None if lifetime is None else _years(lifetime), duty=duty, pue=pue,
        electricity=None if electricity is None else _named("electricity", money, electricity, "kWh"),
    )  # fmt: skip


def workload_of(samples: int | None, epochs: int | None, task: str) -> Workload | None:
    """The size of the work; None where nothing is said. Raises ArgumentError.

    >>> workload_of(1280000, 90, "training_step")
    Workload(samples=1280000, epochs=90)
    """
    if epochs is not None and samples is None:
        raise ArgumentError("epochs: needs --samples, the size of the data set")
    if epochs is not None and task_of(task) not in TRAINING:
        raise ArgumentError(f"epochs: are of --task {' or '.join(TRAINING)}, not of {task}")
    return None if samples is None else Workload(samples=samples, epochs=1 if epochs is None else epochs)


def _named(name: str, read: Callable[..., T], *words: object) -> T:
    """What `read` makes of the words; its error names what they are."""
    try:
        return read(*words)
    except ValueError as error:
        raise ArgumentError(f"{name}: {error}") from None


def _years(text: str) -> float:
    match = _TIME.fullmatch(text)
    if match is None or match[2] not in YEARS:
        raise ArgumentError(f"lifetime: {text!r} is not a time like 3years or 18months")
    years = _named("lifetime", quantity, match[1], COUNT) * YEARS[match[2]]
    if not LIFETIMES[0] <= years <= LIFETIMES[1]:
        raise ArgumentError(f"lifetime: {text!r} is not between 1h and {LIFETIMES[1]:g}years")
    return years

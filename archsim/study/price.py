"""Prices of devices, from a spec or the user; what their use costs: wear, rent, electricity; what a buyer says of both."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from archsim.base.arguments import ARGUMENTS
from archsim.base.errors import ArchsimError, ArgumentError, near_words
from archsim.base.files import LIMITS
from archsim.base.units import COUNT
from archsim.base.values import quantity, read
from archsim.detect.catalog import selected
from archsim.device.spec import Spec
from archsim.estimation.hardware import find_device
from archsim.evidence.table import MOST_TOLD, Row, read_table, refuse
from archsim.trace.task import task_of

USD = "USD"
LEAST, LARGEST = 1e-9, 1e12  # USD; no price is as small or as large
_AMOUNT = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([^\s\d/]*)\s*(/\s*\w+)?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a device costs to buy [USD] and to rent [USD/h], each None where it is not known.

    kind: of the price to buy: datasheet or assumed, as in a spec, or given, by the user
    source: where both are from
    """

    usd: float | None
    usd_per_h: float | None
    kind: str
    source: str


def spec_price(spec: Spec) -> Price | None:
    """The launch price of a spec; None where it has none."""
    entry = spec.entries.get("market.price")
    if entry is None:
        return None
    source = "the price that its spec assumes" if entry.unpublished else "launch price, its spec"
    return Price(usd=float(entry.value), usd_per_h=None, kind="assumed" if entry.unpublished else entry.kind, source=source)


def money(text: str, per: str = "") -> float:
    """An amount of money in dollars: `30000 USD`, or with `per` `2.5 USD/h`.

    Raises ArgumentError.

    >>> money("30000USD"), money("0.25 USD/kWh", "kWh")
    (30000.0, 0.25)
    """
    example = {"": "599USD", "h": "2.5USD/h", "kWh": "0.25USD/kWh"}[per]
    match = _AMOUNT.fullmatch(text.strip())
    if match is None or (match[3] or "").replace("/", "").strip() != per:
        raise ArgumentError(f"{text.strip()!r} is not an amount of money{f' per {per}' if per else ''}; write it like {example}")
    if match[2] != USD:
        raise ArgumentError(f"{text.strip()!r} is not in {USD}; write it like {example}")
    value = float(match[1])
    if not LEAST <= value <= LARGEST:
        raise ArgumentError(f"{text.strip()!r} is not between {LEAST:g} and {LARGEST:g} USD")
    return value


def price_of(texts: Mapping[str, str], kind: str, source: str) -> Price:
    """A price from amounts with the keys `price` and `per_hour`, of which one may lack or be empty."""
    buy, rent = texts.get("price", ""), texts.get("per_hour", "")
    return Price(usd=money(buy) if buy else None, usd_per_h=money(rent, "h") if rent else None,
                 kind=kind, source=source)  # fmt: skip


def merged(first: Price | None, then: Price) -> Price:
    """A price with what a later one says; what that leaves out stays.

    >>> launch = Price(usd=5.0, usd_per_h=None, kind="datasheet", source="launch")
    >>> merged(launch, Price(usd=None, usd_per_h=1.0, kind="given", source="a")).usd
    5.0
    """
    if first is None:
        return then
    whole = then.usd is not None and (then.usd_per_h is not None or first.usd_per_h is None)
    source = then.source if whole or first.source == then.source else f"{first.source}; {then.source}"
    return Price(
        usd=first.usd if then.usd is None else then.usd, usd_per_h=first.usd_per_h if then.usd_per_h is None else then.usd_per_h,
        kind=first.kind if then.usd is None else then.kind, source=source,
    )  # fmt: skip


# ---------------------------------------------------------------------------------------------------------------- usage

TRAINING = ("training_step", "forward_backward")  # tasks of which an epoch is made
YEAR = 365.0 * 24.0  # h
LIFETIME = 3.0  # years; what a buyer writes a device off over, if he does not say
KILO = 1000.0  # W/kW


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """How long and how hard a device is used, and what electricity costs; what is None takes its default, or is not counted.

    lifetime_years: years until a device that was bought is written off
    duty: share of that time in which it works; it idles in the rest
    electricity: price of electricity [USD/kWh]; without it, electricity is not counted
    pue: energy of the whole room / energy of the devices (power usage effectiveness)
    """

    lifetime_years: float | None = None
    duty: float | None = None
    electricity: float | None = None
    pue: float | None = None

    @property
    def years(self) -> float:
        """The lifetime, 3 years if not given."""
        return LIFETIME if self.lifetime_years is None else self.lifetime_years

    @property
    def share(self) -> float:
        """The duty, 1 if not given: it always works."""
        return 1.0 if self.duty is None else self.duty

    @property
    def overhead(self) -> float:
        """The PUE, 1 if not given: no energy for cooling."""
        return 1.0 if self.pue is None else self.pue

    @property
    def given(self) -> bool:
        """Whether anything was said about the use."""
        return any(v is not None for v in (self.lifetime_years, self.duty, self.electricity, self.pue))


def hourly_cost(price: Price, usage: Usage, power_w: float, idle_w: float) -> Mapping[str, float] | None:
    """Cost of an hour of work by part [USD/h]; None without a price.

    rented: price per hour, electricity included; only hours of work are paid
    bought: price / (lifetime x duty) + electricity x PUE x (P + P_idle (1 - duty) / duty)

    power_w: P, power at work [W]; idle_w: P_idle, power in the hours without work [W]

    >>> bought = Price(usd=2628.0, usd_per_h=None, kind="given", source="")
    >>> hourly_cost(bought, Usage(duty=0.5, electricity=0.25, pue=2.0), 200.0, 20.0)
    {'purchase': 0.2, 'electricity': 0.1, 'idle electricity': 0.01}
    """
    if price.usd_per_h is not None:
        return {"rent": price.usd_per_h}
    if price.usd is None:
        return None
    parts = {"purchase": price.usd / (usage.years * YEAR * usage.share)}
    if usage.electricity is not None:
        tariff = usage.electricity * usage.overhead / KILO
        parts["electricity"] = tariff * power_w
        parts["idle electricity"] = tariff * idle_w * (1.0 - usage.share) / usage.share
    return parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Work of a given size: all samples of a data set, `epochs` times."""

    samples: int
    epochs: int = 1

    def batches(self, batch: int) -> int:
        """How many batches that takes; the last of each epoch may be filled in part, and takes as long as a full one.

        >>> Workload(samples=1000, epochs=3).batches(128)
        24
        """
        return ceil(self.samples / batch) * self.epochs


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTotals:
    """What work of a given size takes on one device: batches, time with its interval [s], energy [J], cost [USD]."""

    batches: int
    time_s: float
    interval_s: tuple[float, float]
    energy_j: float
    cost_usd: float | None


# ---------------------------------------------------------------------------------------------------- what a buyer says

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
    problems += [f"line 1: unknown column {name!r}; nearest: {near_words(name, COLUMNS)}"
                 for name in table.header if name not in COLUMNS]  # fmt: skip
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
        price = read(f"price {name}", price_of, {key: amount}, "given", "--price")
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
        electricity=None if electricity is None else read("electricity", money, electricity, "kWh"),
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


def _years(text: str) -> float:
    match = _TIME.fullmatch(text)
    if match is None or match[2] not in YEARS:
        raise ArgumentError(f"lifetime: {text!r} is not a time like 3years or 18months")
    years = read("lifetime", quantity, match[1], COUNT) * YEARS[match[2]]
    if not LIFETIMES[0] <= years <= LIFETIMES[1]:
        raise ArgumentError(f"lifetime: {text!r} is not between 1h and {LIFETIMES[1]:g}years")
    return years

"""Prices of devices: what a spec says, what the user says, and amounts of money with their units."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from archsim.base.errors import ArgumentError
from archsim.device.spec import Spec

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

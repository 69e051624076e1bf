"""What devices cost to buy and to use, and what work of a given size takes on each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from archsim.base.units import show
from archsim.render.blocks import Cell, Column, Facts, Table, columns, words
from archsim.study.comparison import Comparison
from archsim.study.contender import Contender, job_totals
from archsim.study.difference import listed
from archsim.study.price import Price
from archsim.study.usage import Usage, Workload

DAY, HOUR, MINUTE = 86400.0, 3600.0, 60.0  # s
KWH = 3.6e6  # J
PARTS = ("purchase", "electricity", "idle electricity", "rent")
Called = Mapping[str, str]


def duration(seconds: float) -> str:
    """A time in the unit in which people wait for it.

    >>> duration(200000), duration(5000), duration(90), duration(0.02)
    ('2.31 days', '1.39 h', '1.5 min', '20 ms')
    """
    for size, name in ((DAY, "days"), (HOUR, "h"), (MINUTE, "min")):
        if seconds >= size:
            return f"{seconds / size:,.0f} {name}" if seconds >= 1000 * size else f"{seconds / size:.3g} {name}"
    return show(seconds, "s", 3)


def money_text(usd: float | None) -> str:
    """An amount of dollars."""
    if usd is None:
        return "-"
    return f"{usd:,.0f} USD" if usd >= 1000 else f"{usd:.3g} USD"


def price_text(price: Price | None) -> str:
    """The price to buy, with a question mark where a spec assumes it."""
    if price is None or price.usd is None:
        return "-"
    return f"{price.usd:.0f} USD" + ("?" if price.kind == "assumed" else "")


def price_rows(c: Comparison, called: Called) -> list[tuple[str, Any]]:
    """Prices that are missing or assumed, for the first screen."""
    rows = []
    for r in [r for r in c.rankings if r.unranked][:1]:
        names = dict.fromkeys(called[x.device_name] for x in c.contenders if x.name in r.unranked)
        rows.append(("no price", f"of {listed(list(names))} for {r.criterion.title}: {r.criterion.missing}"))
    assumed = list(dict.fromkeys(called[x.name] for x in c.contenders if x.price is not None and x.price.kind == "assumed"))
    return [*rows, ("USD?", f"no list price of {listed(assumed)} is published; the spec assumes one" if assumed else "")]


def money_facts(c: Comparison, called: Called) -> Facts:
    """Where prices are from, and what costs are made of."""
    found = c.contenders
    given = {x.device_name: x.price for x in found if x.price is not None and
             (x.price.kind == "given" or x.price.usd_per_h is not None)}  # fmt: skip
    lines = [f"{called[name]}: {_amounts(price)} ({price.source})" for name, price in given.items()]
    if any(x.price_usd is not None and x.device_name not in given for x in found):
        lines.append("those of the device alone, at its launch unless another one is given (--price, --prices)")
    used = any(r.criterion.usage for r in c.rankings) and bool(found)
    return Facts(title="Prices", rows=[("prices", lines), ("costs", usage_notes(found) if used else [])], level=2)


def _amounts(price: Price) -> str:
    buy = [] if price.usd is None else [f"{price.usd:g} USD to buy"]
    return ", ".join(buy + ([] if price.usd_per_h is None else [f"{price.usd_per_h:g} USD/h to rent"]))


def usage_notes(contenders: Sequence[Contender]) -> list[str]:
    """What costs are made of, and what was assumed of the use."""
    u = contenders[0].usage
    rented = any(c.price is not None and c.price.usd_per_h is not None for c in contenders)
    bought = any(c.price is not None and c.price.usd_per_h is None for c in contenders)
    lines = []
    if bought:
        lines.append(f"bought: worth nothing after {u.years:g} years{_assumed(u.lifetime_years)}, at work "
                     f"{100 * u.share:g} % of the time{_assumed(u.duty)}; {_electricity(u)}")  # fmt: skip
    if rented:
        lines.append("rented: electricity is in the price, and only hours of work are paid")
    return [*lines, "costs are those of the device alone, without host, room and staff; M: million"]


def _electricity(u: Usage) -> str:
    if u.electricity is None:
        return "electricity is not counted (--electricity 0.25USD/kWh)"
    idle = "; it idles in the rest" if u.share < 1 else ""
    return f"electricity {u.electricity:g} USD/kWh, PUE {u.overhead:g}{_assumed(u.pue)}{idle}"


def _assumed(given: float | None) -> str:
    return " (assumed)" if given is None else ""


def cost_table(c: Comparison, called: Called) -> list[Table]:
    """What an hour of work costs by part, and a million samples, the cheapest first; nothing if nothing was said of the use."""
    ranked = next((r.order for r in c.rankings if r.criterion.usage), ())
    parts = [part for part in PARTS if any((x.hourly_usd or {}).get(part) for x in ranked)]
    rows = [[words(called[x.name]), *map(_amount, (*map((x.hourly_usd or {}).get, parts), x.usd_per_hour, x.usd_per_million))]
            for x in ranked]  # fmt: skip
    if not rows:
        return []
    heads = ("device", *(f"{part} USD/h" for part in parts), "USD/h", f"USD/M {ranked[0].estimate.sample}")
    return [Table(title="Cost of work", columns=columns(*heads, numbers=range(1, len(heads))), rows=rows, level=2)]


def _amount(usd: float | None) -> Cell:
    return words("-") if usd is None else Cell(text=f"{usd:.3g}", value=usd)


def work_table(work: Workload | None, contenders: Sequence[Contender], called: Called, level: int = 2) -> list[Table]:
    """What work of the size that was asked takes, quickest first; nothing without."""
    if work is None or not contenders:
        return []
    totals = sorted(((x, job_totals(x, work)) for x in contenders), key=lambda pair: pair[1].time_s)
    rows = [[words(called[x.name]), Cell(text=str(x.estimate.batch), value=x.estimate.batch),
             Cell(text=f"{t.batches:,}", value=t.batches), Cell(text=duration(t.time_s), value=t.time_s),
             words(" to ".join(map(duration, t.interval_s))), Cell(text=f"{t.energy_j / KWH:.3g} kWh", value=t.energy_j),
             Cell(text=money_text(t.cost_usd), value=t.cost_usd)] for x, t in totals]  # fmt: skip
    head = [Column(head=text, kind="text" if i in (0, 4) else "number", needed=i in (0, 1, 3, 5, 6))
            for i, text in enumerate(("device", "batch", "batches", "time", "interval", "energy", "cost"))]  # fmt: skip
    return [Table(title=_work_title(work, contenders), columns=head, rows=rows, level=level, notes=[_without(contenders[0])])]


def _work_title(work: Workload, contenders: Sequence[Contender]) -> str:
    """The size of the work, in words; with the batch, if all have the same."""
    e = contenders[0].estimate
    times = "" if work.epochs == 1 else f"{work.epochs} epochs of "
    same = len({c.estimate.batch for c in contenders}) == 1
    return f"{times}{work.samples:,} {e.sample}, {e.task}, " + (f"batch {e.batch}" if same else "each at its quickest batch")


def _without(c: Contender) -> str:
    """What these totals leave out."""
    task = c.estimate.task
    without = ["loading of data"] + ([] if task == "inference" else ["tests in between"])
    if task == "forward_backward":
        without.append("updates (--task training_step has them)")
    return f"Not counted: {', '.join(without)}; energy is that of the device, without PUE."

"""What devices cost to buy and to use, and what work of a given size takes on each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from archsim.base.units import show
from archsim.render.blocks import Cell, Facts, Table, columns, words
from archsim.study.comparison import Comparison
from archsim.study.contender import Contender, job_totals
from archsim.study.price import TRAINING, Price, Workload
from archsim.study.standing import listed

DAY, HOUR, MINUTE = 86400.0, 3600.0, 60.0  # s
KWH = 3.6e6  # J
PARTS = ("purchase", "electricity", "idle electricity", "rent")
FIRST = 10  # devices on the first screen
LONG = 20  # rows from which on a table scrolls
Called = Mapping[str, str]  # what people read in place of the names of contenders and devices


def duration(seconds: float) -> str:
    """A time in the unit in which people wait for it.

    >>> duration(200000), duration(5000), duration(90), duration(0.02)
    ('2.31 days', '1.39 h', '1.5 min', '20 ms')
    """
    for size, name in ((DAY, "days"), (HOUR, "h"), (MINUTE, "min")):
        if seconds >= size:
            return f"{seconds / size:,.0f} {name}" if seconds >= 1000 * size else f"{seconds / size:.3g} {name}"
    return show(seconds, "s", 3)


def price_text(price: Price | None) -> str:
    """The price to buy, with a question mark where a spec assumes it."""
    if price is None or price.usd is None:
        return "-"
    return f"{price.usd:.0f} USD" + ("?" if price.kind == "assumed" else "")


def price_rows(c: Comparison, called: Called) -> list[tuple[str, Any]]:
    """Prices that are missing or assumed, for the first screen."""
    r = next((r for r in c.rankings if r.unranked), None)
    lacking = dict.fromkeys(called[x.device_name] for x in c.contenders if r is not None and x.name in r.unranked)
    assumed = dict.fromkeys(called[x.name] for x in c.contenders if x.price is not None and x.price.kind == "assumed")
    return [("no price", f"of {listed([*lacking])} for {r.criterion.title}: {r.criterion.missing}" if r is not None else ""),
            ("USD?", f"no list price of {listed([*assumed])} is published; the spec assumes one" if assumed else "")]


def money_facts(c: Comparison, called: Called) -> Facts:
    """Where prices are from, and what costs are made of."""
    found = c.contenders
    given = {x.device_name: x.price for x in found if x.price is not None and
             (x.price.kind == "given" or x.price.usd_per_h is not None)}  # fmt: skip
    lines = [f"{called[name]}: {_amounts(price)} ({price.source})" for name, price in given.items()]
    lines.append("those of the device alone, at its launch unless another one is given (--price, --prices)")
    used = any(r.criterion.usage for r in c.rankings)
    return Facts(title="Prices", rows=[("prices", lines), ("costs", usage_notes(found) if used else [])], level=2)


def _amounts(price: Price) -> str:
    named = ((price.usd, "USD to buy"), (price.usd_per_h, "USD/h to rent"))
    return ", ".join(f"{usd:g} {what}" for usd, what in named if usd is not None)


def usage_notes(contenders: Sequence[Contender]) -> list[str]:
    """What costs are made of, and what was assumed of the use."""
    u = contenders[0].usage
    rented = any(c.price is not None and c.price.usd_per_h is not None for c in contenders)
    bought = any(c.price is not None and c.price.usd_per_h is None for c in contenders)
    idle = "; it idles in the rest" if u.share < 1 else ""
    power = (f"electricity {u.electricity:g} USD/kWh, PUE {u.overhead:g}{_assumed(u.pue)}{idle}" if u.electricity is not None else
             "electricity is not counted (--electricity 0.25USD/kWh)")  # fmt: skip
    lines = [f"bought: worth nothing after {u.years:g} years{_assumed(u.lifetime_years)}, at work {100 * u.share:g} % of the time"
             f"{_assumed(u.duty)}; {power}"] if bought else []  # fmt: skip
    lines += ["rented: electricity is in the price, and only hours of work are paid"] if rented else []
    return [*lines, "costs are those of the device alone, without host, room and staff; M: million"]


def _assumed(given: float | None) -> str:
    return " (assumed)" if given is None else ""


def cost_table(c: Comparison, called: Called) -> list[Table]:
    """What an hour of work costs by part, the cheapest first; nothing if nothing was said of the use."""
    costs = [(x, x.hourly_usd or {}) for r in c.rankings if r.criterion.usage for x in r.order]
    parts = [part for part in PARTS if any(hourly.get(part) for _, hourly in costs)]
    rows = [[words(called[x.name]), *map(amount, (*map(hourly.get, parts), x.usd_per_hour))] for x, hourly in costs]
    heads = ("device", *(f"{part} USD/h" for part in parts), "USD/h")
    head = columns(*heads, numbers=range(1, len(heads)))
    return [Table(title="Cost of work", columns=head, rows=rows, level=2)] if rows else []


def amount(usd: float | None) -> Cell:
    """Dollars, of which the head of a column says for what."""
    return words("-") if usd is None else Cell(text=f"{usd:,.3g}" if usd < 1000 else f"{usd:,.0f}", value=usd)


def work_table(work: Workload | None, contenders: Sequence[Contender], called: Called) -> list[Table]:
    """What work of the size that was asked takes, quickest first; nothing without."""
    if work is None or not contenders:
        return []
    totals = sorted(((x, job_totals(x, work)) for x in contenders), key=lambda pair: pair[1].time_s)
    rows = [[words(called[x.name]), Cell(text=str(x.estimate.batch), value=x.estimate.batch),
             Cell(text=duration(t.time_s), value=t.time_s), words(" to ".join(map(duration, t.interval_s))),
             Cell(text=f"{t.energy_j / KWH:.3g} kWh", value=t.energy_j), amount(t.cost_usd)] for x, t in totals]  # fmt: skip
    e = contenders[0].estimate
    times = "" if work.epochs == 1 else f"{work.epochs} epochs of "
    at = f"batch {e.batch}" if len({c.estimate.batch for c in contenders}) == 1 else "each at its quickest batch"
    without = ["loading of data", *(["tests in between"] if e.task in TRAINING else []),
               *(["updates (--task training_step has them)"] if e.task == "forward_backward" else [])]  # fmt: skip
    heads = columns("device", "batch", "time", "interval", "energy", "cost in USD", numbers=(1, 2, 4, 5), spare=(3,))
    return [Table(title=f"{times}{work.samples:,} {e.sample}, {e.task}, {at}", columns=heads, rows=rows, first=range(FIRST),
                  long=len(rows) > LONG,
                  notes=[f"Not counted: {', '.join(without)}; energy is that of the device, without PUE."])]  # fmt: skip



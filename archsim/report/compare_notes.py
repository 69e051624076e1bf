"""What a comparison says besides its numbers: who is left out and why, what else differs, prices and what was assumed."""

from __future__ import annotations

from collections.abc import Sequence

from archsim.base.units import show, show_capacity
from archsim.estimation.memory import USABLE
from archsim.report.text import wall_words
from archsim.stack import catalog
from archsim.study.comparison import Comparison, Excluded, excluded_line
from archsim.study.contender import Contender
from archsim.study.correlation import correlation_note
from archsim.study.difference import differences
from archsim.study.price import Price
from archsim.study.ranking import Ranking
from archsim.study.usage import Usage

NO_COPIES = "--no-copies leaves that out"


def unfit_line(c: Contender) -> str:
    """Why the memory of a device does not hold the work."""
    e = c.estimate
    most = {None: "", 0: "; not even one sample fits"}.get(e.max_batch, f"; largest batch {e.max_batch}")
    return (f"{c.name}: needs {show(e.memory_bytes, 'B', 3)} of {show_capacity(e.memory_capacity_bytes)}, of which "
            f"{100 * USABLE:.0f} % can be used{most}")  # fmt: skip


def left_out(unfit: Sequence[Contender], excluded: Sequence[Excluded]) -> list[tuple[str, list[str]]]:
    """Those that are not ranked, under what keeps them out."""
    found = [("does not fit", [unfit_line(c) for c in unfit]), ("cannot run", [excluded_line(one) for one in excluded])]
    return [(title, lines) for title, lines in found if lines]


def besides(contenders: Sequence[Contender]) -> str:
    """What devices of a user's file are, and what differs besides the device for several contenders; one line each."""
    own = {c.device_name: c.full_name for c in contenders if c.full_name != c.device_name}
    lines = [f"{name}: {full.removeprefix(name).strip(' ()')}" for name, full in own.items()]
    if len(contenders) > 1:
        lines.append("besides the device: " + ("; ".join(d.written for d in differences(contenders)) or "nothing differs"))
    return "\n".join([*lines, *boundary_lines(contenders)])


def software_note(c: Comparison) -> str:
    """That part of what is compared is software, where devices run their usual stacks and these are of several frameworks."""
    named: dict[str, list[str]] = {}
    for x in c.all if not c.stacks else ():
        named.setdefault(catalog.find(x.estimate.stack).framework, []).append(x.name)
    if len(named) < 2:
        return ""
    most = max(named, key=lambda framework: len(named[framework]))
    others = ", ".join(f"{framework} ({', '.join(names)})" for framework, names in named.items() if framework != most)
    return f"not comparable as software: {others} beside {most}; --stack {most} asks one framework of all"


def boundary_lines(contenders: Sequence[Contender]) -> list[str]:
    """What powers cover, where they cover different things, or a whole computer."""
    walls = {c.name: c.estimate.wall for c in contenders if c.estimate.wall is not None}
    if walls:
        named = "; ".join(f"{name} {wall_words(wall)}" for name, wall in walls.items())
        return [f"power and energy at the wall, the share of one device: {named}"]
    covered: dict[str, list[str]] = {}
    for c in contenders:
        covered.setdefault(c.estimate.power_boundary, []).append(c.name)
    if len(covered) < 2:
        return []
    named = ", ".join(f"the {name} ({', '.join(of)})" for name, of in covered.items())
    return [f"power covers {named}; --boundary wall covers the computer of each"]


def certainty(rankings: Sequence[Ranking]) -> list[str]:
    """The probability of each whole order and of the best of each, and the assumptions behind them."""
    ranked = [r for r in rankings if len(r.order) > 1]
    if not ranked:
        return []
    whole = ", ".join(f"by {r.criterion.title} {chance(r.whole)}" for r in ranked)
    best = ", ".join(f"{r.order[0].name} {chance(r.best[0])} by {r.criterion.title}" for r in ranked)
    widest = max(ranked, key=lambda r: len(r.order))
    note = correlation_note(widest.order, widest.correlation)
    return [f"whole order right: {whole}", f"best of all: {best}",
            f"Errors of two predictions are {note}; a shared error does not change the order."]  # fmt: skip


def chance(probability: float) -> str:
    """A probability in per cent; one that rounds to none or to certainty is not said to be that.

    >>> chance(0.876), chance(0.0), chance(0.9999), chance(1.0)
    ('88 %', 'below 1 %', 'above 99 %', 'above 99 %')
    """
    if probability < 0.005:
        return "below 1 %"
    return "above 99 %" if probability > 0.995 else f"{100 * probability:.0f} %"


def price_text(price: Price | None) -> str:
    """The price to buy, with a question mark where a spec assumes it."""
    if price is None or price.usd is None:
        return "-"
    return f"{price.usd:.0f} USD" + ("?" if price.kind == "assumed" else "")


def price_notes(comparison: Comparison) -> list[str]:
    """Prices that are missing, assumed, or given by the user with their sources."""
    found = comparison.contenders
    lines = []
    for r in comparison.rankings:
        if r.unranked:
            lines.append(f"not ranked by {r.criterion.title}: {', '.join(r.unranked)} ({r.criterion.missing})")
    assumed = dict.fromkeys(c.device_name for c in found if c.price is not None and c.price.kind == "assumed")
    if assumed:
        lines.append(f"USD?: no list price of {', '.join(assumed)} is published; the spec assumes one")
    given = {c.device_name: c.price for c in found if c.price is not None and
             (c.price.kind == "given" or c.price.usd_per_h is not None)}  # fmt: skip
    lines += [f"price of {name}: {_amounts(price)} ({price.source})" for name, price in given.items()]
    if any(c.price_usd is not None and c.device_name not in given for c in found):
        lines.append("prices are those of the device alone, at its launch unless another one is given (--price, --prices)")
    return lines


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


def copy_note(contenders: Sequence[Contender]) -> str:
    """Whether copies count."""
    if not contenders or not contenders[0].copies:
        return ""
    return f"Times include copying inputs from host memory and the results of an inference back; {NO_COPIES}."

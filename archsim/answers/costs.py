"""Layer by layer: time, what limits it, work and energy; the slowest; and what all of them sum up to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from archsim.base.units import show
from archsim.cost.bounds import bound_word
from archsim.estimation.result import Estimate, OpEstimate
from archsim.explain.layer import Slowest
from archsim.explain.summary import busy_s, peak
from archsim.render.blocks import Block, Cell, Chart, Facts, Half, Table, Verdict, columns, count, number, percent, stacked, words
from archsim.render.palette import colour, order
from archsim.render.text import clean, records_csv
from archsim.study.comparison import Comparison
from archsim.study.contender import Contender, job_totals
from archsim.study.price import TRAINING, Price, Workload
from archsim.study.standing import listed

MOST = 40  # layers; those of a network that has more are folded by block, too
ON_PAGE = 50  # layers in the table of a page, of a network that has more the longest


def layer_tables(e: Estimate) -> list[Table]:
    """The layers: all of them in text, on a page the longest ones of a large network."""
    live = sum(op.time_s > 0 for op in e.ops)
    if live <= ON_PAGE:
        return [layer_table(e)]
    return [replace(layer_table(e), only="text"), replace(layer_table(e, ON_PAGE), only="page")]


def layer_table(e: Estimate, most: int = 0) -> Table:
    """Every layer that takes time, or the longest `most`: time and energy as bars, and how near it comes to the peak."""
    top = peak(e)
    live = [op for op in e.ops if op.time_s > 0]
    times, energies = sorted((op.time_s for op in live), reverse=True), max((op.energy_j for op in live), default=0.0)
    shown = [op for op in live if op.time_s >= times[most - 1]] if most else live
    rest = math.fsum(times[len(shown) :]) / e.latency_s
    short = [f"{len(live) - len(shown):,} shorter layers, {100 * rest:.0f} % of the time, are not listed: `--csv` lists all."]
    heads = ("layer", "kind", "limited by", "time", "share", "", "FLOP", "DRAM", "FLOP/B", "of peak", "energy", "")
    note = "FLOP/B and share of the peak are of the layer's definition, whatever its algorithm computes."
    return Table(title="Layers", columns=columns(*heads, numbers=(3, 4, *range(6, 11)), bars=(5, 11), spare=(1, *range(6, 12))),
                 rows=[_layer(op, e, top, max(times), energies) for op in shown], long=len(shown) > 20, level=1,
                 notes=[*(short if rest else []), *([note] if live else [])])  # fmt: skip


def _layer(op: OpEstimate, e: Estimate, top: float | None, longest: float, most: float) -> list[Cell]:
    kernels = "; ".join(f"{kernel.name} {show(kernel.time_s, 's', 3)} ({bound_word(kernel.bound)})" for kernel in op.kernels)
    kind = op.kind if op.phase == "forward" else f"{op.kind} ({op.phase.replace('_', ' ')})"
    intensity = op.flop / op.dram_bytes if op.dram_bytes else None
    share = op.flop / busy_s(op) / top if top and op.flop else None
    return [
        words(op.name, tip=kernels), words(kind), words(bound_word(op.bound), tone=op.bound), number(op.time_s, "s"),
        percent(op.time_s / e.latency_s), bounds_bar({op.bound: op.time_s}, longest), number(op.flop, "FLOP"),
        number(op.dram_bytes, "B"), words("-") if intensity is None else count(intensity, 3),
        words("-") if share is None else percent(share, ".0f"), number(op.energy_j, "J"),
        stacked({f"energy.{name}": part for name, part in op.energy_breakdown_j.items()}, most, "J"),
    ]  # fmt: skip


def bounds_bar(times: Mapping[str, float], longest: float, half: Half = "") -> Cell:
    """Times by what limits them, as a bar."""
    return stacked({name: times[name] for name in order(times)}, longest, "s", half=half)


def tree_chart(e: Estimate) -> list[Chart]:
    """The layers of a large network folded by the parts of their names; nothing of a small one."""
    live = [op for op in e.ops if op.time_s > 0]
    if len(live) <= MOST:
        return []
    tree = {"colours": {bound_word(bound): colour(bound) for bound in order({op.bound for op in live})}, "whole_s": e.latency_s,
            "whole_j": e.energy_j, "tree": layer_tree(e)}  # fmt: skip
    note = ("Stages and blocks by the parts of the names of their layers. The width is time or energy; a click or Enter opens a "
            "block, in the picture and in the list below it.")  # fmt: skip
    return [Chart(title="Time and energy by block", tree=tree, notes=[note])]


def layer_tree(e: Estimate) -> list[Any]:
    """All ops that take time, as nested lists: [name, time [s], energy [J], bound] of an op, [name, [children]] of a group.

    Phases come first where there are several, then the parts of a name between dots.
    """
    live = [op for op in e.ops if op.time_s > 0]
    phases = list(dict.fromkeys(op.phase for op in live))
    if len(phases) < 2:
        return _folded([(clean(op.name).split("."), op) for op in live])
    return [[phase.replace("_", " "), _folded([(clean(op.name).split("."), op) for op in live if op.phase == phase])]
            for phase in phases]  # fmt: skip


def _folded(named: Sequence[tuple[list[str], OpEstimate]]) -> list[Any]:
    """Children of a group: ops, and groups of those that share the first part of their names."""
    groups: dict[str, list[tuple[list[str], OpEstimate]]] = {}
    for parts, op in named:
        groups.setdefault(parts[0], []).append((parts, op))
    return [_group(name, members) for name, members in groups.items()]


def _group(name: str, members: Sequence[tuple[list[str], OpEstimate]]) -> list[Any]:
    if len(members) == 1:
        parts, op = members[0]
        return [".".join(parts), float(f"{op.time_s:.4g}"), float(f"{op.energy_j:.4g}"), bound_word(op.bound)]
    if all(len(parts) == 1 for parts, _ in members):
        return [f"{name} ({len(members)} ops)", [_group(name, [member]) for member in members]]
    inner = [(parts[1:] or [name], op) for parts, op in members]
    return [name, _folded(inner)]


# ---------------------------------------------------------------------------------------------------------- the slowest


def record(s: Slowest) -> list[dict[str, Any]]:
    """One object an op."""
    return [asdict(row) for row in s.ops]


def csv(s: Slowest) -> str:
    """One row an op."""
    return records_csv(record(s), {"network": s.network, "hardware": s.hardware, "hardware_name": s.hardware_name})


def sections(s: Slowest) -> list[Block]:
    """How much of the time they take, and each."""
    whole = sum(op.share for op in s.ops)
    most = max((op.time_s for op in s.ops), default=0.0)
    rows = [[words(op.layer), words(op.kind), words(op.phase.replace("_", " ")), number(op.time_s, "s"), percent(op.share),
             stacked({"0": op.time_s}, most, "s")] for op in s.ops]  # fmt: skip
    heads = columns("", "kind", "phase", "time", "share", "", numbers=(3, 4), bars=(5,))
    first = s.ops[0].layer if s.ops else "NAME"
    return [Verdict(title=f"{s.network} on {s.hardware_name}",
                    sentences=[f"These {len(s.ops)} ops take {100 * whole:.0f} % of the time."]),
            Table(title="The slowest ops", columns=heads, rows=rows,
                  notes=[f"--layer {first} explains one, --phase its gradient."])]  # fmt: skip


# ----------------------------------------------------------------------------------------------------------------- sums

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

"""The contenders of a comparison: as rows of JSON and CSV, as a table, and what is to be known of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from archsim.answers.costs import FIRST, LONG, Called, amount, price_text
from archsim.answers.estimate import interval, off_words, rate_unit, wall_words
from archsim.answers.estimate import record as estimate_record
from archsim.answers.validation import scale
from archsim.base.record import by_key
from archsim.base.units import show, show_capacity
from archsim.cost.bounds import bound_word
from archsim.estimation.measured import Reference
from archsim.estimation.memory import USABLE
from archsim.evidence.case import RATES
from archsim.render.blocks import Cell, Column, Facts, Piece, Table, columns, count, number, words
from archsim.render.text import csv_lines
from archsim.study.comparison import Comparison, Excluded, excluded_line
from archsim.study.contender import Contender, job_totals
from archsim.study.price import Workload
from archsim.study.standing import differences, listed

COLUMNS = (
    "hardware", "hardware_name", "stack", "clock_hz", "latency_s", "throughput_per_s", "power_w", "energy_j", "throughput_per_w",
    "memory_bytes", "fits", "batch", "price_usd", "throughput_per_usd", "network", "limited_by", "host_cpu",
    "memory_capacity_bytes", "max_batch", "price_usd_per_hour", "price_source", "cost_usd_per_hour", "cost_usd_per_million",
    "lifetime_years", "duty", "electricity_usd_per_kwh", "pue", "job_samples", "job_epochs", "job_time_s", "job_energy_j",
    "job_cost_usd", "cannot_run",
)  # fmt: skip


OWN = ("latency_s", "throughput_per_s", "energy_j", "throughput_per_w", "price_usd", "throughput_per_usd", "copies")


def rows_csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """One row for each device and batch; of those that cannot run the last column has the reason."""
    return csv_lines([COLUMNS, *([*map(_cells(row).get, COLUMNS)] for row in rows)])


def _cells(row: Mapping[str, Any]) -> dict[str, Any]:
    price, cost, job = (row.get(name) or {} for name in ("price", "cost", "job"))
    nested = {f"{name}_{key}": value for name, of in (("cost", cost), ("job", job)) for key, value in of.items()}
    return {**row, **cost, **nested, "price_usd_per_hour": price.get("usd_per_h"), "price_source": price.get("source")}


def besides_record(contenders: Sequence[Contender]) -> list[dict[str, Any]]:
    """What differs besides the device."""
    return [
        {"what": d.name, "values": {value: list(named) for value, named in d.values},
         "range": None if d.range is None else list(d.range)}
        for d in differences(contenders)
    ]  # fmt: skip


def rows_of(
    ran: Iterable[Contender], work: Workload | None, excluded: Iterable[Excluded] = (), network: str = ""
) -> list[dict[str, Any]]:
    """What becomes rows of CSV: contenders, then those that cannot run the network."""
    rows = [{**row_record(c, work), "memory_capacity_bytes": c.estimate.memory_capacity_bytes} for c in ran]
    return [*rows, *({"network": network, **asdict(one)} for one in excluded)]


def row_record(c: Contender, work: Workload | None) -> dict[str, Any]:
    """The estimate with the values that a comparison adds."""
    return estimate_record(c.estimate) | own(c, work) | {"hardware_name": c.full_name}


def own(c: Contender, work: Workload | None) -> dict[str, Any]:
    """The values that a comparison adds to an estimate, and those that copies change. Of the use it says what was assumed."""
    u = c.usage
    given = {"lifetime_years": u.lifetime_years, "duty": u.duty, "pue": u.pue}
    return {
        **{name: getattr(c, name) for name in OWN}, "price": None if c.price is None else asdict(c.price),
        "cost": {"usd_per_hour": c.usd_per_hour, "usd_per_million": c.usd_per_million,
                 "hour_by_part": None if c.hourly_usd is None else dict(c.hourly_usd),
                 "electricity_usd_per_kwh": u.electricity, "lifetime_years": u.years, "duty": u.share, "pue": u.overhead,
                 "assumed": [name for name, value in given.items() if value is None]},
        "job": None if work is None else {**asdict(work), **asdict(job_totals(c, work))},
    }  # fmt: skip


def devices_table(c: Comparison, called: Called) -> Table:
    """Those that fit, in the order of the first ranking: time with its interval and what was measured, rate, power, costs."""
    found = c.contenders
    e = found[0].estimate
    place = scale([v for x in found for v in (*x.latency_interval_s, *(seconds for seconds, _ in measured_times(x)))])
    priced = any(r.criterion.usage for r in c.rankings)
    same = len({x.estimate.batch for x in found}) == 1
    shown: list[tuple[Column, list[Cell]]] = [
        (Column(head="device"), [words(called[x.device_name]) for x in found]),
        (Column(head="stack", needed=len({x.device_name for x in found}) < len(found)), [words(x.estimate.stack) for x in found]),
        (_right("batch"), [Cell(text=str(x.estimate.batch), value=x.estimate.batch) for x in found]),
        (Column(head="", kind="bar"), [_dumbbell(x, place) for x in found]),
        (_right("time"), _marked([number(x.latency_s, "s") for x in found])),
        (_right(rate_unit(e)), _marked([count(x.throughput_per_s) for x in found], max)),
        (_right("power", False), [number(x.energy_j / x.latency_s, "W") for x in found]),
        (_right(f"energy/{e.sample.removesuffix('s')}", False),
         _marked([number(x.energy_j / x.estimate.batch, "J") for x in found])),
        (_right(f"USD/M {e.sample}" if priced else "price", same),
         [amount(x.usd_per_million) if priced else Cell(text=price_text(x.price), value=x.price_usd) for x in found]),
    ]  # fmt: skip
    empty = {"device"} if len({x.device_name for x in found}) == 1 and len({x.estimate.stack for x in found}) > 1 else set()
    empty |= {"batch"} if same else set()
    shown = [(head, cells) for head, cells in shown if head.head not in empty and any(cell.text != "-" for cell in cells)]
    ring = ", o what others measured of the same" if any(measured_times(x) for x in found) else ""
    note = f"Bars: {100 * e.interval_level:.0f} % intervals of the time on a logarithmic scale, | predicted{ring}."
    rows = [list(row) for row in zip(*(cells for _, cells in shown), strict=True)]
    return Table(columns=[head for head, _ in shown], rows=rows, first=range(FIRST), long=len(found) > LONG,
                 notes=[note])  # fmt: skip


def _right(head: str, needed: bool = True) -> Column:
    return Column(head=head, kind="number", needed=needed)


def _marked(cells: list[Cell], best: Callable[[Sequence[float]], float] = min) -> list[Cell]:
    """A column with its best number marked, if it has several."""
    known = [cell.value for cell in cells if cell.value is not None]
    several = len(set(known)) > 1
    return [replace(cell, tone="good") if several and cell.value == best(known) else cell for cell in cells]


def _dumbbell(c: Contender, place: Callable[[float], float]) -> Cell:
    """The interval as a bar, the prediction as a mark, measurements as rings."""
    low, high = c.latency_interval_s
    tip, at = interval((low, high), "s", c.estimate.interval_level), place(c.latency_s)
    seen = [Piece(start=place(seconds), end=place(seconds), sign="o", tip=f"measured {show(seconds, 's', 3)} ({source})")
            for seconds, source in measured_times(c)]  # fmt: skip
    return Cell(bar=[Piece(start=place(low), end=place(high), tip=tip), Piece(start=at, end=at, sign="|", tip=tip), *seen])


def measured_times(c: Contender) -> list[tuple[float, str]]:
    """Times of a batch that others have measured under the same conditions [s], each with its source."""
    return [(_seconds(c, r), r.source) for r in timed(c) if not r.conditions]


def timed(c: Contender) -> list[Reference]:
    """The measured times and rates of a contender."""
    return [r for r in c.estimate.references if r.metric == "latency_s" or r.metric in RATES]


def _seconds(c: Contender, r: Reference) -> float:
    return r.measured if r.metric == "latency_s" else c.estimate.batch / r.measured


def detail_table(c: Comparison, called: Called) -> Table:
    """What else is known of each device: its clock, intervals, what limits it, memory."""
    rows = []
    for x in c.contenders:
        e = x.estimate
        joules = [end * x.energy_j / e.energy_j for end in e.energy_interval_j]
        rows.append([
            words(called[x.name]), number(e.clock_hz, "Hz"), words(_ends(interval(x.latency_interval_s, "s", e.interval_level))),
            words(_ends(interval((joules[0], joules[1]), "J", e.interval_level))),
            words(bound_word(e.limited_by), tone=e.limited_by), number(e.memory_bytes, "B"),
        ])  # fmt: skip
    level = f"{100 * c.contenders[0].estimate.interval_level:.0f} % interval"
    head = columns("device", "clock", f"time, {level}", f"energy, {level}", "limited by", "memory", numbers=(1, 5), spare=(3, 5))
    return Table(title="Devices in detail", columns=head, rows=rows, long=len(rows) > LONG, level=2)


def _ends(text: str) -> str:
    return text.partition(": ")[2]


def left_out(c: Comparison, called: Called, missed: Sequence[str], hints: Sequence[str]) -> list[Facts]:
    """Those that are not ranked, with the reason, or what they have `missed` at their best; then what is worth a try."""
    closest = [f"{called[x.name]}: {said}" for x, said in zip(c.unfit, missed, strict=False)]
    rows: list[tuple[str, Any]] = [
        ("closest", closest), ("does not fit", [] if missed else [_unfit(x, called) for x in c.unfit]),
        ("cannot run", [excluded_line(one) for one in c.excluded]), ("faster", list(hints)),
    ]
    return [Facts(rows=rows)] if any(said for _, said in rows) else []


def _unfit(c: Contender, called: Called) -> str:
    """Why the memory of a device does not hold the work."""
    e = c.estimate
    most = {None: "", 0: "; not even one sample fits"}.get(e.max_batch, f"; largest batch {e.max_batch}")
    return (f"{called[c.name]}: needs {show(e.memory_bytes, 'B', 3)} of {show_capacity(e.memory_capacity_bytes)}, of which "
            f"{100 * USABLE:.0f} % can be used{most}")  # fmt: skip


def besides(contenders: Sequence[Contender], called: Called) -> list[tuple[str, str]]:
    """What devices of a user's file are, what differs besides the device and the stack, and what powers cover."""
    changed = {c.device_name: c.full_name for c in contenders if c.full_name != c.device_name}
    rows = [(called[name], full.removeprefix(name).strip(" ()")) for name, full in changed.items()]
    if len({c.device_name for c in contenders}) > 1:
        more = [d.written(called) for d in differences(contenders) if d.name != "stack"]
        rows.append(("besides the device", "; ".join(more) or "nothing differs"))
    return [*rows, ("power", _boundary(contenders, called))]


def _boundary(contenders: Sequence[Contender], called: Called) -> str:
    """What powers cover, where they cover different things, or a whole computer."""
    walls = [f"{called[c.name]} {wall_words(c.estimate.wall)}" for c in contenders if c.estimate.wall is not None]
    if walls:
        return f"at the wall, the share of one device: {'; '.join(walls)}"
    covered = by_key((c.estimate.power_boundary, called[c.name]) for c in contenders)
    most, *others = sorted(covered, key=lambda name: -len(covered[name]))
    named = ", ".join(f"of {listed(covered[name])} the {name}" for name in others)
    return f"covers the {most}, {named}; --boundary wall: the computer of each" if others else ""


def measured_words(contenders: Sequence[Contender], called: Called) -> str:
    """Which of them others have measured with the same stack, and how far off predictions under their conditions are."""
    said = []
    for c in contenders:
        runs = [r for r in timed(c) if r.stack == c.estimate.stack]
        if runs:
            seconds = sorted(_seconds(c, r) for r in runs)
            times = " to ".join(dict.fromkeys(show(end, "s", 3) for end in (seconds[0], seconds[-1])))
            said.append(f"{called[c.name]} {times} (under its conditions predicted {off_words(runs)})")
    return listed(said) or "nobody has published a measurement of these"

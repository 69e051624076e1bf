"""A comparison of devices as a self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from archsim.base.units import COUNT, grouped, show
from archsim.report import figures
from archsim.report.compare import criterion_unit, precisions
from archsim.report.compare_cost import (
    WORKLOAD_HEAD,
    cost_head,
    costs,
    workload_notes,
    workload_rows,
    workload_title,
)
from archsim.report.compare_curves import (
    CURVATURE,
    best_head,
    best_rows,
    crossing_line,
    curvature_line,
    curve_notes,
    quickest_points,
)
from archsim.report.compare_notes import besides, certainty, chance, copy_note, left_out, price_notes, price_text, usage_notes
from archsim.report.frame import document
from archsim.report.markup import TableCell, items, label, number, table, text, valued, words
from archsim.report.stack_change import stack_change_section
from archsim.report.study_figures import PlotAxis, Series, Span, lines, spans
from archsim.report.text import rate_unit, task_words
from archsim.study.comparison import Comparison, CurveComparison, Excluded
from archsim.study.contender import Contender
from archsim.study.crossover import Payoff
from archsim.study.crosstable import CrossTable, by_network, by_stack
from archsim.study.ranking import Ranking
from archsim.study.stack_change import StackChange
from archsim.study.usage import Workload

MOST_COLOURED = 8  # lines of a chart; of more, those that are the best at some batch have a colour


def comparisons_page(comparisons: Sequence[Comparison], changes: Sequence[StackChange] = ()) -> str:
    """Devices at one batch, network by network: times with intervals, places by each criterion, costs, who is left out, and
    `changes` from one stack to another.
    """
    sections = []
    for i, c in enumerate(comparisons):
        sections += _comparison(c, i)
        sections += [stack_change_section(change) for change in changes if change.network == c.network]
    across = by_network(comparisons)
    if across is not None:
        sections.append(_cross(across))
    nets = ", ".join(c.network for c in comparisons)
    return document(f"{nets}: comparison of devices", sections, figures.library())


def curve_pages(comparisons: Sequence[CurveComparison]) -> str:
    """Devices over batches, network by network: time per sample, the best at each batch, curvature, crossings, ops that gain."""
    sections = [part for i, c in enumerate(comparisons) for part in _over_batches(c, i)]
    return document(f"{', '.join(c.network for c in comparisons)} over batches", sections, figures.library())


def _comparison(c: Comparison, i: int) -> list[str]:
    sections = [_heading(c.all, str(c.all[0].estimate.batch)), _quiet([*besides(c.all).splitlines(), copy_note(c.all)])]
    if c.contenders:
        sections += comparison_charts(c, i)
    sections += [_left_out(c.unfit, c.excluded)]
    stacks = by_stack(c)
    sections += [_cross(stacks) if stacks is not None else "", *map(_ranking, c.rankings), _certainty(c.rankings)]
    if c.contenders:
        sections += [_costs(c), _workload(c.workload, c.contenders)]
        sections.append(f'<h2>Devices</h2>\n<div class="scroll">\n{_devices(c.contenders)}\n</div>')
        sections.append(_quiet(price_notes(c)))
    return sections


def _over_batches(c: CurveComparison, i: int) -> list[str]:
    curves = c.curves
    hollow = [[not p.fits for p in curve.points] for curve in curves]
    shown = {r.order[0].name for one in c.best for r in one.rankings if r.order} if len(curves) > MOST_COLOURED else None
    faint = [shown is not None and curve.name not in shown for curve in curves]
    time = [Series(name=s.name, x=s.batches, y=s.per_sample_s, hollow=h, faint=f, listed=not f)
            for s, h, f in zip(curves, hollow, faint, strict=True)]  # fmt: skip
    share = [Series(name=s.name, x=s.batches, y=[100 * v for v in s.efficiency], hollow=h, faint=f, listed=not f)
             for s, h, f in zip(curves, hollow, faint, strict=True)]  # fmt: skip
    grey = " Grey: devices that are the best at no batch; hover for their names." if any(faint) else ""
    batch = PlotAxis(title="batch", log=True)
    met = items(crossing_line(crossing, curves) for crossing in c.crossings)
    points = [curve.points[0] for curve in curves]
    return [
        _heading(points, f"{curves[0].batches[0]} to {curves[0].batches[-1]}"),
        _quiet([*besides(points).splitlines(), *curve_notes(c), copy_note(points)]),
        f'<h2>Time per sample</h2>\n<p class="quiet">A hollow mark does not fit the memory of the device.{grey}</p>\n'
        f"{figures.embed(lines(time, batch, PlotAxis(title='time per sample', unit='s')), f'per-sample-{i}')}",
        _best(c),
        _workload(c.best[0].workload, quickest_points(c)),
        "<h2>Throughput as a share of the best that fits</h2>\n"
        f"{figures.embed(lines(share, batch, PlotAxis(title='share', unit='%', log=False)), f'efficiency-{i}')}",
        _left_out([], c.excluded),
        f'<h2>Curvature</h2>\n<p class="quiet">{CURVATURE}</p>\n{items(map(curvature_line, curves))}',
        f"<h2>Crossings</h2>\n{met}" if met else "",
        *(_payoffs(home, guest, rows) for home, guest, rows in c.pays if rows),
    ]


def _best(c: CurveComparison) -> str:
    """A column for each criterion: the best device, its score, and the probability that it is the best."""
    _, *heads = best_head(c)
    head = ("batch", *(f"{title} [{unit}]" for title, unit in zip(heads[::3], heads[1::3], strict=True)))
    rows = []
    for batch, *cells in best_rows(c):
        each = zip(cells[::3], cells[1::3], cells[2::3], strict=True)
        rows.append((words(batch), *(words("-" if name == "-" else f"{name}: {score}, {sure}") for name, score, sure in each)))
    note = "The device, its score, and the probability that it is the best."
    return f'<h2>Best of those that fit</h2>\n<p class="quiet">{note}</p>\n<div class="scroll">\n{table(head, rows)}\n</div>'


def _heading(contenders: Sequence[Contender], batch: str) -> str:
    e, devices = contenders[0].estimate, len({c.device_name for c in contenders})
    line = f"{task_words(e)} · batch {batch} · {precisions(contenders)} · {e.fidelity} model"
    stacks = len({c.estimate.stack for c in contenders})
    many = contenders[0].device_name if devices == 1 else f"{devices} devices"
    many += f", {stacks} stacks" if stacks > devices else ""
    return f'<h1>{text(e.network)} on {text(many)}</h1>\n<p class="asked">{text(line)}</p>'


def _quiet(notes: Iterable[str]) -> str:
    return "\n".join(f'<p class="quiet">{text(note)}</p>' for note in notes if note)


def _left_out(unfit: Sequence[Contender], excluded: Sequence[Excluded]) -> str:
    return "\n".join(
        f"<h2>{title.capitalize()}</h2>\n<ul>{''.join(f'<li>{text(line)}</li>' for line in listed)}</ul>"
        for title, listed in left_out(unfit, excluded)
    )


def _cross(cross: CrossTable) -> str:
    rows = [
        (words(row.name), *(_cross_cell(value, why, best) for value, why, best in row.cells), words(row.note))
        for row in cross.rows
    ]  # fmt: skip
    body = table(("device", *cross.columns, cross.note), rows)
    return f'<h2>{text(cross.title)}</h2>\n<div class="scroll">\n{body}\n</div>'


def _cross_cell(value: float | None, why: str, best: bool) -> TableCell:
    if value is None:
        return TableCell(body=text(why), style="num")
    shown = f"{value:.4g}"
    return TableCell(body=f"<b>{shown}&nbsp;*</b>" if best else shown, value=value, style="num")


def _ranking(r: Ranking) -> str:
    if len(r.order) < 2:
        return ""
    rows = []
    for i, (c, score) in enumerate(zip(r.order, r.scores, strict=True)):
        ahead = _chance(r.ahead[i]) if i < len(r.ahead) else TableCell(body="", style="num")
        rows.append((words(str(i + 1)), words(c.name), number(score, COUNT), ahead, _chance(r.best[i])))
    head = ("place", "device", criterion_unit(r.criterion, r.order[0]), "before the next with probability",
            "best of all with probability")  # fmt: skip
    left = _quiet([f"Not ranked: {', '.join(r.unranked)}."] if r.unranked else [])
    return f"<h2>By {text(r.criterion.title)}</h2>\n{table(head, rows)}\n{left}"


def _chance(probability: float) -> TableCell:
    return valued(chance(probability), probability)


def _certainty(rankings: Sequence[Ranking]) -> str:
    body = items(certainty(rankings))
    return f"<h2>Probability of the order</h2>\n{body}" if body else ""


def _costs(c: Comparison) -> str:
    found = costs(c)
    rows = [(words(x.name), *map(_amount, amounts)) for x, amounts in found]
    notes = _quiet(usage_notes([x for x, _ in found])) if found else ""
    return f"<h2>Cost of work</h2>\n{table(cost_head(c), rows)}\n{notes}" if found else ""


def _amount(usd: float | None) -> TableCell:
    return TableCell(body="-", style="num") if usd is None else valued(f"{usd:.3g}", usd)


def _workload(work: Workload | None, contenders: Sequence[Contender]) -> str:
    if work is None or not contenders:
        return ""
    rows = [(words(name), *(words(cell, style="num") for cell in cells)) for name, *cells in workload_rows(work, contenders)]
    title, notes = workload_title(work, contenders), _quiet(workload_notes(contenders))
    return f"<h2>{text(title)}</h2>\n{table(WORKLOAD_HEAD, rows)}\n{notes}"


def _devices(contenders: Sequence[Contender]) -> str:
    rate = rate_unit(contenders[0].estimate)
    rows = [
        (words(c.device_name), words(c.estimate.stack), number(c.estimate.clock_hz, "Hz"), number(c.latency_s, "s"),
         valued(grouped(c.throughput_per_s), c.throughput_per_s), number(c.estimate.power_w, "W"),
         number(c.energy_j, "J"), number(c.estimate.memory_bytes, "B"), words(price_text(c.price)))
        for c in contenders
    ]  # fmt: skip
    return table(("device", "stack", "clock", "latency", rate, "power", "energy", "memory", "price"), rows)


def _payoffs(home: str, guest: str, rows: Sequence[Payoff]) -> str:
    cells = [(words(r.op), words(r.kind), _from(r.resident), _from(r.alone)) for r in rows]
    note = (
        f"From which batch on {guest} is faster than {home}: with the data of the op already there, and with its inputs and "
        "output copied over the link."
    )
    body = table(("op", "kind", "data on the device", "moved alone"), cells)
    return f'<h2>Ops that gain on {text(guest)}</h2>\n<p class="quiet">{text(note)}</p>\n<div class="scroll">\n{body}\n</div>'


def _from(batch: int | None) -> TableCell:
    return words("never") if batch is None else words(f"from batch {batch}")


def comparison_charts(c: Comparison, i: int) -> list[str]:
    """The sections with charts of the `i`th comparison of a page."""
    level = 100 * c.all[0].estimate.interval_level
    short = _stacks_alone(c.contenders)
    times = [_time(x, short) for x in sorted(c.contenders, key=lambda x: x.latency_s)]
    energies = [_energy(x, short) for x in sorted(c.contenders, key=lambda x: x.energy_j)]
    note = f"The mark is the prediction, the bar its {level:.0f} % interval."
    return [
        _section("Time of one batch", note + _told(times), figures.embed(spans(times, "s", "latency"), f"times-{i}")),
        _section("Energy of one batch", note + _told(energies), figures.embed(spans(energies, "J", "energy"), f"energies-{i}")),
        _prices(c, i),
    ]


def _stacks_alone(contenders: Sequence[Contender]) -> bool:
    """Whether the stack tells each from the others: the title names the one device, for which a phone has no room in each row."""
    devices, stacks = ({getattr(x.estimate, name) for x in contenders} for name in ("hardware", "stack"))
    return len(devices) == 1 and len(stacks) == len(contenders) > 1


def _section(title: str, note: str, chart: str) -> str:
    return f'<h2>{title}</h2>\n<p class="quiet">{text(note)}</p>\n{chart}'


def _told(rows: Sequence[Span]) -> str:
    seen = sum(len(row.measured) for row in rows)
    return f" Diamonds: {seen} published {'measurement' if seen == 1 else 'measurements'} of the same cell." if seen else ""


def _time(c: Contender, short: bool) -> Span:
    low, high = c.latency_interval_s
    batch = c.estimate.batch
    seen = [(r.measured if r.metric == "latency_s" else batch / r.measured, r.source) for r in c.estimate.references
            if r.metric in ("latency_s", "throughput_per_s") and not r.conditions]  # fmt: skip
    name = c.estimate.stack if short else c.name
    return Span(name=name, low=low, value=c.latency_s, high=high, note=show(c.latency_s, "s", 3), measured=seen)


def _energy(c: Contender, short: bool) -> Span:
    """Energy of a batch; its interval is that of the estimate, moved by what copies add."""
    e = c.estimate
    more = c.energy_j / e.energy_j
    low, high = (more * end for end in e.energy_interval_j)
    seen = [(r.measured, r.source) for r in e.references if r.metric == "energy_j" and not r.conditions]
    name = c.estimate.stack if short else c.name
    return Span(name=name, low=low, value=c.energy_j, high=high, note=show(c.energy_j, "J", 3), measured=seen)


def _prices(c: Comparison, i: int) -> str:
    """Speed against price of those that have one; a chart of two or more."""
    known = [(x, x.price.usd) for x in c.contenders if x.price is not None and x.price.usd is not None]
    if len(known) < 2:
        return ""
    unit = rate_unit(known[0][0].estimate)
    series = [
        Series(name=x.name, x=[price], y=[x.throughput_per_s], mode="markers",
               notes=[f"{label(x.name)}<br>{price:,.0f} USD, {grouped(x.throughput_per_s)} {unit}"])
        for x, price in known
    ]  # fmt: skip
    chart = lines(series, PlotAxis(title="price", unit="USD"), PlotAxis(title="speed", unit=unit), height=360)
    return _section("Speed against price", "Devices whose price is known; the upper left is the best.",
                    figures.embed(chart, f"prices-{i}"))  # fmt: skip

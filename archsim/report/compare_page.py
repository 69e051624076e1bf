"""A comparison of devices as a self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence

from archsim.base.units import show
from archsim.report import figures
from archsim.report.compare import CURVATURE, certainty, crossing_line, curvature_line
from archsim.report.markup import TableCell, number, percent, table, text, words
from archsim.report.study_figures import PlotAxis, Series, Span, lines, spans
from archsim.report.text import rate_unit
from archsim.report.validation_page import document
from archsim.study.batches import BatchCurve
from archsim.study.crossover import Crossing, Payoff
from archsim.study.ranking import Contender, Ranking


def comparison_page(contenders: Sequence[Contender], rankings: Sequence[Ranking]) -> str:
    """Devices at one batch: times with their intervals, and the places by each criterion."""
    e = contenders[0].estimate
    rows = [_span(c) for c in sorted(contenders, key=lambda c: c.latency_s)]
    sections = [
        _heading(contenders[0], str(e.batch), len(contenders)),
        f"<h2>Time of one batch</h2>\n<p class=\"quiet\">The mark is the prediction, the bar its {100 * e.interval_level:.0f} % "
        f"interval.</p>\n{figures.embed(spans(rows, 's', 'latency'), 'times')}",
        *(_ranking(r) for r in rankings),
        _certainty(rankings) if len(contenders) > 1 else "",
        f"<h2>Devices</h2>\n<div class=\"scroll\">\n{_devices(contenders)}\n</div>",
    ]
    return document(f"{e.network} on {len(contenders)} devices", sections, figures.library())


def curves_page(
    curves: Sequence[BatchCurve], found: Sequence[Crossing], pays: Sequence[tuple[str, str, Sequence[Payoff]]]
) -> str:
    """Devices over batches: time per sample, share of the best throughput, curvature, crossings, and ops that gain."""
    first = curves[0].points[0]
    time = [Series(name=c.name, x=c.batches, y=c.per_sample_s, hollow=[not p.estimate.fits for p in c.points]) for c in curves]
    share = [Series(name=c.name, x=c.batches, y=[100 * v for v in c.efficiency],
                    hollow=[not p.estimate.fits for p in c.points]) for c in curves]  # fmt: skip
    batch = PlotAxis(title="batch", log=True)
    said = "".join(f"<li>{text(curvature_line(c))}</li>" for c in curves)
    met = "".join(f"<li>{text(crossing_line(c, curves))}</li>" for c in found)
    sections = [
        _heading(first, f"{curves[0].batches[0]} to {curves[0].batches[-1]}", len(curves)),
        '<h2>Time per sample</h2>\n<p class="quiet">A hollow mark does not fit the memory of the device.</p>\n'
        f"{figures.embed(lines(time, batch, PlotAxis(title='time per sample', unit='s')), 'per-sample')}",
        "<h2>Throughput as a share of the best that fits</h2>\n"
        f"{figures.embed(lines(share, batch, PlotAxis(title='share', unit='%', log=False)), 'efficiency')}",
        f'<h2>Curvature</h2>\n<p class="quiet">{CURVATURE}</p>\n<ul>{said}</ul>',
        f"<h2>Crossings</h2>\n<ul>{met}</ul>" if met else "",
        *(_payoffs(home, guest, rows) for home, guest, rows in pays),
    ]
    return document(f"{first.estimate.network} over batches", sections, figures.library())


def _heading(c: Contender, batch: str, devices: int) -> str:
    e = c.estimate
    copies = " · copies between host and device included" if c.copies else ""
    line = f"{e.task.replace('_', ' ')} · batch {batch} · {e.precision} · {e.fidelity} model{copies}"
    return f'<h1>{text(e.network)} on {devices} devices</h1>\n<p class="asked">{text(line)}</p>'


def _span(c: Contender) -> Span:
    low, high = (bound * c.latency_s / c.estimate.latency_s for bound in c.estimate.latency_interval_s)
    note = show(c.latency_s, "s", 3) + ("" if c.estimate.fits else ", does not fit")
    return Span(name=c.name, low=low, value=c.latency_s, high=high, note=note)


def _ranking(r: Ranking) -> str:
    if not r.order:
        return ""
    unit = rate_unit(r.order[0].estimate) + r.criterion.unit
    rows = []
    for i, (c, score) in enumerate(zip(r.order, r.scores, strict=True)):
        ahead = percent(r.ahead[i], ".0f") if i < len(r.ahead) else TableCell(body="", style="num")
        value = TableCell(body=f"{score:.3g}", value=score, style="num")
        rows.append((words(str(i + 1)), words(c.name), value, ahead, percent(r.best[i], ".0f")))
    head = ("place", "device", unit, "before the next with probability", "best of all with probability")
    left = f'<p class="quiet">Not ranked: {text(", ".join(r.unranked))}.</p>' if r.unranked else ""
    return f"<h2>By {text(r.criterion.title)}</h2>\n{table(head, rows)}\n{left}"


def _certainty(rankings: Sequence[Ranking]) -> str:
    body = "".join(f"<li>{text(line)}</li>" for line in certainty(rankings).splitlines())
    return f"<h2>Probability of the order</h2>\n<ul>{body}</ul>"


def _devices(contenders: Sequence[Contender]) -> str:
    rate = rate_unit(contenders[0].estimate)
    rows = [
        (words(c.name), words(c.estimate.stack), number(c.estimate.clock_hz, "Hz"), number(c.latency_s, "s"),
         TableCell(body=f"{c.throughput_per_s:.4g}", value=c.throughput_per_s, style="num"), number(c.estimate.power_w, "W"),
         number(c.energy_j, "J"), words("yes" if c.estimate.fits else "no"),
         words("" if c.price_usd is None else f"{c.price_usd:.0f} USD" + (" (assumed)" if c.price_kind == "assumed" else "")))
        for c in contenders
    ]  # fmt: skip
    return table(("device", "stack", "clock", "latency", rate, "power", "energy", "fits", "launch price"), rows)


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

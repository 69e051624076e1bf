"""The charts of a comparison at one batch: time and energy with intervals and measured values, speed against price."""

from __future__ import annotations

from collections.abc import Sequence

from archsim.base.units import grouped, show
from archsim.report import figures
from archsim.report.markup import label, text
from archsim.report.study_figures import PlotAxis, Series, Span, lines, spans
from archsim.report.text import rate_unit
from archsim.study.comparison import Comparison
from archsim.study.contender import Contender


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

"""A serving simulation as a self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from archsim.base.units import grouped, show
from archsim.report import figures
from archsim.report.frame import document
from archsim.report.gantt import gantt
from archsim.report.markup import TableCell, number, table, text, words
from archsim.report.serving import serving_lines
from archsim.report.study_figures import PlotAxis, Series, lines
from archsim.schedule.observer import Recording
from archsim.simulate.serve import LoadPoint, Serving

DRAWN = 150  # batches in the timeline chart


def serving_page(s: Serving, recording: Recording, curve: Sequence[LoadPoint] = ()) -> str:
    """The whole page; `recording` is the simulated timeline, `curve` the latency at other loads."""
    title, rows = serving_lines(s)
    sections = [
        f"<h1>{text(s.network)} served by {text(s.hardware_name)}</h1>", f'<p class="asked">{text(title)}</p>', _headline(s),
        table(("what", "figure"), [(words(name), words(figure)) for name, figure in rows if name not in ("latency", "")],
              style="pairs"),
    ]  # fmt: skip
    if s.distribution is not None and s.latency_s is not None:
        sections += [
            "<h2>Latency</h2>", '<p class="quiet">From arrival to answer, after the first tenth of the requests, with 95 % '
            "confidence intervals by batch means.</p>", table(("", "latency", "from", "to"), _latencies(s)),
            figures.embed(_distribution(s.distribution), "distribution"),
        ]  # fmt: skip
    sections.append(_load(s, curve))
    if recording.slices:
        first = Recording(slices=recording.slices[:DRAWN])
        note = f"The first {len(first.slices)} batches. --timeline writes all of them for ui.perfetto.dev."
        sections += ["<h2>Timeline</h2>", f'<p class="quiet">{note}</p>', figures.embed(gantt(first), "timeline")]
    return document(title, sections, figures.library())


def _headline(s: Serving) -> str:
    """The percentiles of the latency, or that there are none."""
    if s.latency_s is None:
        return "" if s.stable else '<p class="warn">Requests arrive faster than they are served: no latency is bounded.</p>'
    boxes = []
    for name, m in s.latency_s.items():
        if name == "mean":
            continue
        sure = "too few requests for an interval"
        if m.interval is not None:
            sure = f"95 % interval: {show(m.interval[0], 's', 3)} to {show(m.interval[1], 's', 3)}"
        value = f'<dd class="big">{show(m.value, "s")}</dd><dd class="note">{sure}</dd>'
        boxes.append(f"<div><dt>latency {text(name)}</dt>{value}</div>")
    return '<dl class="cards four">\n' + "\n".join(boxes) + "\n</dl>"


def _load(s: Serving, curve: Sequence[LoadPoint]) -> str:
    if not curve:
        return ""
    rates = [point.rate_per_s for point in curve]
    series = [Series(name=name, x=rates, y=[point.latency_s[name] for point in curve]) for name in curve[0].latency_s]
    note = (f"The same queue at {len(curve)} rates up to {100 * curve[-1].share:.0f} % of the capacity of "
            f"{grouped(s.capacity_per_s)} requests per second; this run is at {grouped(s.rate_per_s or 0.0)}.")  # fmt: skip
    across, up = PlotAxis(title="requests per second", log=False), PlotAxis(title="latency", unit="s", log=True)
    return f'<h2>Latency against load</h2>\n<p class="quiet">{text(note)}</p>\n{figures.embed(lines(series, across, up), "load")}'


def _latencies(s: Serving) -> list[tuple[TableCell, ...]]:
    found = []
    for name, m in (s.latency_s or {}).items():
        ends = (words("-", style="num"),) * 2 if m.interval is None else tuple(number(end, "s", 4) for end in m.interval)
        found.append((words(name), number(m.value, "s", 4), *ends))
    return found


def _distribution(points: tuple[tuple[float, float], ...]) -> Any:
    import plotly.graph_objects as go

    figure = go.Figure(layout={
        **figures.common(320, 70, 20, 20, 50),
        "xaxis": {**figures.axis_ticks(points[-1][1], "s", 8), "range": [0, 1.03 * points[-1][1]],
                  "title": {"text": "latency"}, **figures.AXIS},
        "yaxis": {"tickformat": ".0%", "range": [0, 1.02], "title": {"text": "requests answered"}, **figures.AXIS},
    })  # fmt: skip
    figure.add_trace(go.Scatter(
        mode="lines", x=[latency for _, latency in points], y=[share for share, _ in points], hoverinfo="text",
        line={"color": "#0072b2", "width": 2},
        hovertext=[f"{100 * share:g} %: {show(latency, 's')}" for share, latency in points],
    ))  # fmt: skip
    return figure

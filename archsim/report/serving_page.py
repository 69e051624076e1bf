"""A serving simulation as a self-contained HTML page."""

from __future__ import annotations

from typing import Any

from archsim.base.units import show
from archsim.report import figures
from archsim.report.frame import document
from archsim.report.gantt import gantt
from archsim.report.markup import TableCell, number, table, text, words
from archsim.report.serving import serving_lines
from archsim.schedule.observer import Recording
from archsim.simulate.serve import Serving

DRAWN = 150  # batches in the timeline chart


def serving_page(s: Serving, recording: Recording) -> str:
    """The whole page; `recording` is the simulated timeline."""
    title, rows = serving_lines(s)
    sections = [
        f"<h1>{text(s.network)} served by {text(s.hardware_name)}</h1>", f'<p class="asked">{text(title)}</p>',
        table(("what", "figure"), [(words(name), words(figure)) for name, figure in rows if name not in ("latency", "")],
              style="pairs"),
    ]  # fmt: skip
    if s.distribution is not None and s.latency_s is not None:
        sections += [
            "<h2>Latency</h2>", '<p class="quiet">From arrival to answer, after the first tenth of the requests, with 95 % '
            "confidence intervals by batch means.</p>", table(("", "latency", "from", "to"), _latencies(s)),
            figures.embed(_distribution(s.distribution), "distribution"),
        ]  # fmt: skip
    if recording.slices:
        first = Recording(slices=recording.slices[:DRAWN])
        note = f"The first {len(first.slices)} batches. --timeline writes all of them for ui.perfetto.dev."
        sections += ["<h2>Timeline</h2>", f'<p class="quiet">{note}</p>', figures.embed(gantt(first), "timeline")]
    return document(title, sections, figures.library())


def _latencies(s: Serving) -> list[tuple[TableCell, ...]]:
    found = []
    for name, m in (s.latency_s or {}).items():
        ends = (words("-", style="num"),) * 2 if m.interval is None else tuple(number(end, "s", 4) for end in m.interval)
        found.append((words(name), number(m.value, "s", 4), *ends))
    return found


def _distribution(points: tuple[tuple[float, float], ...]) -> Any:
    import plotly.graph_objects as go

    figure = go.Figure(layout={
        **figures.common(320), "margin": {"l": 70, "r": 20, "t": 20, "b": 50},
        "xaxis": {**figures.axis_ticks(points[-1][1], "s", 8), "range": [0, 1.03 * points[-1][1]], "gridcolor": figures.RULE,
                  "zeroline": False, "title": {"text": "latency"}, "fixedrange": True},
        "yaxis": {"tickformat": ".0%", "range": [0, 1.02], "gridcolor": figures.RULE, "zeroline": False,
                  "title": {"text": "requests answered"}, "fixedrange": True},
    })  # fmt: skip
    figure.add_trace(go.Scatter(
        mode="lines", x=[latency for _, latency in points], y=[share for share, _ in points], hoverinfo="text",
        line={"color": "#0072b2", "width": 2},
        hovertext=[f"{100 * share:g} %: {show(latency, 's')}" for share, latency in points],
    ))  # fmt: skip
    return figure

"""A training simulation as a self-contained HTML page."""

from __future__ import annotations

from typing import Any

from archsim.base.units import show
from archsim.report import figures
from archsim.report.frame import document
from archsim.report.gantt import gantt
from archsim.report.markup import TableCell, items, table, text, words
from archsim.report.training import HEAD, assumed, explained, rate, row, title
from archsim.schedule.observer import Recording
from archsim.simulate.train import ScalingPoint, Training

PARTS = (("input", "input_s", "#56b4e9"), ("compute", "compute_s", "#0072b2"), ("exchange", "exchange_s", "#d55e00"),
         ("update", "update_s", "#009e73"))  # fmt: skip
STEPS = 3  # in the timeline chart, of the largest number of devices


def training_page(t: Training, recording: Recording) -> str:
    """The whole page; `recording` is the simulated timeline of the largest number of devices."""
    rows = [_cells(point) for point in t.points]
    notes = [f"{name}: {what}" for name, what in explained(t)]
    sections = [
        f"<h1>{text(t.network)} trained on {text(t.hardware_name)}</h1>", f'<p class="asked">{text(title(t))}</p>',
        *(f'<p class="warn"><b>Warning:</b> {text(line)}</p>' for line in t.warnings), table(HEAD, rows),
        *(f'<p class="quiet">{text(note)}</p>' for note in notes), "<h2>Scaling and where the time goes</h2>",
        figures.embed(_scaling(t), "scaling"),
    ]  # fmt: skip
    first = _first_steps(recording)
    if first.slices:
        most = max(point.devices for point in t.points)
        note = f"The first {STEPS} steps on {most} devices. --timeline writes all of them for ui.perfetto.dev."
        sections += ["<h2>Timeline</h2>", f'<p class="quiet">{note}</p>', figures.embed(gantt(first), "timeline")]
    sections.append(f"<h2>Assumptions</h2>{items(assumed(t))}")
    return document(title(t), sections, figures.library())


def _cells(point: ScalingPoint) -> tuple[TableCell, ...]:
    return tuple(words(cell, style="" if name == "busiest link" else "num") for name, cell in zip(HEAD, row(point), strict=True))


def _first_steps(recording: Recording) -> Recording:
    ends = [piece.end_s for piece in recording.slices if piece.words.get("step") == STEPS - 1]
    until = max(ends, default=0.0)
    return Recording(slices=[piece for piece in recording.slices if piece.end_s <= until])


def _scaling(t: Training) -> Any:
    """Speed-up against devices on the left, the parts of a step on the right."""
    import plotly.graph_objects as go

    counts = [point.devices for point in t.points]
    figure = go.Figure(layout={
        **figures.common(360, 60, 20, 40, 50), "barmode": "stack", "showlegend": True,
        "legend": {"orientation": "h", "x": 0.6, "y": 1.02, "yanchor": "bottom"},
        "xaxis": {**figures.AXIS, "domain": [0, 0.42], "title": {"text": "devices"}, "range": [0, 1.05 * max(counts)]},
        "yaxis": {**figures.AXIS, "title": {"text": "speed-up"}, "range": [0, 1.05 * max(counts)]},
        "xaxis2": {"domain": [0.6, 1], "type": "category", "title": {"text": "devices"}, "fixedrange": True},
        "yaxis2": {**figures.AXIS, **figures.axis_ticks(max(point.step_s for point in t.points), "s", 6), "anchor": "x2"},
    })  # fmt: skip
    ideal = [0, max(counts)]
    figure.add_trace(go.Scatter(x=ideal, y=ideal, mode="lines", line={"color": figures.LINE, "dash": "dot"}, showlegend=False,
                                hoverinfo="skip"))  # fmt: skip
    figure.add_trace(go.Scatter(
        x=counts, y=[point.speedup for point in t.points], mode="lines+markers", line={"color": "#0072b2"}, showlegend=False,
        hoverinfo="text", hovertext=[f"{p.devices}: {p.speedup:.2f}, {rate(p)} samples/s" for p in t.points],
    ))  # fmt: skip
    for name, key, colour in PARTS:
        spent = [getattr(point, key) for point in t.points]
        figure.add_trace(go.Bar(
            x=[str(count) for count in counts], y=spent, xaxis="x2", yaxis="y2", name=name, marker={"color": colour},
            hoverinfo="text", hovertext=[f"{name} {show(time, 's', 3)}" for time in spent],
        ))  # fmt: skip
    return figure

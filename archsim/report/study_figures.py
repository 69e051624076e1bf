"""The charts of comparisons and studies, drawn by plotly, which is imported on first use; equal data give equal text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from archsim.base.units import show
from archsim.report.figures import INK, LINE, QUIET, RULE, common
from archsim.report.markup import label
from archsim.report.palette import SERIES, look
from archsim.report.placement import decades, round_numbers, round_step
from archsim.study.whatif import OpChange

ROW = 30  # height of one row of bars [px]
CLOSEST = {"hovermode": "closest"}  # a tip is of the nearest mark
LINEAR_UP_TO = 8.0  # ratio of largest to smallest value above which an axis is logarithmic


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotAxis:
    """An axis: title and unit ("" for plain numbers); `log` or None to decide by the range of its values.

    zooms: from its least to its largest value, of which readers may enlarge a part; linear, unless `log` says otherwise
    """

    title: str
    unit: str = ""
    log: bool | None = None
    zooms: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A named line or scatter; `hollow` marks single points, `notes` are shown on hover; `listed` if the legend has it.

    keys: what a script of the page knows each point by; sign: the form of its marks
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    hollow: Sequence[bool] = ()
    notes: Sequence[str] = field(default_factory=tuple)
    mode: str = "lines+markers"
    faint: bool = False
    listed: bool = True
    keys: Sequence[int] = ()
    sign: str = "circle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A row of an interval chart, from `low` to `high` with a mark at `value`; of a tornado, from `value` to both.

    measured: values that others measured of the same, with their sources
    """

    name: str
    low: float
    value: float
    high: float
    note: str = ""
    measured: Sequence[tuple[float, str]] = ()


def lines(series: Sequence[Series], x: PlotAxis, y: PlotAxis, height: int = 460) -> Any:
    """A line chart; a hollow mark is a point with a reservation, which the page explains."""
    import plotly.graph_objects as go

    figure = go.Figure(layout=common(height, 96, 20, 40, 56) | CLOSEST | {
        "showlegend": True, "legend": {"orientation": "h", "x": 0, "y": 1.01, "yanchor": "bottom"},
        "xaxis": _axis([v for s in series for v in s.x], x), "yaxis": _axis([v for s in series for v in s.y], y),
    })  # fmt: skip
    strong = [s for s in series if not s.faint]
    for s in series:
        colour = "#c9d0d8" if s.faint else SERIES[strong.index(s) % len(SERIES)]
        hollow = list(s.hollow) or [False] * len(s.x)
        pairs = [f"{show(a, x.unit)}: {show(b, y.unit)}" for a, b in zip(s.x, s.y, strict=True)]
        notes = list(s.notes) or [f"{label(s.name)}<br>{pair}" for pair in pairs]
        figure.add_trace(go.Scatter(
            mode=s.mode, name=label(s.name), showlegend=s.listed, x=list(s.x), y=list(s.y), hoverinfo="text", hovertext=notes,
            line={"color": colour, "width": 1.8},
            marker={"color": colour, "size": 5 if s.faint else 8 if s.sign == "circle" else 14,
                    "symbol": [f"{s.sign}-open" if h else s.sign for h in hollow]},
            **({"customdata": list(s.keys)} if s.keys else {}),
        ))  # fmt: skip
    if x.zooms and y.zooms:
        figure.update_layout(dragmode="zoom")
    return figure


def spans(rows: Sequence[Span], unit: str, title: str) -> Any:
    """One bar a row from low to high with a mark at the value; the first row on top."""
    import plotly.graph_objects as go

    figure, notes = _rows_of(rows, unit, title, None), _notes(rows, unit)
    figure.add_trace(_bar(rows, [r.low for r in rows], [r.high for r in rows], "#9cc5dd", "interval", notes))
    figure.add_trace(go.Scatter(
        mode="markers", x=[r.value for r in rows], y=list(range(len(rows))), hoverinfo="text", hovertext=notes,
        marker={"color": INK, "size": 9, "symbol": "line-ns-open", "line": {"width": 2.5, "color": INK}}, name="predicted",
    ))  # fmt: skip
    seen = [(value, i, source) for i, row in enumerate(rows) for value, source in row.measured]
    if seen:
        figure.add_trace(go.Scatter(
            mode="markers", x=[value for value, _, _ in seen], y=[i for _, i, _ in seen], name="measured", hoverinfo="text",
            marker={"color": SERIES[1], "size": 10, "symbol": "diamond-open", "line": {"width": 2, "color": SERIES[1]}},
            hovertext=[f"measured {show(value, unit)}<br>{label(source, 80)}" for value, _, source in seen],
        ))  # fmt: skip
    return figure


def tornado(rows: Sequence[Span], unit: str, title: str, less: str, more: str) -> Any:
    """Two bars a row from its value: to `low`, called `less`, and to `high`, called `more`; the first row on top."""
    figure, notes = _rows_of(rows, unit, title, False), _notes(rows, unit)
    figure.update_layout(showlegend=True, legend={"orientation": "h", "x": 1, "xanchor": "right", "y": 0, "yanchor": "bottom"})
    middle = [r.value for r in rows]
    figure.add_trace(_bar(rows, middle, [r.low for r in rows], SERIES[1], less, notes))
    figure.add_trace(_bar(rows, middle, [r.high for r in rows], SERIES[0], more, notes))
    return figure


def _rows_of(rows: Sequence[Span], unit: str, title: str, log: bool | None) -> Any:
    """An empty chart with a row for each span, and their notes at the ends."""
    import plotly.graph_objects as go

    left = max(90.0, 7.2 * max(len(label(r.name)) for r in rows) + 16)
    values = [v for r in rows for v in (r.low, r.value, r.high, *(value for value, _ in r.measured))]
    figure = go.Figure(layout=common(ROW * len(rows) + 80, left, 120, 46, 16) | CLOSEST | {
        "bargap": 0.4, "barmode": "overlay", "xaxis": _axis(values, PlotAxis(title=title, unit=unit, log=log)) | {"side": "top"},
        "yaxis": {"range": [len(rows) - 0.5, -0.5], "tickvals": list(range(len(rows))), "showgrid": False, "zeroline": False,
                  "ticktext": [label(r.name) for r in rows], "fixedrange": True, "ticks": "", "ticklabelstandoff": 5},
    })  # fmt: skip
    figure.add_trace(go.Scatter(
        mode="text", x=[max(r.low, r.value, r.high, *(v for v, _ in r.measured)) for r in rows],
        y=list(range(len(rows))), hoverinfo="skip",
        text=[f"  {label(r.note, 40)}" for r in rows], textposition="middle right", cliponaxis=False, showlegend=False,
        textfont={"size": 11.5, "color": QUIET},
    ))  # fmt: skip
    return figure


def _notes(rows: Sequence[Span], unit: str) -> list[str]:
    return [f"{label(r.name)}: {show(r.value, unit)}" + (f"<br>{label(r.note, 80)}" if r.note else "") for r in rows]


def _bar(rows: Sequence[Span], start: Sequence[float], end: Sequence[float], colour: str, name: str, notes: Sequence[str]) -> Any:
    import plotly.graph_objects as go

    return go.Bar(
        orientation="h", name=label(name), base=list(start), x=[b - a for a, b in zip(start, end, strict=True)],
        y=list(range(len(rows))), marker={"color": colour, "line": {"width": 0}}, hoverinfo="text", hovertext=list(notes),
    )  # fmt: skip


def _axis(values: Sequence[float], axis: PlotAxis) -> dict[str, Any]:
    low, high = min(values), max(values)
    log = axis.log if axis.log is not None else low > 0 and high / low > LINEAR_UP_TO
    common = {
        "gridcolor": RULE, "zeroline": not log, "zerolinecolor": LINE, "fixedrange": True, "tickfont": {"color": QUIET},
        "showline": True, "linecolor": LINE, "title": {"text": label(axis.title, 80), "font": {"size": 13, "color": INK}},
    }  # fmt: skip
    if axis.zooms and axis.log:
        title = {"text": label(f"{axis.title} [{axis.unit}]", 80), "font": {"size": 13, "color": INK}}
        return common | {"type": "log", "range": [math.log10(low / 1.15), math.log10(high * 1.15)], "fixedrange": False,
                         "tickformat": ".3~s", "title": title}  # fmt: skip
    if axis.zooms:
        room = 0.04 * (high - low or abs(high) or 1.0)
        return common | {"range": [low - room, high + room], "fixedrange": False, "zeroline": False, "tickformat": ".4~s",
                         "ticksuffix": axis.unit}  # fmt: skip
    if log:
        ends = (low / 1.12, high * 1.12)
        marks = decades(*ends) if high / low > 60 else round_numbers(*ends)
        return common | {"type": "log", "range": [math.log10(end) for end in ends], "tickvals": marks,
                         "ticktext": [show(v, axis.unit) for v in marks]}  # fmt: skip
    pad = 0.04 * (high - low or abs(high) or 1.0)
    ends = (min(low, 0.0) - (pad if low < 0 else 0), high + pad)
    marks = _round_marks(*ends)
    return common | {"range": list(ends), "tickvals": marks, "ticktext": [show(v, axis.unit) if v else "0" for v in marks]}


def _round_marks(low: float, high: float, most: int = 7) -> list[float]:
    step = round_step((high - low) / most)
    first = math.ceil(low / step)
    return [round(i * step, 12) for i in range(first, math.floor(high / step) + 1)]


def before_after(ops: Sequence[OpChange]) -> Any:
    """Two bars for each op, before (pale) above after, coloured by bound; the first op on top."""
    import plotly.graph_objects as go

    longest = max((one.time_s for op in ops for one in (op.before, op.after) if one is not None), default=1.0)
    left = max(90.0, 7.2 * max((len(label(op.name)) for op in ops), default=0) + 16)
    figure = go.Figure(layout=common(ROW * len(ops) + 70, left, 90, 46, 10) | CLOSEST | {
        "barmode": "overlay", "bargap": 0.1,
        "xaxis": _axis([0.0, longest], PlotAxis(title="time", unit="s", log=False)) | {"side": "top"},
        "yaxis": {"range": [len(ops) - 0.5, -0.5], "tickvals": list(range(len(ops))), "showgrid": False, "zeroline": False,
                  "ticktext": [label(op.name) for op in ops], "fixedrange": True, "ticks": "", "ticklabelstandoff": 5},
    })  # fmt: skip
    for shift, opacity, when in ((-0.18, 0.4, "before"), (0.18, 1.0, "after")):
        both = [(i + shift, one) for i, op in enumerate(ops) for one in [getattr(op, when)] if one is not None]
        figure.add_trace(go.Bar(
            orientation="h", width=0.34, y=[y for y, _ in both], x=[one.time_s for _, one in both], hoverinfo="text",
            marker={"color": [look(one.bound).colour for _, one in both], "opacity": opacity, "line": {"width": 0}},
            hovertext=[f"{label(one.name, 80)}, {when}<br>{show(one.time_s, 's', 3)}, {label(one.bound)}" for _, one in both],
        ))  # fmt: skip
    return figure

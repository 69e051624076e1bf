"""The charts of the page, drawn by plotly, which is imported on first use; equal estimates give equal text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from archsim.base.units import show
from archsim.report.frame import bundle
from archsim.report.layers import LayerRow
from archsim.report.markup import label
from archsim.report.palette import look, order
from archsim.report.placement import PlotFrame, decades, diameter, labels, memory_line, peak_line
from archsim.report.roofline import RooflineChart, RooflinePoint

WIDTH = 1120  # of every chart [px]
BAR = 21  # height of one row of bars [px]
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
INK, QUIET, RULE, LINE = "#1d2530", "#5b6673", "#e3e7ec", "#b8c0ca"


def library() -> str:
    """The packed JavaScript that draws the charts; each page includes it once."""
    return bundle()


def embed(figure: Any, name: str) -> str:
    """The figure as HTML; `name` is the id of its element. The data are escaped, so that they cannot contain a tag."""
    figure.layout.template = None  # plotly's own would be most of the text
    data = figure.to_json(pretty=False).replace("<", "\\u003c")
    return (
        f'<div id="{name}" class="chart" data-width="{figure.layout.width}" style="height:{figure.layout.height}px">'
        f'<div class="plot"></div><script type="application/json">{data}</script></div>'
    )


def bars(rows: Sequence[LayerRow], latency: float, energy: float) -> Any:
    """Time and energy of each row side by side, coloured by bound; shares are of `latency` [s] and `energy` [J]."""
    import plotly.graph_objects as go

    figure = go.Figure(layout=_bars_layout(rows))
    for bound in order({bound for row in rows for bound in row.time_s}):
        for axis, unit in (("x", "s"), ("x2", "J")):
            figure.add_trace(_bar_trace(rows, bound, axis, unit))
    figure.add_trace(_amounts([row.time for row in rows], latency, "s", "x", rows))
    figure.add_trace(_amounts([row.energy for row in rows], energy, "J", "x2", rows))
    return figure


def _bars_layout(rows: Sequence[LayerRow]) -> dict[str, Any]:
    height = BAR * len(rows)
    longest = max((row.time for row in rows if row.drawn), default=0.0) or 1.0
    hungriest = max((row.energy for row in rows if row.drawn), default=0.0) or 1.0
    names = [label(row.name) for row in rows]
    left = max(80.0, 7.0 * max(map(len, [row.name[:34] for row in rows]), default=0) + 16)
    axis = {"side": "top", "showgrid": False, "zerolinecolor": LINE, "tickfont": {"color": QUIET}, "fixedrange": True}
    return {
        **common(height + 56), "margin": {"l": left, "r": 10, "t": 46, "b": 10}, "barmode": "stack", "bargap": 0.28,
        "xaxis": {**axis, **axis_ticks(longest, "s", 6), "range": [0, 1.36 * longest], "domain": [0, 0.58],
                  "title": _title("time", standoff=6)},
        "xaxis2": {**axis, **axis_ticks(hungriest, "J", 4), "range": [0, 1.62 * hungriest], "domain": [0.62, 1],
                   "title": _title("energy", standoff=6)},
        "yaxis": {"range": [len(rows) - 0.5, -0.5], "tickvals": list(range(len(rows))), "ticktext": names,
                  "showgrid": False, "zeroline": False, "fixedrange": True, "ticks": "", "ticklabelstandoff": 5},
    }  # fmt: skip


def _bar_trace(rows: Sequence[LayerRow], bound: str, axis: str, unit: str) -> Any:
    import plotly.graph_objects as go

    drawn = [(i, row, row.time_s if unit == "s" else row.energy_j) for i, row in enumerate(rows) if row.drawn]
    mine = [(i, row, values[bound]) for i, row, values in drawn if bound in values]
    return go.Bar(
        orientation="h", xaxis=axis, yaxis="y", x=[value for _, _, value in mine], y=[i for i, _, _ in mine],
        marker={"color": look(bound).colour, "line": {"width": 0}}, name=label(bound), hoverinfo="text",
        hovertext=[f"{label(row.name, 80)}<br>{show(value, unit)}, {label(bound)}" for _, row, value in mine],
    )  # fmt: skip


def _amounts(values: Sequence[float], whole: float, unit: str, axis: str, rows: Sequence[LayerRow]) -> Any:
    """The figures at the ends of the bars."""
    import plotly.graph_objects as go

    notes = [f"{show(value, unit, 3)} · {100 * value / whole:.1f} %" for value in values]
    notes = [note if row.drawn else f"{note}, longer than the axis" for note, row in zip(notes, rows, strict=True)]
    return go.Scatter(
        mode="text", xaxis=axis, yaxis="y", x=[v if row.drawn else 0 for v, row in zip(values, rows, strict=True)],
        y=list(range(len(rows))), text=[f" {note}" for note in notes], textposition="middle right", hoverinfo="skip",
        textfont={"size": 11.5, "color": QUIET}, cliponaxis=False,
    )  # fmt: skip


def axis_ticks(longest: float, unit: str, steps: int) -> dict[str, Any]:
    """Round marks from 0 to `longest`, at most `steps` after the 0, with units as all the page has them."""
    rough = longest / steps
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(size * power for size in (1, 2, 5, 10) if size * power >= rough)
    values = [round(i * step, 15) for i in range(int(longest / step * 1.001) + 1)]
    return {"tickvals": values, "ticktext": ["0" if value == 0 else show(value, unit, 3) for value in values]}


def roofline(shown: RooflineChart) -> Any:
    """Arithmetic intensity against arithmetic rate: the ops under the ceilings of the device."""
    import plotly.graph_objects as go

    margin, height = {"l": 116, "r": 44, "t": 44, "b": 56}, 580
    inner = {"width": WIDTH - margin["l"] - margin["r"], "height": height - margin["t"] - margin["b"]}
    frame = PlotFrame(**inner, x=shown.x, y=shown.y)
    figure = go.Figure(layout={
        **common(height), "margin": margin, "showlegend": True, "hovermode": "closest",
        "legend": {"orientation": "h", "x": 0, "y": 1.01, "yanchor": "bottom", "itemsizing": "constant"},
        "xaxis": _log_axis(shown.x, "FLOP/B", "arithmetic intensity (FLOP per byte of memory traffic)", standoff=10),
        "yaxis": _log_axis(shown.y, "FLOP/s", "", standoff=8),
    })  # fmt: skip
    _add_ceilings(figure, shown)
    longest = shown.points[0].time_s if shown.points else 1.0
    for bound in order({point.bound for point in shown.points}):
        figure.add_trace(_cloud([point for point in shown.points if point.bound == bound], bound, longest))
    for name in labels(shown, frame):
        figure.add_annotation(
            x=name.x / frame.width, y=1 - name.y / frame.height, xref="paper", yref="paper", text=label(name.name, 60),
            showarrow=False, xanchor="center", yanchor="middle", borderpad=0, textangle=name.angle,
            font={"size": 12, "color": INK},
        )  # fmt: skip
    return figure


def _cloud(points: Sequence[RooflinePoint], bound: str, longest: float) -> Any:
    import plotly.graph_objects as go

    return go.Scatter(
        mode="markers", name=label(bound), x=[p.intensity for p in points], y=[p.rate for p in points],
        hoverinfo="text", hovertext=[_tooltip(p) for p in points],
        marker={"color": look(bound).colour, "symbol": look(bound).symbol, "opacity": 0.8,
                "size": [round(diameter(p, longest), 1) for p in points], "line": {"width": 1, "color": "#ffffff"}},
    )  # fmt: skip


def _tooltip(point: RooflinePoint) -> str:
    alike = f" and {point.count - 1} alike" if point.count > 1 else ""
    return (
        f"{label(point.name, 80)}{alike}<br>{label(point.kind)}, {label(point.phase)}<br>"
        f"{show(point.intensity, '1', 3)} FLOP/B, {show(point.rate, 'FLOP/s', 3)}<br>"
        f"{show(point.time_s, 's', 3)}, {100 * point.share:.1f} % of the time"
    )


def _add_ceilings(figure: Any, shown: RooflineChart) -> None:
    """Slanted lines for the memory, flat ones for the peaks with their names."""
    for bandwidth, dash in ((shown.bandwidth, "solid"), (shown.reachable, "dot")):
        _line(figure, memory_line(shown, bandwidth), dash, INK)
    for ceiling in shown.ceilings:
        _line(figure, peak_line(shown, ceiling.rate), "solid", INK if ceiling.chosen else "#a3adb8")
        figure.add_annotation(
            x=1, y=math.log10(ceiling.rate), xref="paper", yref="y", text=label(ceiling.name, 60), showarrow=False,
            xanchor="right", yanchor="bottom", borderpad=0,
            font={"size": 12, "color": INK if ceiling.chosen else QUIET},
        )  # fmt: skip


def _line(figure: Any, ends: Sequence[tuple[float, float]], dash: str, colour: str) -> None:
    import plotly.graph_objects as go

    figure.add_trace(go.Scatter(
        mode="lines", x=[end[0] for end in ends], y=[end[1] for end in ends], hoverinfo="skip", showlegend=False,
        line={"color": colour, "width": 1.4 if dash == "solid" else 1.1, "dash": dash},
    ))  # fmt: skip


def _log_axis(span: tuple[float, float], unit: str, title: str, standoff: int) -> dict[str, Any]:
    values = decades(*span)
    suffix = f" {unit}" if unit == "FLOP/B" else ""
    names = [show(value, "1" if suffix else unit) + suffix for value in values]
    return {
        "type": "log", "range": [math.log10(span[0]), math.log10(span[1])], "tickvals": values, "ticktext": names,
        "gridcolor": RULE, "zeroline": False, "title": _title(title, standoff), "fixedrange": True,
        "tickfont": {"color": QUIET}, "showline": True, "linecolor": LINE,
    }  # fmt: skip


def _title(words: str, standoff: int) -> dict[str, Any]:
    return {"text": words, "font": {"size": 13, "color": INK}, "standoff": standoff}


def common(height: float) -> dict[str, Any]:
    """The layout that all charts share; without plotly's template, which would be most of their text."""
    font = {"family": FONT, "size": 12, "color": INK}
    return {
        "template": {"layout": {}}, "width": WIDTH, "height": height, "showlegend": False, "dragmode": False,
        "paper_bgcolor": "#ffffff", "plot_bgcolor": "#ffffff", "font": font,
        "hoverlabel": {"bgcolor": "#ffffff", "bordercolor": LINE, "font": font, "align": "left"},
    }  # fmt: skip

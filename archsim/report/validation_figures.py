"""The charts of a validation, drawn by plotly, which is imported on first use; equal validations give equal text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from archsim.base.errors import ArchsimError
from archsim.base.units import show
from archsim.detect.catalog import find
from archsim.device.device import Gpu
from archsim.evidence.case import Case
from archsim.evidence.columns import quantity
from archsim.report.figures import AXIS, INK, LINE, QUIET, common
from archsim.report.markup import label
from archsim.report.palette import SERIES
from archsim.report.placement import decades, round_numbers
from archsim.validation.evaluation import Validation

MOST_POINTS = 1800  # of one chart
SYMBOLS = ("circle", "square", "diamond", "cross", "triangle-up", "x")
BAND = 0.25  # relative distance of the dashed lines from the diagonal
ROW = 26  # height of one row of boxes [px]
UNITS = {"time": "s", "power": "W", "energy": "J"}
AT_LIMIT = 0.002  # relative distance from the power limit within which a prediction is at it
LEAST_AT_LIMIT = 5  # rows; fewer make no line in the picture
RATIOS = (0.03, 0.1, 0.2, 0.5, 0.75, 1.0, 1.25, 2.0, 5.0, 10.0, 30.0)


def sources(v: Validation, kind: str) -> dict[str, list[int]]:
    """The positions of the rows of each source that measure `kind`, the largest source first."""
    found: dict[str, list[int]] = {}
    for i, case in enumerate(v.cases):
        if quantity(case) == kind:
            found.setdefault(case.source, []).append(i)
    return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))


def thin(rows: Sequence[int], count: int) -> list[int]:
    """At most `count` of the rows, evenly picked.

    >>> thin(range(10), 4)
    [0, 3, 6, 9]
    """
    if len(rows) <= count:
        return list(rows)
    return [rows[int(i)] for i in np.linspace(0, len(rows) - 1, count)]


def share(sizes: Sequence[int], most: int) -> int:
    """The largest number of rows that every source may show so that all together show at most `most`.

    >>> share([10, 50, 100], 70)
    30
    """
    low, high = 0, max([*sizes, 0])
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if sum(min(size, middle) for size in sizes) <= most else (low, middle - 1)
    return low


def look_of(source: str, names: Sequence[str]) -> tuple[str, str]:
    """Colour and symbol of a source by its position; when the colours are used up the symbol changes."""
    place = list(names).index(source)
    return SERIES[place % len(SERIES)], SYMBOLS[place // len(SERIES) % len(SYMBOLS)]


def scatter(v: Validation, kind: str, names: Sequence[str]) -> Any:
    """Predicted against measured times (or powers), coloured by source; a rate is drawn as the time of one batch."""
    import plotly.graph_objects as go

    drawn = sources(v, kind)
    quota = share([len(rows) for rows in drawn.values()], MOST_POINTS)
    points = {source: [_point(v, i) for i in thin(rows, quota)] for source, rows in drawn.items()}
    values = [value for own in points.values() for point in own for value in point]
    span = 0.8 * min(values), 1.25 * max(values)
    figure = go.Figure(layout={
        **common(620, 84, 268, 14, 56), "hovermode": "closest", "showlegend": True,
        "legend": {"x": 1.02, "y": 1, "itemsizing": "constant", "font": {"size": 12}},
        "xaxis": _decade_axis(span, UNITS[kind], f"measured {kind}"),
        "yaxis": _decade_axis(span, UNITS[kind], f"predicted {kind}"),
    })  # fmt: skip
    for source, own in points.items():
        colour, symbol = look_of(source, names)
        figure.add_trace(go.Scatter(
            mode="markers", name=f"{label(source)} ({len(drawn[source])})",
            hovertemplate=f"%{{text}}<br>measured %{{x:.3~s}}{UNITS[kind]}, predicted %{{y:.3~s}}{UNITS[kind]}<extra></extra>",
            x=[_short(x) for x, _ in own], y=[_short(y) for _, y in own],
            text=[_tooltip(v, i) for i in thin(drawn[source], quota)],
            marker={"color": colour, "symbol": symbol, "size": 5, "opacity": 0.55},
        ))  # fmt: skip
    for factor, dash, name in ((1.0, "solid", ""), (1 + BAND, "dash", f"+{100 * BAND:.0f} %"), (1 - BAND, "dash", "")):
        figure.add_trace(go.Scatter(
            mode="lines", x=[_short(value) for value in span], y=[_short(factor * value) for value in span], hoverinfo="skip",
            line={"color": INK, "width": 1.3 if dash == "solid" else 1.0, "dash": dash},
            name={1.0: "predicted = measured"}.get(factor, f"±{100 * BAND:.0f} %"), showlegend=factor == 1.0 or bool(name),
        ))  # fmt: skip
    limits = at_limit(v) if kind == "power" else {}
    for name, (limit, count) in limits.items():
        figure.add_annotation(
            x=0, xref="paper", y=math.log10(limit), xanchor="left", yanchor="bottom", showarrow=False,
            text=f"power limit of {label(name)}: {limit:.0f} W ({count} rows)", font={"size": 11.5, "color": QUIET},
        )
        figure.add_hline(y=limit, line={"color": LINE, "width": 1, "dash": "dot"})
    return figure


def _point(v: Validation, i: int) -> tuple[float, float]:
    """Measured and predicted value, a rate as the time of one batch."""
    case, predicted = v.cases[i], float(v.predicted[i])
    if case.metric == "throughput_per_s":
        return case.batch / case.measured, case.batch / predicted
    return case.measured, predicted


def _tooltip(v: Validation, i: int) -> str:
    case: Case = v.cases[i]
    return (
        f"{label(case.label, 60)}, batch {case.batch}<br>{label(case.hardware)}, {label(case.stack_id)}, {label(case.precision)}"
        f": {100 * v.error[i]:+.0f} %"
    )


def at_limit(v: Validation) -> dict[str, tuple[float, int]]:
    """Devices with predictions at their power limit: the limit [W] and how many of the rows of power are there."""
    found: dict[str, tuple[float, int]] = {}
    rows = [i for own in sources(v, "power").values() for i in own]
    for name in sorted({v.cases[i].hardware for i in rows}):
        try:
            device = find(name).device
        except ArchsimError:  # a device of the reader's own
            continue
        if not isinstance(device, Gpu):
            continue
        limit = float(device.power.tdp)
        count = sum(v.cases[i].hardware == name and abs(v.predicted[i] / limit - 1) < AT_LIMIT for i in rows)
        if count >= LEAST_AT_LIMIT:
            found[name] = (limit, count)
    return found


def distribution(v: Validation, kind: str, names: Sequence[str]) -> Any:
    """The distribution of predicted / measured in each source: quartiles as a box, whiskers from the 10th to the 90th percentile.
    """
    import plotly.graph_objects as go

    drawn = sources(v, kind)
    quantiles = {source: [float(q) for q in np.percentile(1 + v.error[rows], [10, 25, 50, 75, 90])]
                 for source, rows in drawn.items()}  # fmt: skip
    ends = [1 - BAND, 1 + BAND, *(q for own in quantiles.values() for q in own if q > 0)]
    span = 0.9 * min(ends), 1.1 * max(ends)
    ticks = [ratio for ratio in RATIOS if span[0] <= ratio <= span[1]]
    figure = go.Figure(layout={
        **common(ROW * len(drawn) + 74, 206, 190, 40, 34), "barmode": "overlay",
        "xaxis": {"type": "log", "range": [math.log10(end) for end in span], "tickvals": ticks, "side": "top",
                  "ticktext": [_percent(ratio - 1) for ratio in ticks], "tickfont": {"color": QUIET}, **AXIS},
        "yaxis": {"range": [len(drawn) - 0.5, -0.5], "showgrid": False, "zeroline": False, "fixedrange": True, "ticks": "",
                  "tickvals": list(range(len(drawn))), "ticktext": [label(source, 26) for source in drawn],
                  "ticklabelstandoff": 6},
        "shapes": [
            {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "x0": 1 - BAND, "x1": 1 + BAND, "fillcolor": "#eef3f7",
             "line": {"width": 0}, "layer": "below"},
            {"type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": 1, "x1": 1, "line": {"color": LINE, "width": 1.4},
             "layer": "below"},
        ],
    })  # fmt: skip
    for place, (source, own) in enumerate(quantiles.items()):
        colour, _ = look_of(source, names)
        p10, q1, median, q3, p90 = map(_short, own)
        figure.add_trace(go.Scatter(
            mode="lines", x=[p10, p90], y=[place, place], hoverinfo="skip", line={"color": colour, "width": 1.5},
        ))
        figure.add_trace(go.Bar(
            orientation="h", base=[q1], x=[_short(q3 - q1)], y=[place], width=0.6, name=label(source), hoverinfo="skip",
            marker={"color": _faint(colour), "line": {"color": colour, "width": 1.5}},
        ))
        figure.add_trace(go.Scatter(
            mode="markers", x=[p10, median, p90], y=[place] * 3, hoverinfo="skip",
            marker={"symbol": "line-ns", "size": [9, 15, 9], "line": {"color": colour, "width": 2}},
        ))  # fmt: skip
        note = f"{_percent(own[2] - 1)} · {len(drawn[source])} {'row' if len(drawn[source]) == 1 else 'rows'}"
        figure.add_annotation(x=1.01, xref="paper", xanchor="left", y=place, text=note, showarrow=False,
                              font={"size": 11.5, "color": QUIET})  # fmt: skip
    return figure


def _faint(colour: str) -> str:
    """A third of a colour over what lies behind it, in a form that every version of plotly reads.

    >>> _faint("#0072b2")
    'rgba(0, 114, 178, 0.33)'
    """
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return f"rgba({red}, {green}, {blue}, 0.33)"


def _percent(share: float) -> str:
    return "0" if abs(share) < 5e-4 else f"{100 * share:+.0f} %"


def _short(value: float) -> float:
    """A value with four digits, which is as much as a chart shows."""
    return float(f"{value:.4g}")


def _decade_axis(span: tuple[float, float], unit: str, title: str) -> dict[str, Any]:
    values = decades(*span)
    if len(values) < 2:
        values = round_numbers(*span)
    return {
        "type": "log", "range": [math.log10(end) for end in span], "tickvals": values, **AXIS,
        "ticktext": [show(value, unit, 3) for value in values], "tickfont": {"color": QUIET},
        "showline": True, "linecolor": LINE, "title": {"text": title, "font": {"size": 13, "color": INK}, "standoff": 10},
    }  # fmt: skip

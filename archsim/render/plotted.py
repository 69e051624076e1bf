"""Charts of many points, of which a reader enlarges a part: drawn by plotly, whose library then stands packed in the page."""

from __future__ import annotations

import html
import math
from base64 import b64encode
from importlib.resources import files
from typing import Any

from archsim.render.blocks import Axis, Chart, Series
from archsim.render.palette import colour
from archsim.render.svg import FONT, INK, PAPER, QUIET, RULE, scale_of
from archsim.render.text import clean

BUNDLE = "plotly-basic.min.js.gz"  # in vendor/, with its licence


def library() -> str:
    """The packed code that draws: gzip in base 64."""
    return b64encode(files("archsim.render").joinpath("vendor", BUNDLE).read_bytes()).decode("ascii")


def figure_of(chart: Chart) -> str:
    """The chart as JSON for plotly, without anything that could end a script element."""
    import plotly.graph_objects as go

    live = [s for s in chart.series if len(s.x)]
    free = [s for s in live if not s.tone]
    figure = go.Figure(layout={
        "template": {"layout": {}}, "height": chart.height + 80, "showlegend": len(live) > 1, "dragmode": "zoom",
        "margin": {"l": 90, "r": 24, "t": 34, "b": 54}, "paper_bgcolor": PAPER, "plot_bgcolor": PAPER, "hovermode": "closest",
        "font": {"family": FONT, "size": 12, "color": INK}, "barmode": "overlay",
        "legend": {"orientation": "h", "x": 0, "y": 1.01, "yanchor": "bottom"},
        "xaxis": _axis(chart.x, [v for s in live for v in (*s.x, *s.ends)]),
        "yaxis": _axis(chart.y, [v for s in live for v in s.y]),
    })  # fmt: skip
    for s in live:
        paint = colour(s.tone or str(free.index(s)))
        figure.add_trace(_bars(s, paint) if s.ends else _points(s, paint))
    figure.layout.template = None  # plotly's own would be most of the text
    return str(figure.to_json(pretty=False)).replace("<", "\\u003c")


def _label(text: str) -> str:
    """Words for plotly, which reads some tags, but knows no `&quot;`."""
    return html.escape(clean(text), quote=False)


def _points(s: Series, paint: str) -> Any:
    import plotly.graph_objects as go

    sign = "diamond" if s.mark == "d" else "circle"
    hollow = list(s.hollow) or [False] * len(s.x)
    mode = "+".join(part for part, there in (("lines", s.joined), ("markers", bool(s.mark))) if there)
    return go.Scatter(
        mode=mode, name=_label(s.name), x=list(s.x), y=list(s.y), hoverinfo="text" if s.tips else "x+y",
        hovertext=[_label(tip).replace("\n", "<br>") for tip in s.tips] or None, showlegend=bool(s.name),
        line={"color": paint, "width": 1.8, "dash": "dash" if s.dashed else "solid"}, opacity=1.0 if s.joined else 0.7,
        marker={"color": paint, "size": 11 if s.mark == "d" else 7, "symbol": [f"{sign}-open" if h else sign for h in hollow]},
    )  # fmt: skip


def _bars(s: Series, paint: str) -> Any:
    import plotly.graph_objects as go

    return go.Bar(
        orientation="h", name=_label(s.name), base=list(s.x), x=[end - start for start, end in zip(s.x, s.ends, strict=True)],
        y=list(s.y), width=0.75, marker={"color": paint, "line": {"width": 0}}, hoverinfo="text",
        hovertext=[_label(tip).replace("\n", "<br>") for tip in s.tips] or None,
    )  # fmt: skip


def _axis(axis: Axis, values: list[float]) -> dict[str, Any]:
    found = {"gridcolor": RULE, "zeroline": False, "tickfont": {"color": QUIET}, "linecolor": RULE, "showline": True,
             "title": {"text": _label(axis.title), "font": {"size": 13, "color": INK}}}  # fmt: skip
    if axis.names:
        return found | {"range": [len(axis.names) - 0.5, -0.5], "tickvals": list(range(len(axis.names))), "fixedrange": True,
                        "ticktext": [_label(name) for name in axis.names], "showgrid": False}  # fmt: skip
    scale = scale_of(axis, values)
    if scale.log:
        return found | {"type": "log", "range": [math.log10(scale.low), math.log10(scale.high)], "tickformat": ".3~s",
                        "ticksuffix": "" if axis.unit == "1" else axis.unit}  # fmt: skip
    return found | {"range": [scale.low, scale.high], "tickformat": ".4~s", "ticksuffix": "" if axis.unit == "1" else axis.unit}

"""Charts as figures of plotly, for notebooks and for charts of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from archsim.base.units import COUNT
from archsim.render.blocks import Axis, Chart, Series
from archsim.render.palette import colour
from archsim.render.svg import FONT, INK, PAPER, RULE, scale_of

if TYPE_CHECKING:
    import plotly.graph_objects as go


def figure_of(chart: Chart) -> go.Figure:
    """A chart over two axes, with the colours that it has on a page."""
    import plotly.graph_objects as go

    live = [s for s in chart.series if len(s.x)]
    free = [s for s in live if not s.tone]
    figure = go.Figure(layout={
        "title": chart.title, "height": chart.height + 120, "paper_bgcolor": PAPER, "plot_bgcolor": PAPER, "barmode": "overlay",
        "font": {"family": FONT, "color": INK}, "hovermode": "closest",
        "xaxis": _axis(chart.x, [v for s in live for v in (*s.x, *s.ends)]),
        "yaxis": _axis(chart.y, [v for s in live for v in s.y]),
    })  # fmt: skip
    for s in live:
        paint, tips = colour(s.tone or str(free.index(s))), list(s.tips) or None
        if s.ends:
            figure.add_bar(orientation="h", name=s.name, base=list(s.x), y=list(s.y), width=0.75, marker_color=paint,
                           x=[end - start for start, end in zip(s.x, s.ends, strict=True)], hovertext=tips)  # fmt: skip
        else:
            figure.add_scatter(name=s.name, x=list(s.x), y=list(s.y), hovertext=tips, mode=_mode(s), marker_color=paint,
                               line={"dash": "dash" if s.dashed else "solid", "shape": "hv" if s.stepped else "linear"})
    for axis, value, words in chart.guides:
        (figure.add_hline if axis == "y" else figure.add_vline)(value, annotation_text=words, line_dash="dot")
    return figure


def _mode(s: Series) -> str:
    return "+".join(part for part, there in (("lines", s.joined), ("markers", bool(s.mark))) if there)


def _axis(axis: Axis, values: list[float]) -> dict[str, Any]:
    found: dict[str, Any] = {"title": axis.title, "gridcolor": RULE, "ticksuffix": "" if axis.unit == COUNT else axis.unit}
    if axis.names:
        return found | {"tickvals": list(range(len(axis.names))), "ticktext": list(axis.names), "autorange": "reversed"}
    return found | {"type": "log" if values and scale_of(axis, values).log else "linear", "tickformat": ".4~s"}

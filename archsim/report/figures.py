"""The charts of the page, drawn by plotly, which is imported on first use; equal estimates give equal text."""

from __future__ import annotations

from typing import Any

from archsim.base.units import show
from archsim.report.frame import bundle
from archsim.report.placement import round_step

WIDTH = 1120  # of every chart [px]
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
INK, QUIET, RULE, LINE = "#1d2530", "#5b6673", "#e3e7ec", "#b8c0ca"
AXIS = {"gridcolor": RULE, "zeroline": False, "fixedrange": True}  # of most charts


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


def axis_ticks(longest: float, unit: str, steps: int) -> dict[str, Any]:
    """Round marks from 0 to `longest`, at most `steps` after the 0, with units as all the page has them."""
    step = round_step(longest / steps)
    values = [round(i * step, 15) for i in range(int(longest / step * 1.001) + 1)]
    return {"tickvals": values, "ticktext": ["0" if value == 0 else show(value, unit, 3) for value in values]}


def common(height: float, left: float, right: float, top: float, bottom: float) -> dict[str, Any]:
    """The layout that all charts share, with margins [px]; without plotly's template, which would be most of their text."""
    font = {"family": FONT, "size": 12, "color": INK}
    return {
        "template": {"layout": {}}, "width": WIDTH, "height": height, "showlegend": False, "dragmode": False,
        "margin": {"l": left, "r": right, "t": top, "b": bottom},
        "paper_bgcolor": "#ffffff", "plot_bgcolor": "#ffffff", "font": font,
        "hoverlabel": {"bgcolor": "#ffffff", "bordercolor": LINE, "font": font, "align": "left"},
    }  # fmt: skip

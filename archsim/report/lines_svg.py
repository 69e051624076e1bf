"""A line chart as static SVG, for documents without JavaScript; equal data give equal bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from archsim.base.units import show
from archsim.report.markup import label
from archsim.report.palette import SERIES
from archsim.report.placement import round_numbers, round_step
from archsim.report.study_figures import LINEAR_UP_TO, PlotAxis, Series

WIDTH, HEIGHT = 900, 420
LEFT, TOP, RIGHT, BOTTOM = 100, 62, 24, 54
INK, QUIET, RULE = "#1d2530", "#5b6673", "#e3e7ec"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
ROW = 20  # of a legend [px]
CHARACTER = 6.6  # width of a character of a legend [px]


def lines_svg(title: str, series: Sequence[Series], x: PlotAxis, y: PlotAxis) -> str:
    """The chart; `hollow` points are drawn as rings."""
    legend, rows = _legend(series)
    top = TOP + ROW * (rows - 1)
    height = HEIGHT + ROW * (rows - 1)
    floor = height - BOTTOM
    across = PlotScale([v for s in series for v in s.x], x, LEFT, WIDTH - RIGHT)
    up = PlotScale([v for s in series for v in s.y], y, floor, top)
    parts = [f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>', words(LEFT, 24, title, size=16, weight=600), *legend]
    parts += across_marks(across, top, floor, lambda value: show(value, x.unit))
    parts += up_marks(up, LEFT, WIDTH - RIGHT, lambda value: show(value, y.unit) if value else "0")
    parts.append(words((LEFT + WIDTH - RIGHT) / 2, height - 12, x.title, anchor="middle", size=13))
    middle = (top + floor) / 2
    parts.append(f'<g transform="rotate(-90 16 {middle:.1f})">{words(16, middle, y.title, anchor="middle", size=13)}</g>')
    for i, s in enumerate(series):
        parts += _series(s, i, across, up)
    return svg(WIDTH, height, label(title, 160), parts, ' xmlns="http://www.w3.org/2000/svg"') + "\n"


def svg(width: float, height: float, title: str, parts: Iterable[str], named: str = "", top: float = 0) -> str:
    """A picture from its parts; `title` is escaped, `named` the name space of a file, `top` the first line that is seen [px]."""
    body = "\n".join(parts)
    return (f'<svg{named} viewBox="0 {top} {width} {height}" width="{width}" height="{height}" font-family="{FONT}" role="img">\n'
            f"<title>{title}</title>\n{body}\n</svg>")  # fmt: skip


class PlotScale:
    """A scale from values to pixels, with its tick marks."""

    def __init__(self, values: Sequence[float], axis: PlotAxis, start: float, end: float) -> None:
        low, high = min(values), max(values)
        self._log = axis.log if axis.log is not None else low > 0 and high / low > LINEAR_UP_TO
        if self._log:
            low, high = low / 1.1, high * 1.1
            self.marks = round_numbers(low, high, (1, 2, 5) if high / low < 200 else (1,))
        else:
            low, high = min(0.0, low), high * 1.05 or 1.0
            step = round_step((high - low) / 6)
            self.marks = [round(i * step, 12) for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
        self._low, self._high, self._start, self._end = low, high, start, end

    def __call__(self, value: float) -> float:
        """Where a value is [px]."""
        if self._log:
            share = math.log(value / self._low) / math.log(self._high / self._low)
        else:
            share = (value - self._low) / (self._high - self._low)
        return self._start + share * (self._end - self._start)


def across_marks(scale: PlotScale, top: float, floor: float, said: Callable[[float], str]) -> list[str]:
    """The upright lines of a grid, with what is `said` of each mark below them."""
    return [part for value in scale.marks for part in (
        rule(scale(value), top, scale(value), floor),
        words(scale(value), floor + 18, said(value), ink=QUIET, anchor="middle"))]  # fmt: skip


def up_marks(scale: PlotScale, left: float, right: float, said: Callable[[float], str]) -> list[str]:
    """The level lines of a grid, with what is `said` of each mark at their left."""
    return [part for value in scale.marks for part in (
        rule(left, scale(value), right, scale(value)),
        words(left - 8, scale(value) + 4, said(value), ink=QUIET, anchor="end"))]  # fmt: skip


def _series(s: Series, place: int, across: PlotScale, up: PlotScale) -> list[str]:
    colour, dash = _style(place)
    points = [(across(a), up(b)) for a, b in zip(s.x, s.y, strict=True)]
    hollow = list(s.hollow) or [False] * len(points)
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    rings = [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.6" fill="{"#ffffff" if ring else colour}" stroke="{colour}" stroke-width="1.4"/>'
        for (x, y), ring in zip(points, hollow, strict=True)
    ]
    return [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"{dash}/>', *rings]


def _style(place: int) -> tuple[str, str]:
    """Colour and dashes of a line; when the colours are used up they repeat with dashes."""
    dash = ' stroke-dasharray="6 4"' if place >= len(SERIES) else ""
    return SERIES[place % len(SERIES)], dash


def _legend(series: Sequence[Series]) -> tuple[list[str], int]:
    """Names with their colours, in as many rows as they need."""
    parts, x, row = [], float(LEFT), 0
    for i, s in enumerate(series):
        width = 44 + CHARACTER * len(s.name)
        if x + width > WIDTH - RIGHT and x > LEFT:
            x, row = float(LEFT), row + 1
        colour, dash = _style(i)
        y = 42 + ROW * row
        parts.append(f'<line x1="{x:.1f}" y1="{y}" x2="{x + 22:.1f}" y2="{y}" stroke="{colour}" stroke-width="3"{dash}/>')
        parts.append(words(x + 28, y + 4, s.name))
        x += width
    return parts, row + 1


def words(
    x: float, y: float, said: str, *, ink: str = INK, size: int = 12, anchor: str = "start", weight: int = 400
) -> str:  # fmt: skip
    """A line of text."""
    style = f'font-size="{size}" fill="{ink}" text-anchor="{anchor}" font-weight="{weight}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{label(said, 120)}</text>'


def rule(x0: float, y0: float, x1: float, y1: float) -> str:
    """A line of the grid."""
    return f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" stroke="{RULE}"/>'

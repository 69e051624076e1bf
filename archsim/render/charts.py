"""Charts as SVG, in pages at the width of the screen, elsewhere at a width of their own; and as figures of plotly.

The plot is a nested drawing whose x goes in per cent, so that nothing has to be computed in the browser; lines and areas stand in
one that is stretched, with strokes that are not. Equal data give equal text.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archsim.base.units import COUNT, show, show_capacity
from archsim.render.blocks import Axis, Chart, Series
from archsim.render.palette import colour
from archsim.render.text import clean

if TYPE_CHECKING:
    import plotly.graph_objects as go

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
INK, QUIET, RULE, PAPER = "#1d2530", "#5b6673", "#e3e7ec", "#ffffff"
LETTER, BOLD, LINE = 6.6, 7.7, 15.0  # of a text [px]
Box = tuple[float, float, float, float, float]  # share of the width [1]; left, top, right and bottom from there [px]
TOP, BELOW, EDGE, KEY = 14, 46, 16, 24  # margins of the plot, and the height of a legend above it [px]
USUAL, SLIM, PHONE = 1000.0, 560.0, 280.0  # widths of a plot: for its numbers, for its labels, for those that a phone has [px]
FINE = 16  # times as many marks where a reader has come close
LOG_SIZES = ((1, 1.5, 2, 3, 4, 5, 6, 8), (1, 2, 5), (1,))  # marks of a power of ten, from many to few
LOG_FROM = 8.0  # ratio of largest to smallest value above which an axis is logarithmic
STRETCH = 1000  # width of what is stretched
LARGEST, SMALLEST, MARK = 17.0, 3.0, 4.0  # radius of a mark [px]
LONGEST = 30  # characters of a label
HALO = f'paint-order="stroke" stroke="{PAPER}" stroke-width="4"'  # of a text that a line may cross


@dataclass(frozen=True, slots=True)
class AxisScale:
    """From values of an axis to shares of its length [1], with its round marks."""

    low: float
    high: float
    log: bool
    marks: tuple[float, ...]

    def __call__(self, value: float) -> float:
        """Where a value is; 0 at the lower end."""
        if self.log:
            return math.log(max(value, 1e-300) / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def scale_of(axis: Axis, values: Sequence[float], most: int = 8) -> AxisScale:
    """The scale of an axis that holds all values."""
    if axis.names:
        return AxisScale(len(axis.names) - 0.5, -0.5, False, tuple(range(len(axis.names))))
    finite = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = axis.ends or (min(finite), max(finite))
    log = axis.log if axis.log is not None else low > 0 and high / low > LOG_FROM
    if log:
        low, high = (low, high) if axis.ends else (low / 1.12, max(high * 1.12, low * 1.3))
        return AxisScale(low, high, True, tuple(axis.marks) or _log_marks(low, high, most))
    if not axis.ends:
        near = low > 0 and low > 0.6 * high  # what varies little is seen best from close by
        room = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
        low, high = (low - room if near or low < 0 else 0.0), high + room
    return AxisScale(low, high, False, tuple(axis.marks) or _marks(low, high, most))


def round_step(rough: float) -> float:
    """The least of 1, 2, 5 and 10 times a power of ten that is no less.

    >>> round_step(0.3), round_step(7.0)
    (0.5, 10.0)
    """
    power = 10.0 ** math.floor(math.log10(rough))
    return next(size * power for size in (1, 2, 5, 10) if size * power >= rough * (1 - 1e-9))


def _marks(low: float, high: float, most: int) -> tuple[float, ...]:
    step = round_step((high - low) / most)
    return tuple(round(i * step, 12) for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1))


def _log_marks(low: float, high: float, most: int) -> tuple[float, ...]:
    """Round numbers, as many of each power of ten as there is room for."""
    if high / low < 4:
        return _marks(low, high, most)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found: list[float] = []
    for sizes in LOG_SIZES:
        found = [size * 10.0**power for power in powers for size in sizes if low <= size * 10.0**power <= high]
        if len(found) <= 1.5 * most:
            break
    return tuple(found[:: math.ceil(len(found) / (1.5 * most))])


def drawn(chart: Chart, width: int | None = None) -> str:
    """The picture: `width` in pixels, or None for the width that is there. Without series that have points, nothing."""
    live = [s for s in chart.series if len(s.x)]
    if not live:
        return ""
    across = scale_of(chart.x, [v for s in live for v in (*s.x, *s.ends)] + _guided(chart, "x"))
    up = scale_of(chart.y, [v for s in live for v in (*s.y, *s.low, *s.high)] + _guided(chart, "y"), 6)
    left = 22 + LETTER * max(len(_mark_text(chart.y, mark)) for mark in up.marks) if up.marks else 40
    ends = [(s, tone) for s, tone in _toned(live) if s.joined and tone != "quiet" and not (s.stepped or s.ends or s.labels)]
    edge = max(EDGE, *(BOLD * len(_mark_text(chart.x, mark)) / 2 - PHONE * (1 - across(mark)) for mark in across.marks))
    named = 1 < len(ends) <= 8
    aside = max(edge, 24 + BOLD * max(len(_short(s.name)) for s, _ in ends)) if named else edge
    height = chart.height if not chart.y.names else 26 * len(chart.y.names)
    plot = _Plot(across, up, height, (width or USUAL + left + aside) - left - aside)
    lines, points = ([part for s, tone in _toned(live) if bool(s.mark) == marked for part in _series(s, tone, plot)]
                     for marked in (False, True))  # fmt: skip
    taken: list[Box] = []
    lines += _line_labels(live, plot, taken)
    guides = [*_guides(chart, plot, taken)]
    names = [*_labels(live, plot, taken, width or SLIM), *(_end_names(ends, plot) if named else ())]
    cover = f'<rect x="-{left:.0f}" y="-14" width="{left - 6:.0f}" height="{height + 60}" fill="{PAPER}"/>' * chart.zooms
    side = [f'<g class="side">{cover}', *_rows(chart, plot), "</g>"]
    body = "\n".join([*_grid(chart, plot), *lines, *points, *guides, *names, *side])
    begin = f'role="img"><title>{html.escape(clean(chart.title))}</title>\n'
    look = f'font-family="{FONT}" font-size="12"'
    if width is None:
        room = f'class="drawing{" zooms" * chart.zooms}" style="--l:{left:.0f}px;--r:{aside:.0f}px;--e:{edge:.0f}px"'
        return f'<div {room}><svg width="100%" height="{height}" overflow="visible" {look} {begin}{body}\n</svg></div>'
    key, top = _key([one for one in legend(chart) if not named or one[0] not in {s.name for s, _ in ends}], left, width - EDGE)
    whole = top + height + BELOW
    frame = f'width="{width}" height="{whole}" viewBox="0 0 {width} {whole}" xmlns="http://www.w3.org/2000/svg"'
    return (f'<svg {frame} {look} {begin}<rect width="100%" height="100%" fill="{PAPER}"/>\n{"".join(key)}'
            f'<svg x="{left:.0f}" y="{top}" width="{plot.width:.0f}" height="{height}" overflow="visible">\n{body}\n'
            '</svg>\n</svg>\n')  # fmt: skip


def _key(names: Sequence[tuple[str, str]], left: float, end: float) -> tuple[list[str], int]:
    """The legend of a drawing that stands alone, in as many lines as it needs, and where the plot begins below it."""
    parts, x, y = [], left, 0
    for name, paint in names:
        wide = 34 + LETTER * len(clean(name))
        if x + wide > end and x > left:
            x, y = left, y + KEY
        parts.append(f'<rect x="{x:.0f}" y="{y + 9}" width="11" height="11" rx="2" fill="{paint}"/>'
                     + _text(f"{x + 16:.0f}", y + 19, name))  # fmt: skip
        x += wide
    return parts, TOP + (y + KEY if parts else 0)


@dataclass(frozen=True, slots=True)
class _Plot:
    across: AxisScale
    up: AxisScale
    height: float
    width: float  # nominal [px]

    def x(self, value: float) -> str:
        return f"{100 * self.across(value):.2f}%"

    def y(self, value: float) -> float:
        return self.height * (1 - self.up(value))


def _guided(chart: Chart, axis: str) -> list[float]:
    return [value for name, value, _ in chart.guides if name == axis]


def _toned(series: Sequence[Series]) -> list[tuple[Series, str]]:
    """Each series with its tone; those without one take the next colour."""
    free = [i for i, s in enumerate(series) if not s.tone]
    return [(s, s.tone or str(free.index(i))) for i, s in enumerate(series)]


def _short(text: str) -> str:
    plain = clean(text)
    return plain if len(plain) <= LONGEST else f"{plain[: LONGEST - 1]}…"


def _text(x: str, y: float, said: str, anchor: str = "start", ink: str = QUIET, more: str = "") -> str:
    return f'<text x="{x}" y="{y:.1f}" text-anchor="{anchor}" fill="{ink}"{more}>{html.escape(clean(said))}</text>'


def _mark_text(axis: Axis, value: float) -> str:
    if axis.names:
        return _short(axis.names[int(value)])
    if value and axis.unit == "KiB":
        return show_capacity(value, 3)
    return "0" if value == 0 else show(value, axis.unit, 3)


def _rows(chart: Chart, plot: _Plot) -> Iterator[str]:
    """The numbers or names beside the plot, which stay when it is moved."""
    for value in plot.up.marks:
        yield _text("-8", plot.y(value) + 4, _mark_text(chart.y, value), "end")
    if chart.y.title:
        yield _text("0", -3, chart.y.title, ink=INK)


def _grid(chart: Chart, plot: _Plot) -> Iterator[str]:
    for value in plot.up.marks:
        y = plot.y(value)
        yield f'<line x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}" stroke="{RULE}"/>'
    free = -math.inf  # right of the last number
    for i, value in enumerate(plot.across.marks):
        x, said = plot.x(value), _mark_text(chart.x, value)
        middle, half = plot.width * plot.across(value), LETTER * len(said) / 2
        yield f'<line x1="{x}" x2="{x}" y1="0" y2="{plot.height}" stroke="{RULE}"/>'
        if middle - half >= free:
            free = middle + half + 4
            yield _text(x, plot.height + 17, said, "middle", more=' class="odd"' if i % 2 else "")
    if chart.zooms and not plot.across.log:
        for value in {*_marks(plot.across.low, plot.across.high, FINE * 8)}.difference(plot.across.marks):
            yield _text(plot.x(value), plot.height + 17, _mark_text(chart.x, value), "middle", more=' class="fine"')
    yield _text("50%", plot.height + 36, chart.x.title, "middle", INK)


def _guides(chart: Chart, plot: _Plot, taken: list[Box]) -> Iterator[str]:
    for axis, value, said in chart.guides:
        wide = LETTER * len(clean(said))
        if axis == "y":
            y = plot.y(value)
            yield f'<line x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}" stroke="{QUIET}" stroke-dasharray="6 4"/>'
            yield _text("100%", y - 5, said, "end", more=f" {HALO}")
            taken.append((1.0, -wide, y - 16, 0.0, y - 2))
        else:
            x, share = plot.x(value), plot.across(value)
            before = (1 - share) * PHONE < wide + 5
            yield f'<line x1="{x}" x2="{x}" y1="0" y2="{plot.height}" stroke="{QUIET}" stroke-dasharray="6 4"/>'
            yield _text(x, 12, said, "end" if before else "start", more=f' dx="{-5 if before else 5}" {HALO}')
            taken.append((share, -wide - 5, 1.0, 0.0, 15.0) if before else (share, 0.0, 1.0, wide + 5, 15.0))


def _series(s: Series, tone: str, plot: _Plot) -> Iterator[str]:
    paint = colour(tone)
    if s.ends:
        yield from _intervals(s, paint, plot)
        return
    points = [(STRETCH * plot.across(a), plot.y(b)) for a, b in zip(s.x, s.y, strict=True)]
    lines = []
    if s.low:
        band = [(STRETCH * plot.across(a), plot.y(b)) for a, b in [*zip(s.x, s.low, strict=True),
                                                                   *reversed([*zip(s.x, s.high, strict=True)])]]  # fmt: skip
        lines.append(f'<polygon points="{_path(band)}" fill="{paint}" fill-opacity="0.14"/>')
    if s.joined:
        dash = ' stroke-dasharray="6 4"' if s.dashed else ""
        steps = "".join(f"H{x:.1f}V{y:.1f}" for x, y in points[1:])
        line = f'path d="M{_path(points[:1])}{steps}"' if s.stepped else f'polyline points="{_path(points)}"'
        lines.append(f'<{line} fill="none" stroke="{paint}" stroke-width="1.8"{dash} vector-effect="non-scaling-stroke"/>')
    if lines:
        yield (f'<svg width="100%" height="{plot.height}" viewBox="0 0 {STRETCH} {plot.height}" preserveAspectRatio="none" '
               f'overflow="visible">{"".join(lines)}</svg>')  # fmt: skip
    if s.mark:
        yield from _marks_of(s, paint, plot)


def _path(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _radius(s: Series, i: int) -> float:
    """Of a mark whose area stands for a size [px]."""
    return max(SMALLEST, LARGEST * math.sqrt(s.sizes[i])) if s.sizes else MARK


def _marks_of(s: Series, paint: str, plot: _Plot) -> Iterator[str]:
    """The largest first, so that none covers a smaller one."""
    for i in sorted(range(len(s.x)), key=lambda i: -_radius(s, i)):
        x, y, size = plot.x(s.x[i]), plot.y(s.y[i]), _radius(s, i)
        inside = PAPER if s.hollow and s.hollow[i] else paint
        look = f'fill="{inside}" stroke="{paint if inside == PAPER else PAPER}"' + (' fill-opacity="0.8"' if s.sizes else "")
        tip = f"<title>{html.escape(clean(s.tips[i]))}</title>" if s.tips else ""
        yield f'<circle cx="{x}" cy="{y:.1f}" r="{size:.1f}" {look}>{tip}</circle>'


def _intervals(s: Series, paint: str, plot: _Plot) -> Iterator[str]:
    for i, (start, row, end) in enumerate(zip(s.x, s.y, s.ends, strict=True)):
        width = max(100 * (plot.across(end) - plot.across(start)), 0.02)
        tip = f"<title>{html.escape(clean(s.tips[i]))}</title>" if s.tips else ""
        yield (f'<rect x="{plot.x(start)}" y="{plot.y(row) - 9:.1f}" width="{width:.3f}%" height="18" '
               f'fill="{paint}">{tip}</rect>')  # fmt: skip


def _end_names(ends: Sequence[tuple[Series, str]], plot: _Plot) -> Iterator[str]:
    """Names of lines beside their ends, moved apart where they would overlap; a phone has them in the legend alone."""
    wanted = sorted((plot.y(s.y[-1]) + 4, _short(s.name), colour(tone)) for s, tone in ends)
    place = -math.inf
    for y, said, paint in wanted:
        place = max(y, place + LINE)
        square = f'<rect x="8" y="-9" width="9" height="9" fill="{paint}"/>'
        yield f'<svg x="100%" y="{place:.1f}" overflow="visible" class="end">{square}</svg>'
        yield _text("100%", place, said, ink=INK, more=' dx="21" class="end" font-weight="600"')


def _line_labels(series: Sequence[Series], plot: _Plot, taken: list[Box]) -> Iterator[str]:
    """What a line says above its end, or below its beginning; `taken` gets where."""
    for s in (s for s in series if s.labels and not s.mark):
        for i, said in enumerate(s.labels):
            if said:
                last = i == len(s.x) - 1
                y, width, dx = plot.y(s.y[i]) + (-6 if last else 14), LETTER * len(_short(said)) + 8, -6.0 if last else 6.0
                while _over(box := _box(plot.across(s.x[i]), y, dx, width, "end" if last else "start"), taken, plot.width):
                    dx += -8 if last else 8  # beside another at the same height
                taken.append(box)
                more = f' dx="{dx:.0f}" {HALO}'
                yield _text(plot.x(s.x[i]), y, _short(said), "end" if last else "start", more=more)


def _labels(series: Sequence[Series], plot: _Plot, taken: list[Box], width: float) -> Iterator[str]:
    """What stands beside points, those with the largest marks first, where there is room; a narrow plot has fewer."""
    points = [(_radius(s, i), plot.across(s.x[i]), plot.y(s.y[i]), s.labels[i] if s.labels else "")
              for s in series if s.mark for i in range(len(s.x))]  # fmt: skip
    taken += [(x, -r, y - r, r, y + r) for r, x, y, _ in points]
    for r, x, y, said in sorted(points, key=lambda point: -point[0]):
        if not said:
            continue
        places = ((r + 5, 4.0, "start"), (-r - 5, 4.0, "end"), (0.0, -r - 6, "middle"), (0.0, r + 14, "middle"))
        room = [(not _free(box, taken, PHONE), i, box) for i, (dx, dy, anchor) in enumerate(places)
                if (box := _box(x, y + dy, dx, LETTER * len(_short(said)), anchor))[2] > 0 and box[4] < plot.height
                and _free(box, taken, width)]  # fmt: skip
        if room:
            minor, i, box = min(room)
            taken.append(box)
            dx, dy, anchor = places[i]
            more = f' dx="{dx:.1f}" class="label{" minor" if minor else ""}"'
            yield _text(f"{100 * x:.2f}%", y + dy, _short(said), anchor, INK, more)


def _box(share: float, y: float, dx: float, width: float, anchor: str) -> Box:
    """Of a text at a share of the width, on the line `y`."""
    left = dx - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
    return share, left, y - 11, left + width, y + 3


def _free(box: Box, taken: Sequence[Box], width: float) -> bool:
    """Whether a text is inside of a plot of that width, and over nothing else."""
    return box[0] * width + box[1] >= 0 and (box[0] - 1) * width + box[3] <= 8 and not _over(box, taken, width)


def _over(box: Box, taken: Sequence[Box], width: float) -> bool:
    return any(box[2] < other[4] and other[2] < box[4] and (box[0] - other[0]) * width + box[1] < other[3]
               and (other[0] - box[0]) * width + other[1] < box[3] for other in taken)  # fmt: skip


def legend(chart: Chart) -> list[tuple[str, str]]:
    """Names of the series with their colours, each once; none for a single one."""
    live = [s for s in chart.series if len(s.x)]
    named = {s.name: colour(tone) for s, tone in _toned(live) if s.name and (s.mark or not s.labels)}
    return list(named.items()) if len(named) > 1 else []


# ---------------------------------------------------------------------------------------------------- figures of plotly


def figure_of(chart: Chart) -> go.Figure:
    """A chart over two axes, with the colours that it has on a page."""
    import plotly.graph_objects as go

    live = [s for s in chart.series if len(s.x)]
    figure = go.Figure(layout={
        "title": chart.title, "height": chart.height + 120, "paper_bgcolor": PAPER, "plot_bgcolor": PAPER, "barmode": "overlay",
        "font": {"family": FONT, "color": INK}, "hovermode": "closest",
        "xaxis": _axis(chart.x, [v for s in live for v in (*s.x, *s.ends)]),
        "yaxis": _axis(chart.y, [v for s in live for v in s.y]),
    })  # fmt: skip
    for s, tone in _toned(live):
        paint, tips = colour(tone), list(s.tips) or None
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

"""Small pictures of characters, for a terminal: a roofline, and sparklines of a sweep."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archsim.base.units import show
from archsim.report.text import clean

if TYPE_CHECKING:
    from archsim.report.roofline import RooflineChart
    from archsim.study.store import Store

ROWS, LEFT, MOST_WIDTH = 14, 13, 100  # lines of a roofline; columns of its labels; widest picture
NAMED = 9  # ops that a roofline names, by digit
STEPS = ("▁▂▃▄▅▆▇█", ".:-=+*#@")  # of a sparkline: in blocks, in ASCII
MOST_STEPS = 32  # characters of a sparkline
Style = Mapping[tuple[int, int], str]  # (line, column) -> bound, whose colour the character takes


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPicture:
    """Lines of characters, and which of them stand for which bound."""

    lines: tuple[str, ...]
    bounds: Style


def roofline_text(chart: RooflineChart, width: int, blocks: bool = True) -> TextPicture | None:
    """Rate against arithmetic intensity, both logarithmic: the roof, the ops with most time by digit, the others as dots.

    None where there is no op with work and traffic, or the width is less than 50 columns.
    """
    if not chart.points or width < 50:
        return None
    columns = min(width, MOST_WIDTH) - LEFT - 1
    low_x, high_x = (math.log10(end) for end in chart.x)
    low_y, high_y = (math.log10(end) for end in chart.y)

    def place(intensity: float, rate: float) -> tuple[int, int]:
        across = (math.log10(intensity) - low_x) / (high_x - low_x)
        up = (math.log10(rate) - low_y) / (high_y - low_y)
        return round((1 - up) * (ROWS - 1)), round(across * (columns - 1))

    cells = [[" "] * columns for _ in range(ROWS)]
    roof = max((c.rate for c in chart.ceilings if c.chosen), default=chart.top)
    for column in range(columns):
        intensity = 10.0 ** (low_x + (high_x - low_x) * column / (columns - 1))
        slope = intensity * chart.bandwidth
        row, _ = place(intensity, min(roof, slope))
        if 0 <= row < ROWS:
            cells[row][column] = ("─" if blocks else "-") if slope >= roof else ("╱" if blocks else "/")
    bounds: dict[tuple[int, int], str] = {}
    above = 1  # lines before the picture
    for number, point in reversed(list(enumerate(chart.points))):  # the ops with most time come last, on top
        row, column = place(point.intensity, point.rate)
        if 0 <= row < ROWS and 0 <= column < columns:
            cells[row][column] = str(number + 1) if number < NAMED else ("·" if blocks else ".")
            bounds[above + row, LEFT + 1 + column] = point.bound
    lines = [f"{_label(chart, row):>{LEFT}} {''.join(line)}".rstrip() for row, line in enumerate(cells)]
    lines.append(" " * (LEFT + 1) + _across(chart, columns))
    title = f"roofline: peak {show(roof, 'FLOP/s', 3)}, memory {show(chart.bandwidth, 'B/s', 3)}; by digit the ops with most time"
    return TextPicture(lines=(title, *lines, *_names(chart, columns)), bounds=bounds)


def _names(chart: RooflineChart, columns: int) -> list[str]:
    """The ops that stand as digits, in lines of at most so many columns."""
    names = "  ".join(f"{i + 1}\u00a0{clean(p.name)}" for i, p in enumerate(chart.points[:NAMED]))
    lines = textwrap.wrap(names, columns, break_long_words=True, break_on_hyphens=False)
    lines += textwrap.wrap(clean(chart.unseen), columns)
    return [f"{'':{LEFT}} {line}".replace("\u00a0", " ") for line in lines]


def _label(chart: RooflineChart, row: int) -> str:
    """The rate of a line, at the top, at the bottom and at powers of ten between."""
    low, high = (math.log10(end) for end in chart.y)
    here, below = (high - (high - low) * r / (ROWS - 1) for r in (row, row + 1))
    power = math.floor(here)
    return show(10.0**power, "FLOP/s", 3) if math.floor(below) < power else ""


def _across(chart: RooflineChart, columns: int) -> str:
    """The axis of intensity, with marks at powers of ten."""
    low, high = (math.log10(end) for end in chart.x)
    line = [" "] * (columns + 16)
    for power in range(math.ceil(low), math.floor(high) + 1):
        mark = f"{10.0**power:g}"
        start = round((power - low) / (high - low) * (columns - 1))
        if start + len(mark) <= columns - 8:
            line[start : start + len(mark)] = mark
    line[columns - 6 : columns] = "FLOP/B"
    return "".join(line).rstrip()


def sparkline(values: Sequence[float], blocks: bool = True) -> str:
    """A character for each value, the least and the largest at the ends of the scale.

    >>> sparkline([1.0, 2.0, 3.0, 4.0]), sparkline([1.0, 1.0], blocks=False)
    ('▁▃▆█', '..')
    """
    steps = STEPS[0 if blocks else 1]
    low, high = min(values), max(values)
    span = high - low
    return "".join(steps[round((v - low) / span * (len(steps) - 1)) if span > 0 else 0] for v in values)


def sweep_sparklines(store: Store, blocks: bool = True) -> str:
    """The least time and energy over each number that a sweep varies, one line a knob, of up to two networks."""
    lines = []
    networks = [str(name) for (name,) in store.read("DISTINCT network")][:2]
    for network in networks:
        for knob in store.space.knobs:
            if store.columns[knob] == "text":
                continue
            for output, unit, title in (("latency_s", "s", "latency"), ("energy_j", "J", "energy")):
                rows = store.read(
                    f'"{knob}", min("{output}")',
                    f"WHERE problem IS NULL AND network = '{_quoted(network)}' GROUP BY 1 ORDER BY 1",
                )
                values = [least for _, least in binned(rows)]
                if len(values) > 1:
                    ends = f"{show(values[0], unit, 3)} to {show(values[-1], unit, 3)}"
                    lines.append((f"{clean(network)}: least {title} over {clean(knob)}", sparkline(values, blocks), ends))
    widths = [max((len(line[i]) for line in lines), default=0) for i in range(2)]
    return "\n".join(f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}" for a, b, c in lines)


def _quoted(text: str) -> str:
    return text.replace("'", "''")


def binned(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[float, float]]:
    """Pairs in the order of their first numbers, at most MOST_STEPS: of neighbours, the least second number.

    >>> len(list(binned((i, 1.0) for i in range(100)))) <= 32
    True
    """
    pairs = [(float(a), float(b)) for a, b in rows]
    size = -(-len(pairs) // MOST_STEPS)
    for begin in range(0, len(pairs), size or 1):
        own = pairs[begin : begin + size]
        yield own[0][0], min(value for _, value in own)

"""Layout of a roofline drawing [px]: the logarithmic frame, the marks, and labels that cover neither marks nor lines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from archsim.base.units import show
from archsim.report.roofline import Ceiling, RooflineChart, RooflinePoint

LETTER = 6.3  # mean width of a letter at the 12 px of the labels
LINE = 15.0  # height of a line of text
GAP = 4.0  # between a mark and its name
NAMED = 8  # points that may get a name

Box = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotFrame:
    """The plot area with logarithmic axes; the origin is its upper left corner."""

    width: float
    height: float
    x: tuple[float, float]
    y: tuple[float, float]

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Pixel position of a data point.

        >>> PlotFrame(width=300, height=200, x=(0.1, 100), y=(1e9, 1e11)).place(1.0, 1e10)
        (100.0, 100.0)
        """
        across = math.log10(x / self.x[0]) / math.log10(self.x[1] / self.x[0])
        up = math.log10(y / self.y[0]) / math.log10(self.y[1] / self.y[0])
        return across * self.width, (1.0 - up) * self.height

    @property
    def slope(self) -> float:
        """Angle of the memory ceilings [degrees], positive downwards as in SVG."""
        decade_x = self.width / math.log10(self.x[1] / self.x[0])
        decade_y = self.height / math.log10(self.y[1] / self.y[0])
        return -math.degrees(math.atan2(decade_y, decade_x))


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """Text centred at (x, y), rotated by `angle` [degrees]."""

    name: str
    x: float
    y: float
    angle: float = 0.0


def decades(low: float, high: float) -> list[float]:
    """The powers of ten inside a range.

    >>> decades(0.3, 40.0)
    [1.0, 10.0]
    """
    first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
    return [float(f"1e{power}") for power in range(first, last + 1)]


def round_step(rough: float) -> float:
    """The least of 1, 2, 5 and 10 times a power of ten that is no less.

    >>> round_step(0.3), round_step(7.0)
    (0.5, 10.0)
    """
    power = 10.0 ** math.floor(math.log10(rough))
    return next(size * power for size in (1, 2, 5, 10) if size * power >= rough)


def round_numbers(low: float, high: float, sizes: Sequence[int] = (1, 2, 5)) -> list[float]:
    """The round numbers inside a range, for a logarithmic axis: powers of ten times each of `sizes`.

    >>> round_numbers(0.3, 4.0)
    [0.5, 1.0, 2.0]
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [size * 10.0**power for power in powers for size in sizes if low <= size * 10.0**power <= high]


def diameter(point: RooflinePoint, longest: float) -> float:
    """Diameter of a point's mark [px]: area proportional to time, with a least visible size."""
    return max(6.0, 34.0 * math.sqrt(point.time_s / longest))


def memory_line(shown: RooflineChart, bandwidth: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Ends (intensity, rate) of the slanted ceiling of a bandwidth [B/s] inside the axes."""
    start = max(shown.x[0], shown.y[0] / bandwidth)
    return (start, start * bandwidth), (shown.top / bandwidth, shown.top)


def peak_line(shown: RooflineChart, rate: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Ends (intensity, rate) of the flat ceiling of a peak [FLOP/s]."""
    return (rate / shown.bandwidth, rate), (shown.x[1], rate)


def labels(shown: RooflineChart, frame: PlotFrame) -> list[Label]:
    """The label of the memory ceiling, then those of the longest ops where there is free space; an op may have none."""
    longest = shown.points[0].time_s if shown.points else 1.0
    marks = [_around(frame, point, diameter(point, longest)) for point in shown.points]
    taken = [*marks, *_peak_names(shown, frame)]
    memory = _memory_name(shown, frame, taken)
    found, taken = [memory], [*taken, *_turned(memory), *_along_lines(shown, frame)]
    for point, mark in list(zip(shown.points, marks, strict=True))[:NAMED]:
        name = _name(point)
        free = (box for box in _beside(mark, LETTER * len(name)) if _inside(box, frame) and not _hides(box, taken))
        box = next(free, None)
        if box is not None:
            taken.append(box)
            found.append(Label(name=name, x=(box[0] + box[2]) / 2, y=(box[1] + box[3]) / 2))
    return found


def _name(point: RooflinePoint) -> str:
    name = point.name if len(point.name) <= 28 else point.name[:27] + "…"
    return name if point.count == 1 else f"{name} and {point.count - 1} alike"


def _around(frame: PlotFrame, point: RooflinePoint, size: float) -> Box:
    x, y = frame.place(point.intensity, point.rate)
    return (x - size / 2, y - size / 2, x + size / 2, y + size / 2)


def _beside(mark: Box, width: float) -> Iterator[Box]:
    """Positions for a label of some width: right, left, below, above, the corners, then the same further away."""
    left, top, right, bottom = mark
    x, y = (left + right) / 2, (top + bottom) / 2
    for gap in (GAP, 3 * GAP):
        starts = [
            (right + gap, y - LINE / 2), (left - gap - width, y - LINE / 2), (x - width / 2, bottom + gap),
            (x - width / 2, top - gap - LINE), (right + gap, bottom), (left - gap - width, bottom),
            (right + gap, top - LINE), (left - gap - width, top - LINE),
        ]  # fmt: skip
        yield from ((a, b, a + width, b + LINE) for a, b in starts)


def peak_labels(shown: RooflineChart, frame: PlotFrame) -> list[tuple[Ceiling, float, float]]:
    """Where the name of each flat ceiling ends: (ceiling, right end, height of its line) [px].

    A name stands at the right end of its line; one that would cover the name of a higher ceiling moves to the left of it.
    """
    found: list[tuple[Ceiling, float, float]] = []
    for ceiling in sorted(shown.ceilings, key=lambda ceiling: -ceiling.rate):
        y, right = frame.place(shown.x[1], ceiling.rate)[1], frame.width
        for other, end, height in sorted(found, key=lambda one: -one[1]):
            start = end - LETTER * len(other.name)
            if abs(y - height) < LINE and right > start - 2 * LETTER and right - LETTER * len(ceiling.name) < end:
                right = start - 2 * LETTER
        found.append((ceiling, right, y))
    return found


def _peak_names(shown: RooflineChart, frame: PlotFrame) -> list[Box]:
    """What the names of the flat ceilings cover."""
    return [(right - LETTER * len(ceiling.name), y - LINE - 2, right, y + 2) for ceiling, right, y in peak_labels(shown, frame)]


def _memory_name(shown: RooflineChart, frame: PlotFrame, taken: list[Box]) -> Label:
    """The label along the slanted ceiling, just above it, where it covers the fewest marks."""
    name = f"memory {show(shown.bandwidth, 'B/s')}, reachable {show(shown.reachable, 'B/s', 3)}"
    start, end = (frame.place(*point) for point in memory_line(shown, shown.bandwidth))
    tilt = math.radians(frame.slope)
    lift = (12 * math.sin(tilt), -12 * math.cos(tilt))
    half = LETTER * len(name) / 2 / math.hypot(end[0] - start[0], end[1] - start[1])
    steps = [half + (1 - 2 * half) * step / 20 for step in range(21)] if half < 0.5 else [0.5]
    places = [
        Label(name=name, angle=frame.slope, x=start[0] + t * (end[0] - start[0]) + lift[0],
              y=start[1] + t * (end[1] - start[1]) + lift[1])
        for t in sorted(steps, key=lambda t: (abs(t - 0.6), t))
    ]  # fmt: skip
    return min(places, key=lambda label: sum(_hides(box, taken) for box in _turned(label)))


def _turned(label: Label) -> list[Box]:
    """Boxes that rotated text covers, one for each letter."""
    tilt, letters = math.radians(label.angle), len(label.name)
    middles = [LETTER * (i - (letters - 1) / 2) for i in range(letters)]
    return [_square(label.x + m * math.cos(tilt), label.y + m * math.sin(tilt), LINE) for m in middles]


def _along_lines(shown: RooflineChart, frame: PlotFrame) -> list[Box]:
    """Small boxes along every ceiling, so that no label crosses a line."""
    lines = [memory_line(shown, bandwidth) for bandwidth in (shown.bandwidth, shown.reachable)]
    lines += [peak_line(shown, ceiling.rate) for ceiling in shown.ceilings]
    boxes = []
    for first, last in lines:
        (x0, y0), (x1, y1) = frame.place(*first), frame.place(*last)
        steps = max(1, int(math.hypot(x1 - x0, y1 - y0) / 6))
        boxes += [_square(x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps, 2.0) for i in range(steps + 1)]
    return boxes


def _square(x: float, y: float, side: float) -> Box:
    return (x - side / 2, y - side / 2, x + side / 2, y + side / 2)


def _inside(box: Box, frame: PlotFrame) -> bool:
    return box[0] > 0 and box[1] > 0 and box[2] < frame.width and box[3] < frame.height


def _hides(box: Box, others: Iterable[Box]) -> bool:
    left, top, right, bottom = box[0] - GAP / 2, box[1], box[2] + GAP / 2, box[3]
    return any(left < o[2] and o[0] < right and top < o[3] and o[1] < bottom for o in others)

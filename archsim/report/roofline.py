"""The roofline of an estimate as data: points, ceilings, axes, and where the labels find room. Nothing is drawn here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from archsim.answer import Estimate, OpEstimate
from archsim.device.device import PRECISION_BYTES, Cpu, Device
from archsim.device.spec import Spec
from archsim.errors import Unsupported
from archsim.quantity import show

LETTER = 6.3  # mean width of a letter [px] at the 12 px of the labels
LINE = 15.0  # height of a line of text [px]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """An op, or `count` ops of equal work, traffic and time; `time_s` is that of all of them."""

    name: str
    kind: str
    phase: str
    bound: str
    intensity: float  # FLOP/B
    rate: float  # FLOP/s
    time_s: float
    share: float
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """A peak [FLOP/s]; `chosen` if the estimate computes in (one of) its precisions."""

    name: str
    rate: float
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Roof:
    """Everything that a drawing needs. `bandwidth` is the data-sheet peak, `reachable` what a long stream gets [B/s]."""

    points: tuple[Point, ...]
    ceilings: tuple[Ceiling, ...]
    bandwidth: float
    reachable: float
    x: tuple[float, float]
    y: tuple[float, float]

    @property
    def top(self) -> float:
        """The highest ceiling [FLOP/s]."""
        return max(ceiling.rate for ceiling in self.ceilings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The plot area [px] of a drawing with logarithmic axes; the origin is its upper left corner."""

    width: float
    height: float
    x: tuple[float, float]
    y: tuple[float, float]

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Where a point of the data stands."""
        across = math.log(x / self.x[0]) / math.log(self.x[1] / self.x[0])
        up = math.log(y / self.y[0]) / math.log(self.y[1] / self.y[0])
        return across * self.width, (1.0 - up) * self.height

    @property
    def slope(self) -> float:
        """Angle of the memory ceiling [degrees], downwards positive as screens have it."""
        decade_x = self.width / math.log10(self.x[1] / self.x[0])
        decade_y = self.height / math.log10(self.y[1] / self.y[0])
        return -math.degrees(math.atan2(decade_y, decade_x))


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A name whose middle stands at (x, y) [px] of the frame."""

    name: str
    x: float
    y: float


def roof(estimate: Estimate, spec: Spec) -> Roof:
    """The roofline of all ops that compute and move something; a ceiling for each peak the device has."""
    points = _points(estimate)
    ceilings = _ceilings(estimate, spec.device)
    bandwidth = float(spec.device.memory.bandwidth)
    ridges = [ceiling.rate / bandwidth for ceiling in ceilings]
    across = [point.intensity for point in points] + ridges
    up = [point.rate for point in points] + [ceiling.rate for ceiling in ceilings]
    return Roof(
        points=points, ceilings=ceilings, bandwidth=bandwidth,
        reachable=bandwidth * float(spec.device.memory.achievable),
        x=(min(across) / 2.0, max(across) * 4.0), y=(min(up) / 2.5, max(up) * 2.5),
    )  # fmt: skip


def _points(estimate: Estimate) -> tuple[Point, ...]:
    alike: dict[tuple[object, ...], list[OpEstimate]] = {}
    for op in estimate.ops:
        if op.flop > 0 and op.dram_bytes > 0 and op.time_s > 0:
            sign = (op.kind, op.phase, op.bound, op.flop, f"{op.dram_bytes:.3g}", f"{op.time_s:.3g}")
            alike.setdefault(sign, []).append(op)
    points = [_point(ops, estimate.latency_s) for ops in alike.values()]
    return tuple(sorted(points, key=lambda point: -point.time_s))


def _point(ops: list[OpEstimate], latency: float) -> Point:
    first, time = ops[0], math.fsum(op.time_s for op in ops)
    return Point(
        name=first.name, kind=first.kind, phase=first.phase, bound=first.bound, intensity=first.flop / first.dram_bytes,
        rate=first.flop / first.time_s, time_s=time, share=time / latency, count=len(ops),
    )  # fmt: skip


def _ceilings(estimate: Estimate, device: Device) -> tuple[Ceiling, ...]:
    """Peaks at the clock of the estimate, on a CPU of the cores that its threads occupy; equal ones are one line."""
    used = _cores(estimate, device)
    precisions: dict[float, list[str]] = {}
    for precision in PRECISION_BYTES:
        try:
            peak = float(device.peak_flops(precision, estimate.clock_hz)) * used
        except Unsupported:
            continue
        precisions.setdefault(peak, []).append(precision)
    return tuple(
        Ceiling(name=f"{', '.join(names)}: {show(peak, 'FLOP/s', 3)}", rate=peak, chosen=estimate.precision in names)
        for peak, names in sorted(precisions.items())
    )


def _cores(estimate: Estimate, device: Device) -> float:
    """The share of the device that the estimate computes on."""
    if isinstance(device, Cpu) and estimate.threads:
        return min(1.0, estimate.threads / float(device.core.count))
    return 1.0


def decades(low: float, high: float, step: int = 1) -> list[float]:
    """The powers of ten inside a range.

    >>> decades(0.3, 40.0)
    [1.0, 10.0]
    """
    first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
    return [float(f"1e{power}") for power in range(first, last + 1) if power % step == 0]


def diameter(point: Point, longest: float) -> float:
    """Of a point's mark [px]: its area is as its time, but for a smallest one that can still be seen."""
    return max(6.0, 34.0 * math.sqrt(point.time_s / longest))


def labels(shown: Roof, frame: Frame, most: int = 8) -> list[Label]:
    """Names of the longest ops, each beside its mark, where they hide neither each other, a mark nor a ceiling."""
    if not shown.points:
        return []
    longest = shown.points[0].time_s
    marks = [_around(frame, point, diameter(point, longest)) for point in shown.points[:60]]
    taken, found = [*marks, *_ceiling_boxes(shown, frame)], []
    for point, mark in list(zip(shown.points, marks, strict=False))[:most]:
        name = _short(point)
        for box in _beside(mark, LETTER * len(name), LINE):
            inside = box[0] > 0 and box[1] > 0 and box[2] < frame.width and box[3] < frame.height
            if inside and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                found.append(Label(name=name, x=(box[0] + box[2]) / 2, y=(box[1] + box[3]) / 2))
                break
    return found


def memory_name(shown: Roof) -> str:
    """What stands along the slanted ceilings."""
    return f"memory: {show(shown.bandwidth, 'B/s')}, dotted {show(shown.reachable, 'B/s', 3)}, what a stream reaches"


def memory_name_at(shown: Roof, frame: Frame) -> tuple[float, float]:
    """The middle of those words [px]: above the line, in the middle of the part that is inside the frame."""
    start = max(shown.x[0], shown.y[0] / shown.bandwidth)
    x0, y0 = frame.place(start, start * shown.bandwidth)
    x1, y1 = frame.place(shown.top / shown.bandwidth, shown.top)
    tilt = math.radians(frame.slope)
    return (x0 + x1) / 2 + 11 * math.sin(tilt), (y0 + y1) / 2 - 11 * math.cos(tilt)


Box = tuple[float, float, float, float]


def _short(point: Point) -> str:
    name = point.name if len(point.name) <= 26 else point.name[:25] + "…"
    return name if point.count == 1 else f"{name} +{point.count - 1}"


def _around(frame: Frame, point: Point, size: float) -> Box:
    x, y = frame.place(point.intensity, point.rate)
    return (x - size / 2, y - size / 2, x + size / 2, y + size / 2)


def _beside(mark: Box, width: float, height: float) -> list[Box]:
    """Places for a label: right, left, below, above, then the corners."""
    left, top, right, bottom = mark
    x, y, gap = (left + right) / 2, (top + bottom) / 2, 2.0
    corners = [
        (right + gap, y - height / 2), (left - gap - width, y - height / 2), (x - width / 2, bottom + gap),
        (x - width / 2, top - gap - height), (right, bottom), (left - width, bottom), (right, top - height),
        (left - width, top - height),
    ]  # fmt: skip
    return [(a, b, a + width, b + height) for a, b in corners]


def _ceiling_boxes(shown: Roof, frame: Frame) -> list[Box]:
    """The words at the right ends of the flat ceilings."""
    boxes = []
    for ceiling in shown.ceilings:
        _, y = frame.place(shown.x[1], ceiling.rate)
        boxes.append((frame.width - LETTER * len(ceiling.name), y - LINE - 2, frame.width, y + 2))
    return boxes


def _overlap(a: Sequence[float], b: Sequence[float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]

"""The roofline of an estimate as data: points, ceilings and axis ranges; nothing is drawn here."""

from __future__ import annotations

import math
from dataclasses import dataclass

from archsim.base.errors import Unsupported
from archsim.base.units import show
from archsim.device.device import PRECISION_BYTES, Cpu, Device, Tpu
from archsim.device.spec import Spec
from archsim.estimation.result import Estimate, OpEstimate

BEYOND = 100.0  # times the intensity at the highest ridge: an op with more hardly touches the memory, and moves no mark apart
NAMED = 6  # ops without a mark that are named
ROUNDING = 1e-6  # relative; sums that differ by less are equal but for rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflinePoint:
    """An op, or `count` ops of equal work, traffic and time; `time_s` is what all of them add to the latency [s]."""

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
    """A peak rate [FLOP/s]; `chosen` if the estimate computes in (one of) its precisions."""

    name: str
    rate: float
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineChart:
    """The data of a roofline chart.

    `bandwidth` is the data-sheet peak, `reachable` the achievable bandwidth [B/s]; `cached` are the ops whose data stay in the
    caches: without memory traffic they have no arithmetic intensity, with next to none one far from all ceilings.
    """

    points: tuple[RooflinePoint, ...]
    ceilings: tuple[Ceiling, ...]
    bandwidth: float
    reachable: float
    cached: tuple[str, ...]
    x: tuple[float, float]
    y: tuple[float, float]

    @property
    def unseen(self) -> str:
        """Which ops have no mark, as a sentence; empty where all have one."""
        if not self.cached:
            return ""
        named, more = ", ".join(self.cached[:NAMED]), len(self.cached) - NAMED
        others = f" and {more} more" if more > 0 else ""
        return f"Not shown, since their data stay in the caches: {named}{others}."

    @property
    def top(self) -> float:
        """The highest ceiling [FLOP/s]."""
        return max(ceiling.rate for ceiling in self.ceilings)


def roof(estimate: Estimate, spec: Spec) -> RooflineChart:
    """The roofline of all ops with work and traffic, and a ceiling for each peak of the device."""
    ceilings = _ceilings(estimate, spec.device)
    bandwidth = float(spec.device.memory.bandwidth) * estimate.memory_clock_share
    ridges = [ceiling.rate / bandwidth for ceiling in ceilings]
    live = [op for op in estimate.ops if op.flop > 0 and op.time_s > 0]
    moving = [op for op in live if op.flop < BEYOND * max(ridges) * op.dram_bytes]
    points = _points(moving, estimate.latency_s)
    cached = tuple([op.name for op in live if op not in moving])
    across = [point.intensity for point in points] + ridges
    up = [point.rate for point in points] + [ceiling.rate for ceiling in ceilings]
    return RooflineChart(
        points=points, ceilings=ceilings, bandwidth=bandwidth, cached=cached,
        reachable=bandwidth * float(spec.device.memory.achievable),
        x=(min(across) / 2.0, max(across) * 4.0), y=(min(up) / 2.5, max(up) * 2.5),
    )  # fmt: skip


def _points(moving: list[OpEstimate], latency: float) -> tuple[RooflinePoint, ...]:
    alike: dict[tuple[object, ...], list[OpEstimate]] = {}
    for op in moving:
        sign = (op.kind, op.phase, op.bound, op.flop, f"{op.dram_bytes:.3g}", f"{op.time_s:.3g}", f"{_busy_s(op):.3g}")
        alike.setdefault(sign, []).append(op)
    points = [_point(ops, latency) for ops in alike.values()]
    return tuple(sorted(points, key=lambda point: -point.time_s))


def _point(ops: list[OpEstimate], latency: float) -> RooflinePoint:
    first, time = ops[0], math.fsum(op.time_s for op in ops)
    return RooflinePoint(
        name=first.name, kind=first.kind, phase=first.phase, bound=first.bound, intensity=first.flop / first.dram_bytes,
        rate=first.flop / _busy_s(first), time_s=time, share=time / latency, count=len(ops),
    )  # fmt: skip


def _busy_s(op: OpEstimate) -> float:
    """How long an op runs [s]: what it adds to the latency, or longer where it overlaps with others."""
    alone = math.fsum(kernel.time_s for kernel in op.kernels)
    return alone if alone > op.time_s * (1 + ROUNDING) else op.time_s


def _ceilings(estimate: Estimate, device: Device) -> tuple[Ceiling, ...]:
    """Peaks at the clock of the estimate of what the chip multiplies, on a CPU for the cores that its threads occupy; equal ones
    are one line. Of operands that it widens to fp32, those of the estimate are named beside fp32."""
    used = _cores(estimate, device)
    precisions: dict[tuple[float, str], list[str]] = {}
    for precision in PRECISION_BYTES:
        try:
            peak = float(device.peak_flops(precision, estimate.clock_hz)) * used
        except Unsupported:
            continue
        own, chosen = _multiplies(device, precision), precision == estimate.precision
        if own or chosen:
            unit = "OP/s" if precision == "int8" else "FLOP/s"
            precisions.setdefault((peak, unit), []).append(precision if own else f"{precision} computed as fp32")
    return tuple(
        Ceiling(name=f"{', '.join(names)}: {show(peak, unit, 3)}", rate=peak,
                chosen=any(name.split(" ")[0] == estimate.precision for name in names))
        for (peak, unit), names in sorted(precisions.items())
    )  # fmt: skip


def _multiplies(device: Device, precision: str) -> bool:
    """Whether a chip multiplies operands of a precision as such, at no less than the rate of fp32, and does not widen them."""
    if precision not in ("fp16", "bf16") or isinstance(device, Tpu):
        return True
    if isinstance(device, Cpu):
        return bool(device.forms(precision))
    rates = [getattr(device.rate, name, None) for name in (precision, f"tensor_{precision}")]
    return any(rate is not None and float(rate) >= float(device.rate.fp32) for rate in rates)


def _cores(estimate: Estimate, device: Device) -> float:
    """The share of the device that the estimate computes on."""
    if isinstance(device, Cpu) and estimate.threads:
        return min(1.0, estimate.threads / float(device.core.count))
    return 1.0

"""The roofline of an estimate: its ops under the ceilings of the device."""

from __future__ import annotations

import math

from archsim.base.errors import Unsupported
from archsim.base.units import show
from archsim.device.device import PRECISION_BYTES, Cpu, Device, Tpu
from archsim.estimation.result import Estimate, OpEstimate
from archsim.render.blocks import Axis, Chart, Series
from archsim.render.palette import order

BEYOND = 100.0  # times the intensity at the highest ridge: an op with more hardly touches the memory, and moves no mark apart
NAMED = 6  # ops without a mark that are named
ROUNDING = 1e-6  # relative; sums that differ by less are equal but for rounding
LABELLED = 8  # of the longest ops that may have a label


def roofline(e: Estimate) -> Chart:
    """All ops with work and traffic as marks whose area is their time, and a ceiling for each peak of the device."""
    memory = e.spec.device.memory
    bandwidth = float(memory.bandwidth) * e.memory_clock_share
    ceilings = _ceilings(e, e.spec.device)
    ridges = [rate / bandwidth for _, rate, _ in ceilings]
    live = [op for op in e.ops if op.flop > 0 and op.time_s > 0]
    moving = [op for op in live if op.flop < BEYOND * max(ridges) * op.dram_bytes]
    marks = sorted(_alike(moving), key=lambda ops: -math.fsum(op.time_s for op in ops))
    across = [ops[0].flop / ops[0].dram_bytes for ops in marks] + ridges
    ends = min(across) / 2.0, max(across) * 4.0
    top = max(rate for _, rate, _ in ceilings)
    lines = [_slope("memory", bandwidth, ends[0], top, dashed=False),
             _slope("a long copy", bandwidth * float(memory.achievable), ends[0], top, dashed=True)]  # fmt: skip
    lines += [Series(name=name, x=(rate / bandwidth, ends[1]), y=(rate, rate), tone="" if chosen else "quiet", mark="",
                     labels=("", name))
              for name, rate, chosen in ceilings]  # fmt: skip
    longest = math.fsum(op.time_s for op in marks[0]) if marks else 1.0
    named = {id(ops) for ops in marks[:LABELLED]}
    for bound in order({ops[0].bound for ops in marks}):
        own = [ops for ops in marks if ops[0].bound == bound]
        lines.append(Series(
            name=bound, tone=bound, joined=False, x=[ops[0].flop / ops[0].dram_bytes for ops in own],
            y=[ops[0].flop / _busy_s(ops[0]) for ops in own], sizes=[math.fsum(op.time_s for op in ops) / longest for ops in own],
            labels=[_name(ops) if id(ops) in named else "" for ops in own], tips=[_tip(ops, e) for ops in own],
        ))  # fmt: skip
    note = ("Each mark is an op, or several equal ones; its area is proportional to their time. FLOP are those of the layer's "
            f"definition, so an algorithm that needs fewer can lie above a ceiling. Flat ceilings are peaks at "
            f"{show(e.clock_hz, 'Hz')}; the dashed slope is what a long copy achieves.")  # fmt: skip
    cached = [op.name for op in live if op not in moving]
    unseen = [f"Not shown, since their data stay in the caches: {', '.join(cached[:NAMED])}"
              f"{f' and {len(cached) - NAMED} more' if len(cached) > NAMED else ''}."] if cached else []  # fmt: skip
    return Chart(
        title="Roofline", series=lines, notes=[note, *unseen], height=440,
        x=Axis(title="arithmetic intensity [FLOP per byte of memory traffic]", log=True, ends=ends),
        y=Axis(title="performance", unit="FLOP/s", log=True),
    )  # fmt: skip


def _slope(name: str, bandwidth: float, start: float, top: float, dashed: bool) -> Series:
    said = f"{name}: {show(bandwidth, 'B/s', 3)}"
    return Series(name=said, x=(start, top / bandwidth), y=(start * bandwidth, top), tone="quiet", mark="", dashed=dashed,
                  labels=("", "" if dashed else said))


def _alike(ops: list[OpEstimate]) -> list[list[OpEstimate]]:
    """Ops of equal work, traffic and time together."""
    found: dict[tuple[object, ...], list[OpEstimate]] = {}
    for op in ops:
        sign = (op.kind, op.phase, op.bound, op.flop, f"{op.dram_bytes:.3g}", f"{op.time_s:.3g}", f"{_busy_s(op):.3g}")
        found.setdefault(sign, []).append(op)
    return list(found.values())


def _name(ops: list[OpEstimate]) -> str:
    return ops[0].name if len(ops) == 1 else f"{ops[0].name} and {len(ops) - 1} alike"


def _tip(ops: list[OpEstimate], e: Estimate) -> str:
    time = math.fsum(op.time_s for op in ops)
    return f"{_name(ops)}: {show(time, 's', 3)}, {100 * time / e.latency_s:.1f} % of the time, {ops[0].bound}"


def _busy_s(op: OpEstimate) -> float:
    """How long an op runs [s]: what it adds to the latency, or longer where it overlaps with others."""
    alone = math.fsum(kernel.time_s for kernel in op.kernels)
    return alone if alone > op.time_s * (1 + ROUNDING) else op.time_s


def _ceilings(e: Estimate, device: Device) -> list[tuple[str, float, bool]]:
    """Name, rate [FLOP/s], and whether the estimate computes in it, of the peaks of what the chip multiplies, on a CPU for the
    cores that its threads occupy; equal ones are one line. Of operands that it widens to fp32, those of the estimate stand beside
    fp32."""
    used = min(1.0, e.threads / float(device.core.count)) if isinstance(device, Cpu) and e.threads else 1.0
    precisions: dict[tuple[float, str], list[str]] = {}
    for precision in PRECISION_BYTES:
        try:
            rate = float(device.peak_flops(precision, e.clock_hz)) * used
        except Unsupported:
            continue
        own, chosen = _multiplies(device, precision), precision == e.precision
        if own or chosen:
            unit = "OP/s" if precision == "int8" else "FLOP/s"
            precisions.setdefault((rate, unit), []).append(precision if own else f"{precision} computed as fp32")
    return [(f"{', '.join(names)}: {show(rate, unit, 3)}", rate, any(name.split(" ")[0] == e.precision for name in names))
            for (rate, unit), names in sorted(precisions.items())]  # fmt: skip


def _multiplies(device: Device, precision: str) -> bool:
    """Whether a chip multiplies operands of a precision as such, at no less than the rate of fp32, and does not widen them."""
    if precision not in ("fp16", "bf16") or isinstance(device, Tpu):
        return True
    if isinstance(device, Cpu):
        return bool(device.forms(precision))
    rates = [getattr(device.rate, name, None) for name in (precision, f"tensor_{precision}")]
    return any(rate is not None and float(rate) >= float(device.rate.fp32) for rate in rates)

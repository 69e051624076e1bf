"""The cache-aware roofline of an estimate: its ops under the slopes of memory and caches and the ceilings of the device."""

from __future__ import annotations

import math
from collections.abc import Sequence

from archsim.base.units import show
from archsim.cost.bounds import bound_word
from archsim.estimation.result import Estimate, OpEstimate
from archsim.explain.summary import RooflineLevel, bandwidth, busy_s, level_of, levels, peak
from archsim.render.blocks import Axis, Chart, Series
from archsim.render.palette import order

BEYOND = 100.0  # times the intensity at the highest ridge: an op with more hardly touches the memory, its data stay on the chip
ROOM = 2.0  # times the highest mark: so far slopes go, so that it lies within the chart
LABELLED = 8  # of the longest ops that may have a label
Mark = tuple[list[OpEstimate], float, RooflineLevel | None]  # equal ops, their intensity [FLOP/B], what holds their data


def roofline(e: Estimate) -> Chart:
    """All ops with arithmetic as marks whose area is their time, hollow where a cache holds their data; a slope for each level
    of memory, and the ceilings of the device."""
    memory = bandwidth(e)
    ceilings = _ceilings(e)
    ridges = [rate / memory for _, rate, _ in ceilings]
    live = [op for op in e.ops if op.flop > 0 and op.time_s > 0]
    marks = sorted(filter(None, (_mark(ops, e, BEYOND * max(ridges)) for ops in _alike(live))), key=lambda mark: -_time(mark[0]))
    ends = min([x for _, x, _ in marks] + ridges) / 4.0, max([x for _, x, _ in marks] + ridges) * 4.0
    top = max([*(rate for _, rate, _ in ceilings), *(ROOM * ops[0].flop / busy_s(ops[0]) for ops, _, _ in marks)])
    lines = [_slope("memory", memory, ends[0], top), *(_slope(one.name, one.bandwidth, ends[0], top) for one in levels(e))]
    lines += [Series(name=name, x=(rate / memory, ends[1]), y=(rate, rate), tone="" if chosen else "quiet", mark="",
                     labels=("", name))
              for name, rate, chosen in ceilings]  # fmt: skip
    longest = _time(marks[0][0]) if marks else 1.0
    named = {id(ops) for ops, _, _ in marks[:LABELLED]}
    for bound in order({ops[0].bound for ops, _, _ in marks}):
        own = [mark for mark in marks if mark[0][0].bound == bound]
        lines.append(Series(
            name=bound_word(bound), tone=bound, joined=False, x=[x for _, x, _ in own],
            y=[ops[0].flop / busy_s(ops[0]) for ops, _, _ in own],
            sizes=[_time(ops) / longest for ops, _, _ in own], hollow=[level is not None for _, _, level in own],
            labels=[_name(ops) if id(ops) in named else "" for ops, _, _ in own], tips=[_tip(mark, e) for mark in own],
        ))  # fmt: skip
    return Chart(
        title="Roofline", series=lines, notes=_notes(e, marks), height=440,
        x=Axis(title="FLOP per byte of memory, or of a cache", log=True, ends=ends),
        y=Axis(title="performance", unit="FLOP/s", log=True),
    )  # fmt: skip


def _mark(ops: list[OpEstimate], e: Estimate, most: float) -> Mark | None:
    """Equal ops at the intensity of their memory traffic, or, above `most`, of the operands that a level on the chip holds."""
    first = ops[0]
    if first.flop < most * first.dram_bytes:
        return ops, first.flop / first.dram_bytes, None
    level, moved = level_of(first, e), e.least_bytes.get(first.name, 0.0)
    return (ops, first.flop / moved, level) if level is not None and moved else None


def _notes(e: Estimate, marks: Sequence[Mark]) -> list[str]:
    found = ["Each mark is an op, or several equal ones; its area is proportional to their time. FLOP are those of the layer's "
             "definition, so an algorithm that needs fewer can lie above a ceiling. Slopes and ceilings are peaks at "
             f"{show(e.clock_hz, 'Hz')}."]  # fmt: skip
    held = sorted({level.name for _, _, level in marks if level is not None})
    if held:
        found.append(f"Hollow marks: the data stay in the {' or '.join(held)}; the intensity is that of operands and results, "
                     "each counted once.")  # fmt: skip
    shown = {op.name for ops, _, _ in marks for op in ops}
    unseen = [op.name for op in e.ops if op.flop > 0 and op.time_s > 0 and op.name not in shown]
    if unseen:
        found.append(f"Not shown: {len(unseen)} ops whose data stay on the chip, of which the spec gives no bandwidth.")
    return found


def _time(ops: Sequence[OpEstimate]) -> float:
    return math.fsum(op.time_s for op in ops)


def _slope(name: str, rate: float, start: float, top: float) -> Series:
    return Series(name=name, x=(start, top / rate), y=(start * rate, top), tone="quiet", mark="", dashed=name != "memory",
                  labels=(f"{name}: {show(rate, 'B/s', 3)}", ""))  # fmt: skip


def _alike(ops: list[OpEstimate]) -> list[list[OpEstimate]]:
    """Ops of equal work, traffic and time together."""
    found: dict[tuple[object, ...], list[OpEstimate]] = {}
    for op in ops:
        sign = (op.kind, op.phase, op.bound, op.flop, f"{op.dram_bytes:.3g}", f"{op.time_s:.3g}", f"{busy_s(op):.3g}")
        found.setdefault(sign, []).append(op)
    return list(found.values())


def _name(ops: list[OpEstimate]) -> str:
    return ops[0].name if len(ops) == 1 else f"{ops[0].name} and {len(ops) - 1} alike"


def _tip(mark: Mark, e: Estimate) -> str:
    ops, _, level = mark
    held = "" if level is None else f", data in the {level.name}"
    share, limit = f"{100 * _time(ops) / e.latency_s:.1f} %", bound_word(ops[0].bound)
    return f"{_name(ops)}: {show(_time(ops), 's', 3)}, {share} of the time, {limit}{held}"


def _ceilings(e: Estimate) -> list[tuple[str, float, bool]]:
    """Name, rate [FLOP/s], and whether the estimate computes in it, of the peaks in fp32 and in its own precision, equal ones as
    one."""
    found: dict[float, list[str]] = {}
    for precision in dict.fromkeys(("fp32", e.precision)):
        rate = peak(e, precision)
        if rate is not None:
            found.setdefault(rate, []).append(precision)
    return [(f"{' and '.join(names)}: {show(rate, 'OP/s' if 'int8' in names else 'FLOP/s', 3)}", rate, e.precision in names)
            for rate, names in sorted(found.items())]  # fmt: skip

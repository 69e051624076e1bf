"""The layers of an estimate: as a table with bars, folded by block, and as marks under the cache-aware roofline."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from archsim.base.record import by_key
from archsim.base.units import show
from archsim.cost.bounds import bound_word
from archsim.estimation.result import Estimate, OpEstimate
from archsim.explain.summary import RooflineLevel, bandwidth, busy_s, level_of, levels, peak
from archsim.render.blocks import Axis, Cell, Chart, Half, Series, Table, columns, count, number, percent, stacked, words
from archsim.render.palette import colour, order
from archsim.render.text import clean

MOST = 40  # layers; those of a network that has more are folded by block, too
ON_PAGE = 50  # layers in the table of a page, of a network that has more the longest


def layer_tables(e: Estimate) -> list[Table]:
    """The layers: all of them in text, on a page the longest ones of a large network."""
    live = sum(op.time_s > 0 for op in e.ops)
    if live <= ON_PAGE:
        return [layer_table(e)]
    return [replace(layer_table(e), only="text"), replace(layer_table(e, ON_PAGE), only="page")]


def layer_table(e: Estimate, most: int = 0) -> Table:
    """Every layer that takes time, or the longest `most`: time and energy as bars, and how near it comes to the peak."""
    top = peak(e)
    live = [op for op in e.ops if op.time_s > 0]
    times, energies = sorted((op.time_s for op in live), reverse=True), max((op.energy_j for op in live), default=0.0)
    shown = [op for op in live if op.time_s >= times[most - 1]] if most else live
    rest = math.fsum(times[len(shown) :]) / e.latency_s
    short = [f"{len(live) - len(shown):,} shorter layers, {100 * rest:.0f} % of the time, are not listed: `--csv` lists all."]
    heads = ("layer", "kind", "limited by", "time", "share", "", "FLOP", "DRAM", "FLOP/B", "of peak", "energy", "")
    note = "FLOP/B and share of the peak are of the layer's definition, whatever its algorithm computes."
    return Table(title="Layers", columns=columns(*heads, numbers=(3, 4, *range(6, 11)), bars=(5, 11), spare=(1, *range(6, 12))),
                 rows=[_layer(op, e, top, max(times), energies) for op in shown], long=len(shown) > 20, level=1,
                 notes=[*(short if rest else []), *([note] if live else [])])  # fmt: skip


def _layer(op: OpEstimate, e: Estimate, top: float | None, longest: float, most: float) -> list[Cell]:
    kernels = "; ".join(f"{kernel.name} {show(kernel.time_s, 's', 3)} ({bound_word(kernel.bound)})" for kernel in op.kernels)
    kind = op.kind if op.phase == "forward" else f"{op.kind} ({op.phase.replace('_', ' ')})"
    intensity = op.flop / op.dram_bytes if op.dram_bytes else None
    share = op.flop / busy_s(op) / top if top and op.flop else None
    return [
        words(op.name, tip=kernels), words(kind), words(bound_word(op.bound), tone=op.bound), number(op.time_s, "s"),
        percent(op.time_s / e.latency_s), bounds_bar({op.bound: op.time_s}, longest), number(op.flop, "FLOP"),
        number(op.dram_bytes, "B"), words("-") if intensity is None else count(intensity, 3),
        words("-") if share is None else percent(share, ".0f"), number(op.energy_j, "J"),
        stacked({f"energy.{name}": part for name, part in op.energy_breakdown_j.items()}, most, "J"),
    ]  # fmt: skip


def bounds_bar(times: Mapping[str, float], longest: float, half: Half = "") -> Cell:
    """Times by what limits them, as a bar."""
    return stacked({name: times[name] for name in order(times)}, longest, "s", half=half)


def tree_chart(e: Estimate) -> list[Chart]:
    """The layers of a large network folded by the parts of their names; nothing of a small one."""
    live = [op for op in e.ops if op.time_s > 0]
    if len(live) <= MOST:
        return []
    tree = {"colours": {bound_word(bound): colour(bound) for bound in order({op.bound for op in live})}, "whole_s": e.latency_s,
            "whole_j": e.energy_j, "tree": layer_tree(e)}  # fmt: skip
    note = ("Stages and blocks by the parts of the names of their layers. The width is time or energy; a click or Enter opens a "
            "block, in the picture and in the list below it.")  # fmt: skip
    return [Chart(title="Time and energy by block", tree=tree, notes=[note])]


def layer_tree(e: Estimate) -> list[Any]:
    """All ops that take time, as nested lists: [name, time [s], energy [J], bound] of an op, [name, [children]] of a group.

    Phases come first where there are several, then the parts of a name between dots.
    """
    live = [op for op in e.ops if op.time_s > 0]
    phases = list(dict.fromkeys(op.phase for op in live))
    if len(phases) < 2:
        return _folded([(clean(op.name).split("."), op) for op in live])
    return [[phase.replace("_", " "), _folded([(clean(op.name).split("."), op) for op in live if op.phase == phase])]
            for phase in phases]  # fmt: skip


def _folded(named: Sequence[tuple[list[str], OpEstimate]]) -> list[Any]:
    """Children of a group: ops, and groups of those that share the first part of their names."""
    return [_group(name, members) for name, members in by_key((parts[0], (parts, op)) for parts, op in named).items()]


def _group(name: str, members: Sequence[tuple[list[str], OpEstimate]]) -> list[Any]:
    if len(members) == 1:
        parts, op = members[0]
        return [".".join(parts), float(f"{op.time_s:.4g}"), float(f"{op.energy_j:.4g}"), bound_word(op.bound)]
    if all(len(parts) == 1 for parts, _ in members):
        return [f"{name} ({len(members)} ops)", [_group(name, [member]) for member in members]]
    inner = [(parts[1:] or [name], op) for parts, op in members]
    return [name, _folded(inner)]


# ------------------------------------------------------------------------------------------------------------------ roofline

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
    return list(by_key(((op.kind, op.phase, op.bound, op.flop, f"{op.dram_bytes:.3g}", f"{op.time_s:.3g}",
                         f"{busy_s(op):.3g}"), op) for op in ops).values())  # fmt: skip


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
    found = by_key((rate, name) for name in dict.fromkeys(("fp32", e.precision)) if (rate := peak(e, name)) is not None)
    return [(f"{' and '.join(names)}: {show(rate, 'OP/s' if 'int8' in names else 'FLOP/s', 3)}", rate, e.precision in names)
            for rate, names in sorted(found.items())]  # fmt: skip

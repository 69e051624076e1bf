"""The layers of an estimate: all of them as a table with bars, and those of large networks folded by block."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from archsim.base.units import show
from archsim.cost.bounds import bound_word
from archsim.estimation.result import Estimate, OpEstimate
from archsim.explain.summary import busy_s, peak
from archsim.render.blocks import Cell, Chart, Half, Table, columns, count, number, percent, stacked, words
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
    groups: dict[str, list[tuple[list[str], OpEstimate]]] = {}
    for parts, op in named:
        groups.setdefault(parts[0], []).append((parts, op))
    return [_group(name, members) for name, members in groups.items()]


def _group(name: str, members: Sequence[tuple[list[str], OpEstimate]]) -> list[Any]:
    if len(members) == 1:
        parts, op = members[0]
        return [".".join(parts), float(f"{op.time_s:.4g}"), float(f"{op.energy_j:.4g}"), bound_word(op.bound)]
    if all(len(parts) == 1 for parts, _ in members):
        return [f"{name} ({len(members)} ops)", [_group(name, [member]) for member in members]]
    inner = [(parts[1:] or [name], op) for parts, op in members]
    return [name, _folded(inner)]

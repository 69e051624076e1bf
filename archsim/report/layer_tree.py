"""Layers folded by the parts of their names, stage by stage and block by block, as data for the page's own drawing."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from archsim.estimation.result import Estimate, OpEstimate
from archsim.report.layers import phase_name
from archsim.report.palette import look, order
from archsim.report.text import clean

WIDE = 12  # children of one stem that stand side by side; more are put together
NUMBERED = re.compile(r"(.*?)(\d+)$")
Tree = dict[str, Any]  # name -> a tree or a list of ops


def layer_tree(estimate: Estimate) -> list[Any]:
    """All ops that take time, as nested lists: [name, time [s], energy [J], bound] of an op, [name, [children]] of a group.

    Phases come first where there are several, then the parts of a name between dots.
    """
    live = [op for op in estimate.ops if op.time_s > 0]
    phases = list(dict.fromkeys(op.phase for op in live))
    if len(phases) < 2:
        return _folded([(clean(op.name).split("."), op) for op in live])
    return [[phase_name(phase), _folded([(clean(op.name).split("."), op) for op in live if op.phase == phase])]
            for phase in phases]  # fmt: skip


def tree_html(estimate: Estimate) -> str:
    """The tree with the colours of the bounds, which the script of the page draws."""
    bounds = order({op.bound for op in estimate.ops})
    data = {"colours": {bound: look(bound).colour for bound in bounds}, "whole_s": estimate.latency_s,
            "whole_j": estimate.energy_j, "tree": layer_tree(estimate)}  # fmt: skip
    packed = json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    return f'<div class="layers"><script type="application/json">{packed}</script></div>'


def _folded(named: Sequence[tuple[list[str], OpEstimate]]) -> list[Any]:
    """Children of a group: ops, and groups of those that share the first part of their names."""
    groups: dict[str, list[tuple[list[str], OpEstimate]]] = {}
    for parts, op in named:
        groups.setdefault(parts[0], []).append((parts, op))
    return _by_stem([_group(name, members) for name, members in groups.items()])


def _group(name: str, members: Sequence[tuple[list[str], OpEstimate]]) -> list[Any]:
    if len(members) == 1:
        parts, op = members[0]
        return [".".join(parts), float(f"{op.time_s:.4g}"), float(f"{op.energy_j:.4g}"), op.bound]
    if all(len(parts) == 1 for parts, _ in members):
        return [f"{name} ({len(members)} ops)", [_group(name, [member]) for member in members]]
    inner = [(parts[1:] or [name], op) for parts, op in members]
    return [name, _folded(inner)]


def _by_stem(children: list[Any]) -> list[Any]:
    """More than `WIDE` neighbours that differ by a number become one group, such as "block1 to block24"."""
    stems: dict[str, list[Any]] = {}
    for child in children:
        found = NUMBERED.match(child[0])
        stems.setdefault(found.group(1) if found and len(child) == 2 else f"\0{child[0]}", []).append(child)
    wide = {stem: own for stem, own in stems.items() if len(own) > WIDE}
    if not wide or len(stems) == 1:
        return children
    done: list[Any] = []
    for child in children:
        own = next((own for own in wide.values() if child in own), None)
        if own is None:
            done.append(child)
        elif child is own[0]:
            done.append([f"{own[0][0]} to {own[-1][0]}", own])
    return done

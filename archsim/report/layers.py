"""The rows of the bar charts: single ops with the short ones put together, or kinds of op."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from archsim.estimation.result import Estimate, OpEstimate
from archsim.report.palette import order

MOST = 40  # bars of single ops; more cannot be read
LARGE = 1.6  # the row of the remaining ops is not drawn to scale beyond this multiple of the longest op


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerRow:
    """One bar: times [s] and energies [J] by bound, energies by component [J], of `count` ops."""

    name: str
    time_s: dict[str, float]
    energy_j: dict[str, float]
    component_j: dict[str, float]
    count: int = 1
    drawn: bool = True

    @property
    def time(self) -> float:
        """Total of the bar [s]."""
        return math.fsum(self.time_s.values())

    @property
    def energy(self) -> float:
        """Total of the bar [J]."""
        return math.fsum(self.energy_j.values())


def is_large(estimate: Estimate) -> bool:
    """Whether there are more ops than `by_op` shows one by one."""
    return len(_live(estimate)) > MOST


def by_op(estimate: Estimate, most: int = MOST) -> list[LayerRow]:
    """The `most` longest ops in execution order, then one row for the others; ops that take no time are left out."""
    live = _live(estimate)
    longest = sorted(range(len(live)), key=lambda i: -live[i].time_s)[:most]
    kept = set(longest)
    rows = [_row(op.name, [op]) for i, op in enumerate(live) if i in kept]
    rest = [op for i, op in enumerate(live) if i not in kept]
    if rest:
        other = _row(f"other {len(rest)} ops", rest)
        longest_s, hungriest_j = max(row.time for row in rows), max(row.energy for row in rows)
        fits = other.time <= LARGE * longest_s and other.energy <= LARGE * hungriest_j
        rows.append(replace(other, drawn=fits))
    return rows


def by_kind(estimate: Estimate) -> list[LayerRow]:
    """All ops by kind and phase, the longest first."""
    groups: dict[tuple[str, str], list[OpEstimate]] = {}
    for op in _live(estimate):
        groups.setdefault((op.kind, op.phase), []).append(op)
    rows = [_row(_kind_name(kind, phase), ops) for (kind, phase), ops in groups.items()]
    return sorted(rows, key=lambda row: (-row.time, row.name))


def phase_name(phase: str) -> str:
    """A phase as text: `backward_data` is "backward data"."""
    return phase.replace("_", " ")


def _kind_name(kind: str, phase: str) -> str:
    return kind if phase in ("forward", kind) else f"{kind}, {phase_name(phase)}"


def _live(estimate: Estimate) -> list[OpEstimate]:
    return [op for op in estimate.ops if op.time_s > 0]


def _row(name: str, ops: list[OpEstimate]) -> LayerRow:
    bounds = order({op.bound for op in ops})
    return LayerRow(
        name=name, count=len(ops),
        time_s={bound: math.fsum(op.time_s for op in ops if op.bound == bound) for bound in bounds},
        energy_j={bound: math.fsum(op.energy_j for op in ops if op.bound == bound) for bound in bounds},
        component_j={name: math.fsum(op.energy_breakdown_j[name] for op in ops) for name in ops[0].energy_breakdown_j},
    )  # fmt: skip

"""What it would take: for each knob alone, and for all together, the least change that meets a target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from archsim.base.errors import ArchsimError
from archsim.cost.cost import Array
from archsim.device.part import Unit
from archsim.estimation.estimate import estimate_of
from archsim.estimation.request import Request
from archsim.study.coupling import at_base
from archsim.study.grid import chosen, varied
from archsim.study.knob import CHOICES, meaning
from archsim.study.objective import Condition
from archsim.study.search import Evaluator

FARTHEST = 64.0  # times the base; machines beyond are none that anyone asks about
POINTS = 121  # on the way there, in equal ratios
FINER = 33  # between the last that misses and the first that meets
KNOBS: dict[str, tuple[tuple[str, ...], ...]] = {  # what is tried where nobody names knobs
    "gpu": (("clock",), ("memory.bandwidth",), ("sm.count",), ("rate.fp32",), ("l2.size",), ("l2.bandwidth",),
            ("launch.latency",), ("batch",)),
    "cpu": (("clock",), ("memory.bandwidth",), ("core.count", "core.threads"), ("core.simd",), ("l3.size",), ("batch",)),
}  # fmt: skip
SMALLER = ("launch.latency", "memory.latency")  # less of it is better


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to a target: `knobs` as a factor of the base; `factor` None where none up to `FARTHEST` meets it, and then
    `reached` is the nearest that the output comes, and `limits` the shares of the latency there by what limits it. `values` are
    the outputs there."""

    knobs: tuple[str, ...]
    factor: float | None
    settings: Mapping[str, float]
    reached: float
    values: Mapping[str, float]
    limits: Mapping[str, float] = field(default_factory=dict)


def ways(request: Request, target: Condition, knobs: Sequence[str] = ()) -> list[Way]:
    """The least factor of each knob that meets the target, alone and then of all hardware knobs together; last of these and the
    batch, where neither is enough for an output that more is better of.

    Raises UnknownName for a knob that the device does not have.
    """
    usual = [group for group in KNOBS[request.spec.kind] if not np.isnan(at_base(request, group[0]))]
    groups = [(knob,) for knob in knobs] or usual
    for group in groups:
        for knob in group:
            meaning(request.spec.kind, knob)
    evaluator = Evaluator(request)
    found = [_way(evaluator, request, target, group) for group in groups]
    machine = tuple(knob for group in groups for knob in group if knob != "batch")
    if len(groups) > 1 and machine:
        found.append(_way(evaluator, request, target, machine))
    if ("batch",) in groups and machine and target.sign == ">=" and all(way.factor is None for way in found):
        found.append(_way(evaluator, request, target, (*machine, "batch")))
    return found


def _way(evaluator: Evaluator, request: Request, target: Condition, knobs: tuple[str, ...]) -> Way:
    coarse = FARTHEST ** np.linspace(0.0, 1.0, POINTS)
    columns, values = _at(evaluator, request, knobs, coarse)
    met = np.flatnonzero(target.holds(values))
    output = values[target.name]
    if not met.size:
        best = int(np.nanargmax(output) if target.sign == ">=" else np.nanargmin(output)) if not np.isnan(output).all() else 0
        there = _row(columns, best)
        return Way(knobs=knobs, factor=None, settings=there, reached=float(output[best]), values=_row(values, best),
                   limits=_limits(request, there))  # fmt: skip
    if met[0] > 0:
        coarse = np.geomspace(coarse[met[0] - 1], coarse[met[0]], FINER)
        columns, values = _at(evaluator, request, knobs, coarse)
        met = np.flatnonzero(target.holds(values))
    at = int(met[0])
    return Way(knobs=knobs, factor=float(coarse[at]), settings=_row(columns, at), reached=float(values[target.name][at]),
               values=_row(values, at))  # fmt: skip


def _limits(request: Request, settings: Mapping[str, float]) -> dict[str, float]:
    """What the latency is made of with these values of knobs; nothing where no model covers them."""
    try:
        base = chosen(request, {knob: value for knob, value in settings.items() if knob in CHOICES})
        there = varied(base, {knob: np.array([value]) for knob, value in settings.items() if knob not in CHOICES})
        found = estimate_of(there, references=False)
    except ArchsimError:
        return {}
    return {name: time / found.latency_s for name, time in found.breakdown_s.items()}


def _at(
    evaluator: Evaluator, request: Request, knobs: tuple[str, ...], factors: Array
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Settings and outputs where all knobs are such factors of the base."""
    columns = {knob: _scaled(at_base(request, knob), factors, knob, meaning(request.spec.kind, knob)) for knob in knobs}
    values, _ = evaluator(columns)
    return columns, values


def _scaled(base: float, factors: Array, knob: str, unit: Unit) -> Array:
    """The base times factors, or over them where less is better; whole where it must be, within its range."""
    value = base / factors if knob in SMALLER else base * factors
    value = np.minimum(value, unit.high)
    return np.asarray(np.ceil(value - 1e-9) if unit.whole else value)


def _row(columns: Mapping[str, Array], i: int) -> dict[str, float]:
    return {name: float(column[i]) for name, column in columns.items()}

"""What a target takes: the least change of each knob alone, and of all of them together, that meets it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from archsim.base.errors import ArchsimError, ArgumentError
from archsim.base.record import Answer
from archsim.cost.cost import Array
from archsim.device.part import Unit
from archsim.estimation.clock import FARTHEST
from archsim.estimation.estimate import estimate_of
from archsim.estimation.request import Request
from archsim.study.axis import base_value
from archsim.study.grid import with_choices, with_columns
from archsim.study.knob import CHOICES, WORDS, meaning
from archsim.study.objective import Condition
from archsim.study.search import Evaluator

LARGEST_FACTOR = 64.0  # of a knob's base value
COARSE_POINTS = 121  # up to there, in equal ratios
FINE_POINTS = 33  # between the last point that misses the target and the first that meets it
KNOBS: dict[str, tuple[tuple[str, ...], ...]] = {  # tried by default
    "gpu": (("clock",), ("memory.bandwidth",), ("sm.count",), ("rate.fp32",), ("l2.size",), ("l2.bandwidth",),
            ("launch.latency",), ("power.tdp",), ("batch",)),
    "cpu": (("clock",), ("memory.bandwidth",), ("core.count", "core.threads"), ("core.simd",), ("l3.size",), ("power.tdp",),
            ("batch",)),
    "tpu": (("clock",), ("memory.bandwidth",), ("array.count",), ("array.rows", "array.columns"), ("buffer.size",),
            ("launch.latency",), ("batch",)),
}  # fmt: skip
LESS_IS_BETTER = ("launch.latency", "memory.latency")  # divided by the factor


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetChange:
    """One change: `knobs` times `factor`. `values` are the outputs there.

    `factor` is None where none up to `LARGEST_FACTOR` meets the target; then `reached` is the nearest that the output comes, and
    `limits` what each resource would save there if it were faster, as shares of the latency, largest first.
    """

    knobs: tuple[str, ...]
    factor: float | None
    settings: Mapping[str, float]
    reached: float
    values: Mapping[str, float]
    limits: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetWays(Answer):
    """All changes that were tried for a target, with the outputs of the device as it is."""

    request: Request
    target: Condition
    base: Mapping[str, float]
    ways: tuple[TargetChange, ...]


def changes_for_target(request: Request, target: Condition, knobs: Sequence[str] = ()) -> TargetWays:
    """The least factor of each knob that meets the target; then of all hardware knobs together; then of these and the batch.

    The last is tried only where no other meets a target of which more is better. Raises UnknownName for a knob that the device
    does not have, ArgumentError for one without a number to start from, Unsupported for the die of a device that has no model.
    """
    usual = [group for group in KNOBS[request.spec.kind] if not np.isnan(base_value(request, group[0]))]
    groups = [(knob,) for knob in knobs] or usual
    for knob in knobs:
        _check_start(request, knob)
    evaluator = Evaluator(request)
    evaluator.check([target.name])
    found = [_least_change(evaluator, request, target, group) for group in groups]
    hardware = tuple(knob for group in groups for knob in group if knob != "batch")
    if len(groups) > 1 and hardware:
        found.append(_least_change(evaluator, request, target, hardware))
    if ("batch",) in groups and hardware and target.sign == ">=" and all(way.factor is None for way in found):
        found.append(_least_change(evaluator, request, target, (*hardware, "batch")))
    return TargetWays(request=request, target=target, base=evaluator.one(), ways=tuple(found))


def _check_start(request: Request, knob: str) -> None:
    """Raises an error for a knob that has no number above 0 in the request, which factors could multiply."""
    if knob in WORDS:
        raise ArgumentError(f"{knob}: a target multiplies numbers, and this is a name; compare names with `archsim compare`")
    meaning(request.spec.kind, knob)
    if base_value(request, knob) > 0:
        return
    what = f"network {request.network}" if knob == "seq_len" else request.spec.identity.id
    raise ArgumentError(f"{knob}: {what} has no such number above 0 to start from")


def _least_change(evaluator: Evaluator, request: Request, target: Condition, knobs: tuple[str, ...]) -> TargetChange:
    coarse = LARGEST_FACTOR ** np.linspace(0.0, 1.0, COARSE_POINTS)
    columns, values = _at(evaluator, request, knobs, coarse)
    met = np.flatnonzero(target.holds(values))
    output = values[target.name]
    if not met.size:
        best = int(np.nanargmax(output) if target.sign == ">=" else np.nanargmin(output)) if not np.isnan(output).all() else 0
        there = _row(columns, best)
        return TargetChange(knobs=knobs, factor=None, settings=there, reached=float(output[best]), values=_row(values, best),
                   limits=limits_at(request, there))  # fmt: skip
    if met[0] > 0:
        coarse = np.geomspace(coarse[met[0] - 1], coarse[met[0]], FINE_POINTS)
        columns, values = _at(evaluator, request, knobs, coarse)
        met = np.flatnonzero(target.holds(values))
    at = int(met[0])
    return TargetChange(knobs=knobs, factor=float(coarse[at]), settings=_row(columns, at), reached=float(values[target.name][at]),
               values=_row(values, at))  # fmt: skip


def limits_at(request: Request, settings: Mapping[str, float | str]) -> dict[str, float]:
    """What each resource would save with these values of knobs, as shares of the latency; empty where that is not modelled."""
    try:
        base = with_choices(request, {knob: value for knob, value in settings.items() if knob in CHOICES})
        there = with_columns(base, {knob: np.array([value]) for knob, value in settings.items() if knob not in CHOICES})
        found = estimate_of(there, references=False)
    except ArchsimError:
        return {}
    return {name: time / found.latency_s for name, time in found.saved_s.items()}


def _at(
    evaluator: Evaluator, request: Request, knobs: tuple[str, ...], factors: Array
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Settings and outputs where all knobs have these factors."""
    columns = {knob: _scaled(base_value(request, knob), factors, knob, meaning(request.spec.kind, knob)) for knob in knobs}
    if "clock" in columns:
        columns["clock"] = np.minimum(columns["clock"], FARTHEST * base_value(request, "clock.boost"))
    values, _ = evaluator(columns)
    return columns, values


def _scaled(base: float, factors: Array, knob: str, unit: Unit) -> Array:
    """The base value times the factors (divided by them for latencies), whole where it must be, within its range."""
    value = base / factors if knob in LESS_IS_BETTER else base * factors
    value = np.clip(value, min(unit.low, base), max(unit.high, base))
    return np.asarray(np.ceil(value - 1e-9) if unit.whole else value)


def _row(columns: Mapping[str, Array], i: int) -> dict[str, float]:
    return {name: float(column[i]) for name, column in columns.items()}

"""Published measurements beside the answer for a served model: of the same run, or of the nearest one on the same devices."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from archsim.base.errors import ArchsimError
from archsim.evidence import network_rows
from archsim.evidence.case import Case, ServingPattern, error_of
from archsim.evidence.family import serving_files
from archsim.evidence.row import Refused, row_of
from archsim.evidence.sources import citation
from archsim.generation.measured import serving_value
from archsim.generation.plan import ServingPlan
from archsim.trace.huggingface.catalog import canonical

# How far another engine, another version of it, and another format of weights or cache are, beside the log of how many times the
# requests or tokens. A choice: the run is shown with all its conditions.
OTHER_ENGINE, OTHER_VERSION, OTHER_FORMAT = 1.0, 0.25, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedReference:
    """One published measurement of a static batch of the model on the devices, beside the prediction of that very run.

    metric, measured: as the source has it [s, 1/s, W or J]
    predicted: of the run that was measured; error: predicted / measured - 1
    source: short citation; engine, precision: as the source calls them
    same: whether it is the run that was asked for
    """

    metric: str
    measured: float
    predicted: float
    error: float
    source: str
    engine: str
    precision: str
    batch: int
    input: int
    output: int
    same: bool


def references_of(plan: ServingPlan) -> tuple[ServedReference, ...]:
    """The measurements of the run that was asked for; if there is none, of the nearest; none for a device that was changed."""
    runs: dict[tuple[object, ...], list[Case]] = {}
    for case in _cases(plan.model.name, plan.spec.identity.id):
        pattern = case.pattern
        assert isinstance(pattern, ServingPattern)
        shared = (pattern.arguments["tp"], pattern.arguments["pp"]) == (plan.tensor, plan.stages)
        if shared and case.spec.digest == plan.spec.digest and not pattern.steady and not pattern.fed:
            run = (case.fields["engine"], case.precision, pattern.batch, pattern.input, pattern.output)
            runs.setdefault(run, []).append(case)
    for _, cases in sorted(runs.items(), key=lambda one: _distance(plan, one[1][0])):
        found = [reference for case in cases for reference in _reference(plan, case)]
        if found:
            return tuple(found)
    return ()


def _distance(plan: ServingPlan, case: Case) -> float:
    """How far a run is from the one that was asked for, as a sum of logs; 0 for the same."""
    pattern = case.pattern
    assert isinstance(pattern, ServingPattern)
    sizes = ((pattern.batch, plan.batch), (pattern.input, plan.input), (pattern.output, plan.output))
    formats = (pattern.arguments["precision"], pattern.arguments["weights"], pattern.arguments["kv"])
    other = formats != (plan.precision, plan.weights, plan.cache)
    version = OTHER_VERSION if case.stack.framework == plan.stack.framework else OTHER_ENGINE
    apart = version * (case.stack_id != plan.stack.id) + OTHER_FORMAT * other
    return apart + sum(abs(math.log(there / here)) for there, here in sizes)


def _reference(plan: ServingPlan, case: Case) -> Iterator[ServedReference]:
    pattern = case.pattern
    assert isinstance(pattern, ServingPattern)
    try:
        predicted = serving_value(case, plan.calibration)
    except ArchsimError:  # the row is not what its table says, or does not fit
        return
    yield ServedReference(
        metric=case.metric, measured=case.measured, predicted=predicted, error=error_of(case.metric, case.measured, predicted),
        source=citation(case.source), engine=case.fields["engine"], precision=case.precision, batch=case.batch,
        input=pattern.input, output=round(pattern.output), same=_distance(plan, case) == 0.0,
    )  # fmt: skip


def _cases(model: str, hardware: str) -> Iterator[Case]:
    """The cases of a model on a device; rows that cannot be predicted are left out."""
    for row in network_rows.rows_with("serving", serving_files, (hardware,)):
        cells = row[1].cells
        if cells["hardware"] == hardware and _name(cells["model"]) == model:
            with suppress(Refused):
                yield from network_rows.read_served(row_of(*row))


@cache
def _name(written: str) -> str:
    try:
        return canonical(written)
    except ArchsimError:
        return ""

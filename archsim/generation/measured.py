"""From a published row of a served model to its prediction, and how far such a prediction is off."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from archsim.base.errors import ArchsimError, Unsupported
from archsim.base.record import by_key, kept
from archsim.calibration.constants import SERVED, Calibration, Spread
from archsim.calibration.nearness import Question
from archsim.device.variant import first_of
from archsim.estimation.hardware import platform_of
from archsim.evidence import network_rows
from archsim.evidence.case import Case, ServingPattern, error_of
from archsim.evidence.family import serving_files
from archsim.evidence.row import Refused, row_of
from archsim.evidence.sources import source_of
from archsim.generation.memory import largest_batch, weights_of
from archsim.generation.plan import ServingPlan, served, serving_plan
from archsim.generation.step import answered, prefill, token_cost
from archsim.stack.stack import Stack
from archsim.trace.huggingface.catalog import canonical

TIME, RATE, POWER = "time", "rate", "power"  # of batches that arrive at once; under a load that is kept; watts and joules
CERTAIN = 0.5  # of the least time; tables of words and layers that are skipped leave room
# How far another engine, another version of it, and another format of weights or cache are, beside the log of how many times the
# requests or tokens. A choice: the run is shown with all its conditions.
OTHER_ENGINE, OTHER_VERSION, OTHER_FORMAT = 1.0, 0.25, 0.5


def serving_value(case: Case, calibration: Calibration) -> float:
    """The value of a row, in the unit of its metric.

    Raises Unsupported for a model that does not fit the devices of the row, and for a metric that its run does not have.
    """
    pattern, plan = pattern_of(case), plan_of(case, calibration)
    if pattern.steady:
        return _steady(plan, pattern, case.metric)
    if case.metric in ("e2e_s", "decode_s_per_token", "tpot_s"):
        _check_possible(plan, case)
    return _static(plan, case.metric)


def _check_possible(plan: ServingPlan, case: Case) -> None:
    """Raise Unsupported for a time in which the memory could not even deliver the weights for each token."""
    tokens = max(1, plan.output - 1) if case.metric == "e2e_s" else 1
    least = tokens * weights_of(plan) / first_of(plan.spec.device.memory.bandwidth)
    if case.measured < CERTAIN * least:
        raise Unsupported(f"{case.metric} {case.measured:g} s: weights of each token take {least:.3g} s to be read at the peak "
                          "of the memory")  # fmt: skip


def pattern_of(case: Case) -> ServingPattern:
    """How requests came in the run of a row."""
    assert isinstance(case.pattern, ServingPattern)
    return case.pattern


def plan_of(case: Case, calibration: Calibration) -> ServingPlan:
    """The plan of a row, in its own conditions."""
    pattern = pattern_of(case)
    lengths = {"input": pattern.input, "output": max(1, round(pattern.output)), "batch": max(1, round(pattern.batch))}
    words = tuple(sorted({**pattern.arguments, **lengths}.items()))
    plan = _plan(pattern.model, case.fields["hardware"], case.stack, calibration, words)
    if not pattern.prompt_chunk:
        return plan
    serving = replace(plan.stack.serving, step_tokens=pattern.prompt_chunk)
    return replace(plan, stack=replace(plan.stack, serving=serving))


@kept(256)
def _plan(model: str, hw: str, stack: Stack, calibration: Calibration, words: tuple[tuple[str, Any], ...]) -> ServingPlan:
    """One plan for all rows of a run, whose steps are priced once, with its engine's stack as the rows have it."""
    return replace(serving_plan(model, hw, engine=stack.id, calibration=calibration, **dict(words)), stack=served(stack))


def _static(plan: ServingPlan, metric: str) -> float:
    """A batch that arrives at once."""
    most = largest_batch(plan, plan.input + plan.output)
    if most < 1:
        raise Unsupported(f"{plan.model.name} does not fit {plan.devices} x {plan.spec.identity.id}")
    if metric == "ttft_s":
        return prefill(plan, plan.batch, plan.input).cost.time_s
    first, rest, _ = answered(plan, most)
    total = first.cost.plus(rest)
    if metric in ("decode_s_per_token", "tpot_s"):
        return rest.time_s / max(1, plan.output - 1)
    tokens = plan.batch * plan.output
    values = {
        "e2e_s": total.time_s, "power_w": total.energy_j / total.time_s,
        "tokens_per_s": tokens / total.time_s, "energy_j_per_token": total.energy_j / tokens,
    }  # fmt: skip
    return values[metric]


def _steady(plan: ServingPlan, pattern: ServingPattern, metric: str) -> float:
    """Sequences that are always as many: for each that ends, a prompt is read before the next step of the others.

    time per token = t_decode(batch)        tokens/s = batch / (t_decode(batch) + batch / output / k x t_prefill(k))

    k: prompts that are read together, the answers that end in a step, at least 1
    """
    ending = pattern.batch / pattern.output  # answers that end in each step
    together = max(1, round(ending))
    token = token_cost(plan, plan.batch, plan.input + max(1, round(pattern.output / 2)))
    step = token.plus(prefill(plan, together, plan.input).cost, ending / together)
    values = {
        "tpot_s": token.time_s, "decode_s_per_token": token.time_s,
        "tokens_per_s": pattern.batch / step.time_s,
        "energy_j_per_token": step.energy_j / pattern.batch, "power_w": step.energy_j / step.time_s,
    }  # fmt: skip
    if metric not in values:
        raise Unsupported(f"metric {metric}: a run of {pattern.batch:g} sequences at any time has no end of a batch")
    return values[metric]


def served_class(quantity: str) -> str:
    """The class of errors of a quantity of a served model, without the kind of device.

    >>> served_class("energy"), served_class("end to end")
    ('served power', 'served time')
    """
    return f"{SERVED} {({'tokens': RATE, 'power': POWER, 'energy': POWER}).get(quantity, TIME)}"


def served_spread(plan: ServingPlan, quantity: str) -> tuple[str, Spread]:
    """The class of errors of a quantity of a plan, and their spread."""
    question = Question(platform=platform_of(plan.spec, plan.stack.id), precision=plan.precision, batch=plan.batch)
    return plan.calibration.spread_of("gpu", served_class(quantity), question)


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
    runs = by_key(
        ((case.fields["engine"], case.precision, pattern.batch, pattern.input, pattern.output), case)
        for case in _cases(plan.model.name, plan.spec.identity.id) for pattern in [pattern_of(case)]
        if (pattern.arguments["tp"], pattern.arguments["pp"]) == (plan.tensor, plan.stages)
        and case.spec.digest == plan.spec.digest and not pattern.steady and not pattern.prompt_chunk
    )  # fmt: skip
    nearest = sorted(runs.values(), key=lambda cases: _distance(plan, cases[0]))
    found = (tuple([reference for case in cases for reference in _reference(plan, case)]) for cases in nearest)
    return next(filter(None, found), ())


def _distance(plan: ServingPlan, case: Case) -> float:
    """How far a run is from the one that was asked for, as a sum of logs; 0 for the same."""
    pattern = pattern_of(case)
    sizes = ((pattern.batch, plan.batch), (pattern.input, plan.input), (pattern.output, plan.output))
    formats = (pattern.arguments["precision"], pattern.arguments["weights"], pattern.arguments["kv"])
    other = formats != (plan.precision, plan.weights, plan.cache)
    version = OTHER_VERSION if case.stack.framework == plan.stack.framework else OTHER_ENGINE
    apart = version * (case.stack_id != plan.stack.id) + OTHER_FORMAT * other
    return apart + sum(abs(math.log(there / here)) for there, here in sizes)


def _reference(plan: ServingPlan, case: Case) -> Iterator[ServedReference]:
    pattern = pattern_of(case)
    try:
        predicted = serving_value(case, plan.calibration)
    except ArchsimError:  # the row is not what its table says, or does not fit
        return
    yield ServedReference(
        metric=case.metric, measured=case.measured, predicted=predicted, error=error_of(case.metric, case.measured, predicted),
        source=source_of(case.source).citation, engine=case.fields["engine"], precision=case.precision, batch=case.batch,
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
    with suppress(ArchsimError):
        return canonical(written)
    return ""

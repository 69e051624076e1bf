"""From a published row of a served model to its prediction, and how far such a prediction is off."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from archsim.base.errors import Unsupported
from archsim.base.record import ByIdentity
from archsim.calibration.constants import Calibration, Spread
from archsim.calibration.nearness import Platform
from archsim.evidence.case import Case, ServingPattern
from archsim.generation.memory import largest_batch, weights_of
from archsim.generation.phases import answered, prefill, token_cost
from archsim.generation.plan import ServingPlan, served, serving_plan
from archsim.generation.step import NOTHING, StepCost
from archsim.stack.stack import Stack

TIME, RATE, POWER = "time", "rate", "power"  # of batches that arrive at once; under a load that is kept; watts and joules
CERTAIN = 0.5  # of the least time; tables of words and layers that are skipped leave room


def serving_value(case: Case, calibration: Calibration) -> float:
    """The value of a row, in the unit of its metric.

    Raises Unsupported for a model that does not fit the devices of the row, and for a metric that its run does not have.
    """
    pattern = case.pattern
    assert isinstance(pattern, ServingPattern)
    plan = plan_of(case, pattern, calibration)
    if pattern.steady:
        return _steady(plan, pattern, case.metric)
    if case.metric in ("e2e_s", "decode_s_per_token", "tpot_s"):
        _check_possible(plan, case)
    return _static(plan, case.metric)


def _check_possible(plan: ServingPlan, case: Case) -> None:
    """Raise Unsupported for a time in which the memory could not even deliver the weights for each token."""
    tokens = max(1, plan.output - 1) if case.metric == "e2e_s" else 1
    least = tokens * weights_of(plan) / float(np.ravel(plan.spec.device.memory.bandwidth)[0])
    if case.measured < CERTAIN * least:
        raise Unsupported(f"{case.metric} {case.measured:g} s: weights of each token take {least:.3g} s to be read at the peak "
                          "of the memory")  # fmt: skip


def plan_of(case: Case, pattern: ServingPattern, calibration: Calibration) -> ServingPlan:
    """The plan of a row, in its own conditions."""
    lengths = (pattern.input, max(1, round(pattern.output)), max(1, round(pattern.batch)))
    words = tuple(sorted(pattern.arguments.items()))
    plan = _plan(pattern.model, case.fields["hardware"], ByIdentity(case.stack), lengths, words, ByIdentity(calibration))
    if not pattern.fed:
        return plan
    serving = replace(plan.stack.serving, step_tokens=pattern.fed)
    return replace(plan, stack=replace(plan.stack, serving=serving))


@lru_cache(maxsize=256)
def _plan(
    model: str, hw: str, stack: ByIdentity[Stack], lengths: tuple[int, int, int], words: tuple[tuple[str, Any], ...],
    calibration: ByIdentity[Calibration],
) -> ServingPlan:  # fmt: skip
    """One plan for all rows of a run, whose steps are priced once, with its engine's stack as the rows have it."""
    prompt, answer, batch = lengths
    plan = serving_plan(model, hw, input=prompt, output=answer, batch=batch, engine=stack.it.id, calibration=calibration.it,
                        **dict(words))  # fmt: skip
    return replace(plan, stack=served(stack.it))


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
    token, prompts = steady_step(plan, pattern.batch, pattern.output)
    step = token.plus(prompts)
    values = {
        "tpot_s": token.time_s, "decode_s_per_token": token.time_s,
        "tokens_per_s": pattern.batch / step.time_s,
        "energy_j_per_token": step.energy_j / pattern.batch, "power_w": step.energy_j / step.time_s,
    }  # fmt: skip
    if metric not in values:
        raise Unsupported(f"metric {metric}: a run of {pattern.batch:g} sequences at any time has no end of a batch")
    return values[metric]


def steady_step(plan: ServingPlan, batch: float, output: float) -> tuple[StepCost, StepCost]:
    """A step of a run that keeps `batch` sequences busy, and its share of the prompts that are read in between."""
    context = plan.input + max(1, round(output / 2))
    ending = batch / output  # answers that end in each step
    together = max(1, round(ending))
    share = NOTHING.plus(prefill(plan, together, plan.input).cost, ending / together)
    return token_cost(plan, plan.batch, context), share


def served_spread(calibration: Calibration, kind: str, platform: Platform, quantity: str) -> tuple[str, Spread]:
    """The class of single runs that an interval stands on, and the spread of its errors.

    Times of static batches have the spread of networks. Rates under load, powers and energies depend on how an engine mixes
    prompts and answers, which single runs say nothing of: theirs is wider, as that of any class that is extrapolated.
    """
    return calibration.spread_of(kind, "power" if quantity == POWER else "inference", platform, modelled=quantity == TIME)

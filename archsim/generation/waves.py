"""Requests that arrive at once, where not all of them fit: they are answered in groups, one after the other."""

from __future__ import annotations

from archsim.generation.phases import PrefillCost, decode, prefill
from archsim.generation.plan import ServingPlan
from archsim.generation.step import NOTHING, StepCost


def answered(plan: ServingPlan, most: int) -> tuple[PrefillCost, StepCost, int]:
    """The prompts of a batch, its tokens after the first ones, and in how many waves.

    A wave is as large as fits at full length, `most` requests at most. With several, prompts and tokens of all are added up, and
    the times to a first token are those of the first wave, delayed by the waves before for the others.
    """
    waves = -(-plan.batch // most)
    if waves == 1:
        return prefill(plan, plan.batch, plan.input), decode(plan, plan.batch, plan.input + 1, plan.output - 1), 1
    sizes = [most] * (plan.batch // most) + ([plan.batch % most] if plan.batch % most else [])
    reads, rest, begun, waited = NOTHING, NOTHING, 0.0, 0.0
    first, steps = 0.0, 0
    for number, size in enumerate(sizes):
        read = prefill(plan, size, plan.input)
        tokens = decode(plan, size, plan.input + 1, plan.output - 1)
        first = first if number else read.first_s
        waited += size * (begun + read.mean_s)
        steps += read.steps
        begun += read.cost.time_s + tokens.time_s
        reads, rest = reads.plus(read.cost), rest.plus(tokens)
    return PrefillCost(cost=reads, first_s=first, mean_s=waited / plan.batch, steps=steps), rest, waves

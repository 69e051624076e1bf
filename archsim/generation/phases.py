"""Prefill and decode: steps put together over a batch of requests that arrive at once, in as many waves as fit."""

from __future__ import annotations

from dataclasses import dataclass, replace

from archsim.generation.memory import step_tokens
from archsim.generation.plan import ServingPlan
from archsim.generation.step import NOTHING, StepCost, step_cost

# Points and weights of Gauss-Legendre quadrature on [0, 1] with three points (Abramowitz and Stegun, table 25.4).
POINTS = ((0.1127016653792583, 5 / 18), (0.5, 8 / 18), (0.8872983346207417, 5 / 18))
PIECES = 2  # parts of the range of contexts, each with those points
MOST_CHUNKS = 4  # chunks of one prompt that are priced one by one; of more, as many between the first and the last


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillCost:
    """What it takes to read the prompts of a batch.

    cost: until all have their first token; first_s: until the first ones have it; mean_s: on average over the requests [s]
    steps: of the engine
    """

    cost: StepCost
    first_s: float
    mean_s: float
    steps: int


def prefill(plan: ServingPlan, batch: int, tokens: int) -> PrefillCost:
    """The prompts of `batch` requests that arrive at once, of `tokens` each.

    A step takes whole prompts until they are more than the engine's most tokens; one longer prompt is cut into chunks.
    """
    most = max(1, step_tokens(plan, tokens))
    if tokens > most:
        one = _chunks(plan, tokens, most)
        steps = -(-tokens // most)
        return PrefillCost(cost=_times(one, batch), first_s=one.time_s, mean_s=one.time_s * (batch + 1) / 2, steps=steps * batch)
    together = min(batch, max(1, most // tokens), plan.stack.serving.sequences)
    whole, rest = divmod(batch, together)
    step = step_cost(plan, together, tokens, tokens, decode=False)
    last = step_cost(plan, rest, tokens, tokens, decode=False) if rest else NOTHING
    cost = _times(step, whole).plus(last)
    ends = [(i + 1) * step.time_s for i in range(whole)]
    waited = together * sum(ends) + rest * cost.time_s
    return PrefillCost(cost=cost, first_s=step.time_s if whole else last.time_s, mean_s=waited / batch,
                       steps=whole + bool(rest))  # fmt: skip


def _chunks(plan: ServingPlan, tokens: int, most: int) -> StepCost:
    """One prompt in chunks, each of which attends to those before it; of many, some are priced and the others lie between."""
    whole, rest = divmod(tokens, most)
    points = [(number, 1.0) for number in range(whole)]
    if whole > MOST_CHUNKS:  # trapezoids between evenly spaced chunks
        steps = MOST_CHUNKS - 1
        points = [(round(i * (whole - 1) / steps), whole / steps * (0.5 if i in (0, steps) else 1.0)) for i in range(MOST_CHUNKS)]
    found = NOTHING
    for number, share in points:
        found = found.plus(step_cost(plan, 1, most, most * (number + 1), decode=False), share)
    return found.plus(step_cost(plan, 1, rest, tokens, decode=False)) if rest else found


def decode(plan: ServingPlan, batch: int, first: int, steps: int) -> StepCost:
    """`steps` tokens of each of `batch` sequences, whose contexts grow from `first` on: all steps together.

    sum over contexts of t(context) = steps x the mean over the range, by Gauss-Legendre quadrature with 3 points in each of
    `PIECES` parts; a range of few contexts is added up
    """
    points = [(number, 1.0) for number in range(steps)]
    if steps > len(POINTS) * PIECES:
        points = [(round((piece + at) / PIECES * (steps - 1)), weight / PIECES * steps)
                  for piece in range(PIECES) for at, weight in POINTS]  # fmt: skip
    found = NOTHING
    for number, share in points:
        found = found.plus(token_cost(plan, batch, first + number), share)
    return found


def token_cost(plan: ServingPlan, batch: int, context: int) -> StepCost:
    """A token of each sequence: a step, or with guesses ahead a checking step over what it yields on average."""
    guess = plan.speculation
    if guess is None:
        return step_cost(plan, batch, 1, context, decode=True)
    cost = step_cost(plan, batch, guess.tokens + 1, context + guess.tokens, decode=True)
    if guess.draft is not None:  # which guesses in as many steps of its own
        own = replace(plan, model=guess.draft, tensor=1, stages=1, experts=1, node=None, speculation=None)
        cost = cost.plus(_times(step_cost(own, batch, 1, context, decode=True), guess.tokens))
    return _times(cost, 1.0 / guess.yielded)


def _times(cost: StepCost, count: float) -> StepCost:
    return NOTHING.plus(cost, count)


def answered(plan: ServingPlan, most: int) -> tuple[PrefillCost, StepCost, int]:
    """The prompts of a batch, its tokens after the first ones, and in how many waves.

    A wave is as large as fits at full length, `most` requests at most. With several, prompts and tokens of all are added up, and
    the times to a first token are those of the first wave, delayed by the waves before for the others.
    """
    sizes = [min(most, plan.batch - begun) for begun in range(0, plan.batch, most)]
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
    return PrefillCost(cost=reads, first_s=first, mean_s=waited / plan.batch, steps=steps), rest, len(sizes)

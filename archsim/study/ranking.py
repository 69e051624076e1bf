"""Several devices ranked by speed, speed per watt, speed per dollar and cost, with the probability that each order is right.

Correlations of log errors of times, over pairs of rows of networks.csv that constants may be fitted to, with the same network,
task, batch and precision (tests/bench/correlation.py prints them):

    two GPUs, one source and stack      0.56   596 pairs
    two GPUs, two stacks                0.26  3668 pairs
    one GPU, two stacks                 0.13  2350 pairs
    a CPU and a GPU                    -0.02  5506 pairs
    one CPU, two stacks                -0.06  1548 pairs, all of one CPU
    two CPUs                            too few: of 624 pairs most are of the same two CPUs

Contenders with two stacks share one figure, the mean of the three rows of GPUs by their pairs.

A shared error moves both alike and leaves their order as it is. Where nothing was measured, the figures of GPUs are used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import log, sqrt

import numpy as np

from archsim.cost.cost import Array
from archsim.study.certainty import order_probabilities, probability_less
from archsim.study.contender import Contender, energy_spread, time_spread

# -------------------------------------------------------------------------------------------------------- shared errors

SAME_STACK = 0.6
TWO_STACKS = 0.1


def pair_correlation(a: Contender, b: Contender, asked: float | None = None) -> float:
    """The correlation of the log errors of two contenders: the one that was asked for, else the measured one."""
    if asked is not None:
        return asked
    return SAME_STACK if a.estimate.stack == b.estimate.stack else TWO_STACKS


def matrix(contenders: Sequence[Contender], asked: float | None = None) -> Array:
    """The correlation of every pair, [n, n], 1 on the diagonal."""
    found = np.eye(len(contenders))
    for (i, a), (j, b) in combinations(enumerate(contenders), 2):
        found[i, j] = found[j, i] = pair_correlation(a, b, asked)
    return found


def correlation_note(asked: float | None) -> str:
    """What is assumed of errors, as a sentence."""
    if asked is not None:
        return f"Errors of any two predictions are assumed to have the correlation {asked:g} (--correlation)."
    return (f"Errors of two predictions are correlated as measured of GPUs, {SAME_STACK:g} with one stack and {TWO_STACKS:g} "
            "with two (--correlation sets one number); a shared error does not change the order.")  # fmt: skip


# ------------------------------------------------------------------------------------------------------------- rankings


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """A quantity by which devices are ranked.

    unit: with `{rate}` and `{sample}` for what a network counts, like img/s and img
    score: the quantity; None for a device of which it is not known
    less: whether less is better
    energy: the share of the score that follows the predicted energy, not the time
    missing: what gives a score to a device that has none
    usage: whether it depends on how devices are used, so that it is ranked only where something was said of that
    best: what the first place is; beats: by how much, from `ratio` and the `next` one
    """

    name: str
    title: str
    unit: str
    score: Callable[[Contender], float | None]
    less: bool = False
    energy: Callable[[Contender], float] = lambda _: 0.0
    missing: str = ""
    usage: bool = False
    best: str
    beats: str = "{ratio} times as much as {next}"

    def unit_for(self, c: Contender) -> str:
        """The unit for what the network of a contender counts: `img/s/W`."""
        return self.unit.format(rate=f"{c.estimate.sample}/s", sample=c.estimate.sample)


NO_PRICE = "--price NAME=599USD or --prices FILE"
CRITERIA = (
    Criterion(name="speed", title="speed", unit="{rate}", score=lambda c: c.throughput_per_s, best="fastest",
              beats="{ratio} times as fast as {next}"),
    Criterion(name="watt", title="speed per watt", unit="{rate}/W", score=lambda c: c.throughput_per_w, energy=lambda _: 1.0,
              best="most efficient"),
    Criterion(name="dollar", title="speed per dollar", unit="{rate}/USD", score=lambda c: c.throughput_per_usd, missing=NO_PRICE,
              best="best per dollar"),
    Criterion(name="cost", title="cost", unit="USD/M {sample}", score=lambda c: c.usd_per_million, less=True, best="cheapest",
              beats="{next} costs {ratio} times as much",
              energy=lambda c: c.energy_share_of_cost, missing=f"{NO_PRICE}; rented: --price NAME=2.5USD/h", usage=True),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The order by one criterion, best first, of the devices whose memory holds the work.

    ahead[i]: probability that place i is really before place i + 1
    best[i]: probability that the device at place i is the best of all
    whole: probability that the whole order is right
    correlation: of the errors of any two devices, as asked; None for the measured ones of each pair
    unranked: names of devices without a score
    """

    criterion: Criterion
    order: tuple[Contender, ...]
    scores: tuple[float, ...]
    ahead: tuple[float, ...]
    best: tuple[float, ...]
    whole: float
    correlation: float | None
    unranked: tuple[str, ...]


def rank(contenders: Sequence[Contender], criterion: Criterion, correlation: float | None = None) -> Ranking:
    """The order by `criterion`.

    correlation: of the log errors of any two devices; without it that which was measured for each pair
    (`archsim.study.ranking`). Prices are exact.
    """
    fitting = [c for c in contenders if c.fits]
    scored = [(score, c) for c in fitting if (score := criterion.score(c)) is not None]
    scored.sort(key=lambda pair: pair[0] if criterion.less else -pair[0])
    order = tuple([c for _, c in scored])
    both = [_log_cost(c, criterion) for c in order]
    ahead = tuple([
        probability_less((m, n), (s, t), pair_correlation(a, b, correlation))
        for (a, b), ((m, s), (n, t)) in zip(pairwise(order), pairwise(both), strict=True)
    ])  # fmt: skip
    mean, deviation = np.array([m for m, _ in both]), np.array([s for _, s in both])
    whole, best = order_probabilities(mean, deviation, matrix(order, correlation))
    return Ranking(
        criterion=criterion, order=order, scores=tuple([score for score, _ in scored]), ahead=ahead, best=tuple(best.tolist()),
        whole=min([whole, *ahead]), correlation=correlation, unranked=tuple([c.name for c in fitting if c not in order]),
    )  # fmt: skip


def _log_cost(c: Contender, criterion: Criterion) -> tuple[float, float]:
    """Mean and standard deviation of the log of the score, or of 1 / score, the least being the best.

    ln cost = ln cost predicted + d_t + w d_p, d_t: error of the log of the time, d_p: that of the power, w: share of energy;
    the error of the log of the energy is d_t + d_p, of which d_t and d_p are independent.
    """
    (time, s), (energy, t) = time_spread(c), energy_spread(c)
    time, energy, w = time - log(c.latency_s), energy - log(c.energy_j), criterion.energy(c)
    score = criterion.score(c)
    assert score is not None
    mean = time + w * (energy - time)
    return mean + (1 if criterion.less else -1) * log(score), sqrt(s * s + w * w * (t * t - s * s))

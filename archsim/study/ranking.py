"""Several devices ranked by speed, speed per watt, speed per dollar and cost, with the probability that each order is right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log, sqrt

import numpy as np

from archsim.base.errors import UnknownName
from archsim.study.certainty import order_probabilities, probability_less
from archsim.study.contender import Contender, energy_spread, time_spread
from archsim.study.correlation import matrix, pair_correlation


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


def check_criterion(by: str) -> None:
    """Raise ArgumentError for what is no criterion."""
    known = [criterion.name for criterion in CRITERIA]
    if by not in known:
        raise UnknownName("criterion", by, known, hint=f"one of {', '.join(known)}")


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
    (`archsim.study.correlation`). Prices are exact.
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

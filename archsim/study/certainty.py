"""Probability that the predicted order of devices is the measured one, and that errors could undo what a setting saves.

A prediction with interval [lo, hi] at level p is read as log-normal: the log of the true time is normal with mean
(log lo + log hi) / 2 and standard deviation (log hi - log lo) / (2 z), z the quantile of (1 + p) / 2. Errors of two devices may
be correlated, each pair by its own number.

Two predictions for one device, network and stack share most of their error, so that their ratio is known better than either. How
well was counted on pairs of rows of one device, network, stack and source (tests/bench/correlation.py prints them): within what
factor the measured ratio lies of the predicted one in 80 % of the pairs, as its logarithm.

    time, two power limits       0.087    570 pairs, correlation of the two errors 0.40
    power, two power limits      0.071    816 pairs, 0.64
    energy, two power limits     0.082    570 pairs, 0.44
    time, two batches            0.187   9065 pairs, 0.53

Power at another clock has held-out rows of its own, the class `by clock` of the calibration.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from archsim.calibration.nearness import Question
from archsim.cost.cost import Array
from archsim.estimation.hardware import platform_of
from archsim.estimation.request import Request

DRAWS = 1 << 16  # of all errors at once; a probability then has a standard error of 0.2 % or less
SEED = 1
NARROWEST = 1e-6  # least standard deviation of a log, so that equal predictions divide by no zero
MOST_CORRELATED = 0.99  # with 1 the errors would be identical


def log_normal(low: float, high: float, level: float) -> tuple[float, float]:
    """Mean and standard deviation of the log of a quantity that lies in [low, high] with probability `level`.

    m = (ln low + ln high) / 2, s = (ln high - ln low) / (2 z), z the standard normal quantile of (1 + level) / 2

    >>> mean, deviation = log_normal(1 / 1.2816, 1.2816, 0.8)
    >>> abs(round(mean, 6)), round(deviation / math.log(1.2816), 3)
    (0.0, 0.78)
    """
    z = NormalDist().inv_cdf(0.5 * (1.0 + level))
    return 0.5 * (math.log(low) + math.log(high)), max((math.log(high) - math.log(low)) / (2.0 * z), NARROWEST)


def probability_less(mean: tuple[float, float], deviation: tuple[float, float], correlation: float = 0.0) -> float:
    """P(x_0 < x_1) of two correlated normals: Phi((m_1 - m_0) / sqrt(s_0^2 + s_1^2 - 2 r s_0 s_1)).

    mean: (m_0, m_1), logs; deviation: (s_0, s_1); correlation: r

    >>> probability_less((0.0, 0.0), (1.0, 2.0))
    0.5
    >>> round(probability_less((0.0, 0.1), (0.1, 0.1)), 2)  # 10 % faster, errors of 10 % each
    0.76
    """
    (a, b), (s, t) = mean, deviation
    spread = math.sqrt(max(s * s + t * t - 2.0 * correlation * s * t, 2.0 * NARROWEST**2))
    return 0.5 * (1.0 + math.erf((b - a) / spread / math.sqrt(2.0)))


def order_probabilities(mean: Array, deviation: Array, correlation: Array) -> tuple[float, Array]:
    """P(x_0 < x_1 < ... < x_n), and P(x_i is the smallest) for each [n], of correlated normals.

    mean, deviation: of the logs, [n]; correlation: of every pair, [n, n]

    x = mean + deviation (A z) with A A^T = correlation and z independent standard normals, drawn `DRAWS` times, always the same
    ones. Devices with equal x share the place.

    >>> whole, least = order_probabilities(np.zeros(2), np.ones(2), np.eye(2))
    >>> round(whole, 1), least.round(1).tolist()
    (0.5, [0.5, 0.5])
    """
    n = len(mean)
    if n < 2:
        return 1.0, np.ones(n)
    try:
        factor = np.linalg.cholesky(correlation)
    except np.linalg.LinAlgError:
        raise ValueError("no errors can have these correlations: their matrix is not positive definite") from None
    drawn = factor @ _standard_normals(n) * deviation[:, None] + mean[:, None]
    whole = float((drawn[1:] > drawn[:-1]).all(axis=0).mean())
    least = drawn == drawn.min(axis=0)
    return whole, (least / least.sum(axis=0)).mean(axis=1)


@lru_cache(maxsize=4)
def _standard_normals(count: int) -> Array:
    """Draws of independent standard normals, [count, DRAWS]. The legacy generator gives the same ones in every numpy."""
    return np.random.RandomState(SEED).standard_normal((count, DRAWS))


# -------------------------------------------------------------------------------------------------------------- savings

LIMITED = {"time": 0.087, "power": 0.071, "energy": 0.082}  # of logs of ratios, at 80 %
BATCHES = 0.187  # the same of times of samples
PARTS = {"latency_s": "time", "throughput_per_s": "time", "power_w": "power", "energy_per_sample_j": "energy"}
SAME = 1e-9  # relative; outputs that differ by less are equal
MORE = ("throughput_per_s",)  # of which more is saved, not less


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """An output of one setting beside that of another.

    ratio: after / before; interval: where the measured ratio is expected, at the level of the calibration
    probability: that there is less of it (of a throughput: more), if errors of logs are normal
    uncertain: whether 1 is within the interval, unless both predictions are the same
    """

    ratio: float
    interval: tuple[float, float]
    probability: float
    uncertain: bool


def savings(
    request: Request, before: Mapping[str, float], after: Mapping[str, float], clocks: bool, batches: bool
) -> dict[str, Saving]:  # fmt: skip
    """The outputs of `PARTS` of a setting beside those of another one.

    before, after: outputs by name; clocks: whether core or memory clock differ; batches: whether the batch does
    """
    return {name: _saving(name, before[name], after[name], _width(request, part, clocks, batches), request.calibration.level)
            for name, part in PARTS.items()}  # fmt: skip


def correlated(
    name: str, before: tuple[float, float, float], after: tuple[float, float, float], correlation: float, level: float
) -> Saving:  # fmt: skip
    """An output beside another whose errors are correlated: half the interval of the log of the ratio is
    w = sqrt(v^2 + u^2 - 2 r v u).

    before, after: value and ends of its interval, of which half the logs are v and u; correlation: r

    >>> one = correlated("latency_s", (1.0, 0.8, 1.25), (0.5, 0.4, 0.625), 0.6, 0.8)
    >>> one.ratio, [round(end, 3) for end in one.interval], one.uncertain
    (0.5, [0.41, 0.61], False)
    """
    v, u = (0.5 * math.log(high / low) for _, low, high in (before, after))
    return _saving(name, before[0], after[0], math.sqrt(max(v * v + u * u - 2.0 * correlation * v * u, 0.0)), level)


def _saving(name: str, before: float, after: float, width: float, level: float) -> Saving:
    """The ratio with its interval, [r exp(-w), r exp(w)]."""
    ratio = after / before
    if abs(ratio - 1.0) <= SAME:
        return Saving(ratio=1.0, interval=(1.0, 1.0), probability=0.5, uncertain=False)
    low, high = ratio * math.exp(-width), ratio * math.exp(width)
    mean, deviation = log_normal(low, high, level)
    less = probability_less((mean, 0.0), (deviation, 0.0))
    probability = 1.0 - less if name in MORE else less
    return Saving(ratio=ratio, interval=(low, high), probability=probability, uncertain=low <= 1.0 <= high)


def _width(request: Request, part: str, clocks: bool, batches: bool) -> float:
    """Half the interval of the log of a ratio; errors of different origins add in quadrature.

    w^2 = w_limits^2 (+ w_power^2 in place of the power's, where clocks differ) (+ w_batches^2 of times and energies)
    """
    width = LIMITED[part]
    if clocks and part != "time":
        question = Question(platform=platform_of(request.spec, request.stack.id))
        _, spread = request.calibration.spread_of(request.spec.kind, "by clock", question)
        power = 0.5 * (spread.high - spread.low)
        width = power if part == "power" else math.hypot(LIMITED["time"], power)
    return math.hypot(width, BATCHES) if batches and part != "power" else width

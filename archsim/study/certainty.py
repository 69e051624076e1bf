"""Probability that the predicted order of devices is the measured one.

A prediction with interval [lo, hi] at level p is read as log-normal: the log of the true time is normal with mean
(log lo + log hi) / 2 and standard deviation (log hi - log lo) / (2 z), z the quantile of (1 + p) / 2. Errors of two devices may
be correlated, each pair by its own number.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from archsim.cost.cost import Array

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

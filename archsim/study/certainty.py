"""Probability that the predicted order of devices is the measured one.

A prediction with interval [lo, hi] at level p is read as log-normal: the log of the true time is normal with mean
(log lo + log hi) / 2 and standard deviation (log hi - log lo) / (2 z), z the quantile of (1 + p) / 2. Errors of two devices may
be correlated: with correlation r, x_i = m_i + s_i (sqrt(r) Z + sqrt(1 - r) E_i), Z shared by all devices, E_i independent.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from archsim.cost.cost import Array

POINTS = 4001  # of the integration grid
REACH = 8.0  # standard deviations that the grid covers on either side
NODES = 40  # of the Gauss-Hermite rule over the shared error Z
NARROWEST = 1e-6  # least standard deviation of a log, so that equal predictions divide by no zero
MOST_CORRELATED = 0.99  # with 1 the errors would be identical and the integrals singular

_erf = np.vectorize(math.erf, otypes=[float])


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


def probability_in_order(mean: Array, deviation: Array, correlation: float = 0.0) -> float:
    """P(x_0 < x_1 < ... < x_n) of normals with a common pairwise correlation.

    mean, deviation: of the logs, [n]

    Given Z the x_i are independent, and the n-fold integral becomes running integrals on a grid: G_i(x) = integral up to x of
    f_i G_(i-1). The mean over Z is taken by Gauss-Hermite quadrature.

    >>> round(probability_in_order(np.zeros(3), np.ones(3)), 4)  # one of six equal orders
    0.1667
    """
    return _mean_over_shared(mean, deviation, correlation, _in_order_integral)


def probability_least(mean: Array, deviation: Array, correlation: float = 0.0) -> Array:
    """P(x_i is the smallest) for each of normals with a common pairwise correlation, [n].

    >>> probability_least(np.zeros(4), np.ones(4)).round(4).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    return np.array([
        _mean_over_shared(np.roll(mean, -i), np.roll(deviation, -i), correlation, _smallest_integral) for i in range(len(mean))
    ])  # fmt: skip


def _mean_over_shared(mean: Array, deviation: Array, correlation: float, integral: object) -> float:
    """The mean of `integral` over the shared error Z. If all deviations are equal, Z shifts all x alike and cancels."""
    if not 0.0 <= correlation <= MOST_CORRELATED:
        raise ValueError(f"correlation {correlation:g} is not between 0 and {MOST_CORRELATED:g}")
    assert callable(integral)
    own = deviation * math.sqrt(1.0 - correlation)
    if correlation == 0.0 or np.ptp(deviation) == 0.0:
        return float(integral(mean, own))
    nodes, weights = np.polynomial.hermite.hermgauss(NODES)
    shifts = math.sqrt(2.0 * correlation) * nodes
    values = [integral(mean + deviation * shift, own) for shift in shifts.tolist()]
    return float(np.dot(weights, values) / math.sqrt(math.pi))


def _grid(mean: Array, deviation: Array) -> Array:
    """The integration points of every normal, merged, so that they are dense where a density is narrow."""
    steps = np.linspace(-REACH, REACH, POINTS // max(len(mean), 1) * 2 + 1)
    return np.unique((mean[:, None] + deviation[:, None] * steps).ravel())


def _density(x: Array, mean: float, deviation: float) -> Array:
    u = (x - mean) / deviation
    return np.exp(-0.5 * u * u) / (deviation * math.sqrt(2.0 * math.pi))


def _distribution(x: Array, mean: float, deviation: float) -> NDArray[np.float64]:
    found: NDArray[np.float64] = 0.5 * (1.0 + _erf((x - mean) / (deviation * math.sqrt(2.0))))
    return found


def _in_order_integral(mean: Array, deviation: Array) -> float:
    x = _grid(mean, deviation)
    reached = _distribution(x, float(mean[0]), float(deviation[0]))
    for m, s in zip(mean[1:].tolist(), deviation[1:].tolist(), strict=True):
        reached = _cumulative(x, _density(x, m, s) * reached)
    return min(1.0, float(reached[-1]))


def _smallest_integral(mean: Array, deviation: Array) -> float:
    x = _grid(mean, deviation)
    rest = [1.0 - _distribution(x, m, s) for m, s in zip(mean[1:].tolist(), deviation[1:].tolist(), strict=True)]
    alone = _density(x, float(mean[0]), float(deviation[0]))
    return min(1.0, float(_cumulative(x, alone * np.prod([np.ones_like(x), *rest], axis=0))[-1]))


def _cumulative(x: Array, y: Array) -> Array:
    """Integral of y up to each x, by the trapezoidal rule."""
    return np.concatenate(([0.0], np.cumsum(0.5 * (y[1:] + y[:-1]) * np.diff(x))))

"""Probability that an order of predictions is the order that a measurement would find.

A prediction with interval [lo, hi] at level p is read as log-normal: the log of the true time is normal with mean
(log lo + log hi) / 2 and standard deviation (log hi - log lo) / (2 z), z the quantile of (1 + p) / 2. Errors of two devices
may share a part: with correlation r, x_i = m_i + s_i (sqrt(r) Z + sqrt(1 - r) E_i), Z common, E_i of each device.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from archsim.cost.cost import Array

POINTS = 4001  # of the grid that integrals are summed on
REACH = 8.0  # standard deviations that it covers on either side
NODES = 40  # of the Gauss-Hermite rule over the common part
NARROWEST = 1e-6  # standard deviation of a log below which two predictions only differ or not
MOST_CORRELATED = 0.99  # beyond, errors would be the same number

_erf = np.vectorize(math.erf, otypes=[float])


def log_normal(low: float, high: float, level: float) -> tuple[float, float]:
    """Mean and standard deviation of the log of what lies between `low` and `high` with probability `level`.

    >>> mean, deviation = log_normal(1 / 1.2816, 1.2816, 0.8)
    >>> abs(round(mean, 6)), round(deviation / math.log(1.2816), 3)
    (0.0, 0.78)
    """
    z = NormalDist().inv_cdf(0.5 * (1.0 + level))
    return 0.5 * (math.log(low) + math.log(high)), max((math.log(high) - math.log(low)) / (2.0 * z), NARROWEST)


def less(mean: tuple[float, float], deviation: tuple[float, float], correlation: float = 0.0) -> float:
    """P(x_0 < x_1) of two correlated normals: Phi((m_1 - m_0) / sqrt(s_0^2 + s_1^2 - 2 r s_0 s_1)).

    >>> less((0.0, 0.0), (1.0, 2.0))
    0.5
    """
    (a, b), (s, t) = mean, deviation
    spread = math.sqrt(max(s * s + t * t - 2.0 * correlation * s * t, 2.0 * NARROWEST**2))
    return 0.5 * (1.0 + math.erf((b - a) / spread / math.sqrt(2.0)))


def in_order(mean: Array, deviation: Array, correlation: float = 0.0) -> float:
    """P(x_0 < x_1 < ... < x_n) of normals with a common pairwise correlation; arrays are [n].

    Given the common part Z the x_i are independent, and the probability is an n-fold integral that unrolls to running sums
    on a grid: G_i(x) = integral up to x of f_i G_(i-1). The mean over Z is taken by Gauss-Hermite quadrature.
    """
    return _over_common(mean, deviation, correlation, _chain)


def least(mean: Array, deviation: Array, correlation: float = 0.0) -> Array:
    """P(x_i is the smallest) for each of normals with a common pairwise correlation, [n]."""
    return np.array([
        _over_common(np.roll(mean, -i), np.roll(deviation, -i), correlation, _first) for i in range(len(mean))
    ])  # fmt: skip


def _over_common(mean: Array, deviation: Array, correlation: float, integral: object) -> float:
    """The mean of `integral` over the common part; where all deviations are equal, it moves nothing."""
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
    """Points that are dense where a density is narrow: those of every normal, put together."""
    steps = np.linspace(-REACH, REACH, POINTS // max(len(mean), 1) * 2 + 1)
    return np.unique((mean[:, None] + deviation[:, None] * steps).ravel())


def _density(x: Array, mean: float, deviation: float) -> Array:
    u = (x - mean) / deviation
    return np.exp(-0.5 * u * u) / (deviation * math.sqrt(2.0 * math.pi))


def _below(x: Array, mean: float, deviation: float) -> NDArray[np.float64]:
    found: NDArray[np.float64] = 0.5 * (1.0 + _erf((x - mean) / (deviation * math.sqrt(2.0))))
    return found


def _chain(mean: Array, deviation: Array) -> float:
    x = _grid(mean, deviation)
    reached = _below(x, float(mean[0]), float(deviation[0]))
    for m, s in zip(mean[1:].tolist(), deviation[1:].tolist(), strict=True):
        reached = _running(x, _density(x, m, s) * reached)
    return min(1.0, float(reached[-1]))


def _first(mean: Array, deviation: Array) -> float:
    x = _grid(mean, deviation)
    rest = [1.0 - _below(x, m, s) for m, s in zip(mean[1:].tolist(), deviation[1:].tolist(), strict=True)]
    alone = _density(x, float(mean[0]), float(deviation[0]))
    return min(1.0, float(_running(x, alone * np.prod([np.ones_like(x), *rest], axis=0))[-1]))


def _running(x: Array, y: Array) -> Array:
    """Integral of y up to each x, by trapezoids."""
    return np.concatenate(([0.0], np.cumsum(0.5 * (y[1:] + y[:-1]) * np.diff(x))))

"""Confidence intervals of the results of one long simulation, by batch means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

GROUPS = 20
STUDENT_95 = 2.093  # 97.5 % quantile of Student's t distribution with GROUPS - 1 = 19 degrees of freedom
ROUNDING = 1e-9  # relative; values that differ by less are equal
WARM_UP = 0.1  # share of the requests, from the first on, that is discarded


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchMean:
    """A figure with its 95 % confidence interval; None where the run is too short for one."""

    value: float
    interval: tuple[float, float] | None


def batch_means(values: Array, figure: Callable[[Array], float], least: int = 1) -> BatchMean:
    """`figure` of all values after the warm-up, with a 95 % confidence interval by batch means.

    interval = figure +- t s / sqrt(n)      (Law and Kelton 2000, Simulation Modeling and Analysis, section 9.5.3)

    values: in order of time, [M]
    n: `GROUPS` groups of consecutive values; s: standard deviation of the figures of the groups; t: Student's quantile
    least: values that a group must have, else the interval is None

    Holds where a group is long compared with the time over which requests influence each other, so that groups are nearly
    independent; single requests are not.

    >>> batch_means(np.arange(1000.0), mean).value  # without the first tenth
    549.5
    """
    settled = values[int(WARM_UP * len(values)) :]
    if len(settled) > 1 and float(np.ptp(settled)) <= ROUNDING * abs(figure(settled)):
        return BatchMean(value=figure(settled), interval=(figure(settled), figure(settled)))
    size = len(settled) // GROUPS
    if size < least:
        return BatchMean(value=figure(settled), interval=None)
    groups = settled[len(settled) - GROUPS * size :].reshape(GROUPS, size)
    figures = np.array([figure(group) for group in groups])
    half = STUDENT_95 * float(figures.std(ddof=1)) / sqrt(GROUPS)
    value = figure(settled)
    return BatchMean(value=value, interval=(value - half, value + half))


def mean(values: Array) -> float:
    """The mean of the values, [M], in their unit."""
    return float(values.mean())


def quantile(share: float) -> Callable[[Array], float]:
    """The smallest value that at least this share of the values does not exceed (MLPerf's definition of a percentile).

    >>> quantile(0.5)(np.array([1.0, 2.0, 3.0, 4.0]))
    2.0
    """

    def figure(values: Array) -> float:
        return float(np.quantile(values, share, method="inverted_cdf"))

    return figure

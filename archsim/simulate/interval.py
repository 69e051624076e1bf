"""Confidence intervals of what a long run of one simulation gives, by batch means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

GROUPS = 20
STUDENT_95 = 2.093  # of Student's distribution with 19 degrees of freedom: 2.5 % lie beyond
ROUNDING = 1e-9  # relative; values that differ no more are the same
WARM_UP = 0.1  # share of the requests at the beginning that is left out


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchMean:
    """A figure and its 95 % confidence interval; None for an interval where the run is too short for one."""

    value: float
    interval: tuple[float, float] | None


def batch_means(values: Array, figure: Callable[[Array], float], least: int = 1) -> BatchMean:
    """`figure` of all values after the warm-up, with an interval from `GROUPS` groups of neighbours.

    Groups that are long against the time for which requests influence each other are nearly independent, which neighbours
    are not (Law and Kelton 2000, Simulation Modeling and Analysis, section 9.5.3). A group needs `least` values.
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
    """The mean."""
    return float(values.mean())


def quantile(share: float) -> Callable[[Array], float]:
    """The smallest value that at least this share of the values does not exceed, as MLPerf counts percentiles."""

    def figure(values: Array) -> float:
        return float(np.quantile(values, share, method="inverted_cdf"))

    return figure

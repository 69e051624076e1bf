"""The Pareto front: points that no other point dominates."""

from __future__ import annotations

import numpy as np

from archsim.cost.cost import Array
from archsim.lower.kernel import Index

DIGITS = 9  # to which costs are compared: what differs by less is arithmetic, and no choice


def rounded(costs: Array) -> Array:
    """The costs to `DIGITS` significant digits.

    >>> near = rounded(np.array([0.1, 0.1 + 1e-15, 0.1001, 0.0, np.inf]))
    >>> bool(near[0] == near[1]), bool(near[1] == near[2]), near[3:].tolist()
    (True, False, [0.0, inf])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        unit = 10.0 ** (np.floor(np.log10(np.abs(costs))) - DIGITS + 1)
        found = np.round(costs / unit) * unit
    return np.where(np.isfinite(costs) & (costs != 0), found, costs)


def pareto_front(costs: Array) -> Index:
    """Positions of the rows of `costs` [D, K] that no other row dominates, in order of the first cost; less is better.

    A row dominates another if it is at most equal in all K costs, to nine digits, and less in one. Of equal rows the first
    counts; rows with NaN never do. In lexicographic order the first row cannot be dominated by later ones; taking it and
    dropping what it dominates, repeatedly, leaves the front.

    >>> pareto_front(np.array([[3.0, 1.0], [1.0, 3.0], [2.0, 2.0], [3.0, 3.0], [2.0, 2.0]])).tolist()
    [1, 2, 0]
    """
    costs = rounded(costs)
    rest = np.lexsort([np.arange(len(costs)), *costs.T[::-1]])
    rest = rest[~np.isnan(costs[rest]).any(axis=1)]
    kept = []
    while rest.size:
        first = rest[0]
        kept.append(first)
        rest = rest[(costs[rest] < costs[first]).any(axis=1)]
    return np.array(kept, dtype=np.intp)

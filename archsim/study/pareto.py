"""The Pareto front: points that no other point dominates."""

from __future__ import annotations

import numpy as np

from archsim.cost.cost import Array
from archsim.lower.kernel import Index


def pareto_front(costs: Array) -> Index:
    """Positions of the rows of `costs` [D, K] that no other row dominates, in order of the first cost; less is better.

    A row dominates another if it is at most equal in all K costs and less in one. Of equal rows the first counts; rows with NaN
    never do. In lexicographic order the first row cannot be dominated by later ones; taking it and dropping what it dominates,
    repeatedly, leaves the front.

    >>> pareto_front(np.array([[3.0, 1.0], [1.0, 3.0], [2.0, 2.0], [3.0, 3.0], [2.0, 2.0]])).tolist()
    [1, 2, 0]
    """
    rest = np.lexsort([np.arange(len(costs)), *costs.T[::-1]])
    rest = rest[~np.isnan(costs[rest]).any(axis=1)]
    kept = []
    while rest.size:
        first = rest[0]
        kept.append(first)
        rest = rest[(costs[rest] < costs[first]).any(axis=1)]
    return np.array(kept, dtype=np.intp)

"""The Pareto front: points that no other point beats in one objective without losing in another."""

from __future__ import annotations

import numpy as np

from archsim.cost.cost import Array
from archsim.lower.kernel import Index


def front(costs: Array) -> Index:
    """Positions of the rows of `costs` [D, K] that no other row dominates, by the first cost; less is better.

    Of equal rows the first counts; rows with NaN never do. The row that comes first in lexicographic order cannot be dominated
    by those after it, so that taking it and dropping what it dominates, over and over, leaves the front.

    >>> front(np.array([[3.0, 1.0], [1.0, 3.0], [2.0, 2.0], [3.0, 3.0], [2.0, 2.0]])).tolist()
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

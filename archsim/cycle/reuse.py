"""What a cache keeps of a set of bytes that is walked in order again and again."""

from __future__ import annotations

import numpy as np

STEEP = 0.25  # of the capacity, over which a set that grows loses all its hits: replacement is not quite by last use


def missing(size: float, capacity: float, whole: float | None = None, ways: float | None = None) -> float:
    """The share of accesses that a cache of this capacity misses [1]; it is a part of a `whole` one that keeps every line once.

    ways: its associativity, where it is known: some of its sets are full before others

    >>> missing(1e6, 2e6), missing(2.25e6, 2e6), missing(4e6, 2e6)
    (0.0, 0.5, 1.0)
    >>> [round(missing(1.5e6, 2e6, ways=ways), 2) for ways in (1, 4, 16)]
    [0.53, 0.35, 0.16]
    """
    early = 0.0 if ways is None else crowded(min(1.0, size / capacity) * ways, int(ways))
    return max(early, float(np.clip((size - capacity) / (STEEP * (whole or capacity)), 0.0, 1.0)))


def crowded(mean: float, ways: int) -> float:
    """The share of lines in sets that have more lines than ways, all of which miss when the lines are walked in order [1].

    P(X >= ways), X the lines of a set: Poisson, for addresses that a hash spreads over the sets; mean: lines of a set

    >>> [round(crowded(0.75 * ways, ways), 2) for ways in (1, 4, 16)]
    [0.53, 0.35, 0.16]
    """
    if mean <= 0.0:
        return 0.0
    lines = np.arange(ways)
    below = -mean + lines * np.log(mean) - np.cumsum(np.log(np.maximum(lines, 1)))
    return float(np.clip(1.0 - np.exp(below).sum(), 0.0, 1.0))

"""What a cache keeps of a set of bytes that is walked in order again and again."""

from __future__ import annotations

import numpy as np

STEEP = 0.25  # of the capacity, over which a set that grows loses all its hits: replacement is not quite by last use


def missing(size: float, capacity: float, whole: float | None = None) -> float:
    """The share of accesses that a cache of this capacity misses [1]; it is a part of a `whole` one that keeps every line once.

    >>> missing(1e6, 2e6), missing(2.25e6, 2e6), missing(4e6, 2e6)
    (0.0, 0.5, 1.0)
    """
    return 0.0 if size <= capacity else float(np.clip((size - capacity) / (STEEP * (whole or capacity)), 0.0, 1.0))

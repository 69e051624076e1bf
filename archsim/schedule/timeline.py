"""`Timeline`: what every scheduler returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Start and end of every op [s], each [D, N] with N ops in execution order, from the first framework call on.

    `wait_s` is the part of each op's time in which the device waited for the host.
    """

    start_s: Array
    end_s: Array
    wait_s: Array

    @property
    def latency_s(self) -> Array:
        """Time until the last op has ended, [D]."""
        return np.asarray(self.end_s.max(axis=-1))

    @property
    def op_time_s(self) -> Array:
        """How much each op adds to the latency, [D, N]: the time from the end of the op that ends before it to its own end.

        Where ops run side by side, one that ends in the shadow of others adds little; the sum is the latency all the same.
        """
        added = steps(self.end_s)
        if (added >= 0).all():
            return added
        order = np.argsort(self.end_s, axis=-1, kind="stable")
        sorted_ends = np.take_along_axis(self.end_s, order, axis=-1)
        np.put_along_axis(added, order, steps(sorted_ends), axis=-1)
        return added


def steps(ends: Array) -> Array:
    """How much later each column of `ends` is than the one before it, the first than 0, [D, N].

    >>> steps(np.array([[2.0, 3.0, 7.0]])).tolist()
    [[2.0, 1.0, 4.0]]
    """
    found = ends.copy(order="K")
    found[..., 1:] -= ends[..., :-1]
    return found

"""`Timeline`: when each op starts and ends, the result of every scheduler."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Start and end of every op [s], each [D, N]: D devices, N ops in execution order. Time 0 is the first framework call.

    `wait_s` is the part of each op's time in which the device waited for the host [s], [D, N].
    """

    start_s: Array
    end_s: Array
    wait_s: Array

    def delayed(self, late_s: Array) -> Timeline:
        """The same ops, all later by the time for which the device waits before the first one, `late_s` [s], [D].

        >>> one = np.array([[1.0, 2.0]])
        >>> Timeline(start_s=one - 1.0, end_s=one, wait_s=0.0 * one).delayed(np.array([5.0])).end_s.tolist()
        [[6.0, 7.0]]
        """
        by = late_s[:, None]
        wait_s = np.broadcast_to(self.wait_s, self.end_s.shape).copy()
        wait_s[..., :1] += by
        return Timeline(start_s=self.start_s + by, end_s=self.end_s + by, wait_s=wait_s)

    @property
    def latency_s(self) -> Array:
        """Time until the last op has ended [s], [D]."""
        return np.asarray(self.end_s.max(axis=-1))

    @property
    def op_time_s(self) -> Array:
        """How much each op adds to the latency [s], [D, N]: from the end of the op that ends before it to its own end.

        These sum to the latency. Where ops overlap, one that ends shortly after another adds little.
        """
        added = increments(self.end_s)
        if (added >= 0).all():
            return added
        order = np.argsort(self.end_s, axis=-1, kind="stable")
        sorted_ends = np.take_along_axis(self.end_s, order, axis=-1)
        np.put_along_axis(added, order, increments(sorted_ends), axis=-1)
        return added


def increments(ends: Array) -> Array:
    """Differences between neighbouring columns, the first from 0 [s], [D, N].

    >>> increments(np.array([[2.0, 3.0, 7.0]])).tolist()
    [[2.0, 1.0, 4.0]]
    """
    found = ends.copy(order="K")
    found[..., 1:] -= ends[..., :-1]
    return found

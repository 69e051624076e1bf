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

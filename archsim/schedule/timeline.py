"""`Timeline`: when each op starts and ends, the result of every scheduler; schedules without contention."""

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


# --------------------------------------------------------------------------------------------------- without contention


def asynchronous(device_s: Array, host_s: Array, stands: Array | float = 0.0) -> Timeline:
    """One CUDA stream: an op starts when its predecessor has ended and the host has issued it.

    end_i = max(end_{i-1}, H_i) + g_i, with H_i = h_0 + ... + h_i. It unrolls to G_i + max over j <= i of (H_j - G_{j-1}), with G
    the running sum of g: two scans instead of a loop.

    device_s: g, time of the kernels of each op [s], [D, N]
    host_s: h, time in which the host issues each op [s], [N] or [D, N]
    stands: 1 for an op that the host issues only when the device has ended the op before, else 0 [1], [N]; its h adds to g
    Holds while no more launches wait than the launch queue has places.

    The host takes 2 s to issue each op. The first three kernels wait for it; the third is long enough to hide the next issue:

    >>> asynchronous(np.array([[1.0, 1.0, 5.0, 1.0]]), np.array([2.0, 2.0, 2.0, 2.0])).end_s.tolist()
    [[3.0, 5.0, 11.0, 12.0]]
    """
    stall_s = host_s * stands
    issued = np.cumsum(host_s - stall_s, axis=-1)
    spent = device_s + stall_s
    worked = np.cumsum(spent, axis=-1)
    lead = np.maximum.accumulate(issued - (worked - spent), axis=-1)
    end = worked + lead
    start = end - device_s
    wait = np.maximum(0.0, increments(end) - device_s)
    return Timeline(start_s=start, end_s=end, wait_s=wait)


def synchronous(device_s: Array, host_s: Array) -> Timeline:
    """A CPU: the framework's own time of an op comes before its kernels, on the same cores.

    end_i = end_{i-1} + h_i + g_i

    device_s: g, time of the kernels of each op [s], [D, N]
    host_s: h, time of the framework for each op [s], [N] or [D, N]

    >>> synchronous(np.array([[1.0, 4.0]]), np.array([0.5, 0.5])).end_s.tolist()
    [[1.5, 6.0]]
    """
    device, host = np.broadcast_arrays(device_s, host_s)
    end = np.cumsum(device + host, axis=-1)
    return Timeline(start_s=end - device, end_s=end, wait_s=host)

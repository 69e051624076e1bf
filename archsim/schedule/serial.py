"""Schedules without contention: one CUDA stream fed by an asynchronous host, or a CPU that does both."""

from __future__ import annotations

import numpy as np

from archsim.schedule.timeline import Array, Timeline, increments


def asynchronous(device_s: Array, host_s: Array, stall_s: Array | float = 0.0) -> Timeline:
    """One CUDA stream: an op starts when its predecessor has ended and the host has issued it.

    end_i = max(end_{i-1}, H_i) + g_i, with H_i = h_0 + ... + h_i. It unrolls to G_i + max over j <= i of (H_j - G_{j-1}), with G
    the running sum of g: two scans instead of a loop.

    device_s: g, time of the kernels of each op [s], [D, N]
    host_s: h, time in which the host issues each op [s], [N] or [D, N]
    stall_s: host work on an op that starts only when the device has ended the op before [s], [N] or [D, N]; it adds to g
    Holds while no more launches wait than the launch queue has places.

    The host takes 2 s to issue each op. The first three kernels wait for it; the third is long enough to hide the next issue:

    >>> asynchronous(np.array([[1.0, 1.0, 5.0, 1.0]]), np.array([2.0, 2.0, 2.0, 2.0])).end_s.tolist()
    [[3.0, 5.0, 11.0, 12.0]]
    """
    issued = np.cumsum(host_s, axis=-1)
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

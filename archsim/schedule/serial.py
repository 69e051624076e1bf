"""One queue in order: the host issues, the device executes."""

from __future__ import annotations

import numpy as np

from archsim.schedule.timeline import Array, Timeline, steps


def asynchronous(device_s: Array, host_s: Array, stall_s: Array | float = 0.0) -> Timeline:
    """A GPU stream: op i starts when its predecessor has ended and the host has issued it.

    With issue times H_i = h_0 + ... + h_i and device times g_i, the end of op i is max(end_{i-1}, H_i) + g_i, which
    unrolls to G_i + max over j <= i of (H_j - G_{j-1}), G the running sum of g: two scans, no loop. `device_s` is
    [D, N], `host_s` and `stall_s` are [N] or [D, N]. During `stall_s` the host works on an op that it begins only when
    the device has ended the one before, so that it adds to g_i.
    """
    issued = np.cumsum(host_s, axis=-1)
    spent = device_s + stall_s
    worked = np.cumsum(spent, axis=-1)
    lead = np.maximum.accumulate(issued - (worked - spent), axis=-1)
    end = worked + lead
    start = end - device_s
    wait = np.maximum(0.0, steps(end) - device_s)
    return Timeline(start_s=start, end_s=end, wait_s=wait)


def synchronous(device_s: Array, host_s: Array) -> Timeline:
    """A CPU: the framework's own time of an op comes before its kernels, on the same cores."""
    host = np.broadcast_to(host_s, device_s.shape)
    end = np.cumsum(device_s + host, axis=-1)
    return Timeline(start_s=end - device_s, end_s=end, wait_s=np.asarray(host))

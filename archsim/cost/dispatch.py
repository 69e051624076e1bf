"""What the host CPU adds to a network on a device: dispatching ops, launching kernels, feeding inputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from archsim.calibration.constants import Calibration
from archsim.cost.cost import Array
from archsim.cost.cpu_traffic import core_bandwidth
from archsim.cost.plan import PlanCost
from archsim.cost.team import dispatch_clock
from archsim.device.device import Cpu, Device, Gpu
from archsim.lower.kernel import Index, Kernels
from archsim.stack.stack import Stack

COPIED = 3.0  # bytes that cross the memory bus for one that is copied: read, and written after its line was read for ownership


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTime:
    """What the host spends on each plan [s], [D, O]: `issue_s` beside a busy GPU, `stall_s` while the GPU waits."""

    issue_s: Array
    stall_s: Array

    def scaled(self, factor: float) -> HostTime:
        """The same times a factor."""
        return HostTime(issue_s=self.issue_s * factor, stall_s=self.stall_s * factor)


def host_time(
    kernels: Kernels, cost: PlanCost, stack: Stack, device: Device, host: Cpu, constants: Calibration
) -> HostTime:  # fmt: skip
    """Time of the host for each plan [s], [D, O]: framework calls, on a GPU the driver's work per launch, and stalls.

    t = (calls c_framework + launches c_launch) / f        t_stall = stalls c_stall / f

    calls: calls of the framework for the op, nested ones by the share `dispatch.nested` [1], [O]
    launches: kernels of the option that runs, of the plans' `cost` [1], [D, O]; on a CPU none
    stalls: how many times the device waits for the host [1], [O]
    c: clocks of a Haswell core (`dispatch.*`, `stall.*`) [clk]
    f: `dispatch_clock` of the host [Hz], a float or [D, 1]

    Zero for a stack without a `host` constant.

    >>> from types import SimpleNamespace as some
    >>> from archsim.device.catalog import find
    >>> kernels = some(host_ops=np.array([2.0]), nested=np.zeros(1), stalls=np.ones(1))
    >>> cost = some(time_s=np.zeros((1, 1)), launches=np.array([[3.0]]))
    >>> stack = some(host="dispatch.native", stall="stall.update")
    >>> of = {"dispatch.native": 7000.0, "dispatch.launch": 10000.0, "dispatch.nested": 0.6,
    ...       "stall.update": 370000.0}
    >>> found = host_time(kernels, cost, stack, find("gtx_1080").device, find("i7_5930k").device, of)
    >>> round(found.issue_s.item() * 1e6, 2), round(found.stall_s.item() * 1e6, 2)  # 44000 and 370000 clocks at 3.7 GHz
    (11.89, 100.0)
    """
    none = np.zeros_like(cost.time_s)
    if not stack.host:
        return HostTime(issue_s=none, stall_s=none)
    clock = dispatch_clock(host)
    launches = cost.launches if isinstance(device, Gpu) else none
    calls = kernels.host_ops + kernels.nested * constants["dispatch.nested"]
    issue = (calls * constants[stack.host] + launches * constants["dispatch.launch"]) / clock
    stall = kernels.stalls * constants[stack.stall] / clock if stack.stall else 0.0
    return HostTime(issue_s=none + issue, stall_s=none + stall)


def graph_launch(host_s: Array, plan_of: Index, host: Cpu, constants: Calibration) -> Array:
    """Time until the host has issued a graph [s].

    min(host_s of the first op, launch / f), [D, 1]

    host_s: time in which the host would issue each plan by itself [s], [D, O]
    plan_of: the plan of each op, -1 for an op without kernels, [N]
    launch: of the whole graph, `graph.launch_clk` [clk]; f: `dispatch_clock` of the host [Hz]

    One launch starts all kernels of a graph; it takes no longer than the calls for its first op would.

    >>> from archsim.device.catalog import find
    >>> host, of = find("i7_5930k").device, {"graph.launch_clk": 18500.0}
    >>> graph_launch(np.array([[2e-6, 9e-6]]), np.array([-1, 1, 0]), host, of).item()
    5e-06
    """
    first = plan_of[plan_of >= 0][:1]
    return np.minimum(host_s[..., first], constants["graph.launch_clk"] / dispatch_clock(host))


def feed_time(size: float, stack: Stack, device: Device, host: Cpu) -> Array | float:
    """Time to bring `size` bytes of input, as fp32, from the framework's host memory to a GPU [s]: copies there, then the link.

    t = size (3 copies / B_core + 1 / B_link)

    copies: copies within host memory, by one thread, `input_copies` of the stack [1]
    B_core: memory bandwidth of one core of the host, `core_bandwidth` [B/s], of which a copied byte takes `COPIED`
    B_link: bandwidth of the link that a pinned copy reaches [B/s], a float or [D, 1]; a module without a link needs none

    Zero where inputs lie in device memory already, and on a CPU, which reads them where they are.

    >>> from types import SimpleNamespace as some
    >>> from archsim.device.catalog import find
    >>> host = some(l1=some(line=64.0), l2=some(miss_buffers=15.0), memory=some(latency=64e-9))  # a core draws 15 GB/s
    >>> stack = some(inputs="host", input_copies=2.0)
    >>> gpu = find("gtx_1080").device  # 0.76 of 15.75 GB/s over PCIe
    >>> round(feed_time(1e9, stack, gpu, host), 4)  # 0.4 s and 0.0835 s
    0.4835
    """
    if stack.inputs == "device" or not isinstance(device, Gpu):
        return 0.0
    return size * (stack.input_copies * COPIED / core_bandwidth(host) + _over_link(device))


def store_time(size: float, stack: Stack, device: Device, host: Cpu) -> Array | float:
    """Time in which `size` bytes of updated weights go to a parameter store in host memory and come back [s].

    t = 2 size / B_link on a GPU        t = 3 size / B_core on a CPU, where coming back is a copy by one thread

    B_link, B_core: as in `feed_time`. Zero for a stack without a store.

    >>> from types import SimpleNamespace as some
    >>> from archsim.device.catalog import find
    >>> round(store_time(472e6, some(parameter_store="host"), find("gtx_1080").device, None), 4)
    0.0789
    """
    if stack.parameter_store != "host":
        return 0.0
    if not isinstance(device, Gpu):
        return size * COPIED / core_bandwidth(host)
    return size * 2.0 * _over_link(device)


def _over_link(device: Gpu) -> Array | float:
    """Time of a pinned byte over the link [s/B], a float or [D, 1]; none for a module that shares its host's memory."""
    return 1.0 / link_rate(device)


def link_rate(device: Gpu) -> Array | float:
    """Bandwidth of a pinned copy between host and device [B/s], a float or [D, 1]; infinite for a module without a link.

    B = peak of the link x the share of it that copies reach

    >>> from archsim.device.catalog import find
    >>> round(link_rate(find("gtx_1080").device) / 1e9, 2)
    11.97
    """
    return float("inf") if device.link is None else device.link.bandwidth * device.link.achievable

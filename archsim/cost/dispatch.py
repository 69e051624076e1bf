"""What the host does for a run: calls of the framework, launches, and the input of the next batch.

Estimates take it in closed form, `archsim simulate train` in events; the rates are those of this module in both.
"""

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
from archsim.stack.parts import SampleReader
from archsim.stack.stack import Stack

COPIED = 3.0  # bytes that cross the memory bus for one that is copied: read, and written after its line was read for ownership


def host_time(kernels: Kernels, cost: PlanCost, stack: Stack, device: Device, host: Cpu, constants: Calibration) -> Array:
    """Time of the host for each plan [s], [D, O]: framework calls, and on a GPU the driver's work per launch.

    t = (calls c_framework + launches c_launch) / f

    calls: calls of the framework for the op, nested ones by the share `dispatch.nested` [1], [O]
    launches: kernels of the option that runs, of the plans' `cost` [1], [D, O]; on a CPU none
    c: clocks of a Haswell core (`dispatch.*`) [clk]
    f: `dispatch_clock` of the host [Hz], a float or [D, 1]

    Zero for a stack without a `host` constant.

    >>> from types import SimpleNamespace as some
    >>> from archsim.device.catalog import find
    >>> kernels = some(host_ops=np.array([2.0]), nested=np.zeros(1))
    >>> cost = some(time_s=np.zeros((1, 1)), launches=np.array([[3.0]]))
    >>> of = {"dispatch.native": 7000.0, "dispatch.launch": 10000.0, "dispatch.nested": 0.6}
    >>> stack = some(host="dispatch.native")
    >>> found = host_time(kernels, cost, stack, find("gtx_1080").device, find("i7_5930k").device, of)
    >>> round(found.item() * 1e6, 2)  # 44000 clocks at 3.7 GHz
    11.89
    """
    none = np.zeros_like(cost.time_s)
    if not stack.host:
        return none
    clock = dispatch_clock(host)
    launches = cost.launches if isinstance(device, Gpu) else none
    calls = kernels.host_ops + kernels.nested * constants["dispatch.nested"]
    return none + (calls * constants[stack.host] + launches * constants["dispatch.launch"]) / clock


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


def host_transfer_time(size: float, stack: Stack, device: Device, host: Cpu) -> Array | float:
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
    >>> round(host_transfer_time(1e9, stack, gpu, host), 4)  # 0.4 s and 0.0835 s
    0.4835
    """
    if stack.inputs == "device" or not isinstance(device, Gpu):
        return 0.0
    return size * (stack.input_copies * COPIED / core_bandwidth(host) + _over_link(device))


def store_time(size: float, stack: Stack, device: Device, host: Cpu) -> Array | float:
    """Time in which `size` bytes of updated weights go to a parameter store in host memory and come back [s].

    t = 2 size / B_link on a GPU        t = 3 size / B_core on a CPU, where coming back is a copy by one thread

    B_link, B_core: as in `host_transfer_time`. Zero for a stack without a store.

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


# ------------------------------------------------------------------------------------------------- the input of a batch


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleBatch:
    """The samples of a batch: how many, and what one is as the network reads it: its values, and the pixels of its image."""

    count: int
    values: float
    pixels: float


@dataclass(frozen=True, slots=True, kw_only=True)
class InputStage:
    """What the samples of one batch take of each resource [s], floats or [D, 1].

    decode_s: of the threads that decode, all together
    copy_s: of the link, where the batch is copied while the network runs
    ahead: whether the samples of a batch are prepared while the network runs on the batch before
    """

    decode_s: Array | float
    copy_s: Array | float
    ahead: bool

    def late(self, latency_s: Array, factor: float = 1.0) -> Array:
        """Time that a batch adds to a step of the network alone [s], [D].

        ahead: late = max(T, decode, copy) - T        else: late = decode

        T: latency of the step with its batch ready, `latency_s` [s], [D]
        factor: of all times of the stage [1]
        Steady state of a stage that runs ahead without bound: the slowest resource sets the pace.

        >>> InputStage(decode_s=3.0, copy_s=0.0, ahead=True).late(np.array([4.0, 2.0])).tolist()
        [0.0, 1.0]
        """
        decode, copy = (np.ravel(part) * factor for part in (self.decode_s, self.copy_s))
        if not self.ahead:
            return np.asarray(latency_s * 0.0 + decode)
        return np.asarray(np.maximum(np.maximum(decode, copy), latency_s) - latency_s)


def worker_rate(workers: float, cores: float, per_core: Array | float) -> Array | float:
    """Samples that decoding threads make together [img/s]; more threads than cores share the cores.

    r = min(workers, cores) r_core

    workers, cores: threads that decode, cores of the host [1]
    per_core: r_core, of one core [img/s]

    >>> worker_rate(16, 4, 100.0)
    400.0
    """
    return min(workers, cores) * per_core


def core_rate(reader: SampleReader, samples: SampleBatch, host: Cpu, constants: Calibration) -> Array | float:
    """Samples that one core of the host decodes [img/s].

    r = f / (pixels c_jpeg + values c_loop)        arrays of bytes have no first term

    f: `dispatch_clock` of the `host` [Hz]
    pixels: of the stored image, as the `reader` of the stack says, or else those of the network's input [1]
    c_jpeg: clocks for each of them, `input.jpeg_clk` [clk]
    values: of one of the `samples` [1]
    c_loop: a load, an operation and a store of scalar code, `loop.steps_clk` [clk]

    >>> from archsim.device.catalog import find
    >>> image = SampleBatch(count=1, values=3 * 224 * 224, pixels=224 * 224)
    >>> constants = {"loop.steps_clk": 3.5, "input.jpeg_clk": 40.0}
    >>> round(core_rate(SampleReader(pixels=140_000), image, find("i7_6700k").device, constants))
    754
    """
    stored = reader.pixels or samples.pixels
    decoding = stored * constants["input.jpeg_clk"] if reader.stored == "jpeg" else 0.0
    return dispatch_clock(host) / (decoding + samples.values * constants["loop.steps_clk"])


def input_stage(
    samples: SampleBatch, reader: SampleReader, host: Cpu, cores: float, constants: Calibration, copy_s: Array | float
) -> InputStage:  # fmt: skip
    """What a batch of samples that a reader prepares takes of each resource.

    decode = n / r

    n: samples [1]
    r: `worker_rate` of the reader's threads on the `cores` of the host [img/s]
    copy_s: of the batch over the link; of account where the reader copies ahead [s]

    >>> from archsim.device.catalog import find
    >>> from archsim.stack import catalog as stacks
    >>> constants = {"loop.steps_clk": 3.5, "input.jpeg_clk": 40.0}
    >>> cifar = SampleBatch(count=1024, values=3072, pixels=1024)
    >>> reader = stacks.find("mxnet-cudnn5.1").reader  # four threads
    >>> round(float(input_stage(cifar, reader, find("i7_3820").device, 4, constants, 0.0).decode_s) * 1e3, 2)
    3.83
    """
    rate = worker_rate(reader.workers, cores, core_rate(reader, samples, host, constants))
    return InputStage(decode_s=samples.count / rate, copy_s=copy_s if reader.ahead == "batch" else 0.0,
                      ahead=reader.ahead != "nothing")  # fmt: skip

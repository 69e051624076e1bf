"""The input stage of a training or inference loop: samples are read, decoded by threads of the host, and copied to the device.

Estimates take it in closed form, `archsim simulate train` in events; the rates are those of this module in both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from archsim.calibration.constants import Calibration
from archsim.cost.cost import Array
from archsim.cost.team import dispatch_clock
from archsim.device.device import Cpu, Gpu
from archsim.stack.reader import SampleReader
from archsim.stack.stack import Stack


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
    calls_s: of the thread that dispatches the framework's calls and the driver's launches
    kernels_s: of the device, between the network's own kernels
    copy_s: of the link, where the batch is copied while the network runs
    ahead: whether the samples of a batch are prepared while the network runs on the batch before
    """

    decode_s: Array | float
    calls_s: Array | float
    kernels_s: Array | float
    copy_s: Array | float
    ahead: bool

    @property
    def slowest_s(self) -> Array | float:
        """Time in which the host prepares the batch, decoding and dispatching beside each other [s]."""
        return np.maximum(self.decode_s, self.calls_s)

    def late(self, latency_s: Array, dispatch_s: Array, factor: float = 1.0) -> Array:
        """Time that a batch adds to a step of the network alone [s], [D].

        ahead: late = max(T + kernels, H + calls, decode, copy) - T        else: late = decode + calls + kernels

        T: latency of the step with its batch ready, `latency_s` [s], [D]
        H: the host's own time for the ops of the step, `dispatch_s` [s], [D]; one thread dispatches them and the calls
        factor: of all times of the stage [1]
        Steady state of a stage that runs ahead without bound: the slowest resource sets the pace.

        >>> stage = InputStage(decode_s=3.0, calls_s=2.0, kernels_s=0.5, copy_s=0.0, ahead=True)
        >>> stage.late(np.array([4.0, 2.0]), np.array([1.5, 1.5])).tolist()
        [0.5, 1.5]
        """
        parts = (self.decode_s, self.calls_s, self.kernels_s, self.copy_s)
        decode, calls, kernels, copy = (np.ravel(part) * factor for part in parts)
        if not self.ahead:
            return np.asarray(latency_s * 0.0 + decode + calls + kernels)
        pace = np.maximum.reduce(np.broadcast_arrays(latency_s + kernels, dispatch_s + calls, decode, copy))
        return np.asarray(pace - latency_s)


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

    r = f / (pixels c_jpeg + values passes c_loop)        arrays of bytes have no first term

    f: `dispatch_clock` of the `host` [Hz]
    pixels: of the stored image, as the `reader` of the stack says, or else those of the network's input [1]
    c_jpeg: clocks for each of them, `input.jpeg_clk` [clk]
    values, passes: of one of the `samples`, and the loops over them after it is decoded [1]
    c_loop: a load, an operation and a store of scalar code, `loop.steps_clk` [clk]

    >>> from archsim.device.catalog import find
    >>> image = SampleBatch(count=1, values=3 * 224 * 224, pixels=224 * 224)
    >>> constants = {"loop.steps_clk": 3.5, "input.jpeg_clk": 40.0}
    >>> round(core_rate(SampleReader(pixels=140_000), image, find("i7_6700k").device, constants))
    754
    """
    stored = reader.pixels or samples.pixels
    decoding = stored * constants["input.jpeg_clk"] if reader.stored == "jpeg" else 0.0
    return dispatch_clock(host) / (decoding + samples.values * reader.passes * constants["loop.steps_clk"])


def input_stage(
    samples: SampleBatch, stack: Stack, device: Gpu, host: Cpu, cores: float, constants: Calibration, copy_s: Array | float
) -> InputStage:  # fmt: skip
    """What a batch of samples that the stack's reader prepares takes of each resource.

    decode = n / r        calls = n (calls c_framework + (kernels + copies) c_launch) / f        kernels = n kernels gap

    n: samples [1]
    r: `worker_rate` of the reader's threads on the `cores` of the host [img/s]
    calls, kernels, copies: of the framework, the device and the link for each sample, `stack.reader` [1]
    c: clocks of a Haswell core for a call and a launch, f: `dispatch_clock` of the host, as in `host_time`
    gap: time between two kernels, `launch.latency` of the device [s]: no kernel of a single sample is longer
    copy_s: of the batch over the link; of account where the reader copies ahead [s]

    >>> from archsim.device.catalog import find
    >>> from archsim.stack import catalog as stacks
    >>> constants = {"dispatch.engine": 1e5, "dispatch.launch": 1e4, "loop.steps_clk": 3.5, "input.jpeg_clk": 40.0}
    >>> cifar = SampleBatch(count=1024, values=3072, pixels=1024)
    >>> found = input_stage(cifar, stacks.find("mxnet-cudnn5.1"), find("gtx_1080").device, find("i7_3820").device, 4,
    ...                     constants, 0.0)
    >>> round(float(found.decode_s) * 1e3, 2), float(found.calls_s)  # four threads
    (3.83, 0.0)
    """
    reader, n, clock = stack.reader, samples.count, dispatch_clock(host)
    per_call = constants[stack.host] if stack.host else 0.0
    launched = (reader.kernels + reader.copies) * constants["dispatch.launch"] if stack.host else 0.0
    rate = worker_rate(reader.workers, cores, core_rate(reader, samples, host, constants))
    return InputStage(
        decode_s=n / rate, calls_s=n * (reader.calls * per_call + launched) / clock,
        kernels_s=n * reader.kernels * device.launch.latency, copy_s=copy_s if reader.ahead == "batch" else 0.0,
        ahead=reader.ahead != "nothing",
    )  # fmt: skip

"""The roofline: what no implementation of these kernels on this device can beat (Williams et al. 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from archsim.cost.cores import active_clock
from archsim.cost.cost import Array
from archsim.cost.cpu_traffic import last_level
from archsim.device.device import Cpu, Device, Gpu, Tpu
from archsim.lower.kernel import Index, Kernels


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RooflineTerms:
    """Some plans on a device, and the quantities on the way to the two bounds that any implementation has, each [D, O].

    Each plan runs its algorithm of the fewest multiplications. Whatever is asked for is computed once.
    """

    kernels: Kernels
    device: Device
    precision: str
    clock: Array | float
    threads: Array | float

    @cached_property
    def units(self) -> Array | float:
        """Multiprocessors, or the cores that the threads can occupy."""
        return units(self.device, self.threads)

    @cached_property
    def speed(self) -> Array | float:
        """Clock of the units [Hz]."""
        return active_clock(self.device, self.units, self.clock) if isinstance(self.device, Cpu) else self.clock

    @cached_property
    def peak(self) -> Array | float:
        """Peak arithmetic [FLOP/s]."""
        return 2.0 * self.units * self.device.pipe(self.precision) * self.speed

    @cached_property
    def _per_option(self) -> Array:
        flop = np.array([kernel.flop * kernel.repeat for kernel in self.kernels.kernels])
        return np.add.reduceat(flop, self.kernels.option_start)

    @cached_property
    def flop(self) -> Array:
        """Arithmetic of the algorithm with the fewest multiplications [FLOP], [O]."""
        return np.minimum.reduceat(self._per_option, self.kernels.plan_start)

    @cached_property
    def option(self) -> Index:
        """That algorithm, [O]."""
        ends = [*self.kernels.plan_start[1:], len(self._per_option)]
        pairs = zip(self.kernels.plan_start, ends, self.flop, strict=True)
        return np.array([int(start + np.flatnonzero(self._per_option[start:end] == best)[0]) for start, end, best in pairs],
                        dtype=np.intp)  # fmt: skip

    @cached_property
    def dram_bytes(self) -> Array:
        """Memory traffic [B]: a cache-full of inputs may be there already and a cache-full of results may stay."""
        cache = on_chip(self.device)
        return np.asarray(np.maximum(0.0, self.kernels.read_bytes - cache) + np.maximum(0.0, self.kernels.write_bytes - cache))


def on_chip(device: Device) -> Array | float:
    """What the chip keeps of the tensors between two ops: its last cache, or the buffer of a TPU [B].

    >>> from archsim.device.catalog import find
    >>> on_chip(find("tpu_v1").device) / 2**20
    24.0
    """
    if isinstance(device, Tpu):
        return device.buffer.size
    return device.l2.size if isinstance(device, Gpu) else last_level(device)


def units(device: Device, threads: Array | float) -> Array | float:
    """Multiprocessors, cells of the arrays of a TPU, or the cores that the threads can occupy [1].

    SMs, or min(count, threads), a float or [D, 1]; threads: that were asked for, a float or [D, 1]

    >>> from archsim.device.catalog import find
    >>> float(units(find("i7_6700k").device, 3))
    3.0
    """
    if isinstance(device, Tpu):
        return device.array.count * device.array.rows * device.array.columns
    return device.sm.count if isinstance(device, Gpu) else np.minimum(device.core.count, threads)


def compute_bound(t: RooflineTerms) -> Array:
    """Arithmetic over the peak of all units [s].

    flop / peak, [D, O]; flop: of the algorithm with the fewest multiplications [FLOP], [O]; peak: [FLOP/s], a float or [D, 1]

    >>> from types import SimpleNamespace as terms
    >>> compute_bound(terms(flop=2e9, peak=1e12)).item()
    0.002
    """
    return np.atleast_2d(t.flop / t.peak)


def memory_bound(t: RooflineTerms) -> Array:
    """Memory traffic over the peak bandwidth of the data sheet [s].

    bytes / B, [D, O]; bytes: that any implementation moves [B], [O]; B: peak bandwidth [B/s], a float or [D, 1]

    >>> from types import SimpleNamespace as some
    >>> memory_bound(some(dram_bytes=3.2e9, device=some(memory=some(bandwidth=320e9)))).item()
    0.01
    """
    return np.atleast_2d(t.dram_bytes / t.device.memory.bandwidth)

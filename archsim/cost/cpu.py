"""Time of a kernel on a CPU: what its bounds are computed from, and one function for each bound."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from archsim.calibration.constants import Calibration
from archsim.cost import cores, cpu_traffic, team
from archsim.cost.blocking import panels_of
from archsim.cost.cost import Array
from archsim.device.device import Cpu
from archsim.lower.kernel import CpuKernels


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CpuTerms:
    """Some kernels on a CPU, and the quantities on the way to their bounds, each [D, V].

    Every bound is a function of this record, and whatever it asks for is computed once.

    clock: clock of SIMD code on all cores [Hz]
    threads: threads that were asked for
    """

    kernels: CpuKernels
    device: Cpu
    precision: str
    clock: Array | float
    threads: Array | float
    constants: Calibration

    @cached_property
    def workers(self) -> Array:
        """Cores at work."""
        return team.active_cores(self.kernels, self.device, self.threads)

    @cached_property
    def awake(self) -> Array:
        """Cores that are not asleep: threads without work spin."""
        return team.awake_cores(self.kernels, self.device, self.workers, self.threads)

    @cached_property
    def core_clock(self) -> Array:
        """Clock of the cores at work [Hz]."""
        return cores.active_clock(self.device, self.awake, self.clock)

    @cached_property
    def speed(self) -> Array:
        """That clock, less what threads that spin on their hyper-threads take [Hz]."""
        return self.core_clock * team.undisturbed(self.kernels, self.device, self.workers, self.threads, self.constants)

    @cached_property
    def busiest_clk(self) -> Array:
        """Clocks of the busiest core for one launch [clk]."""
        return cores.busiest_clocks(self.kernels, self.device, self.precision, self.workers, self.threads, self.constants)

    @cached_property
    def copy_clk(self) -> Array:
        """Clocks in which the busiest core copies operands into panels [clk]."""
        return cores.copy_clocks(self.kernels, self.device, self.workers, self.threads, self.constants)

    @cached_property
    def in_turn(self) -> Array:
        """1 where memory is read before the arithmetic and not beside it: a product whose operands are copied into panels.

        Copying reads the operands from memory, and the product reads the copies. A panel has a short run of each of many rows,
        in as many pages, so that no prefetcher is ahead and the work of copying does not hide its waits.
        """
        return np.asarray(self.copy_clk > 0, dtype=float)

    @cached_property
    def panels(self) -> Array:
        """Panels into which k is cut."""
        return panels_of(self.kernels, self.device)

    @cached_property
    def sums(self) -> Array:
        """Results that further panels read and write again [B]."""
        return cpu_traffic.sums_of(self.kernels, self.panels)

    @cached_property
    def dram_bytes(self) -> Array:
        """Memory traffic of one launch [B]."""
        return cpu_traffic.memory_bytes(self.kernels, self.device, self.workers, self.sums)

    @cached_property
    def llc_bytes(self) -> Array:
        """Traffic of one launch through the last cache level [B]."""
        return cpu_traffic.last_level_bytes(self.kernels, self.device, self.workers, self.sums)

    @cached_property
    def refill_bytes(self) -> Array:
        """What register blocks read from the second level, or from beyond it, since the first one does not keep it [B]."""
        return cpu_traffic.refill_bytes(self.kernels, self.device, self.workers)

    @cached_property
    def bandwidth(self) -> Array:
        """Memory bandwidth of the cores at work [B/s]."""
        return cpu_traffic.memory_bandwidth(self.device, self.workers, self.kernels.runtime.local)

    @cached_property
    def work(self) -> dict[str, Array]:
        """What takes energy besides the traffic."""
        return cores.work_done(self.kernels, self.awake)


def compute_bound(t: CpuTerms) -> Array:
    """Time of the busiest core [s].

    clocks / f, [D, V]; clocks: `busiest_clocks` [clk], [D, V]; f: its clock [Hz], [D, V]

    >>> from types import SimpleNamespace as terms
    >>> float(compute_bound(terms(busiest_clk=4e6, speed=4e9)))
    0.001
    """
    return t.busiest_clk / t.speed


def memory_bound(t: CpuTerms) -> Array:
    """Memory traffic over the bandwidth of the cores at work [s].

    bytes / B, [D, V]; bytes: memory traffic [B]; B: `memory_bandwidth` [B/s]

    >>> from types import SimpleNamespace as terms
    >>> memory_bound(terms(dram_bytes=2e9, bandwidth=20e9))
    0.1
    """
    return t.dram_bytes / t.bandwidth


def refill_bound(t: CpuTerms) -> Array:
    """Time in which panels of products come from the second into the first cache level [s].

    bytes / (workers B f), [D, V]

    bytes: `refill_bytes` of all cores [B], [D, V]; B: bandwidth of one core from its second level [B/clk], [D, 1]; f [Hz], [D, V]

    >>> from types import SimpleNamespace as some
    >>> refill_bound(some(refill_bytes=3.2e6, device=some(l2=some(bandwidth=32.0)), workers=1.0, speed=4e9)).item()
    2.5e-05
    """
    return np.asarray(t.refill_bytes / (t.workers * t.device.l2.bandwidth * t.speed))


def cache_bound(t: CpuTerms) -> Array:
    """Traffic through the last cache level over its bandwidth [s].

    bytes / (workers B f), [D, V]; bytes: `last_level_bytes` [B], [D, V]; B: of one core from that level [B/clk], [D, 1]; f [Hz]

    >>> from types import SimpleNamespace as some
    >>> cpu = some(l2=some(bandwidth=25.0), l3=some(bandwidth=10.0))
    >>> float(cache_bound(some(device=cpu, llc_bytes=4e6, workers=4.0, speed=4e9)))
    2.5e-05
    """
    return t.llc_bytes / cpu_traffic.cache_bandwidth(t.device, t.workers, t.speed)


def link_bound(t: CpuTerms) -> Array:
    """Time of what one socket reads from caches or memory of another [s].

    `crossing`, [D, V]; 0 with one socket at work

    >>> import numpy as np
    >>> from types import SimpleNamespace as some
    >>> one = some(device=some(core=some(link=None)), kernels=some(), workers=np.ones(1), llc_bytes=np.ones(1))
    >>> link_bound(one).item()
    0.0
    """
    return cpu_traffic.crossing(t.kernels, t.device, t.workers, t.llc_bytes)


def team_overhead(t: CpuTerms) -> Array:
    """Forking and joining the threads of one parallel loop [s].

    `fork_join`, [D, V]; 0 for one thread

    >>> from types import SimpleNamespace as some
    >>> from archsim.device.catalog import find
    >>> from archsim.lower.columns import CpuRuntime
    >>> kernels = some(min_rows_per_thread=0.0, threaded=1.0, runtime=CpuRuntime())
    >>> cpu = find("i7_6700k").device
    >>> loop = some(kernels=kernels, device=cpu, workers=4.0, threads=4.0, panels=1.0,
    ...             constants={"cpu.wake_s": 1e-6, "cpu.rouse_clk": 5e3, "cpu.call_clk": 1e3})
    >>> round(team_overhead(loop).item() * 1e9)
    120
    """
    return team.fork_join(t.kernels, t.device, t.workers, t.threads, t.panels, t.constants)

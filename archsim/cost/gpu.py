"""Time of a kernel on a GPU: what its bounds are computed from, and one function for each bound."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from archsim.calibration.constants import Calibration
from archsim.cost import sm, traffic
from archsim.cost.cost import ASYNCHRONOUS, SMOOTH, Array
from archsim.cost.occupancy import issue_slots, resident_ctas, warps_per_cta
from archsim.device.device import Gpu
from archsim.lower.kernel import GpuKernels

WORD = 4.0  # bytes of a single-precision value


@dataclass(frozen=True, kw_only=True)
class GpuTerms:
    """Some kernels on a GPU at core clock `clock` [Hz], and the quantities on the way to their bounds, each [D, V] or [V].

    Every bound is a function of this record, and whatever it asks for is computed once. Without `waves` the CTAs spread
    evenly over the SMs.
    """

    kernels: GpuKernels
    device: Gpu
    precision: str
    clock: Array | float
    constants: Calibration
    waves: bool = True

    @cached_property
    def ctas(self) -> Array:
        """CTAs of one launch."""
        return traffic.ctas_of(self.kernels)

    @cached_property
    def resident(self) -> Array:
        """CTAs that share an SM."""
        return resident_ctas(self.kernels, self.device)

    @cached_property
    def depth(self) -> Array:
        """Inner steps of one CTA, padded to whole steps of its tile."""
        return traffic.depth(self.kernels)

    @cached_property
    def rate(self) -> Array:
        """Multiply-accumulates per clock and SM in the inner loop [FMA/clk]."""
        return sm.issue_rate(self.kernels, self.device, self.precision, self.constants)

    @cached_property
    def fill(self) -> Array:
        """CTAs that keep the pipes of an SM busy."""
        return np.asarray(
            self.constants["gemm.saturation"] * sm.packing(self.device, self.precision) / warps_per_cta(self.kernels)
        )

    @cached_property
    def waiting(self) -> Array:
        """Clocks in which a CTA starts and ends [clk]."""
        return sm.prologue(self.kernels, self.device, self.precision, self.depth, self.constants)

    @cached_property
    def beside(self) -> Array:
        """CTAs whose work fills them."""
        return sm.neighbours(self.kernels, self.device, self.ctas, self.resident)

    @cached_property
    def cta_work(self) -> Array:
        """Multiply-accumulates of one CTA, with all that keeps its SM from issuing them."""
        tile = sm.cta_work(self.kernels, self.depth, self.ctas, self.beside, self.rate, self.waiting, self.constants)
        return tile + sm.softmax_work(self.kernels, self.device, self.depth, self.rate)

    @cached_property
    def turns(self) -> Array:
        """Time of the busiest SM in units of one CTA at the full rate."""
        if not self.waves:
            return np.asarray(self.ctas / self.device.sm.count)
        return issue_slots(self.ctas, self.resident, self.device.sm.count, self.fill)

    @cached_property
    def in_slots(self) -> Array:
        """CTAs that the chip holds at once."""
        return np.asarray(self.device.sm.count * self.resident)

    @cached_property
    def dram_bytes(self) -> Array:
        """Memory traffic of one launch [B]."""
        reads, writes = traffic.memory_bytes(self.kernels, self.in_slots, self.device.l2.size)
        return reads + writes

    @cached_property
    def l2_bytes(self) -> Array:
        """Traffic of one launch through the L2 [B]."""
        return traffic.l2_bytes(self.kernels, self.ctas, self.depth)

    @cached_property
    def in_flight(self) -> Array:
        """Bytes that all resident CTAs wait for at once [B]."""
        return np.asarray(np.minimum(self.ctas, self.in_slots) * traffic.awaited_bytes(self.kernels, self.constants))

    @cached_property
    def smooth(self) -> Array:
        """Exponent of the smooth maximum of the bounds."""
        blocking = (self.kernels.matrix > 0) & ~sm.on_tensor(self.kernels, self.device, self.precision)
        return np.where(blocking, SMOOTH, ASYNCHRONOUS)

    @cached_property
    def work(self) -> dict[str, Array]:
        """What takes energy besides the traffic."""
        return sm.work_done(self.kernels, self.device, self.ctas)


def compute_bound(t: GpuTerms) -> Array:
    """Time of the busiest SM [s]: its CTAs, wave by wave, at the sustained rate.

    By Little's law `gemm.saturation` warps keep the pipes busy; `fill` CTAs hold as many, and one alone runs slower where
    that is more than one.
    """
    return np.asarray(t.cta_work * t.turns / (t.rate * t.clock))


def memory_bound(t: GpuTerms) -> Array:
    """Memory traffic over the bandwidth that a long copy reaches [s]."""
    return np.asarray(t.dram_bytes / (t.device.memory.bandwidth * t.device.memory.achievable))


def two_pass_bound(t: GpuTerms) -> Array | None:
    """Time of element-wise kernels that read their input twice, as normalisation does [s]; none without such a kernel.

    Such a family reaches a share of the achievable bandwidth with `WORD` to a load and the clock under sustained load. Between
    the passes it is limited by latency inside the SM, so a lower clock makes it slower, and narrower loads move fewer bytes
    per instruction.
    """
    family = sm.family_efficiency(t.kernels, t.constants)
    twice = (t.kernels.matrix == 0) & (family < 1.0)
    if not twice.any():
        return None
    loads = np.maximum(1.0, WORD / t.kernels.operand_b)
    return np.where(twice, memory_bound(t) / family * loads * (t.device.clock.sustained / t.clock), 0.0)


def cache_bound(t: GpuTerms) -> Array:
    """Traffic through the L2 over its achievable bandwidth [s]."""
    return np.asarray(t.l2_bytes / (t.device.l2.bandwidth * t.clock * t.constants["l2.efficiency"]))


def latency_bound(t: GpuTerms) -> Array:
    """Little's law: rounds of bytes in flight, each a memory latency [s]."""
    return np.asarray((t.dram_bytes / t.in_flight + 1.0) * t.device.memory.latency)


def launch_gap(t: GpuTerms) -> Array:
    """Gaps before the kernels of one launch [s]; and of a single image, between its product and the kernels that unfold it."""
    return np.asarray(t.device.launch.latency * t.kernels.chain + t.constants["conv.between_s"] * t.kernels.single)

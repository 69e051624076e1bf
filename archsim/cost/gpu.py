"""Time of a kernel on a GPU: what its bounds are computed from, and one function for each bound."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from archsim.calibration.constants import Calibration
from archsim.cost import retention, sm, traffic
from archsim.cost.cost import ASYNCHRONOUS, SMOOTH, Array, family_efficiency
from archsim.cost.occupancy import issue_slots, resident_ctas, warps_per_scheduler
from archsim.cost.retention import rows_fetched
from archsim.device.device import Gpu
from archsim.lower.kernel import GpuKernels


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class GpuTerms:
    """Some kernels on a GPU, and the quantities on the way to their bounds, each [D, V] or [V].

    Every bound is a function of this record, and whatever it asks for is computed once. Without `whole_waves` the CTAs spread
    evenly over the SMs.

    clock: core clock [Hz]
    """

    kernels: GpuKernels
    device: Gpu
    precision: str
    clock: Array | float
    constants: Calibration
    whole_waves: bool = True

    @cached_property
    def ctas(self) -> Array:
        """CTAs of one launch."""
        return traffic.ctas_of(self.kernels)

    @cached_property
    def resident(self) -> Array:
        """CTAs that share an SM."""
        return resident_ctas(self.kernels, self.device)

    @cached_property
    def together(self) -> Array:
        """CTAs that share the busiest SM: no more than there are."""
        return np.asarray(np.minimum(self.resident, np.ceil(self.ctas / self.device.sm.count)))

    @cached_property
    def depth(self) -> Array:
        """Inner steps of one CTA, padded to whole steps of its tile."""
        return traffic.inner_steps(self.kernels)

    @cached_property
    def rate(self) -> Array:
        """Multiply-accumulates per clock and SM in the inner loop [FMA/clk]."""
        return sm.issue_rate(self.kernels, self.device, self.precision, self.constants)

    @cached_property
    def fill(self) -> Array:
        """CTAs that keep the pipes of an SM busy."""
        return sm.saturating(self.kernels, self.device, self.precision, self.constants)

    @cached_property
    def share(self) -> Array:
        """Warps that one CTA gives to each scheduler of its SM."""
        return warps_per_scheduler(self.kernels, self.device)

    @cached_property
    def prologue_clk(self) -> Array:
        """Clocks in which a CTA starts and ends: address set-up, first load, last store [clk]."""
        return sm.prologue(self.kernels, self.device, self.precision, self.depth, self.ctas, self.constants)

    @cached_property
    def overlapping_ctas(self) -> Array:
        """CTAs whose work fills these clocks: few take as long as `fill` of them."""
        return sm.neighbours(self.kernels, self.device, self.ctas, np.maximum(self.together, self.fill))

    @cached_property
    def cold_start_clk(self) -> Array:
        """Clocks that the first CTAs of a launch wait for once [clk]."""
        return sm.first_wave(self.kernels, self.device, self.precision, self.constants)

    @cached_property
    def cta_work(self) -> Array:
        """Multiply-accumulates of one CTA, with all that keeps its SM from issuing them."""
        return sm.cta_work(self.kernels, self.device, self.depth, self.ctas, self.overlapping_ctas, self.rate, self.prologue_clk,
                           self.constants, self.together)  # fmt: skip

    @cached_property
    def waves(self) -> Array:
        """Time of the busiest SM in units of one CTA at the full rate, at least that of the longest CTA with an SM to itself."""
        if not self.whole_waves:
            return np.asarray(self.ctas / self.device.sm.count)
        waves = issue_slots(self.ctas, self.resident, self.device.sm.count, self.fill, self.share)
        if not np.any(self.kernels.longest > 1.0):
            return waves
        alone = issue_slots(np.ones_like(self.ctas), self.resident, self.device.sm.count, self.fill, self.share)
        masked = sm.tile_macs(self.kernels, self.depth) + sm.softmax_work(self.kernels, self.device, self.depth, self.rate)
        longest = 1.0 + (self.kernels.longest - 1.0) * masked / np.maximum(self.cta_work, masked)
        return np.asarray(np.maximum(waves, longest * alone))

    @cached_property
    def in_slots(self) -> Array:
        """CTAs that the chip holds at once."""
        return np.asarray(self.device.sm.count * self.resident)

    @cached_property
    def l2_hit_share(self) -> Array:
        """Share of a kernel's tensors that the L2 has from the round before."""
        touched = self.kernels.reread_bytes if self.device.l2.partitions is None else self.kernels.round_bytes
        return retention.resident_share(touched, self.device)

    @cached_property
    def write_back_avoided(self) -> Array:
        """Share of a kernel's results that the next call writes again before they leave the L2.

        Where an L2 has parts that keep copies, results are stored no faster than memory takes them, few or many (AIConfigurator
        tables of A100 and H100: 0.6 to 1.0 and 1.5 to 2.4 TB/s): they share what is left of the whole round.
        """
        whole = self.device.l2.partitions is None
        return retention.resident_share(self.kernels.call_bytes, self.device) if whole else self.l2_hit_share

    @cached_property
    def written(self) -> Array:
        """Bytes that one launch writes, to memory or over what the L2 has of the call before [B]."""
        return traffic.bytes_written(self.kernels, retention.shared_size(self.device))

    @cached_property
    def inputs_resident(self) -> Array:
        """Share of what is read in each run, and no op of it writes, that the L2 still has from the run before."""
        return retention.resident_share(self.kernels.run_bytes, self.device)

    @cached_property
    def visited(self) -> Array:
        """Bytes that one launch reads from memory or finds in the L2 from the round before [B]."""
        return traffic.bytes_read(self.kernels, self.in_slots, retention.shared_size(self.device), self.constants["l2.rows_stay"],
                                  self.inputs_resident, self.device.l2.size)  # fmt: skip

    @cached_property
    def reads(self) -> Array:
        """Bytes read from memory by one launch [B]."""
        return self.visited * (1.0 - self.l2_hit_share)

    @cached_property
    def dram_bytes(self) -> Array:
        """Memory traffic of one launch [B]."""
        return self.reads + self.written * (1.0 - self.write_back_avoided)

    @cached_property
    def found_bytes(self) -> Array:
        """What the L2 has from the round before, and serves in place of the memory [B]."""
        return np.asarray(self.visited * self.l2_hit_share + self.written * self.write_back_avoided)

    @cached_property
    def row_hits(self) -> Array | float:
        """What CTAs that read their rows several times find in the L2 [B]."""
        if not np.any(self.kernels.row_in_flight):
            return 0.0
        stay, shared = self.constants["l2.rows_stay"], retention.shared_size(self.device)
        fetched = rows_fetched(self.kernels, self.in_slots, self.device.l2.size, traffic.RESIDENT_SHARE * shared, stay)
        return np.where(self.kernels.row_in_flight > 0, self.kernels.b_bytes - fetched, 0.0)

    @cached_property
    def l2_bytes(self) -> Array:
        """Traffic of one launch through the L2 [B]."""
        return traffic.l2_bytes(self.kernels, self.ctas, self.depth)

    @cached_property
    def in_flight(self) -> Array:
        """Bytes that all resident CTAs wait for at once [B]."""
        return np.asarray(np.minimum(self.ctas, self.in_slots) * traffic.awaited_bytes(self.kernels))

    @cached_property
    def smooth(self) -> Array:
        """Exponent of the smooth maximum of the bounds."""
        blocking = (self.kernels.matrix > 0) & ~sm.on_tensor(self.kernels, self.device, self.precision)
        return np.where(blocking, SMOOTH, ASYNCHRONOUS)

    @cached_property
    def work(self) -> dict[str, Array]:
        """What takes energy besides the traffic."""
        return sm.work_done(self.kernels, self.device, self.ctas, self.depth, self.constants)


def compute_bound(t: GpuTerms) -> Array:
    """Time of the busiest SM: its CTAs, wave by wave, at the sustained rate [s].

    (work waves / rate + cold_start_clk) / f, [D, V]

    cold_start_clk: clocks that the first CTAs of the launch wait for once [clk], `first_wave`, [V]
    work: multiply-accumulates of one CTA, with all that it loses, `cta_work`, [D, V]; waves: `issue_slots`, [D, V]
    rate: multiply-accumulates per clock and SM [FMA/clk], [D, V]; f: core clock [Hz], a float, [D, 1] or [D, V]

    By Little's law some warps keep the pipes busy (`saturating`); `fill` CTAs hold as many, and one alone runs slower where
    that is more than one.

    >>> from types import SimpleNamespace as some
    >>> compute_bound(some(cta_work=5e6, waves=4.0, rate=100.0, cold_start_clk=10000.0, clock=1e9)).item()
    0.00021
    """
    return np.asarray((t.cta_work * t.waves / t.rate + t.cold_start_clk) / t.clock)


def memory_bound(t: GpuTerms) -> Array:
    """Memory traffic over the bandwidth that a kernel reaches [s].

    bytes / (B achievable family), [D, V]

    bytes: memory traffic [B], [D, V]; B: peak bandwidth [B/s], achievable: share of it that a long copy reaches [1], [D, 1]
    family: share of that which kernels of this family reach, 1 for products [1], [V]: who sums up a row waits between two visits

    >>> import numpy as np
    >>> from types import SimpleNamespace as some
    >>> of = some(gather=lambda names: np.array([0.5]))
    >>> kernel = some(constants=("norm",), efficiency=np.array([0]), matrix=np.zeros(1))
    >>> gpu = some(memory=some(bandwidth=320e9, achievable=0.75))
    >>> memory_bound(some(kernels=kernel, constants=of, device=gpu, dram_bytes=2.4e9)).item()
    0.02
    """
    family = np.where(t.kernels.matrix > 0, 1.0, family_efficiency(t.kernels, t.constants))
    return np.asarray(t.dram_bytes / (t.device.memory.bandwidth * t.device.memory.achievable * family))


def cache_bound(t: GpuTerms) -> Array:
    """Traffic through the L2 over the bandwidth that it reaches [s].

    bytes / (B f efficiency), [D, V]

    bytes: traffic through the L2 [B], [D, V]; B: bandwidth of the whole L2 [B/clk], [D, 1]; f: core clock [Hz]
    efficiency: share of it that mixed traffic reaches, `l2.efficiency` [1]

    >>> from types import SimpleNamespace as some
    >>> l2 = some(bandwidth=1000.0)
    >>> cache_bound(some(l2_bytes=9e6, device=some(l2=l2), clock=1e9, constants={"l2.efficiency": 0.9})).item()
    1e-05
    """
    return np.asarray(t.l2_bytes / (t.device.l2.bandwidth * t.clock * t.constants["l2.efficiency"]))


def latency_bound(t: GpuTerms) -> Array:
    """Little's law: rounds of bytes in flight, each a memory latency, or that of the L2 for what it has [s].

    max(rounds + alone + sums + row, updates), [D, V];  rounds = (bytes latency + (found + hits) L2 latency) / in_flight + latency
    (Little's law; Bailey 1996, eq. 1)

    bytes: memory traffic [B]; found: what the L2 has from the round before [B], both [D, V]
    in_flight: bytes that all resident CTAs wait for at once [B], [D, V]
    hits: what the L2 has of rows that CTAs read several times [B], [D, V]
    near: what waits for the L2, `found` and `hits` times the latency of a hit [clk] over the core clock
    latency: of an unloaded memory [s], [D, 1]
    rounds: time of all rounds [s]
    updates: atomic updates of one address, each `l2.update_clk` clocks after the one before [s], [V]
    row: what a warp takes for its part of a row while nothing else fills its waits, lane_slots c / f [s], [D, V]
    lane_slots: instructions of a lane for it [1], [V]; c: clocks from one of them to the next, `row.slot_clk` [clk]
    sums: what CTAs take that have a row each, besides these visits, `row_wait` [s], [D, V]

    Holds below saturation; above it the bandwidth is the bound.

    >>> from types import SimpleNamespace as some
    >>> gpu, kernels = some(memory=some(latency=400e-9), l2=some(latency=200.0)), some(row_count=0.0, updates=0.0, lane_slots=0.0)
    >>> terms = some(kernels=kernels, dram_bytes=1e6, found_bytes=0.0, row_hits=0.0, in_flight=1e5, device=gpu, clock=1e9,
    ...              constants={"l2.update_clk": 2.0, "row.slot_clk": 2.5})
    >>> round(latency_bound(terms).item() * 1e6, 6)
    4.4
    >>> kernels.lane_slots = 1600.0  # 32 values of a row, 50 instructions each, at 1 GHz
    >>> round(latency_bound(terms).item() * 1e6, 6)
    8.4
    >>> terms.row_hits = 5e5  # bytes at 200 ns each, 1e5 at a time: 1 us more
    >>> round(latency_bound(terms).item() * 1e6, 6)
    9.4
    """
    near = (t.found_bytes + t.row_hits) * (t.device.l2.latency / t.clock)
    rounds = (t.dram_bytes * t.device.memory.latency + near) / t.in_flight + t.device.memory.latency
    sums = row_wait(t)
    row = t.kernels.lane_slots * (t.constants["row.slot_clk"] / t.clock)
    updates = t.kernels.updates * (t.constants["l2.update_clk"] / t.clock)
    return np.asarray(np.maximum(rounds + sums + row, updates))


def row_wait(t: GpuTerms) -> Array:
    """Time that CTAs with a row each take besides its visits to memory: they start, add up, wait for each other [s].

    max(count / slots - 1, 0) c_row / f, [D, V]; 0 without such rows. The launch has the first CTAs'.

    count: rows of one launch, [V]; slots: CTAs that the chip holds at once, [D, V]; f: core clock [Hz]
    c_row: clocks of one CTA, `row.cta_clk` [clk]

    >>> import numpy as np
    >>> from types import SimpleNamespace as some
    >>> rows = some(kernels=some(row_count=np.array([1320.0])), in_slots=132.0, constants={"row.cta_clk": 600.0}, clock=1.5e9)
    >>> round(float(row_wait(rows)[0]) * 1e6, 6)
    3.6
    """
    if not np.any(t.kernels.row_count):
        return np.asarray(0.0)
    count = t.kernels.row_count
    return np.asarray(np.maximum(count / t.in_slots - 1.0, 0.0) * (t.constants["row.cta_clk"] / t.clock))


def launch_gap(t: GpuTerms) -> Array:
    """Gaps before the kernels of one launch [s].

    latency chain, [D, V]

    latency: gap between two dependent kernels of one CUDA stream [s], [D, 1]; chain: kernels of one launch [1], [V]

    >>> from types import SimpleNamespace as some
    >>> launch_gap(some(device=some(launch=some(latency=3e-6)), kernels=some(chain=2.0))).item()
    6e-06
    """
    return np.asarray(t.device.launch.latency * t.kernels.chain)

"""Time of a kernel on a CPU: bounds over columns of kernels and rows of devices, for a number of threads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from archsim.calibration.constants import Calibration
from archsim.cost.blocking import LANE_BITS, block_columns, block_rows, micro_tile, panel_depth
from archsim.cost.cost import Array
from archsim.cost.traffic import RESIDENT_SHARE
from archsim.device.device import Cpu
from archsim.lower.kernel import CpuKernels


@dataclass(frozen=True, kw_only=True)
class CpuTerms:
    """Some kernels on a CPU with `threads` threads, and the quantities on the way to their bounds, each [D, V].

    `clock` [Hz] is that of SIMD code on all cores. Every bound is a function of this record, and whatever it asks for is
    computed once.
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
        return active_cores(self.kernels, self.device, self.threads)

    @cached_property
    def awake(self) -> Array:
        """Cores that are not asleep: threads without work spin."""
        return awake_cores(self.kernels, self.device, self.workers, self.threads)

    @cached_property
    def core_clock(self) -> Array:
        """Clock of the cores at work [Hz]."""
        return active_clock(self.device, self.awake, self.clock)

    @cached_property
    def speed(self) -> Array:
        """The same, less what threads that spin on their hyper-threads take [Hz]."""
        return self.core_clock * undisturbed(self.kernels, self.device, self.workers, self.threads, self.constants)

    @cached_property
    def dram_bytes(self) -> Array:
        """Memory traffic of one launch [B]."""
        return memory_bytes(self.kernels, self.device, self.workers)

    @cached_property
    def cache_bytes(self) -> Array:
        """Traffic of one launch through the last cache level [B]."""
        return cache_bytes(self.kernels, self.device, self.workers)

    @cached_property
    def bandwidth(self) -> Array:
        """Memory bandwidth of the cores at work [B/s]."""
        return memory_bandwidth(self.device, self.workers, self.kernels.local, self.constants)

    @cached_property
    def work(self) -> dict[str, Array]:
        """What takes energy besides the traffic."""
        return work_done(self.kernels, self.awake)


def compute_bound(t: CpuTerms) -> Array:
    """Time of the busiest core [s]."""
    return busiest_clocks(t.kernels, t.device, t.precision, t.workers, t.threads, t.constants) / t.speed


def memory_bound(t: CpuTerms) -> Array:
    """Memory traffic over bandwidth [s]."""
    return t.dram_bytes / t.bandwidth


def refill_bound(t: CpuTerms) -> Array:
    """Time in which panels of products come from the second into the first cache level [s]."""
    return np.asarray(refills(t.kernels, t.device) / (t.workers * t.device.l2.bandwidth * t.speed))


def cache_bound(t: CpuTerms) -> Array:
    """Traffic through the last cache level over its bandwidth [s]."""
    return t.cache_bytes / cache_bandwidth(t.device, t.workers, t.speed)


def link_bound(t: CpuTerms) -> Array:
    """Time of what one socket reads from caches or memory of another [s]."""
    return crossing(t.kernels, t.device, t.workers, t.cache_bytes)


def team_overhead(t: CpuTerms) -> Array:
    """Waking and joining the threads of one parallel loop [s]."""
    return fork_join(t.kernels, t.device, t.workers, t.threads, t.constants)


def work_done(kernels: CpuKernels, awake: Array) -> dict[str, Array]:
    """Operations of one launch that take energy, [V], and the cores whose clocks run, [D, V], those that wait spinning too."""
    product = (kernels.matrix > 0) | (kernels.dense > 0)
    half = 0.5 * kernels.flop
    return {"macs": np.where(product, half, 0.0), "issues": np.where(product, 0.0, half), "units": awake}


def active_cores(kernels: CpuKernels, device: Cpu, threads: Array | float) -> Array:
    """Cores that work on each kernel, [D, V]: one where the framework's loop is serial or the library finds the product
    too narrow for so many threads; hyper-threads add no core."""
    cores = np.minimum(threads, device.core.count)
    pieces = np.where(kernels.parts > 0, kernels.parts, kernels.items)
    wide = (kernels.matrix == 0) | (np.minimum(kernels.m, kernels.n) >= kernels.grain * threads)
    return np.asarray(np.where((kernels.threaded > 0) & wide, np.minimum(cores, np.maximum(1.0, pieces)), 1.0))


def awake_cores(kernels: CpuKernels, device: Cpu, workers: Array, threads: Array | float) -> Array:
    """Cores that are not asleep while a kernel runs, [D, V]: those of the whole team where its idle threads wait spinning."""
    team = np.minimum(threads, device.core.count)
    return np.asarray(np.where(kernels.spin > 0, np.maximum(workers, team), workers))


def active_clock(device: Cpu, cores: Array | float, clock: Array | float) -> Array:
    """Clock [Hz] with `cores` cores awake: from the turbo of one in even steps down to `clock` with all of a socket."""
    idle = 1.0 - (cores - 1.0) / np.maximum(device.core.count / device.core.sockets - 1.0, 1.0)
    return np.asarray(clock + np.maximum(device.clock.boost - clock, 0.0) * np.clip(idle, 0.0, 1.0))


def undisturbed(
    kernels: CpuKernels, device: Cpu, workers: Array, threads: Array | float, constants: Calibration
) -> Array:  # fmt: skip
    """Share of its core that a thread gets: less where other threads of its team have no part of the work, and wait for the
    end spinning, on its hyper-thread."""
    beyond = (kernels.spin > 0) & (threads > device.core.count)
    return np.asarray(np.where(beyond & (unoccupied(kernels, device, workers) > 0), constants["cpu.sibling"], 1.0))


def unoccupied(kernels: CpuKernels, device: Cpu, workers: Array) -> Array:
    """Whether a kernel has no work for more threads than there are cores, [D, V]: a serial loop, or as few images."""
    return np.asarray((workers < device.core.count) | ((kernels.parts > 0) & (kernels.parts <= device.core.count)))


def register_blocks(kernels: CpuKernels, device: Cpu) -> Array:
    """Register blocks of the results of all products of one launch, those at the edges counted whole, [D, V]."""
    rows, columns = micro_tile(device)
    return np.asarray(np.ceil(kernels.m / rows) * np.ceil(kernels.n / columns) * kernels.count)


def busiest_clocks(
    kernels: CpuKernels, device: Cpu, precision: str, workers: Array, threads: Array | float, constants: Calibration
) -> Array:  # fmt: skip
    """Clocks of the busiest core for one launch, [D, V]; operands are copied into panels by all cores alike, or for each part."""
    share = busiest_share(kernels, device, workers, threads)
    copied = constants["cpu.pack_clk"] * kernels.packed * np.where(kernels.parts > 0, share, 1.0 / workers)
    return np.asarray(core_clocks(kernels, device, precision, constants) * share + copied)


def core_clocks(kernels: CpuKernels, device: Cpu, precision: str, constants: Calibration) -> Array:
    """Clocks of the arithmetic of one launch, summed over cores, [D, V].

    A product issues whole register blocks, and k grows by the ramp of one block. A stream runs the framework's loop, or, where
    nothing is known of it, arithmetic that is vectorised or barely so.
    """
    rows, columns = micro_tile(device)
    family = constants.gather(kernels.constants)[kernels.efficiency]
    pipe = np.minimum(device.pipe(precision), kernels.pipe)
    macs = register_blocks(kernels, device) * rows * columns * (kernels.k + constants["cpu.ramp"]) * kernels.work
    product = macs / (pipe * family) + kernels.clocks
    loop = np.where(kernels.vector > 0, constants["cpu.vector_flop"], constants["cpu.pointwise_flop"])
    per_clock = np.where(kernels.dense > 0, 2.0 * pipe * family, loop)
    streamed = np.maximum(kernels.clocks, kernels.flop / per_clock)
    return np.asarray(np.where(kernels.matrix > 0, product, streamed))


def busiest_share(kernels: CpuKernels, device: Cpu, workers: Array, threads: Array | float) -> Array:
    """Share of a kernel that its busiest core gets: whole register blocks of a product, whole parts, else an even cut.

    A library with a grain (OpenBLAS) cuts one side of a product into as many strips as there are threads, whatever the
    cores, and computes each in whole SIMD registers.
    """
    pieces = np.where(kernels.matrix > 0, register_blocks(kernels, device), 0.0)
    pieces = np.where(kernels.parts > 0, kernels.parts, pieces)
    even = np.where(pieces > 0, np.ceil(pieces / workers) / np.maximum(pieces, 1.0), 1.0 / workers)
    lanes = device.core.simd / LANE_BITS
    strip = np.ceil(np.ceil(kernels.n / threads) / lanes) * lanes * np.maximum(threads / device.core.count, 1.0)
    cut = (kernels.grain > 0) & (workers > 1)
    return np.asarray(np.where(cut, np.minimum(strip / kernels.n, 1.0), even))


def last_level(device: Cpu) -> Array | float:
    """Capacity of the last cache level over all its instances [B]."""
    level = device.l2 if device.l3 is None else device.l3
    return level.size * np.maximum(1.0, device.core.count / level.shared_by)


def sums_bytes(kernels: CpuKernels, device: Cpu) -> Array:
    """Bytes of results that further panels of a packed product read and write again [B]."""
    return np.asarray(2.0 * kernels.c_bytes * (panels(kernels, device) - 1.0))


def memory_bytes(kernels: CpuKernels, device: Cpu, workers: Array) -> Array:
    """Bytes from memory for one launch [B], [D, V].

    A written line is read first (read for ownership). What fits in half the last-level cache of the sockets in use
    is still there from the op before; parameters are not. A packed product deeper than one panel reads and writes its results
    once more for each further panel.
    """
    cache = last_level(device) * sockets_used(device, workers) / device.core.sockets
    kept = kernels.b_bytes + kernels.c_bytes <= RESIDENT_SHARE * cache
    fresh = kernels.b_bytes + 2.0 * kernels.c_bytes
    return np.asarray(kernels.a_bytes + np.where(kept, 0.0, fresh + sums_bytes(kernels, device)))


def cache_bytes(kernels: CpuKernels, device: Cpu, workers: Array) -> Array:
    """Bytes through the last cache level for one launch [B], [D, V]: what comes from memory if nothing is kept, and more.

    Where a library cuts one side of a product into strips (`grain`), every core reads the whole of the other operand, which the
    cores have packed together.
    """
    fresh = kernels.b_bytes + 2.0 * kernels.c_bytes
    whole = kernels.operand_a * kernels.m * kernels.k * kernels.count
    again = np.where((kernels.matrix > 0) & (kernels.grain > 0), (workers - 1.0) * whole, 0.0)
    return np.asarray(kernels.a_bytes + fresh + sums_bytes(kernels, device) + again + repeats(kernels, device))


def panels(kernels: CpuKernels, device: Cpu) -> Array:
    """Panels into which a library of BLAS cuts the inner dimension of a product, [D, V]; 1 for loops over blocked layouts,
    which finish one block of results before the next, and for streams."""
    element = np.maximum(kernels.operand_a, 1.0)
    return np.asarray(np.where(kernels.packed > 0, np.ceil(kernels.k / panel_depth(device, element)), 1.0))


def repeats(kernels: CpuKernels, device: Cpu) -> Array:
    """Bytes that packed products read from the last cache level a second time and more, [D, V]: B for each further block of
    rows that stays in a core's second level, A for each further block of columns that stays in the last (Goto 2008)."""
    element = np.maximum(kernels.operand_a, 1.0)
    columns = (np.ceil(kernels.m / block_rows(device, element)) - 1.0) * kernels.n
    rows = np.maximum(np.ceil(kernels.n / block_columns(device, element)) - 1.0, 0.0) * kernels.m
    return np.asarray(np.where(kernels.packed > 0, (rows + columns) * kernels.k * kernels.count * element, 0.0))


def refills(kernels: CpuKernels, device: Cpu) -> Array:
    """Bytes from the second into the first cache level for the products of one launch, [D, V].

    The panel of B stays in the first level while those of A pass, once for each column of register blocks (Low et al. 2016).
    """
    rows, _ = micro_tile(device)
    passing = register_blocks(kernels, device) * rows * kernels.k * kernels.operand_a
    return np.asarray(np.where(kernels.matrix > 0, passing, 0.0))


def memory_bandwidth(device: Cpu, workers: Array, local: Array | float, constants: Calibration) -> Array:
    """Memory bandwidth that `workers` cores draw together [B/s].

    One core has `miss_buffers` lines in flight (Little's law), `cpu.prefetch` times as many with those that the L2
    prefetcher asks for; together the cores of a socket reach the achievable share of its peak. Cores fill one socket before
    the next, whose memory adds its bandwidth where it holds its share of the pages (`local` = 1): pages lie with the thread that
    first touched them.
    """
    one = constants["cpu.prefetch"] * device.core.miss_buffers * device.l1.line / device.memory.latency
    socket = device.memory.bandwidth * device.memory.achievable / device.core.sockets
    return np.asarray(np.minimum(workers * one, socket * (1.0 + (sockets_used(device, workers) - 1.0) * local)))


def sockets_used(device: Cpu, workers: Array | float) -> Array:
    """Sockets that `workers` cores fill, one after the other."""
    return np.asarray(np.maximum(np.ceil(workers * device.core.sockets / device.core.count), 1.0))


def crossing(kernels: CpuKernels, device: Cpu, workers: Array, cached: Array) -> Array:
    """Time of what one socket reads from caches or memory of another [s]: of S sockets in use, all but one in S bytes.

    It crosses in both directions where the pages lie on every socket, in one where they lie on the first.
    """
    if device.core.link is None:
        return np.zeros_like(cached * workers)
    used = sockets_used(device, workers)
    return np.asarray(cached * (used - 1.0) / used / (device.core.link * (1.0 + kernels.local)))


def cache_bandwidth(device: Cpu, workers: Array, clock: Array | float) -> Array:
    """Bandwidth of the last cache level to `workers` cores [B/s]."""
    level = device.l2 if device.l3 is None else device.l3
    return np.asarray(workers * level.bandwidth * clock)


def fork_join(
    kernels: CpuKernels, device: Cpu, workers: Array, threads: Array | float, constants: Calibration
) -> Array:  # fmt: skip
    """Waking and joining the threads of one parallel loop [s]: a tree of `log2(workers)` steps.

    A library with a grain (OpenBLAS) wakes its threads one after the other, all that there are; they wait for each other
    again before each panel, which every core packs a part of.
    """
    tree = constants["cpu.barrier_s"] * np.log2(np.maximum(workers, 1.0))
    queue = constants["cpu.wake_s"] * (threads - 1.0)
    return np.asarray(np.where((kernels.grain > 0) & (workers > 1), tree * (1.0 + panels(kernels, device)) + queue, tree))

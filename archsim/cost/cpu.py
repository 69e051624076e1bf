"""Time of a kernel on a CPU: bounds over columns of kernels and rows of devices, for a number of threads."""

from __future__ import annotations

import numpy as np

from archsim.cost.constants import Calibration
from archsim.cost.cost import Array, Cost, smooth_maximum
from archsim.cost.traffic import RESIDENT_SHARE
from archsim.device.device import Cpu
from archsim.lower.kernel import Kernels

LANE_BITS = 32


def cpu_cost(
    kernels: Kernels, device: Cpu, precision: str, clock: Array | float, threads: Array | float, constants: Calibration,
    without: frozenset[str] = frozenset(),
) -> Cost:  # fmt: skip
    """All bounds of every kernel on every device with `threads` threads at SIMD clock `clock` [Hz].

    `without` names parts to leave out: l2, launch.
    """
    workers = active_cores(kernels, device, threads)
    moved, cached = traffic(kernels, device)
    bandwidth = memory_bandwidth(device, workers, constants)
    bounds = {
        "compute": compute_bound(kernels, device, precision, clock, workers, constants),
        "dram": moved / bandwidth,
        "l2": cached / cache_bandwidth(device, workers, clock),
    }
    bounds = {name: bound for name, bound in bounds.items() if name not in without}
    overhead = fork_join(workers, constants) * np.ones_like(moved) * ("launch" not in without)
    return Cost(bounds=bounds, busy_s=smooth_maximum(bounds), overhead_s=overhead, dram_bytes=moved, cache_bytes=cached,
                terms={"workers": workers, "bandwidth": bandwidth})  # fmt: skip


def active_cores(kernels: Kernels, device: Cpu, threads: Array | float) -> Array:
    """Cores that work on each kernel, [D, V]: one where the framework's loop is serial; hyper-threads add no core."""
    cores = np.minimum(threads, device.core.count)
    return np.asarray(np.where(kernels.threaded > 0, np.minimum(cores, np.maximum(1.0, kernels.items)), 1.0))


def micro_tile(device: Cpu) -> tuple[Array, Array]:
    """Rows and columns of the register block of a product.

    The block keeps latency x ports x lanes results in flight (Low et al. 2016, Analytical Modeling Is Enough for
    High-Performance BLIS, equation 1); its columns are two SIMD registers wide.
    """
    lanes = device.core.simd / LANE_BITS
    columns = 2.0 * lanes
    rows = np.ceil(device.core.fma_latency * device.core.fma_ports * lanes / columns)
    return np.asarray(rows, dtype=float), np.asarray(columns, dtype=float)


def compute_bound(
    kernels: Kernels, device: Cpu, precision: str, clock: Array | float, workers: Array, constants: Calibration
) -> Array:
    """Arithmetic [s]. Products issue whole register blocks, k grows by the ramp of one block; streams are barely SIMD."""
    rows, columns = micro_tile(device)
    family = constants.gather(kernels.constants)[kernels.efficiency]
    padded = np.ceil(kernels.m / rows) * rows * np.ceil(kernels.n / columns) * columns
    macs = padded * (kernels.k + constants["cpu.ramp"]) * kernels.count * kernels.work
    product = macs / (device.pipe(precision) * family)
    # A stream's arithmetic is unvectorised or calls a transcendental: some FLOP per clock and core.
    per_clock = np.where(kernels.dense > 0, 2.0 * device.pipe(precision), constants["cpu.pointwise_flop"])
    streamed = kernels.flop / (per_clock * family)
    return np.asarray(np.where(kernels.matrix > 0, product, streamed) / (workers * clock))


def last_level(device: Cpu) -> Array | float:
    """Capacity of the last cache level over all its instances [B]."""
    level = device.l2 if device.l3 is None else device.l3
    return level.size * np.maximum(1.0, device.core.count / level.shared_by)


def traffic(kernels: Kernels, device: Cpu) -> tuple[Array, Array]:
    """Bytes from memory and through the shared cache for one launch, [D, V].

    A written line is read first (read for ownership). What fits in half the last-level cache together is still there
    from the op before; parameters are not.
    """
    fresh = kernels.b_bytes + 2.0 * kernels.c_bytes
    kept = kernels.b_bytes + kernels.c_bytes <= RESIDENT_SHARE * np.asarray(last_level(device))
    moved = kernels.a_bytes + np.where(kept, 0.0, fresh)
    return np.asarray(moved), np.asarray(kernels.a_bytes + fresh + 0 * moved)


def memory_bandwidth(device: Cpu, workers: Array, constants: Calibration) -> Array:
    """Memory bandwidth that `workers` cores draw together [B/s].

    One core has `miss_buffers` lines in flight (Little's law), `cpu.prefetch` times as many with those that the L2
    prefetcher asks for; together the cores reach the achievable share of the peak.
    """
    one = constants["cpu.prefetch"] * device.core.miss_buffers * device.l1.line / device.memory.latency
    return np.asarray(np.minimum(workers * one, device.memory.bandwidth * device.memory.achievable))


def cache_bandwidth(device: Cpu, workers: Array, clock: Array | float) -> Array:
    """Bandwidth of the last cache level to `workers` cores [B/s]."""
    level = device.l2 if device.l3 is None else device.l3
    return np.asarray(workers * level.bandwidth * clock)


def fork_join(workers: Array, constants: Calibration) -> Array:
    """Waking and joining the threads of one parallel loop: a tree of `log2(workers)` steps [s]."""
    return np.asarray(constants["cpu.barrier_s"] * np.log2(np.maximum(workers, 1.0)))

"""Time of a kernel on a GPU: six bounds, one function each, over columns of kernels and rows of devices."""

from __future__ import annotations

import numpy as np

from archsim.cost import traffic
from archsim.cost.constants import Calibration
from archsim.cost.cost import Array, Cost, smooth_maximum
from archsim.cost.occupancy import issue_slots, resident_ctas, warps_per_cta
from archsim.device.device import Gpu
from archsim.lower.kernel import Kernels


def gpu_cost(
    kernels: Kernels, device: Gpu, precision: str, clock: Array | float, constants: Calibration,
    without: frozenset[str] = frozenset(),
) -> Cost:  # fmt: skip
    """All bounds of every variant on every device at core clock `clock` [Hz].

    `without` names parts to leave out, to see what each is worth: waves, l2, latency, launch.
    """
    resident = resident_ctas(kernels, device)
    _, _, ctas = traffic.grid(kernels)
    depth_k = traffic.depth(kernels)
    slots = device.sm.count * resident
    reads, writes = traffic.memory_bytes(kernels, slots, device.l2.size)
    moved = reads + writes
    stored = kernels.c_bytes + 2.0 * traffic.partial_bytes(kernels)
    tiled = ctas * traffic.loaded_bytes(kernels, depth_k) + np.maximum(stored, kernels.cache_bytes)
    streamed = np.maximum(kernels.a_bytes + kernels.b_bytes + kernels.c_bytes, kernels.cache_bytes)
    cached = np.where(kernels.matrix > 0, tiled, streamed)
    rate = issue_rate(kernels, device, precision, constants)
    work = cta_work(kernels, depth_k, ctas, resident, rate, constants)
    bounds = {
        "compute": compute_bound(kernels, device, work, rate, ctas, resident, clock, constants, "waves" not in without),
        "dram": memory_bound(moved, device),
        "l2": cache_bound(cached, device, clock, constants),
        "latency": latency_bound(kernels, device, moved, ctas, slots, constants),
    }
    bounds = {name: bound for name, bound in bounds.items() if name not in without}
    latency = 0.0 if "launch" in without else device.launch.latency
    overhead = np.asarray(latency + np.zeros_like(moved))
    return Cost(bounds=bounds, busy_s=smooth_maximum(bounds), overhead_s=overhead, dram_bytes=moved, cache_bytes=cached)


def cta_work(
    kernels: Kernels, depth_k: Array, ctas: Array, resident: Array, rate: Array, constants: Calibration
) -> Array:
    """Multiply-accumulates that one CTA keeps an SM from issuing, [D, V].

    A product's tile, and `gemm.prologue_clk` clocks of address set-up, first load and last store; the CTAs that share the
    SM fill them with work of their own, so that a share of 1/resident remains. Long rows are spread over many pages, each
    of which costs `gemm.page_clk` clocks of address translation whenever a step comes back to it.
    """
    tiled = kernels.tile_m * kernels.tile_n * kernels.work * depth_k
    pages = traffic.pages(kernels, depth_k)
    waiting = (constants["gemm.prologue_clk"] / resident + constants["gemm.page_clk"] * pages) * rate
    return np.where(kernels.matrix > 0, tiled + waiting, 0.5 * kernels.flop / ctas)


def issue_rate(kernels: Kernels, device: Gpu, precision: str, constants: Calibration) -> Array:
    """Multiply-accumulates per clock that an SM sustains in the inner loop, [D, V].

    The pipe's rate x the share of issue slots that this micro-architecture can use x the efficiency of the kernel family
    / (1 + kappa 2 / side): a thread that holds side x side results loads 2 side values from shared memory for side^2
    multiply-accumulates (Volkov & Demmel 2008, section 4).
    """
    family = constants.gather(kernels.constants)[kernels.efficiency]
    side = np.sqrt(kernels.tile_m * kernels.tile_n * kernels.work / kernels.threads)
    reuse = 1.0 + kernels.matrix * constants["gemm.kappa"] * 2.0 / side
    issue = constants[f"issue.{device.identity.architecture}"]
    return np.asarray(device.pipe(precision) * issue * family / reuse)


def compute_bound(
    kernels: Kernels, device: Gpu, work: Array, rate: Array, ctas: Array, resident: Array, clock: Array | float,
    constants: Calibration, waves: bool = True,
) -> Array:  # fmt: skip
    """Time of the busiest SM [s]: its CTAs, wave by wave, at the sustained rate.

    By Little's law `gemm.saturation` warps keep the pipes busy; a CTA with fewer runs slower alone. Without `waves` the
    CTAs spread evenly.
    """
    if not waves:
        return np.asarray(work * ctas / device.sm.count / (rate * clock))
    fill = constants["gemm.saturation"] / warps_per_cta(kernels)
    return np.asarray(work * issue_slots(ctas, resident, device.sm.count, fill) / (rate * clock))


def memory_bound(moved: Array, device: Gpu) -> Array:
    """Bytes over the achievable memory bandwidth [s]."""
    return np.asarray(moved / (device.memory.bandwidth * device.memory.achievable))


def cache_bound(cached: Array, device: Gpu, clock: Array | float, constants: Calibration) -> Array:
    """Bytes over the achievable L2 bandwidth [s]."""
    return np.asarray(cached / (device.l2.bandwidth * clock * constants["l2.efficiency"]))


def latency_bound(
    kernels: Kernels, device: Gpu, moved: Array, ctas: Array, slots: Array, constants: Calibration
) -> Array:
    """Little's law: bytes moved / (bytes in flight / memory latency) [s].

    A thread of a stream keeps `stream.loads` values in flight, a CTA of a product the next two steps of its tile. Narrow
    values therefore put fewer bytes in flight.
    """
    step = (kernels.tile_m * kernels.operand_a + kernels.tile_n * kernels.operand_b) * kernels.tile_k * constants["gemm.stages"]
    per_cta = np.where(kernels.matrix > 0, step, kernels.threads * constants["stream.loads"] * kernels.operand_b)
    in_flight = np.minimum(ctas, slots) * per_cta
    return np.asarray((moved / in_flight + 1.0) * device.memory.latency)

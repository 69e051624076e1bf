"""Time of a kernel on a GPU: its bounds, one function each, over columns of kernels and rows of devices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from archsim.calibration.constants import Calibration
from archsim.cost import traffic
from archsim.cost.cost import ASYNCHRONOUS, SMOOTH, Array, Cost, smooth_maximum
from archsim.cost.occupancy import issue_slots, resident_ctas, runnable, warps_per_cta
from archsim.device.device import Gpu
from archsim.lower.kernel import Kernels

STAGES = 4.0  # of the pipeline of a kernel for tensor cores; CUTLASS has 3 to 5. A choice, not a fit.
WORD = 4.0  # bytes of a single-precision value
SOFTMAX_ISSUES = 4.0  # fp32 instructions per score of a softmax that keeps a running maximum and sum


def gpu_cost(
    kernels: Kernels, device: Gpu, precision: str, clock: Array | float, constants: Calibration,
    without: frozenset[str] = frozenset(),
) -> Cost:  # fmt: skip
    """All bounds of every variant on every device at core clock `clock` [Hz].

    `without` names parts to leave out, to see what each is worth: waves, l2, latency, launch.
    """
    resident = resident_ctas(kernels, device)
    fill = constants["gemm.saturation"] * packing(device, precision) / warps_per_cta(kernels)
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
    waiting = prologue(kernels, device, precision, depth_k, constants)
    beside = neighbours(kernels, device, ctas, resident)
    work = cta_work(kernels, depth_k, ctas, beside, rate, waiting, constants) + softmax_work(kernels, device, depth_k, rate)
    bounds = {
        "compute": compute_bound(work, rate, ctas, resident, fill, device, clock, "waves" not in without),
        "dram": memory_bound(moved, device),
        "l2": cache_bound(cached, device, clock, constants),
        "latency": latency_bound(kernels, device, moved, ctas, slots, constants),
        **walk_bound(kernels, moved, device, clock, constants),
    }
    bounds = {name: bound for name, bound in bounds.items() if name not in without}
    latency = 0.0 if "launch" in without else device.launch.latency
    between = 0.0 if "launch" in without else constants["conv.between_s"] * kernels.single
    overhead = np.asarray(latency * kernels.chain + between + np.zeros_like(moved))
    smooth = np.where((kernels.matrix > 0) & ~on_tensor(kernels, device, precision), SMOOTH, ASYNCHRONOUS)
    terms = {"resident": resident, "ctas": ctas, "depth": depth_k, "rate": rate, "cta_work": work, "fill": fill,
             "stored": stored, "smooth": smooth}  # fmt: skip
    busy = np.where(runnable(kernels, device), smooth_maximum(bounds, smooth), np.inf)
    return Cost(bounds=bounds, busy_s=busy, overhead_s=overhead, dram_bytes=moved, cache_bytes=cached, terms=terms,
                work=work_done(kernels, device, ctas), clock=clock)  # fmt: skip


def on_tensor(kernels: Kernels, device: Gpu, precision: str) -> NDArray[np.bool_]:
    """Whether tensor cores multiply, [V]: where the device has some for this precision and the kernel uses them."""
    return np.asarray((kernels.plain == 0) & device.has_tensor(precision))


def work_done(kernels: Kernels, device: Gpu, ctas: Array) -> dict[str, Array]:
    """Operations of one launch that take energy, [V], and the mean number of SMs at work, [D, V]: CTAs over whole rounds.

    A softmax issues an exponential and `SOFTMAX_ISSUES` instructions for each score; a plain product is fp32 instructions.
    """
    product = ((kernels.matrix > 0) | (kernels.dense > 0)) & (kernels.plain == 0)
    half = 0.5 * kernels.flop
    scores = kernels.m * kernels.k * kernels.count * kernels.exps
    issues = np.where(product, scores * (SOFTMAX_ISSUES + 1.0), np.maximum(half, kernels.slots))
    units = ctas / np.ceil(ctas / device.sm.count)
    return {"macs": np.where(product, half, 0.0), "issues": issues, "units": units}


def neighbours(kernels: Kernels, device: Gpu, ctas: Array, resident: Array) -> Array:
    """CTAs whose work fills the prologue of one of them, [D, V]: all that an SM holds.

    An attention kernel with one query to a CTA is written for many heads; with fewer CTAs than SMs each has its SM alone.
    """
    alone = (kernels.exps > 0) & (kernels.tile_m == 1)
    return np.where(alone, np.minimum(resident, np.ceil(ctas / device.sm.count)), resident)


def cta_work(
    kernels: Kernels, depth_k: Array, ctas: Array, beside: Array, rate: Array, waiting: Array, constants: Calibration
) -> Array:
    """Multiply-accumulates that one CTA keeps an SM from issuing, [D, V].

    A stream's arithmetic, or its issue slots where they are more. A product's tile, and `waiting` clocks of its prologue;
    the CTAs that share the SM fill them with work of their own, so that a share of 1/`beside` remains. Long rows are spread
    over many pages, each of which costs `gemm.page_clk` clocks of address translation whenever a step comes back to it.
    """
    tiled = kernels.tile_m * kernels.tile_n * kernels.work * depth_k
    lost = waiting / beside + constants["gemm.page_clk"] * traffic.pages(kernels, depth_k)
    return np.where(kernels.matrix > 0, tiled + lost * rate, np.maximum(0.5 * kernels.flop, kernels.slots) / ctas)


def prologue(kernels: Kernels, device: Gpu, precision: str, depth_k: Array, constants: Calibration) -> Array:
    """Clocks of a CTA for address set-up, first load and last store, [V].

    Products on tensor cores have a constant of their own: asynchronous copies fill their pipelines of `STAGES`, one of which
    is the result, as far as there are steps; and they come from other libraries. So has a product before and one after a
    softmax, whose pipelines fill one after the other.
    """
    filled = np.minimum(1.0, (depth_k / kernels.tile_k + 1.0) / STAGES)
    tensor, plain = constants["gemm.tensor_prologue_clk"] * filled, constants["gemm.prologue_clk"]
    product = np.where(on_tensor(kernels, device, precision), tensor, plain)
    return np.asarray(np.where(kernels.exps > 0, constants["attention.prologue_clk"], product))


def softmax_work(kernels: Kernels, device: Gpu, depth_k: Array, rate: Array) -> Array:
    """What the softmax between two products keeps an SM from multiplying, in multiply-accumulates of a CTA, [D, V].

    One exponential per score on the special-function units, and `SOFTMAX_ISSUES` instructions on the fp32 pipe: scale and
    subtract, compare, add, convert (Dao 2023, section 3.1). They come after the products, or beside those of another group
    of warps: then the smooth maximum of the two remains (Shah et al. 2024, FlashAttention-3, section 3.1).
    """
    if not kernels.exps.any():
        return np.zeros_like(rate)
    scores = kernels.tile_m * depth_k * kernels.exps
    softmax = scores * (1.0 / device.rate.special + SOFTMAX_ISSUES / device.rate.fp32) * rate
    products = kernels.tile_m * kernels.tile_n * kernels.work * depth_k
    return np.asarray(np.where(kernels.overlapped > 0, np.hypot(products, softmax) - products, softmax))


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
    # Streams compute in fp32, whatever they store, and so do plain products.
    product = ((kernels.matrix > 0) | (kernels.dense > 0)) & (kernels.plain == 0)
    pipe = np.where(product, device.pipe(precision), device.pipe("fp32"))
    return np.asarray(pipe * issue * family / reuse)


def packing(device: Gpu, precision: str) -> Array | float:
    """Results that one instruction makes: two halves where these are multiplied in pairs, outside tensor cores.

    A thread then has half as many instructions for the same results, and it takes twice the warps to hide their latency.
    """
    if precision not in ("fp16", "half") or device.rate.fp16 is None or device.has_tensor("fp16"):
        return 1.0
    return np.maximum(1.0, device.rate.fp16 / device.rate.fp32)


def compute_bound(
    work: Array, rate: Array, ctas: Array, resident: Array, fill: Array, device: Gpu, clock: Array | float, waves: bool = True
) -> Array:
    """Time of the busiest SM [s]: its CTAs, wave by wave, at the sustained rate.

    By Little's law `gemm.saturation` warps keep the pipes busy; `fill` CTAs hold as many, and one alone runs slower where
    that is more than one. Without `waves` the CTAs spread evenly.
    """
    if not waves:
        return np.asarray(work * ctas / device.sm.count / (rate * clock))
    return np.asarray(work * issue_slots(ctas, resident, device.sm.count, fill) / (rate * clock))


def memory_bound(moved: Array, device: Gpu) -> Array:
    """Bytes over the achievable memory bandwidth [s]."""
    return np.asarray(moved / (device.memory.bandwidth * device.memory.achievable))


def walk_bound(
    kernels: Kernels, moved: Array, device: Gpu, clock: Array | float, constants: Calibration
) -> dict[str, Array]:  # fmt: skip
    """Time of streams that come back to their values and wait for each other [s], by its name; none without such a family.

    Such a family reaches a share of the achievable bandwidth with `WORD` to a load and the clock under sustained load. What it
    waits for is in the SMs, so a lower clock makes it slower, and loads of less move less.
    """
    family = constants.gather(kernels.constants)[kernels.efficiency]
    walks = (kernels.matrix == 0) & (family < 1.0)
    if not walks.any():
        return {}
    loads = np.maximum(1.0, WORD / kernels.operand_b)
    return {"walk": np.where(walks, memory_bound(moved, device) / family * loads * (device.clock.sustained / clock), 0.0)}


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

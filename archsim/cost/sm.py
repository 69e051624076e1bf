"""What one SM does with the CTAs of a kernel: its issue rate, what starts and ends a CTA, a softmax between two products."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from archsim.calibration.constants import Calibration
from archsim.cost import traffic
from archsim.cost.cost import Array
from archsim.device.device import Gpu
from archsim.lower.kernel import GpuKernels

STAGES = 4.0  # of the pipeline of a kernel for tensor cores; CUTLASS has 3 to 5. A choice, not a fit.
SOFTMAX_ISSUES = 4.0  # fp32 instructions per score of a softmax that keeps a running maximum and sum


def family_efficiency(kernels: GpuKernels, constants: Calibration) -> Array:
    """Efficiency of the kernel's family, the constant that lowering has named for it, [V]."""
    return constants.gather(kernels.constants)[kernels.efficiency]


def is_product(kernels: GpuKernels) -> NDArray[np.bool_]:
    """Whether a kernel multiplies at the rate of its operands' format, [V]; element-wise kernels compute in fp32."""
    return np.asarray(((kernels.matrix > 0) | (kernels.dense > 0)) & (kernels.plain == 0))


def on_tensor(kernels: GpuKernels, device: Gpu, precision: str) -> NDArray[np.bool_]:
    """Whether tensor cores multiply, [V]: where the device has some for this precision and the kernel uses them."""
    return np.asarray((kernels.plain == 0) & device.has_tensor(precision))


def issue_rate(kernels: GpuKernels, device: Gpu, precision: str, constants: Calibration) -> Array:
    """Multiply-accumulates per clock that an SM sustains in the inner loop [FMA/clk].

    The pipe's rate x the share of issue slots that this micro-architecture can use x the efficiency of the kernel family
    / (1 + kappa 2 / side): a thread that holds side x side results loads 2 side values from shared memory for side^2
    multiply-accumulates (Volkov & Demmel 2008, section 4).
    """
    family = family_efficiency(kernels, constants)
    side = np.sqrt(kernels.tile_m * kernels.tile_n * kernels.work / kernels.threads)
    reuse = np.where(kernels.matrix > 0, 1.0 + constants["gemm.kappa"] * 2.0 / side, 1.0)
    issue = constants[f"issue.{device.identity.architecture}"]
    pipe = np.where(is_product(kernels), device.pipe(precision), device.pipe("fp32"))
    return np.asarray(pipe * issue * family / reuse)


def packing(device: Gpu, precision: str) -> Array | float:
    """Results that one instruction makes: two halves where these are multiplied in pairs, outside tensor cores.

    A thread then has half as many instructions for the same results, and it takes twice the warps to hide their latency.
    """
    if precision not in ("fp16", "half") or device.rate.fp16 is None or device.has_tensor("fp16"):
        return 1.0
    return np.maximum(1.0, device.rate.fp16 / device.rate.fp32)


def neighbours(kernels: GpuKernels, device: Gpu, ctas: Array, resident: Array) -> Array:
    """CTAs whose work fills the prologue of one of them, [D, V]: all that an SM holds.

    An attention kernel with one query to a CTA is written for many heads; with fewer CTAs than SMs each has its SM alone.
    """
    alone = (kernels.exps > 0) & (kernels.tile_m == 1)
    return np.where(alone, np.minimum(resident, np.ceil(ctas / device.sm.count)), resident)


def prologue(kernels: GpuKernels, device: Gpu, precision: str, depth: Array, constants: Calibration) -> Array:
    """Clocks of a CTA for address set-up, first load and last store [clk].

    Products on tensor cores have a constant of their own: asynchronous copies fill their pipelines of `STAGES`, one of which
    is the result, as far as there are steps; and they come from other libraries. So has a product before and one after a
    softmax, whose pipelines fill one after the other.
    """
    filled = np.minimum(1.0, (depth / kernels.tile_k + 1.0) / STAGES)
    product = np.where(on_tensor(kernels, device, precision), constants["gemm.tensor_prologue_clk"] * filled,
                       constants["gemm.prologue_clk"])  # fmt: skip
    return np.asarray(np.where(kernels.exps > 0, constants["attention.prologue_clk"], product))


def products_of(kernels: GpuKernels, depth: Array) -> Array:
    """Multiply-accumulates of the tile of one CTA [1]."""
    return np.asarray(kernels.tile_m * kernels.tile_n * kernels.work * depth)


def softmax_work(kernels: GpuKernels, device: Gpu, depth: Array, rate: Array) -> Array:
    """What the softmax between two products keeps an SM from multiplying, in multiply-accumulates of a CTA [1].

    One exponential per score on the special-function units, and `SOFTMAX_ISSUES` instructions on the fp32 pipe: scale and
    subtract, compare, add, convert (Dao 2023, section 3.1). They come after the products, or beside those of another group
    of warps: then the smooth maximum of the two remains (Shah et al. 2024, FlashAttention-3, section 3.1).
    """
    if not kernels.exps.any():
        return np.zeros_like(rate)
    scores = kernels.tile_m * depth * kernels.exps
    softmax = scores * (1.0 / device.rate.special + SOFTMAX_ISSUES / device.rate.fp32) * rate
    products = products_of(kernels, depth)
    return np.asarray(np.where(kernels.overlapped > 0, np.hypot(products, softmax) - products, softmax))


def cta_work(
    kernels: GpuKernels, depth: Array, ctas: Array, beside: Array, rate: Array, waiting: Array, constants: Calibration
) -> Array:
    """Multiply-accumulates that one CTA keeps an SM from issuing [1].

    An element-wise kernel's arithmetic, or its issue slots where they are more. A product's tile, and `waiting` clocks of its
    prologue; the CTAs that share the SM fill them with work of their own, so that a share of 1/`beside` remains. Long rows are
    spread over many pages, each of which costs `gemm.page_clk` clocks of address translation whenever a step comes back to it.
    """
    lost = waiting / beside + constants["gemm.page_clk"] * traffic.pages(kernels, depth)
    return np.where(kernels.matrix > 0, products_of(kernels, depth) + lost * rate,
                    np.maximum(0.5 * kernels.flop, kernels.slots) / ctas)  # fmt: skip


def work_done(kernels: GpuKernels, device: Gpu, ctas: Array) -> dict[str, Array]:
    """Operations of one launch that take energy, [V], and the mean number of SMs at work, [D, V]: CTAs over whole rounds.

    A softmax issues an exponential and `SOFTMAX_ISSUES` instructions for each score; a plain product is fp32 instructions.
    """
    product = is_product(kernels)
    half = 0.5 * kernels.flop
    scores = kernels.m * kernels.k * kernels.count * kernels.exps
    issues = np.where(product, scores * (SOFTMAX_ISSUES + 1.0), np.maximum(half, kernels.slots))
    units = ctas / np.ceil(ctas / device.sm.count)
    return {"macs": np.where(product, half, 0.0), "issues": issues, "units": units}

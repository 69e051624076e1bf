"""What one SM does with the CTAs of a kernel: its issue rate, what starts and ends a CTA, a softmax between two products."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from archsim.calibration.constants import Calibration
from archsim.cost import traffic
from archsim.cost.cost import Array, family_efficiency
from archsim.cost.occupancy import issue_lanes, mixed_work, narrow_loads, warps_of, window_slots
from archsim.device.device import Gpu
from archsim.lower.kernel import GpuKernels

STAGES = 4.0  # of the pipeline of a kernel for tensor cores; CUTLASS has 3 to 5. A choice, not a fit.
MMA_SIDE = 8  # least rows or columns of an instruction of tensor cores, m16n8k16 (PTX ISA, mma)


def is_product(kernels: GpuKernels) -> NDArray[np.bool_]:
    """Whether a kernel multiplies at the rate of its operands' format, [V]; all others compute in fp32, whatever they store.

    >>> import numpy as np
    >>> from types import SimpleNamespace as kernels
    >>> one = np.ones(1)
    >>> is_product(kernels(matrix=one, dense=0 * one, plain=0 * one)).item()
    True
    """
    return np.asarray(((kernels.matrix > 0) | (kernels.dense > 0)) & (kernels.plain == 0))


def on_tensor(kernels: GpuKernels, device: Gpu, precision: str) -> NDArray[np.bool_]:
    """Whether tensor cores multiply, [V]: where the device has some for this precision and the kernel uses them.

    >>> import numpy as np
    >>> from types import SimpleNamespace as some
    >>> on_tensor(some(plain=np.zeros(1)), some(has_tensor=lambda precision: precision == "fp16"), "fp16").item()
    True
    """
    return np.asarray((kernels.plain == 0) & device.has_tensor(precision))


def issue_rate(kernels: GpuKernels, device: Gpu, precision: str, constants: Calibration) -> Array:
    """Multiply-accumulates per clock that an SM sustains in the inner loop [FMA/clk].

    full share alone family, [D, V]
    full = min(fed, started / reuse), that of fp32 for other arithmetic than products; on tensor cores pipe / (1 + kappa_t loads)
    reuse = 1 + kappa loads; loads = 2 / side                                        (Volkov & Demmel 2008, section 4)

    pipe: rate of the pipe that multiplies operands of `precision` [FMA/clk], a float or [D, 1]
    full: the rate of a kernel's arithmetic where nothing is lost [FMA/clk]
    fed: rate of lanes [FMA/clk]; started: of all instructions that schedulers start, loads of operands among them [FMA/clk]
    reuse: issue slots for each multiply-accumulate, loads from shared memory included [1]
    loads: values that a thread loads from shared memory for each multiply-accumulate [1]; kappa_t: `gemm.tensor_kappa`, what one
           keeps a warp from its products
    share: of the lanes that register banks feed, `sm.issue_share` [1], a float or [D, 1]
    alone: share of the tensor cores' rate that mma of single warps reach, `rate.warp_mma`; 1 for kernels without these [1]
    family: efficiency of the kernel's family [1], [V]
    side: a thread holds side x side results, for which it loads 2 side values from shared memory

    >>> import numpy as np
    >>> from types import SimpleNamespace as some
    >>> from archsim.calibration.constants import default
    >>> from archsim.device.catalog import find
    >>> one = np.ones(1)
    >>> kernel = some(constants=("full",), efficiency=np.array([0]), matrix=one, dense=0 * one, plain=0 * one, tile_m=128 * one,
    ...               tile_n=128 * one, work=one, threads=256 * one)
    >>> calibration = default().with_values({"gemm.kappa": 0.4})
    >>> [round(issue_rate(kernel, find(hw).device, "fp32", calibration).item() / 128, 2) for hw in ("gtx_1080", "rtx_3090")]
    [0.97, 0.91]
    """
    family = family_efficiency(kernels, constants)
    side = np.sqrt(kernels.tile_m * kernels.tile_n * kernels.work / kernels.threads)
    loads = np.where(kernels.matrix > 0, 2.0 / side, 0.0)
    reuse = 1.0 + constants["gemm.kappa"] * loads
    share = 1.0 if device.sm.issue_share is None else device.sm.issue_share
    pipe = device.pipe(precision)
    alone = 1.0 if device.rate.warp_mma is None else np.where(kernels.warp_mma > 0, device.rate.warp_mma, 1.0)
    full = np.where(is_product(kernels), pipe / (1.0 + constants["gemm.tensor_kappa"] * loads)
                    if device.has_tensor(precision)
                    else np.minimum(fed(device, pipe, precision), started(device, precision) / reuse),
                    np.minimum(fed(device, device.rate.fp32), started(device) / reuse))  # fmt: skip
    return np.asarray(full * share * alone * family)


def started(device: Gpu, precision: str = "fp32") -> Array | float:
    """The rate at which schedulers start instructions, those of lanes and others beside them [FMA/clk], a float or [D, 1].

    schedulers p width products

    p: threads of a warp; products: multiply-accumulates of an instruction, `packed`
    width: instructions that a scheduler starts in a clock, `sm.issue_width`

    >>> from archsim.device.catalog import find
    >>> float(started(find("gtx_1080").device)), float(started(find("rtx_3090").device))
    (256.0, 128.0)
    """
    width = 1.0 if device.sm.issue_width is None else device.sm.issue_width
    return issue_lanes(device) * width * packed(device, precision)


def fed(device: Gpu, lanes: Array | float, precision: str = "fp32") -> Array:
    """The rate of lanes, or that at which schedulers start their instructions, whichever is less [FMA/clk], a float or [D, 1].

    min(lanes, schedulers p alike products)

    p: threads of a warp; products: multiply-accumulates of an instruction, `packed`
    alike: instructions of lanes that a scheduler starts in a clock: one where the second has to be of another kind

    >>> from archsim.device.catalog import find
    >>> kepler, pascal = find("tesla_k40").device, find("gtx_1080").device
    >>> float(fed(kepler, 192.0)), float(fed(pascal, 256.0))  # four schedulers start 8 and 4 warps
    (192.0, 128.0)
    """
    width = 1.0 if device.sm.issue_width is None else device.sm.issue_width
    alike = width if device.sm.pairing == "any" else np.minimum(width, 1.0)
    return np.minimum(lanes, issue_lanes(device) * alike * packed(device, precision))


def packed(device: Gpu, precision: str) -> float:
    """Multiply-accumulates of one instruction of lanes: four of dp4a, else its results, `packing`.

    >>> from archsim.device.catalog import find
    >>> packed(find("gtx_1080").device, "int8"), packed(find("tesla_p100_pcie_16gb").device, "fp16")
    (4.0, 2.0)
    """
    return 4.0 if precision == "int8" else packing(device, precision)


def packing(device: Gpu, precision: str) -> float:
    """Results that one instruction of lanes makes: two halves where these are multiplied in pairs.

    A thread then has half as many instructions for the same results, and it takes twice the warps to hide their latency.

    >>> from archsim.device.catalog import find
    >>> packing(find("tesla_p100_pcie_16gb").device, "fp16"), packing(find("gtx_1080").device, "fp16")
    (2.0, 1.0)
    """
    if precision not in ("fp16", "half") or device.rate.fp16 is None or device.has_tensor("fp16"):
        return 1.0
    return 2.0 if np.all(device.rate.fp16 > device.rate.fp32) else 1.0


def saturating(kernels: GpuKernels, device: Gpu, precision: str, constants: Calibration) -> Array:
    """CTAs that keep the pipes of an SM busy.

    busy packing / ceil(threads / p), [D, V]

    busy: warps that hide what they wait for: `gemm.saturation`, on tensor cores `gemm.tensor_saturation`, [V]
    packing: results that one instruction makes, `packing`; threads: of a CTA [1], [V]; p: of a warp, `sm.warp`

    >>> import numpy as np
    >>> from types import SimpleNamespace as some
    >>> kernel, gpu = some(threads=np.array([256.0]), matrix=np.ones(1), plain=np.zeros(1), dense=np.zeros(1)), some(
    ...     rate=some(fp16=None), sm=some(warp=32.0), has_tensor=lambda precision: False)
    >>> saturating(kernel, gpu, "fp32", {"gemm.saturation": 4.0, "gemm.tensor_saturation": 8.0}).item()
    0.5
    """
    busy = np.where(on_tensor(kernels, device, precision), constants["gemm.tensor_saturation"], constants["gemm.saturation"])
    return np.asarray(busy * packing(device, precision) / warps_of(kernels, device))


def neighbours(kernels: GpuKernels, device: Gpu, ctas: Array, wave: Array) -> Array:
    """CTAs whose work fills the prologue of one of them: all of its wave, none over cached keys.

    wave, or all that follow on its SM, ctas / SMs, where it goes from tile to tile; 1 around a softmax where m < k;
    min(wave, ceil(ctas / SMs)) for lone queries, [D, V]

    following: all that an SM computes one after the other where a CTA goes from tile to tile, else those that it holds [1]
    ctas: of one launch, [V]; m, k: rows of queries and keys of a head
    wave: CTAs that an SM computes together, or those that take as long as few do: each wave shows its prologue once, [D, V]

    Where keys outnumber queries an attention kernel loads more than it multiplies: those that share an SM wait for the same
    memory, and each of many waves shows its prologue. One with one query to a CTA is written for many heads; with fewer CTAs than
    SMs each has its SM alone.

    >>> import numpy as np
    >>> from types import SimpleNamespace as some
    >>> kernel = some(exps=np.ones(3), tile_m=np.array([1.0, 64.0, 64.0]), m=np.array([1.0, 8.0, 512.0]), k=512.0,
    ...               persistent=np.zeros(3))
    >>> neighbours(kernel, some(sm=some(count=132.0)), np.array([264.0]), np.array([8.0])).tolist()
    [2.0, 1.0, 8.0]
    """
    lone = np.minimum(wave, np.ceil(ctas / device.sm.count))
    following = np.where(kernels.persistent > 0, np.maximum(wave, ctas / device.sm.count), wave)
    over_cache = np.where(kernels.m < kernels.k, 1.0, following)
    return np.where(kernels.exps > 0, np.where(kernels.tile_m == 1, lone, over_cache), following)


def burst(kernels: GpuKernels, device: Gpu, ctas: Array, constants: Calibration) -> Array:
    """Clocks in which the CTAs of all SMs load their queries and first block of keys, and store their results, at once [clk].

    SMs (moved split / ctas + block) / (B share), [D, V]

    moved: queries and results of one launch, which each part of a split has [B], [V]; ctas: of one launch, [V]
    block: keys and values of the first step of a CTA [B], [V]
    keys: of that step, or of a part where it has fewer [1], [V]
    B: bandwidth of the whole L2 [B/clk]; share: of it that a burst reaches, `l2.burst` [1]

    >>> import numpy as np
    >>> from types import SimpleNamespace as some
    >>> kernel = some(exps=np.ones(1), b_bytes=2e6, c_bytes=2e6, split=1.0, tile_k=64.0, tile_n=128.0, n=128.0, k=512.0,
    ...               operand_b=4.0)
    >>> gpu = some(sm=some(count=100.0), l2=some(bandwidth=5000.0))
    >>> burst(kernel, gpu, np.array([200.0]), {"l2.burst": 0.5}).item()  # 20 and 32 KB for each SM, at 25 B/clk
    2110.72
    """
    moved = (kernels.b_bytes + kernels.c_bytes) * kernels.split / ctas
    keys = np.minimum(kernels.tile_k, kernels.k / kernels.split)
    block = keys * np.minimum(kernels.tile_n, kernels.n) * kernels.operand_b / np.maximum(kernels.exps, 1e-9)
    return np.asarray(device.sm.count * (moved + block) / (device.l2.bandwidth * constants["l2.burst"]))


def prologue(
    kernels: GpuKernels, device: Gpu, precision: str, depth: Array, ctas: Array, constants: Calibration
) -> Array:
    """Clocks of a CTA for address set-up, first load and last store [clk].

    starts waited, with loading around a softmax, [D, V]; waited = latency f

    starts: latencies of the memory that pass one after the other, `gemm.prologue`; on tensor cores `gemm.tensor_prologue` filled;
            around a softmax `attention.prologue` [1]
    latency: of an unloaded memory [s], [D, 1]; f: core clock under sustained load [Hz], a float or [D, 1]: most of a latency
             passes in the chip, and counts in its clocks
    waited: clocks of a latency [clk]
    filled: share of a pipeline of `STAGES` stages that a loop of so few steps fills
    depth: inner steps of one CTA, in units of k, [V]; ctas: of one launch, [V]
    loading: clocks in which queries and results pass, and the first keys, `burst` [clk]

    Products on tensor cores have a constant of their own: asynchronous copies fill their pipelines, of which one stage is the
    result; and they come from other libraries. So have attention kernels, whose two products fill theirs one after the other.

    >>> import numpy as np
    >>> from types import SimpleNamespace as some
    >>> kernel, gpu = some(exps=np.zeros(1), plain=np.zeros(1), tile_k=32 * np.ones(1)), some(
    ...     has_tensor=lambda precision: True, memory=some(latency=500e-9), clock=some(sustained=1e9))
    >>> starts = {"gemm.prologue": 4.0, "gemm.tensor_prologue": 2.0, "attention.prologue": 8.0}
    >>> prologue(kernel, gpu, "fp16", np.array([32.0]), np.ones(1), starts).item()  # one step and the result: two of four stages
    500.0
    """
    filled = np.minimum(1.0, (depth / kernels.tile_k + 1.0) / STAGES)
    starts = np.where(on_tensor(kernels, device, precision), constants["gemm.tensor_prologue"] * filled,
                      constants["gemm.prologue"])  # fmt: skip
    waited = device.memory.latency * device.clock.sustained
    if not kernels.exps.any():
        return np.asarray(starts * waited)
    loading = burst(kernels, device, ctas, constants)
    return np.asarray(np.where(kernels.exps > 0, constants["attention.prologue"] * waited + loading, starts * waited))


def first_wave(kernels: GpuKernels, device: Gpu, precision: str, constants: Calibration) -> Array:
    """Clocks that the first CTAs of a launch wait for and later ones do not: the code of the kernel [clk].

    once interval / repeat, [V]; 0 for all but products and attention on tensor cores

    once: instructions that an SM runs for the first time in a launch, `gemm.once`, on tensor cores `gemm.tensor_once` [1]
    interval: between two of them, `sm.fetch_interval` [clk], a float or [D, 1]; 0 if not known
    repeat: launches of the kernel, one after the other [1]

    Code that the SM has not run yet comes instruction by instruction, most of it in the unrolled loops of fp32 lanes. Where a
    kernel is launched again and again, for each image or group, its instruction caches have it from the launch before. The short
    loops of tensor cores stay there, too, where a measurement launches one kernel only (`round_bytes` is finite); those of
    attention have two products and a softmax between them, too long to stay.

    >>> import numpy as np
    >>> from types import SimpleNamespace as some
    >>> kernel = some(exps=np.zeros(1), plain=np.zeros(1), matrix=np.ones(2), repeat=np.array([1.0, 16.0]), round_bytes=np.inf)
    >>> gpu = some(has_tensor=lambda precision: False, sm=some(fetch_interval=18.0))
    >>> once = {"gemm.tensor_once": 300.0, "gemm.once": 600.0}
    >>> first_wave(kernel, gpu, "fp32", once).tolist()  # alone, and for each of 16 images
    [10800.0, 675.0]
    """
    interval = 0.0 if device.sm.fetch_interval is None else device.sm.fetch_interval
    attends = kernels.exps > 0
    on_tensor_cores = np.where(attends | np.isinf(kernels.round_bytes), constants["gemm.tensor_once"], 0.0)
    of_lanes = np.where(attends, 0.0, constants["gemm.once"])
    once = np.where(on_tensor(kernels, device, precision), on_tensor_cores, of_lanes)
    return np.where(kernels.matrix > 0, once * interval / kernels.repeat, 0.0)


def tile_macs(kernels: GpuKernels, depth: Array) -> Array:
    """Multiply-accumulates of the tile of one CTA.

    tile_m tile_n work depth, [V]; depth: inner steps of one CTA, in units of k, [V]

    >>> from types import SimpleNamespace as kernels
    >>> tile_macs(kernels(tile_m=128.0, tile_n=64.0, work=1.0), 1200.0).item()
    9830400.0
    """
    return np.asarray(kernels.tile_m * kernels.tile_n * kernels.work * depth)


def softmax_work(kernels: GpuKernels, device: Gpu, depth: Array, rate: Array) -> Array:
    """What the softmax between two products keeps an SM from multiplying, in multiply-accumulates of a CTA.

    softmax = scores (1 / special + slots / fp32) rate, [D, V]      (Dao 2023, section 3.1)

    scores: exponentials of one CTA
    softmax: multiply-accumulates that the SM could have issued meanwhile
    special, fp32: exponentials and single-precision instructions of an SM [OP/clk, FMA/clk], floats or [D, 1]
    depth: keys of one CTA, [V]
    rate: multiply-accumulates per clock and SM [FMA/clk], [D, V]

    slots: of the fp32 pipe for each score, `score_slots` [1], [V]

    One exponential a score on the special-function units, and at least four instructions on the fp32 pipe: scale and subtract,
    compare, add, convert. They come after the products, or beside those of another group of warps; then sqrt(products^2
    + softmax^2) - products remains (Shah et al. 2024, FlashAttention-3, section 3.1).

    >>> import numpy as np
    >>> from types import SimpleNamespace as some
    >>> from archsim.device.catalog import find
    >>> kernel = some(exps=np.ones(1), tile_m=128.0, tile_n=128.0, work=2.0, score_slots=4.0,
    ...               overlapped=np.zeros(1))
    >>> float(softmax_work(kernel, find("gtx_1080").device, 8.0, np.array([100.0]))[0])
    6400.0
    """
    if not kernels.exps.any():
        return np.zeros_like(rate)
    scores = kernels.tile_m * depth * kernels.exps
    softmax = scores * (1.0 / device.rate.special + kernels.score_slots / fed(device, device.rate.fp32)) * rate
    products = tile_macs(kernels, depth)
    return np.asarray(np.where(kernels.overlapped > 0, np.hypot(products, softmax) - products, softmax))


def cta_work(
    kernels: GpuKernels, device: Gpu, depth: Array, ctas: Array, beside: Array, rate: Array, waiting: Array,
    constants: Calibration, resident: Array | float = 1.0,
) -> Array:  # fmt: skip
    """Multiply-accumulates of one CTA, and all that keeps its SM from issuing them.

    products + (lost + narrow) rate + softmax for a product; max(flop / 2, slots, mixed) / ctas for an element-wise
    kernel, [D, V]

    alone: multiply-accumulates of an element-wise kernel, or what it could multiply meanwhile [1], [D, V]
    mixed: the instructions that the stack counts for its values and rows, `mixed_work`
    lost: clocks in which its SM multiplies nothing [clk]
    slots: issue slots of an element-wise kernel that goes through windows, `window_slots`
    products: multiply-accumulates of a product's CTA, with what its SM could have issued meanwhile
    depth: inner steps of one CTA, in units of k, [V]
    served: clocks in which its TLB serves misses one by one [clk]
    narrow: clocks in which it loads values that lie at no multiple of 16 B, `narrow_loads` [clk]
    ctas: of one launch, [V]; resident: CTAs that share an SM, [D, V]
    beside: CTAs whose work fills the prologue of this one, [D, V]
    rate: multiply-accumulates per clock and SM [FMA/clk], [D, V]
    waiting: clocks of the prologue [clk], [V]

    The CTAs that share an SM fill the prologue with work of their own, so that a share of 1/`beside` remains. Long rows are
    spread over many pages, each of which costs `gemm.page_clk` clocks of address translation whenever a step comes back to it.
    Where the TLB of an SM does not reach the rows of all its CTAs, each row that it has lost takes some clocks more.

    >>> import numpy as np
    >>> from types import SimpleNamespace as some
    >>> kernel = some(matrix=np.zeros(1), flop=1e6, checked=0.0, unrolled=0.0, slots=0.0, load=16.0, operand_a=4.0,
    ...               tile_m=1.0, tile_n=1.0, tile_k=1.0, m=1.0, n=1.0, work=1.0,
    ...               row_bytes=0.0, exps=np.zeros(1))
    >>> of = {"gemm.page_clk": 1.0, "window.checked_slots": 44.0, "window.unrolled_slots": 12.0, "gemm.narrow_slots": 40.0}
    >>> gpu = some(l1=some(tlb_busy=None), sm=some(schedulers=4.0, warp=32.0))
    >>> cta_work(kernel, gpu, 1.0, 100.0, 2.0, np.ones(1), 0.0, of).item()  # 0.5e6 over 100 CTAs
    5000.0
    """
    served = traffic.translated(kernels, device.l1, depth, resident)
    lost = waiting / beside + constants["gemm.page_clk"] * traffic.pages(kernels, depth) + served
    narrow = narrow_loads(kernels, device, depth, constants)
    products = tile_macs(kernels, depth) + (lost + narrow) * rate + softmax_work(kernels, device, depth, rate)
    alone = np.maximum(np.maximum(0.5 * kernels.flop, window_slots(kernels, constants)), mixed_work(kernels, device, rate))
    return np.where(kernels.matrix > 0, products, alone / ctas)


def work_done(kernels: GpuKernels, device: Gpu, ctas: Array, depth: Array, constants: Calibration) -> dict[str, Array]:
    """Operations of one launch that take energy [1], [V], and the mean number of SMs at work [1], [D, V]: CTAs over whole waves.

    macs = flop / 2 + zeros padding of products        wide = the same of those that lanes multiply: plain ones, and tiles
                                                              of fewer rows than tensor cores take at once
    issues = flop / 2 of all else, or (slots + 1) scores + tests                          units = ctas / waves

    padding: multiply-accumulates of tiles beyond the product, whose operands are zeros, as of a tile of 64 queries with one in it
    zeros: what one of zeros takes beside one of random values, `energy.zeros` [1]
    ctas: of one launch, [V]; depth: inner steps of one CTA, in units of k, [V]

    A softmax issues an exponential and `score_slots` instructions for each score; other plain products are fp32 instructions.

    >>> import numpy as np
    >>> from types import SimpleNamespace as some
    >>> one = np.ones(1)
    >>> kernel = some(matrix=one, dense=0 * one, plain=0 * one, flop=2e6, m=one, k=one, count=one, exps=0 * one, work=one,
    ...               tile_m=64 * one, tile_n=64 * one, score_slots=4 * one,
    ...               checked=0 * one, unrolled=0 * one, slots=0 * one)
    >>> of = {"window.checked_slots": 44.0, "window.unrolled_slots": 12.0, "energy.zeros": 0.5}
    >>> [np.ravel(value).item() for value in work_done(kernel, some(sm=some(count=20.0)), 30.0, 10.0, of).values()]
    [1114400.0, 0.0, 0.0, 15.0]
    """
    wide = (kernels.matrix > 0) & ((kernels.plain > 0) | (np.minimum(kernels.tile_m, kernels.tile_n) < MMA_SIDE))
    product = is_product(kernels) & ~wide
    half = 0.5 * kernels.flop
    pairs = kernels.m * kernels.k * kernels.count
    softmax = pairs * kernels.exps * (kernels.score_slots + 1.0)
    issues = np.where(product | wide, softmax, np.maximum(half, window_slots(kernels, constants)))
    units = ctas / np.ceil(ctas / device.sm.count)
    macs = half + constants["energy.zeros"] * np.maximum(tile_macs(kernels, depth) * ctas - half, 0.0)
    return {"macs": np.where(product, macs, 0.0), "wide": np.where(wide, macs, 0.0), "issues": issues, "units": units}

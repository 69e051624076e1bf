"""Direct convolutions of a CPU over blocked channels: register blocks along the rows of an image, filters that come from memory.

Each block of channels of the result is multiplied with one run of pixels after the other (ONNX Runtime, mlas/lib/snchwc.cpp and
x86_64/SconvKernelAvx512F.S).
"""

from __future__ import annotations

import numpy as np

from archsim.cost.blocking import LANE_BITS, step_clocks
from archsim.cost.cost import Array
from archsim.device.device import Cpu
from archsim.lower.kernel import CpuKernels

REGISTERS = 16.0  # registers of an instruction set that `conv.block_pixels` is said for


def block_pixels(kernels: CpuKernels, device: Cpu) -> Array:
    """Pixels of a register block [1].

    max(1, pixels floor(registers / 16)), [D, V]

    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as some
    >>> [block_pixels(some(pixels=3.0), find(cpu).device).item() for cpu in ("i7_6700k", "epyc_9655")]
    [3.0, 6.0]
    """
    return np.asarray(np.maximum(kernels.pixels * np.floor(device.core.registers / REGISTERS), 1.0))


def run_clocks(kernels: CpuKernels, device: Cpu, rate: Array | float, registers: Array | float) -> Array:
    """Clocks of one step of k over the pixels of a run whose taps all lie in the row [clk].

    full S(P, registers) + three S(3, registers) + two S(2, registers) + one S(1, registers), [D, V]; S: `step_clocks`

    rate: multiply-adds per clock that the library's instructions start [FMA/clk], [D, V]
    registers: of the channels [1], a float or [D, V]
    most: P, pixels of a register block, `block_pixels`
    full: blocks of so many
    rest: pixels beyond them
    three: blocks of three of these
    two: blocks of two
    one: a single one
    larger: clocks of the blocks of three and more pixels [clk]

    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as some
    >>> cpu = find("epyc_9655").device  # blocks of six pixels, a latency of four clocks
    >>> run_clocks(some(pixels=3.0, run=11.0), cpu, 32.0, 4.0).item()  # 6, 3 and 2 pixels
    22.0
    """
    most = block_pixels(kernels, device)
    full = np.floor(kernels.run / most)
    rest = kernels.run - full * most
    three = np.floor(rest / 3.0)
    two = np.floor((rest - 3.0 * three) / 2.0)
    one = rest - 3.0 * three - 2.0 * two
    larger = full * step_clocks(device, rate, most, registers) + three * step_clocks(device, rate, 3.0, registers)
    return np.asarray(larger + two * step_clocks(device, rate, 2.0, registers) + one * step_clocks(device, rate, 1.0, registers))


def channel_sets(kernels: CpuKernels, device: Cpu) -> tuple[Array, Array]:
    """Blocks of `block` registers that the channels of a result fill, and the registers that are left over [1], each [D, V].

    filled: registers that they fill
    complete: blocks of `block` of them

    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as some
    >>> [value.item() for value in channel_sets(some(channels=144.0, block=4.0), find("epyc_9655").device)]
    [2.0, 1.0]
    """
    filled = np.ceil(kernels.channels / (device.core.simd / LANE_BITS))
    complete = np.floor(filled / np.maximum(kernels.block, 1.0))
    return np.asarray(complete), np.asarray(filled - complete * kernels.block)


def visits(kernels: CpuKernels, device: Cpu) -> tuple[Array, Array]:
    """How often results are read and written, and the input channels that each time adds to them [1], each [D, V].

    one channel at a time for an image of fewer than a register holds (its layout is not blocked); else `deep` or a register of
    them, the last one filled up with zeros

    lanes: fp32 values of a SIMD register
    summed: channels of the input, those filled up with zeros too
    step: channels of one visit, as far as there are so many
    number: how often results are read and written

    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as some
    >>> [[value.item() for value in visits(some(depth=depth, deep=0.0), find("epyc_9655").device)] for depth in (3.0, 24.0)]
    [[3.0, 1.0], [2.0, 16.0]]
    """
    lanes = device.core.simd / LANE_BITS
    summed = np.where(kernels.depth < lanes, kernels.depth, np.ceil(kernels.depth / lanes) * lanes)
    step = np.where(kernels.depth < lanes, 1.0, np.where(kernels.deep > 0, kernels.deep, lanes))
    number = np.maximum(np.ceil(summed / step), 1.0)
    return np.asarray(number), np.asarray(summed / number)


def set_clocks(kernels: CpuKernels, device: Cpu, rate: Array | float, registers: Array | float) -> Array:
    """Clocks of one run of pixels with one block of channels [clk].

    number ((each taps + 1) run + (each edge_taps + 1) edges S(1, registers)), [D, V]; S: `step_clocks`, run: `run_clocks`

    rate: multiply-adds per clock that the library's instructions start [FMA/clk], [D, V]
    registers: of the channels [1], a float or [D, V]
    number: visits of each result, each of which is one step more: it is added to memory
    each: channels of one visit
    alone: clocks of a step of the pixels at the edges [clk]

    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as some
    >>> layer = some(pixels=3.0, run=6.0, taps=9.0, edges=2.0, edge_taps=6.0, depth=16.0, deep=0.0)
    >>> set_clocks(layer, find("epyc_9655").device, 32.0, 4.0).item()  # 145 steps of 12 clocks, 97 of 4 for either edge
    2516.0
    """
    number, each = visits(kernels, device)
    alone = kernels.edges * step_clocks(device, rate, 1.0, registers)
    return np.asarray(number * ((each * kernels.taps + 1.0) * run_clocks(kernels, device, rate, registers)
                                + (each * kernels.edge_taps + 1.0) * alone))  # fmt: skip


def direct_clocks(kernels: CpuKernels, device: Cpu, rate: Array | float) -> Array:
    """Clocks of all register blocks of a direct convolution, summed over cores [clk]; 0 for a kernel that has no such runs.

    runs (whole C(block) + C(last)), [D, V]; C: `set_clocks`

    rate: multiply-adds per clock that the library's instructions start [FMA/clk], [D, V]
    whole: blocks of `block` registers of channels
    last: registers that are left over
    of_block: clocks of a run with a whole block [clk]
    of_last: clocks of a run with what is left over [clk]

    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as some
    >>> layer = some(pixels=3.0, runs=8.0, run=6.0, taps=9.0, edges=2.0, edge_taps=6.0, depth=16.0, deep=0.0, channels=64.0,
    ...              block=4.0)
    >>> direct_clocks(layer, find("epyc_9655").device, 32.0).item()
    20128.0
    """
    whole, last = channel_sets(kernels, device)
    of_block = set_clocks(kernels, device, rate, kernels.block)
    of_last = np.where(last > 0, set_clocks(kernels, device, rate, last), 0.0)
    return np.asarray(np.where(kernels.pixels > 0, kernels.runs * (whole * of_block + of_last), 0.0))


def first_clocks(kernels: CpuKernels, device: Cpu, rate: Array | float, registers: Array | float) -> Array:
    """Clocks in which the filters of one visit of a block of channels are read for the first time [clk].

    channels (taps S(pixels, registers) ceil(first / pixels) + edges edge_taps S(1, registers)), [D, V]

    rate: multiply-adds per clock that the library's instructions start [FMA/clk], [D, V]
    registers: of the channels [1], a float or [D, V]
    pixels: `block_pixels`
    first: the pixels of the first row, of 1 x 1 filters those of the first register block
    edge: clocks of the pixels at the edges of that row, for each channel

    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as some
    >>> layer = some(pixels=3.0, run=49.0, taps=1.0, edges=0.0, edge_taps=0.0, depth=512.0, deep=128.0)
    >>> first_clocks(layer, find("epyc_9655").device, 32.0, 4.0).item()  # 128 steps of 12 clocks
    1536.0
    """
    _, each = visits(kernels, device)
    pixels = block_pixels(kernels, device)
    first = np.where(kernels.deep > 0, np.minimum(kernels.run, pixels), kernels.run)
    edge = kernels.edges * kernels.edge_taps * step_clocks(device, rate, 1.0, registers)
    inside = np.ceil(first / pixels) * step_clocks(device, rate, np.minimum(first, pixels), registers)
    return np.asarray(each * (kernels.taps * inside + edge))


def set_wait(
    kernels: CpuKernels, device: Cpu, rate: Array, workers: Array, speed: Array, bandwidth: Array, registers: Array | float
) -> Array:  # fmt: skip
    """Time in which a core waits for the filters of one visit of one block of channels [s].

    latency + max(0, size workers / bandwidth - first / speed), [D, V]

    rate: multiply-adds per clock that the library's instructions start [FMA/clk], [D, V]
    workers: cores at work, [D, V]
    speed: their clock [Hz], [D, V]
    bandwidth: of memory for all of them [B/s], [D, V]
    registers: of the channels [1], a float or [D, V]
    lanes: fp32 values of a SIMD register
    each: channels of one visit
    size: of the filters, taps outside the image too [B]
    first: clocks of the pixels that are computed meanwhile, `first_clocks` [clk]

    >>> import numpy as np
    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as some
    >>> layer = some(pixels=3.0, run=49.0, taps=1.0, edges=0.0, edge_taps=0.0, depth=128.0, deep=128.0, k=128.0, operand_a=4.0)
    >>> cpu, one = find("epyc_9655").device, np.ones(1)
    >>> waited = set_wait(layer, cpu, 32.0, one, 3e9, 32e9, 4.0).item()  # 32 KiB in 1,024 ns, 512 ns of them computing
    >>> round((waited - cpu.memory.latency) * 1e9)
    512
    """
    lanes = device.core.simd / LANE_BITS
    _, each = visits(kernels, device)
    size = registers * lanes * each * kernels.k / np.maximum(kernels.depth, 1.0) * kernels.operand_a
    first = first_clocks(kernels, device, rate, registers)
    return np.asarray(device.memory.latency + np.maximum(0.0, size * workers / bandwidth - first / speed))


def filter_wait(kernels: CpuKernels, device: Cpu, rate: Array, workers: Array, speed: Array, bandwidth: Array) -> Array:
    """Time in which the busiest core of a direct convolution waits for filters from memory [s]; 0 for other kernels.

    groups number (whole W(block) + W(last)) / share, [D, V]; W: `set_wait`

    rate: multiply-adds per clock that the library's instructions start [FMA/clk], [D, V]
    workers: cores at work, [D, V]
    speed: their clock [Hz], [D, V]
    bandwidth: of memory for all of them [B/s], [D, V]
    whole: blocks of `block` registers of channels
    last: registers that are left over
    number: visits of each result
    groups: groups of the convolution
    of_block: wait for the filters of a whole block [s]
    of_last: wait for those of what is left over [s]
    shared: whether a filter serves several pixels from the first level
    share: cores that have filters of their own; the others have all of them and pixels of their own

    The filters of one visit are read while the first pixels are computed, and serve all others from the first level. A channel's
    own filters (depthwise) lie one behind the other and are read ahead.

    >>> import numpy as np
    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as some
    >>> own = {"channels": 512.0, "depth": 1.0, "k": 9.0, "a_bytes": 18432.0, "operand_a": 4.0, "block": 1.0, "deep": 0.0}
    >>> depthwise = some(pixels=3.0, run=5.0, taps=9.0, edges=2.0, edge_taps=6.0, **own)
    >>> filter_wait(depthwise, find("epyc_9655").device, 32.0, np.ones(1), 3e9, 32e9).item()
    0.0
    """
    whole, last = channel_sets(kernels, device)
    number, _ = visits(kernels, device)
    groups = kernels.a_bytes / np.maximum(kernels.operand_a * kernels.channels * kernels.k, 1.0)
    of_block = set_wait(kernels, device, rate, workers, speed, bandwidth, kernels.block)
    of_last = np.where(last > 0, set_wait(kernels, device, rate, workers, speed, bandwidth, last), 0.0)
    share = np.minimum(workers, np.maximum(groups * (whole + np.minimum(last, 1.0)), 1.0))
    shared = (kernels.pixels > 0) & (kernels.depth > 1)
    return np.asarray(np.where(shared, groups * number * (whole * of_block + of_last) / share, 0.0))

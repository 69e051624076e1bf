"""Direct convolutions of a CPU over blocked channels: register blocks along the rows of an image, filters that come from memory.

Each block of channels of the result is multiplied with one run of pixels after the other (ONNX Runtime, mlas/lib/snchwc.cpp and
x86_64/SconvKernelAvx512F.S).
"""

from __future__ import annotations

import numpy as np

from archsim.cost.blocking import LANE_BITS, step_clocks
from archsim.cost.cost import Array
from archsim.cost.cpu_traffic import core_bandwidth
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

    full S(tile) + three S(3) + two S(2) + one S(1), [D, V]; S(p) = max(p registers lanes / rate, latency), `step_clocks`

    rate: multiply-adds per clock that the library's instructions start [FMA/clk], [D, V]
    registers: of the channels [1], a float or [D, V]
    lanes: fp32 values of a SIMD register
    latency: of a multiply-add [clk]
    tile: pixels of a register block, `block_pixels`
    full: blocks of so many
    beyond: pixels beyond them
    three: blocks of three of these
    two: blocks of two
    one: a single one

    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as some
    >>> cpu = find("epyc_9655").device  # blocks of six pixels, a latency of four clocks
    >>> run_clocks(some(pixels=3.0, run=11.0), cpu, 32.0, 4.0).item()  # 6, 3 and 2 pixels
    22.0
    """
    lanes = device.core.simd / LANE_BITS
    latency = device.core.fma_latency
    tile = block_pixels(kernels, device)
    full = np.floor(kernels.run / tile)
    beyond = kernels.run - full * tile
    three = np.floor(beyond / 3.0)
    two = np.floor((beyond - 3.0 * three) / 2.0)
    one = beyond - 3.0 * three - 2.0 * two
    return np.asarray(full * np.maximum(tile * registers * lanes / rate, latency)
                      + three * np.maximum(3.0 * registers * lanes / rate, latency)
                      + two * np.maximum(2.0 * registers * lanes / rate, latency)
                      + one * np.maximum(registers * lanes / rate, latency))  # fmt: skip


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


def direct_clocks(kernels: CpuKernels, device: Cpu, rate: Array | float) -> Array:
    """Clocks of all register blocks of a direct convolution, summed over cores [clk]; 0 for a kernel that has no such runs.

    runs (whole (inner run_block + outer edge_block) + inner run_last + outer edge_last), [D, V]

    rate: multiply-adds per clock that the library's instructions start [FMA/clk], [D, V]
    whole: blocks of `block` registers of channels
    last: registers that are left over
    number: visits of each result, each of which is one step more: it is added to memory
    each: channels of one visit
    inner: steps of k of a pixel whose taps all lie in the row
    outer: steps of k of a pixel at an edge
    run_block, run_last: clocks of such a step of a run [clk], `run_clocks`
    edge_block, edge_last: of the pixels at its edges [clk], `step_clocks`
    of_last: clocks of a run with what is left over [clk]
    clocks: of all runs [clk]

    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as some
    >>> layer = some(pixels=3.0, runs=8.0, run=6.0, taps=9.0, edges=2.0, edge_taps=6.0, depth=16.0, deep=0.0, channels=64.0,
    ...              block=4.0)
    >>> direct_clocks(layer, find("epyc_9655").device, 32.0).item()  # rows of 8: 145 steps of 12 clocks, 97 of 4 for either edge
    20128.0
    """
    whole, last = channel_sets(kernels, device)
    number, each = visits(kernels, device)
    inner = number * (each * kernels.taps + 1.0)
    outer = number * (each * kernels.edge_taps + 1.0)
    run_block = run_clocks(kernels, device, rate, kernels.block)
    run_last = run_clocks(kernels, device, rate, last)
    edge_block = kernels.edges * step_clocks(device, rate, 1.0, kernels.block)
    edge_last = kernels.edges * step_clocks(device, rate, 1.0, last)
    of_last = np.where(last > 0, inner * run_last + outer * edge_last, 0.0)
    clocks = kernels.runs * (whole * (inner * run_block + outer * edge_block) + of_last)
    return np.asarray(np.where(kernels.pixels > 0, clocks, 0.0))


def first_clocks(kernels: CpuKernels, device: Cpu, rate: Array | float, registers: Array | float) -> Array:
    """Clocks in which the filters of one visit of a block of channels are read for the first time [clk].

    each (taps S(min(begun, tile)) ceil(begun / tile) + edges edge_taps S(1)), [D, V]; S: as in `run_clocks`

    rate: multiply-adds per clock that the library's instructions start [FMA/clk], [D, V]
    registers: of the channels [1], a float or [D, V]
    lanes: fp32 values of a SIMD register
    latency: of a multiply-add [clk]
    number: visits of each result
    each: channels of one visit
    tile: pixels of a register block
    begun: the pixels of the first row, of 1 x 1 filters those of the first register block

    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as some
    >>> layer = some(pixels=3.0, run=49.0, taps=1.0, edges=0.0, edge_taps=0.0, depth=512.0, deep=128.0)
    >>> first_clocks(layer, find("epyc_9655").device, 32.0, 4.0).item()  # 128 steps of 12 clocks
    1536.0
    """
    _, each = visits(kernels, device)
    lanes = device.core.simd / LANE_BITS
    latency = device.core.fma_latency
    tile = block_pixels(kernels, device)
    begun = np.where(kernels.deep > 0, np.minimum(kernels.run, tile), kernels.run)
    return np.asarray(each * (
        kernels.taps * np.ceil(begun / tile) * np.maximum(np.minimum(begun, tile) * registers * lanes / rate, latency)
        + kernels.edges * kernels.edge_taps * np.maximum(registers * lanes / rate, latency)))  # fmt: skip


def filter_bytes(kernels: CpuKernels, device: Cpu, registers: Array | float) -> Array:
    """The filters of one visit of a block of channels, taps outside the image too [B].

    registers lanes each k / depth element, [D, V]

    registers: of the channels [1], a float or [D, V]
    lanes: fp32 values of a SIMD register
    number: visits of each result
    each: channels of one visit
    element: size of a value [B]

    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as some
    >>> filter_bytes(some(depth=512.0, deep=128.0, k=512.0, operand_a=4.0), find("epyc_9655").device, 4.0).item()
    32768.0
    """
    _, each = visits(kernels, device)
    lanes = device.core.simd / LANE_BITS
    return np.asarray(registers * lanes * each * kernels.k / np.maximum(kernels.depth, 1.0) * kernels.operand_a)


def filter_wait(kernels: CpuKernels, device: Cpu, rate: Array, workers: Array, speed: Array, bandwidth: Array) -> Array:
    """Time in which the busiest core of a direct convolution waits for filters from memory [s]; 0 for other kernels.

    groups number (whole W(block) + W(last)) / share, W = delay + max(0, size / feed - begin / speed), [D, V]

    rate: multiply-adds per clock that the library's instructions start [FMA/clk], [D, V]
    workers: cores at work, [D, V]
    speed: their clock [Hz], [D, V]
    bandwidth: of memory for all of them [B/s], [D, V]
    whole: blocks of `block` registers of channels
    last: registers that are left over
    number: visits of each result
    each: channels of one visit
    groups: groups of the convolution
    share: cores that have filters of their own; the others read the same, for pixels of their own
    feed: bandwidth of memory for one of these [B/s]
    delay: latency of memory [s]
    size_block, size_last: filters of one visit [B], `filter_bytes`
    begin_block, begin_last: clocks of the pixels that are computed meanwhile [clk], `first_clocks`
    wait_block, wait_last: wait for the filters of one visit [s]
    shared: whether a filter serves several pixels from the first level

    The filters of one visit are read while the first pixels are computed, and serve all others from the first level. A channel's
    own filters (depthwise) lie one behind the other and are read ahead.

    >>> import numpy as np
    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as some
    >>> layer = some(pixels=3.0, run=49.0, taps=1.0, edges=0.0, edge_taps=0.0, depth=128.0, deep=128.0, channels=64.0, block=4.0,
    ...              k=128.0, a_bytes=32768.0, operand_a=4.0)
    >>> cpu, one = find("epyc_9655").device, np.ones(1)
    >>> waited = filter_wait(layer, cpu, 32.0, one, 3e9, 32e9).item()  # 32 KiB in 1,024 ns, 512 ns of them computing
    >>> round((waited - cpu.memory.latency) * 1e9)
    512
    """
    whole, last = channel_sets(kernels, device)
    number, _ = visits(kernels, device)
    delay = device.memory.latency
    groups = kernels.a_bytes / np.maximum(kernels.operand_a * kernels.channels * kernels.k, 1.0)
    share = np.minimum(workers, np.maximum(groups * (whole + np.minimum(last, 1.0)), 1.0))
    feed = np.minimum(core_bandwidth(device), bandwidth / share)
    size_block, size_last = filter_bytes(kernels, device, kernels.block), filter_bytes(kernels, device, last)
    begin_block = first_clocks(kernels, device, rate, kernels.block)
    begin_last = first_clocks(kernels, device, rate, last)
    wait_block = delay + np.maximum(0.0, size_block / feed - begin_block / speed)
    wait_last = np.where(last > 0, delay + np.maximum(0.0, size_last / feed - begin_last / speed), 0.0)
    shared = (kernels.pixels > 0) & (kernels.depth > 1)
    return np.asarray(np.where(shared, groups * number * (whole * wait_block + wait_last) / share, 0.0))

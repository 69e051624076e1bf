"""How a library of BLAS cuts a product for a CPU: register blocks, of fp32 and of narrow operands, and panels of each cache.

Low, Igual, Smith and Quintana-Orti, Analytical Modeling Is Enough for High-Performance BLIS, ACM TOMS 43 (2016); the loops are
those of Goto and van de Geijn (2008). The paper rounds down to whole ways; here ways are divided as they come, since two
registers of sixteen lanes would leave it none.
"""

from __future__ import annotations

import numpy as np

from archsim.cost.cost import Array
from archsim.device.cpu_core import ELEMENT_BYTES, FORMS, CpuCache
from archsim.device.device import Cpu
from archsim.lower.kernel import CpuKernels

LANE_BITS = 32  # bit of an fp32 lane of a SIMD register
LANE_BYTES = 4  # bytes of it
COLUMN_REGISTERS = 2.0  # registers of a row of a register block
OPERAND_REGISTERS = 4.0  # registers beside the results of a block: two for each operand


def micro_tile(device: Cpu) -> tuple[Array, Array]:
    """Rows and columns of the register block of a product [1].

    rows = floor((registers - 4) / 2), columns = 2 lanes, each [D, 1]

    simd_lanes: fp32 values of a SIMD register
    block_m: rows: all registers that the instruction set names, but those of the operands
    block_n: columns: two registers

    6 x 16 values of AVX2, 14 x 32 of AVX-512, as MKL, BLIS and MLAS have them: more than the latency of the multipliers asks for
    (Low et al. 2016, equation 1), since each value that is loaded is then used more often.

    >>> from types import SimpleNamespace as some
    >>> [value.item() for value in micro_tile(some(core=some(simd=256.0, registers=16.0)))]  # AVX2
    [6.0, 16.0]
    """
    simd_lanes = device.core.simd / LANE_BITS
    block_n = COLUMN_REGISTERS * simd_lanes
    block_m = np.maximum(np.floor((device.core.registers - OPERAND_REGISTERS) / COLUMN_REGISTERS), 1.0)
    return np.asarray(block_m, dtype=float), np.asarray(block_n, dtype=float)


def library_rate(kernels: CpuKernels, device: Cpu, precision: str) -> Array:
    """Multiply-adds per clock that the instructions of a library start on one core [FMA/clk].

    peak (min(simd, core.simd) / core.simd) (1 if fused else min(1, 1 / fma_ports)), [D, V]

    peak: of the core, `Cpu.pipe`
    apart: share of it without fused multiply-adds: a multiplication and an addition take what two of them would
    simd: registers that the instructions name at most [bit], [V]

    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as some
    >>> from archsim.lower.columns import CpuRuntime
    >>> avx = some(runtime=CpuRuntime(simd=256.0, fused=0.0))
    >>> library_rate(avx, find("i7_6700k").device, "fp32").item()  # on a core with two FMA units
    8.0
    """
    apart = np.where(kernels.runtime.fused > 0, 1.0, np.minimum(1.0, 1.0 / device.core.fma_ports))
    return np.asarray(device.pipe(precision) * (np.minimum(kernels.runtime.simd, device.core.simd) / device.core.simd) * apart)


def step_clocks(device: Cpu, rate: Array | float, height: Array | float, registers: Array | float) -> Array:
    """Clocks of one step of k in one register block [clk].

    max(height registers lanes / rate, latency), 0 without rows, [D, V]

    lanes: fp32 values of a SIMD register
    rate: multiply-adds per clock that the library's instructions start [FMA/clk], [D, V]
    height: rows of the block [1], [D, V]
    registers: of each row [1]

    A block of few results waits for each sum before it adds to it: `fma_latency`.

    >>> from archsim.device.catalog import find
    >>> cpu = find("i7_6700k").device  # of 8 lanes and a latency of 4 clocks
    >>> [step_clocks(cpu, 16.0, height, 2.0).item() for height in (6.0, 2.0, 0.0)]
    [6.0, 4.0, 0.0]
    """
    lanes = device.core.simd / LANE_BITS
    return np.asarray(np.where(height > 0, np.maximum(height * registers * lanes / rate, device.core.fma_latency), 0.0))


def block_step(kernels: CpuKernels, device: Cpu, rate: Array) -> Array:
    """Clocks in which one core makes one step of k in all register blocks of a launch [clk].

    count (full_m (full_v S(R, 2) + rest_v S(R, 1)) + full_v S(rest_m, 2) + rest_v S(rest_m, 1)), [D, V]; S: `step_clocks`

    rate: multiply-adds per clock that the library's instructions start [FMA/clk], [D, V]
    lanes: fp32 values of a SIMD register
    block_m: R, rows of a register block
    rows: of the results: pixels of a direct convolution, whose channels lie in the lanes
    columns: of the results
    full_m: blocks of `block_m` rows
    rest_m: rows beyond them
    across: registers of a row of the results
    full_v: pairs of them
    rest_v: 1 where a single one is left over
    of_pair: clocks of a block of `block_m` rows of two registers [clk]
    of_single: of one register [clk]
    low_pair, low_single: clocks of those of `rest_m` rows [clk]
    blocks_m: clocks of the blocks of `block_m` rows [clk]
    blocks_rest: clocks of the blocks of fewer rows [clk]

    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as some
    >>> product = some(m=8.0, n=32.0, count=1.0, packed=1.0)
    >>> block_step(product, find("i7_6700k").device, 16.0).item()  # 6 x 16 twice: 6 clocks each; 2 x 16 twice: 4 each
    20.0
    """
    lanes = device.core.simd / LANE_BITS
    block_m, _ = micro_tile(device)
    direct = np.asarray(kernels.packed) == 0
    rows, columns = np.where(direct, kernels.n, kernels.m), np.where(direct, kernels.m, kernels.n)
    full_m = np.floor(rows / block_m)
    rest_m = rows - full_m * block_m
    across = np.ceil(columns / lanes)
    full_v = np.floor(across / COLUMN_REGISTERS)
    rest_v = across - full_v * COLUMN_REGISTERS
    of_pair, of_single = step_clocks(device, rate, block_m, COLUMN_REGISTERS), step_clocks(device, rate, block_m, 1.0)
    blocks_m = full_m * (full_v * of_pair + rest_v * of_single)
    low_pair, low_single = step_clocks(device, rate, rest_m, COLUMN_REGISTERS), step_clocks(device, rate, rest_m, 1.0)
    blocks_rest = full_v * low_pair + rest_v * low_single
    return np.asarray(kernels.count * (blocks_m + blocks_rest))


def panel_depth(device: Cpu, element: Array | float) -> Array:
    """Steps of k for which a panel of either operand fits the first level.

    kc = floor((ways - 1) way / ((rows + columns) element)), [D, V]        (Low et al. 2016, section 4.2)

    element: size of a value [B], a float or [V]

    A panel is as wide as a register block. One way of each set is left to the results.

    >>> from archsim.device.catalog import find
    >>> panel_depth(find("i7_5930k").device, 4.0).item()  # 28 kB for 22 values of each step
    325.0
    """
    block_m, block_n = micro_tile(device)
    l1_way = way(device.l1)
    return np.asarray(np.maximum(np.floor((device.l1.ways - 1.0) * l1_way / ((block_m + block_n) * element)), 1.0))


def block_rows(device: Cpu, element: Array | float) -> Array:
    """Rows of the block of A that stays in a core's second level beside one panel of B and one way for the results.

    mc = floor((ways - 1 - panel) way / (kc element)), [D, V]        (Low et al. 2016, section 4.3)

    panel_ways: ways that a panel of B takes
    element: size of a value [B], a float or [V]

    >>> from archsim.device.catalog import find
    >>> block_rows(find("i7_5930k").device, 4.0).item()  # six ways of 32 kB for rows of 325 values
    151.0
    """
    _, block_n = micro_tile(device)
    kc = panel_depth(device, element)
    l2_way = way(device.l2)
    panel_ways = np.ceil(kc * block_n * element / l2_way)
    return np.asarray(np.maximum(np.floor((device.l2.ways - 1.0 - panel_ways) * l2_way / (kc * element)), 1.0))


def block_columns(device: Cpu, element: Array | float) -> Array:
    """Columns of the block of B that stays in the last level beside the block of A of every core that shares it.

    nc = floor((ways - 1 - blocks) way / (kc element)), [D, V]        (Low et al. 2016, section 4.4); inf without a third level

    block_ways: ways that the blocks of A of all cores take
    free_ways: ways that they leave
    element: size of a value [B], a float or [V]

    >>> from archsim.device.catalog import find
    >>> block_columns(find("tegra_x1_cpu").device, 4.0).item()
    inf
    """
    if device.l3 is None:
        return np.asarray(np.inf)
    kc, mc = panel_depth(device, element), block_rows(device, element)
    l3_way = way(device.l3)
    block_ways = np.ceil(kc * mc * element * device.l3.shared_by / l3_way)
    free_ways = np.maximum(device.l3.ways - 1.0 - block_ways, 1.0)
    return np.asarray(np.maximum(np.floor(free_ways * l3_way / (kc * element)), 1.0))


def way(level: CpuCache) -> Array:
    """One way of a cache [B].

    size / ways, a float or [D, 1]; level: has `size` [B] and `ways` [1]

    >>> from types import SimpleNamespace as some
    >>> way(some(size=32768.0, ways=8.0)).item()
    4096.0
    """
    return np.asarray(level.size / level.ways)


def panels_of(kernels: CpuKernels, device: Cpu) -> Array:
    """Panels into which a library of BLAS cuts the inner dimension of a product.

    ceil(k / kc), [D, V]; 1 for loops over blocked layouts, which finish one block of results before the next, and for
    element-wise kernels

    element: size of a value [B]

    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as kernels
    >>> panels_of(kernels(packed=1.0, k=326.0, operand_a=4.0), find("i7_6700k").device).item()  # 325 steps of k fit
    2.0
    """
    element = np.maximum(kernels.operand_a, 1.0)
    return np.asarray(np.where(kernels.packed > 0, np.ceil(kernels.k / panel_depth(device, element)), 1.0))


# ------------------------------------------------------------------------------------------------------ narrow operands


def block_lines(registers: Array | float) -> Array:
    """Registers of results in a column of a register block [1].

    max(floor((registers - 4) / 2), 1), [D, 1]; registers: that hold operands and results [1]

    >>> [block_lines(registers).item() for registers in (16.0, 32.0, 8.0)]  # AVX2, AVX-512, tiles
    [6.0, 14.0, 2.0]
    """
    return np.asarray(np.maximum(np.floor((registers - OPERAND_REGISTERS) / COLUMN_REGISTERS), 1.0))


def narrow_clocks(kernels: CpuKernels, device: Cpu, rate: Array, form: str) -> Array:
    """Clocks of all register blocks of a product of narrow operands, summed over cores [clk].

    count (ceil(k / depth) + 1) sum of S(lines, registers) over its blocks, [D, V]
    S(lines, registers) = max(lines registers / started, latency), 0 for no lines

    rate: multiply-adds per clock that the library's instructions start [FMA/clk], [D, V]
    form: of the instructions, of FORMS
    depth, rows, columns: what one instruction takes of k and of the result, `Cpu.dot_shape`
    started: instructions per clock, rate / (rows columns depth)
    latency: of a sum [clk]

    Adding a block to the result in memory takes as long as one more step. Where each channel has filters of its own there is
    nothing to sum, and the operands of an instruction that sums (depth > 1) are widened. So are transforms of bytes into words of
    16 bit, of which a multiply-add takes as many as of fp32 (smlal, vpmaddwd with its addition).

    >>> from archsim.device.catalog import find
    >>> from archsim.lower.columns import CpuRuntime
    >>> from types import SimpleNamespace as some
    >>> product = some(m=64.0, n=64.0, k=640.0, count=1.0, packed=1.0, depthwise=0.0, runtime=CpuRuntime(),
    ...                operand_a=1.0, matrix=1.0)
    >>> narrow_clocks(product, find("xeon_platinum_8480").device, 1024.0, "int8_tile").item()  # 16 tiles, 10 + 1 steps of 16
    2816.0
    """
    shape = device.dot_shape(form)
    assert shape is not None
    latency = device.core.fma_latency if shape.latency is None else shape.latency
    started = rate / (shape.rows * shape.columns * shape.depth)
    direct = np.asarray(kernels.packed) == 0
    rows, columns = np.where(direct, kernels.n, kernels.m), np.where(direct, kernels.m, kernels.n)
    lines, across = np.ceil(rows / shape.rows), np.ceil(columns / shape.columns)
    most = block_lines(shape.registers)
    full, pairs = np.floor(lines / most), np.floor(across / COLUMN_REGISTERS)
    rest, single = lines - full * most, across - pairs * COLUMN_REGISTERS

    def step(height: Array, registers: float) -> Array:
        return np.where(height > 0, np.maximum(height * registers / started, latency), 0.0)

    blocks = full * (pairs * step(most, COLUMN_REGISTERS) + single * step(most, 1.0))
    blocks = blocks + pairs * step(rest, COLUMN_REGISTERS) + single * step(rest, 1.0)
    summed = kernels.count * blocks * (np.ceil(kernels.k / shape.depth) + 1.0)
    wide = library_rate(kernels, device, "fp32")
    widened = block_step(kernels, device, wide) * (kernels.k + 1.0)
    words = (np.asarray(kernels.operand_a) > ELEMENT_BYTES[FORMS[form].precision]) & (np.asarray(kernels.matrix) > 0)
    apart = (np.asarray(kernels.depthwise) > 0) & (shape.depth > 1)
    return np.asarray(np.where(apart | words, widened, summed))

"""Products of narrow operands on a CPU: register blocks whose instructions take several values of k at once."""

from __future__ import annotations

import numpy as np

from archsim.cost.blocking import COLUMN_REGISTERS, OPERAND_REGISTERS, block_step, library_rate
from archsim.cost.cost import Array
from archsim.device.cpu_core import ELEMENT_BYTES, FORMS
from archsim.device.device import Cpu
from archsim.lower.kernel import CpuKernels


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

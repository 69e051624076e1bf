"""Which kernels of a TPU have a program, and their time on its arrays."""

from __future__ import annotations

from math import ceil

import numpy as np

from archsim.cost.tpu import TpuTerms
from archsim.cycle.array.machine import array_machine, at_column
from archsim.cycle.array.program import TileProgram, product_program
from archsim.cycle.array.run import ArrayRun, run


def simulated_array(t: TpuTerms, column: int) -> ArrayRun | None:
    """One launch of the kernel of a column on the busiest array of the first device of `t`; None for what is no product."""
    if not t.kernels.matrix[column]:
        return None
    machine = array_machine(t, column)
    return run(_program(t, column, machine.sums), machine)


def simulated_tpu(t: TpuTerms, column: int) -> float | None:
    """Time of one launch [s]: that of the array, or of what works beside it where that takes longer; None without a program."""
    found = simulated_array(t, column)
    if found is None:
        return None
    beside = [at_column(t.vector_clk, column)]
    if t.device.buffer.bandwidth is not None:
        beside.append(at_column(t.buffer_bytes, column) / float(t.device.buffer.bandwidth))
    return max(found.clocks, *beside) / at_column(t.clock, column)


def _program(t: TpuTerms, column: int, sums: float) -> TileProgram:
    """The tiles that the busiest of several arrays gets, of all products of the launch."""
    k, array = t.kernels, t.device.array
    m, n, depth = (round(float(side[column])) for side in (k.m, k.n, k.k))
    one = product_program(n, m, depth, int(array.rows), int(array.columns), sums=sums)
    loads = at_column(t.loads, column)
    if bool(t.paired[column]):  # scores and results of attention: as many tiles as the closed form counts, of `m` rows each
        blocks = max(1, ceil(m / sums)) if np.isfinite(sums) else 1
        one = TileProgram(tiles=1, columns=1, blocks=(m / blocks,) * blocks)
    return TileProgram(tiles=one.tiles, columns=one.columns, blocks=one.blocks, repeat=loads / one.loads)

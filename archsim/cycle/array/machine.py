"""A systolic array as its simulation sees it: cells, accumulators, the queue of tiles and the memory behind it."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from archsim.cost.tpu import OPERANDS

if TYPE_CHECKING:
    from archsim.cost.cost import Array
    from archsim.cost.tpu import TpuTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayMachine:
    """One array.

    rows, columns: of cells; the rows hold what is summed
    weight_sets: sets of stationary operands that a cell holds
    feed: rows of moving operands that enter per clock
    queue: tiles that wait between memory and array; infinite where a whole buffer stands there
    tile_clk: clocks in which memory delivers a tile [clk]; 0 where operands are there already
    sums: rows of sums in one part of the accumulators; infinite where they leave at once
    sum_parts: parts of the accumulators
    """

    rows: int
    columns: int
    weight_sets: int = 1
    feed: float = 1.0
    queue: float = inf
    tile_clk: float = 0.0
    sums: float = inf
    sum_parts: int = 2

    @property
    def crossing(self) -> int:
        """Clocks from the entry of the last moving value to the exit of the last sum: the diagonal of the array [clk]."""
        return self.rows + self.columns - 2


def at_column(values: Array | float, column: int) -> float:
    """The value of one variant of one device, of what is [1, V], [V], [1, 1] or a number.

    >>> at_column(np.array([[1.0, 2.0]]), 1), at_column(3.0, 1)
    (2.0, 3.0)
    """
    row = np.ravel(values)
    return float(row[column] if row.size > 1 else row[0])


def array_machine(t: TpuTerms, column: int) -> ArrayMachine:
    """The busiest array of a TPU in one launch of a kernel, with its share of the memory's bandwidth.

    tile_clk = traffic of stationary operands / bandwidth x clock / tiles that the array loads
    feed = rate of the cells, or the moving rows over the clocks in which memory brings them and takes results, if that is less

    Where activations stay in the buffer (`buffer.resident`) all traffic is that of tiles. The queue is `fifo.tiles`, or as many
    tiles as half of the buffer holds.
    """
    device, kernels = t.device, t.kernels
    loads, clock, moved = max(at_column(t.loads, column), 1.0), at_column(t.clock, column), at_column(t.dram_bytes, column)
    clk_per_byte = clock / float(device.memory.bandwidth * device.memory.achievable)
    of_tiles = moved if device.buffer.resident else min(moved, at_column(kernels.a_bytes, column))
    brought = (moved - of_tiles) * clk_per_byte
    rows, rate = loads * at_column(t.streamed, column), at_column(np.asarray(t.rate), column)
    tile = float(device.array.rows * device.array.columns * at_column(kernels.operand_a, column)) or 1.0
    waiting = OPERANDS * float(device.buffer.size) / tile if device.fifo is None else float(device.fifo.tiles)
    sums = device.accumulator
    return ArrayMachine(
        rows=int(device.array.rows), columns=int(device.array.columns), weight_sets=int(device.array.weight_sets),
        feed=min(rate, rows / brought) if brought > 0 else rate, queue=max(1.0, waiting),
        tile_clk=of_tiles * clk_per_byte / loads,
        sums=inf if sums is None else float(sums.rows // sums.buffers), sum_parts=2 if sums is None else int(sums.buffers),
    )  # fmt: skip

"""Systolic arrays, clock by clock: products as tiles of weights, the machine that runs them, and the time of kernels of a TPU.

Time is kept for each tile, not each cell: within a tile every clock does the same, one diagonal of cells after the other, so that
the clocks between two of its events are known (Kung 1982). Events of a tile: it arrives from memory, is shifted into the cells,
rows pass through it, sums leave.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from math import ceil, inf
from typing import TYPE_CHECKING

import numpy as np

from archsim.base.errors import ArgumentError
from archsim.cost.tpu import OPERANDS, TpuTerms

if TYPE_CHECKING:
    from archsim.cost.cost import Array


# ---------------------------------------------------------------------------------------------------------- the program

DATAFLOWS = {  # which sizes of C[m, n] = A[m, k] B[k, n] lie along rows, along columns, and pass through; B has the filters
    "ws": ("k", "n", "m"),  # weight-stationary
    "is": ("k", "m", "n"),  # input-stationary
    "os": ("m", "n", "k"),  # output-stationary: sums stay in the cells and leave through the rows
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TileProgram:
    """The instructions of a product, in loops: for each block of moving rows, each column of tiles, each tile of the column.

    tiles: of one column, whose sums add up; columns: of tiles; blocks: rows that pass through the tiles of one block
    repeat: how often all of it runs, such as products of one launch
    shifted: whether stationary operands are shifted into the cells first, a row each clock; sums that stay there begin at zero
    """

    tiles: int
    columns: int
    blocks: tuple[float, ...]
    repeat: float = 1.0
    shifted: bool = True

    @property
    def loads(self) -> float:
        """Tiles that are loaded in all."""
        return self.repeat * self.tiles * self.columns * len(self.blocks)


def product_program(m: int, n: int, k: int, rows: int, columns: int, dataflow: str = "ws", sums: float = inf) -> TileProgram:
    """The program of C[m, n] = A[m, k] B[k, n] on an array of `rows` x `columns` cells.

    sums: rows of sums that the accumulators take at once; a block has no more rows. An output-stationary array adds up in its
    cells: every tile is complete in itself.

    Raises ArgumentError for a dataflow that is not one of `DATAFLOWS`.

    >>> product_program(3025, 96, 363, 256, 256)
    TileProgram(tiles=2, columns=1, blocks=(3025.0,), repeat=1.0, shifted=True)
    """
    if dataflow not in DATAFLOWS:
        raise ArgumentError(f"dataflow {dataflow!r} is not one of {', '.join(DATAFLOWS)}")
    size = {"m": m, "n": n, "k": k}
    along_rows, along_columns, moving = (size[name] for name in DATAFLOWS[dataflow])
    blocks = ceil(moving / sums) if sums < inf else 1
    return TileProgram(tiles=ceil(along_rows / rows), columns=ceil(along_columns / columns), blocks=(moving / blocks,) * blocks,
                       shifted=dataflow != "os")  # fmt: skip


# ---------------------------------------------------------------------------------------------------------- the machine


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


# ---------------------------------------------------------------------------------------------------- the array at work

MOST_TILES = 20000  # that are simulated; what follows runs at the pace of the second half of them


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayRun:
    """What a program took [clk]: in all, while rows passed (`active`), and waiting for tiles from memory (`stalled`)."""

    clocks: float
    active: float
    stalled: float


@lru_cache(maxsize=4096)
def run(program: TileProgram, machine: ArrayMachine) -> ArrayRun:
    """Run a program on an array.

    >>> from archsim.cycle.systolic import product_program
    >>> v1 = ArrayMachine(rows=256, columns=256, weight_sets=2)
    >>> run(product_program(1000, 256, 512, 256, 256), v1).clocks  # a tile shifted in, 2 x 1000 rows, the way out
    2766.0
    """
    state = _Array(machine, machine.rows if program.shifted else 0)
    total, done, half = program.loads, 0, 0.0
    for rows, last in islice(_tiles(program), MOST_TILES):
        state.step(rows, last)
        done += 1
        if done == MOST_TILES // 2:
            half = state.left
    if done >= total:
        return ArrayRun(clocks=state.left, active=state.active, stalled=state.stalled)
    pace, scale = (state.left - half) / (done - MOST_TILES // 2), total / done
    return ArrayRun(clocks=state.left + (total - done) * pace, active=state.active * scale, stalled=state.stalled * scale)


def _tiles(program: TileProgram) -> Iterator[tuple[float, bool]]:
    """The tiles in their order: rows that pass through each, and whether the sums of its column are complete behind it."""
    remaining = program.loads
    while remaining > 0:
        for rows in program.blocks:
            for _ in range(program.columns):
                for tile in range(program.tiles):
                    if remaining <= 0:
                        return
                    remaining -= 1
                    yield rows, tile == program.tiles - 1


class _Array:
    """The state between two tiles, in clocks since the start."""

    def __init__(self, machine: ArrayMachine, shift: int) -> None:
        self._m = machine
        self._shift = shift  # clocks in which a tile enters the cells
        self._drained = machine.crossing if machine.weight_sets == 1 else 0  # before one set of weights may be replaced
        self._arrived = 0.0  # the last tile from memory
        queued = 1 if machine.queue == inf else int(machine.queue)
        self._taken: deque[float] = deque(maxlen=queued)  # when tiles left the queue
        self._shifted = 0.0  # the last tile is in the cells
        never = [-float(self._drained)] * machine.weight_sets
        self._passed: deque[float] = deque(never, maxlen=machine.weight_sets)  # the rows of a tile are in
        self._read: deque[float] = deque([0.0] * machine.sum_parts, maxlen=machine.sum_parts)  # parts of the accumulators
        self._first = True  # of its column of tiles
        self.left = 0.0  # the last sums
        self.active = 0.0
        self.stalled = 0.0

    def step(self, rows: float, last: bool) -> None:
        """One tile with its moving rows; behind the `last` one of a column sums leave."""
        m = self._m
        slot = self._taken[0] if m.queue < inf and len(self._taken) == self._taken.maxlen else 0.0
        self._arrived = max(self._arrived, slot) + m.tile_clk
        # One set of weights is free once the last sum is out; with more, once the rows of its tile are in.
        free = self._passed[0] + self._drained
        ready = max(self._shifted, free)
        self.stalled += max(0.0, self._arrived - ready)
        start = max(ready, self._arrived)
        self._taken.append(start)
        self._shifted = start + self._shift
        begin = max(self._shifted, self._passed[-1])
        if self._first and m.sums < inf:
            begin = max(begin, self._read[0])
        through = begin + rows / m.feed
        self._passed.append(through)
        self.active += rows / m.feed
        if last:
            # Sums are read as they come, a row each clock, after those of the column before.
            done = max(through + m.crossing, max(self._read[-1], begin + m.rows) + rows / m.feed)
            self._read.append(done)
        self._first = last
        self.left = max(self.left, through + m.crossing)


# ----------------------------------------------------------------------------------------------------- kernels of a TPU


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
    return replace(one, repeat=loads / one.loads)

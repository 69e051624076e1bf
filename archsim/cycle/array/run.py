"""The array at work: each tile waits for its place in the queue, its weights, its rows and its sums.

Time is kept for each tile, not each cell: within a tile every clock does the same, one diagonal of cells after the other, so that
the clocks between two of its events are known (Kung 1982). Events of a tile: it arrives from memory, is shifted into the cells,
rows pass through it, sums leave.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from math import inf

from archsim.cycle.array.machine import ArrayMachine
from archsim.cycle.array.program import TileProgram

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

    >>> from archsim.cycle.array.program import product_program
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

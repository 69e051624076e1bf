"""Programs of tiled products on the fp32 lanes: blocks of A and B pass through shared memory, a thread holds its results."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isqrt, log2
from typing import Any

from archsim.cycle.machine import Machine
from archsim.cycle.program import FP32, Assembler, Program, Source

SET_UP = 24  # instructions that find the tile, its addresses and bounds; the result goes out with as many again for each row
# Instructions of the loop besides loads, stores and multiply-adds: for each load from memory its address of two words and its
# bound; where elements are gathered also the offset from a table and the bounds of a row and a column; and for each step of k the
# two buffers that change places and the count.
ADDRESS, GATHER, TURN = 3, 4, 4
TRANSFORM = 2.0  # additions for a value of a Winograd transform of 4 x 4: 32 for 16 (Lavin and Gray 2016, section 4.3)
LANE = 16  # B that a thread loads at once where it can


@dataclass(frozen=True, slots=True, kw_only=True)
class TiledProduct:
    """The tile of a CTA, as a menu has it, and its operands.

    m, n, k: rows and columns of the result of a CTA, and depth of one step; depth: of the whole loop of the CTA
    operand, operand_b: what a tile loads for one element of A, and of B if that differs [B]; a, b: where they are
    points: products side by side for each element, as in Winograd's algorithm; values of B are transformed on their way
    packed: results that one instruction makes, of operands that share a register
    gathered: whether elements of B are looked up one by one, as an implicit convolution does
    asked: the shares of its rows of A and columns of B that the CTA asks the L2 for; the others lie beyond the matrix, or another
    CTA of the same cluster loads them for both
    """

    m: int
    n: int
    k: int
    threads: int
    registers: int
    shared: float
    depth: int
    operand: float = 4.0
    a: Source = Source()
    b: Source = Source()
    c: Source = Source()
    stages: int = 2
    operand_b: float = 0.0
    points: float = 1.0
    packed: float = 1.0
    gathered: bool = False
    asked: tuple[float, float] = (1.0, 1.0)

    @property
    def trips(self) -> int:
        """Steps of the loop."""
        return max(1, ceil(self.depth / self.k))

    @property
    def cta(self) -> dict[str, Any]:
        """What a CTA takes of an SM, how often it loops and where its data are, as a program has them."""
        return {"threads": self.threads, "registers": self.registers, "shared": self.shared, "trips": self.trips,
                "streams": (self.a, self.b, self.c)}  # fmt: skip

    @property
    def loaded(self) -> tuple[float, float]:
        """Bytes of A and B that a thread loads for one step of the loop [B]."""
        b = self.operand_b or self.operand
        return self.m * self.k * self.operand / self.threads, self.n * self.k * b / self.threads


def blocks(tile: TiledProduct) -> tuple[int, int]:
    """Rows and columns of registers for the result of a thread, as square as their number allows.

    >>> blocks(TiledProduct(m=128, n=64, k=8, threads=128, registers=120, shared=0, depth=8))
    (8, 8)
    """
    each = max(1, round(tile.m * tile.n * tile.points / (tile.threads * tile.packed)))
    columns = next(side for side in range(isqrt(each), 0, -1) if each % side == 0)
    return each // columns, columns


def on_lanes(machine: Machine, tile: TiledProduct) -> Program:
    """A product on the fp32 lanes: a thread holds a block of the result and takes a column of A and a row of B at each step of k.

    Values of the next step are loaded from shared memory while those of this one are multiplied; the next block of A and B is on
    its way from memory meanwhile, and goes through registers (Volkov and Demmel 2008; S. Gray 2014).
    """
    rows, columns = blocks(tile)
    a = Assembler(warp=machine.warp)
    place = a.set_up(SET_UP)
    loads = [max(1, ceil(size / LANE)) for size in tile.loaded]
    lane = [max(4, min(LANE, round(size / count))) for size, count in zip(tile.loaded, loads, strict=True)]
    kept = tile.loaded[0], 4.0 * tile.points * tile.n * tile.k / tile.threads if tile.points > 1 else tile.loaded[1]
    address = a.register()
    staged = a.registers(sum(loads))
    result = a.register(rows * columns)
    fragments = [(a.register(rows), a.register(columns)) for _ in range(2)]

    def fetch(ahead: int = 0) -> None:
        for operand in (0, 1):
            for i in range(loads[operand]):
                for _ in range(ADDRESS + (GATHER if operand == 1 and tile.gathered else 0)):
                    a.arithmetic("IADD3", address, (address,))
                a.load(staged[i if operand == 0 else loads[0] + i], address, lane[operand], stream=operand,
                       size=lane[operand] * machine.warp * tile.asked[operand], ahead=ahead)  # fmt: skip

    def put() -> None:
        if tile.points > 1:
            for i in range(round(TRANSFORM * kept[1] / 4)):
                register = staged[loads[0] + i % loads[1]]
                a.arithmetic("FADD", register, (register,), pipe=FP32, reads=2)
        for operand in (0, 1):
            stores = max(1, ceil(kept[operand] / LANE))
            wide = max(4, min(LANE, round(kept[operand] / stores)))
            for i in range(stores):
                register = staged[(0 if operand == 0 else loads[0]) + i % loads[operand]]
                a.store_shared((register,), wide, wavefronts(machine, wide))
        a.barrier()

    def take(buffer: int) -> None:
        for piece in _pieces(fragments[buffer], (rows, columns)):
            one(piece)

    def one(piece: tuple[int, int]) -> None:
        register, values = piece
        a.load_shared(register, place, 4 * values, broadcast(machine, 4 * values))

    fetch()
    put()
    take(0)
    top = a.here
    fetch(ahead=1)
    for step in range(tile.k):
        now, then = fragments[step % 2], (step + 1) % 2
        if step == tile.k - 1:
            put()
        pending = _pieces(fragments[then], (rows, columns))
        done = 0
        for count in _interleaved(rows * columns, -(-rows // 4) + -(-columns // 4)):
            if pending and done:
                one(pending.pop(0))
            for i in range(done, done + count):
                row, column = i % rows, i // rows  # neighbours share a value of B, which the scheduler keeps
                a.arithmetic("FFMA", result + i, (result + i, now[0] + row // 4 * 4, now[1] + column // 4 * 4), pipe=FP32,
                             reads=3 - (1 if machine.register_reuse else 0))  # fmt: skip
            done += count
        for piece in pending:
            one(piece)
    for _ in range(TURN):
        a.arithmetic("IADD3", place, (place,))
    a.back(top)
    for _ in range(SET_UP // 2):
        a.arithmetic("IMAD", place, (place,))
    for i in range(0, rows * columns, 4):
        a.store((result + i, place), 16, stream=2)
    return a.program(**tile.cta)


def _pieces(into: tuple[int, int], counts: tuple[int, int]) -> list[tuple[int, int]]:
    """The loads from shared memory of a column of A and a row of B: the first register of each, and how many values."""
    return [(first + i, min(4, count - i)) for first, count in zip(into, counts, strict=True) for i in range(0, count, 4)]


def _interleaved(total: int, gaps: int) -> list[int]:
    """`total` instructions in pieces, with `gaps` places between them."""
    pieces = max(1, gaps + 1)
    return [total // pieces + (1 if i < total % pieces else 0) for i in range(pieces)]


def wavefronts(machine: Machine, lane_bytes: int) -> float:
    """Turns of the banks of a conflict-free access of a warp [clk]."""
    return lane_bytes * machine.warp / machine.shared_bandwidth


def broadcast(machine: Machine, lane_bytes: int) -> float:
    """Turns of the banks where threads of a warp read the same values [clk]: at least one for half a warp.

    A warp covers a part of the tile that is as square as its threads allow; those in a row read the same values of A.
    """
    distinct = float(2 ** ceil(log2(machine.warp) / 2))
    turns = distinct * lane_bytes / machine.shared_bandwidth
    return max(turns, 2.0 if lane_bytes == LANE else 1.0)

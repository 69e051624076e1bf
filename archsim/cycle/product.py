"""Programs of tiled products: blocks of A and B pass through shared memory, a thread or the tensor cores hold the result."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isqrt, log2

from archsim.cycle.machine import Machine
from archsim.cycle.program import FP32, INT, TENSOR, Assembler, Program, Source

SET_UP = 24  # instructions that find the tile, its addresses and bounds; the result goes out with as many again for each row
LANE = 16  # B that a thread loads at once where it can
STAGES = 4  # of asynchronous copies, where the menu does not say
# Rows and columns of the result, and steps of k, of one matrix instruction of a warp: the largest of each generation.
SHAPES = {"volta": (16, 16, 4), "turing": (16, 8, 8), "ampere": (16, 8, 16), "ada": (16, 8, 16), "hopper": (64, 64, 16),
          "blackwell": (64, 64, 16)}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TiledProduct:
    """The tile of a CTA, as a menu has it, and its operands.

    m, n, k: rows and columns of the result of a CTA, and depth of one step; depth: of the whole loop of the CTA
    operand: size of a value of A and B [B]; a, b: where they are
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
    stages: int = 2


def blocks(tile: TiledProduct) -> tuple[int, int]:
    """Rows and columns of the result that a thread holds, as square as their number allows.

    >>> blocks(TiledProduct(m=128, n=64, k=8, threads=128, registers=120, shared=0, depth=8))
    (8, 8)
    """
    each = max(1, round(tile.m * tile.n / tile.threads))
    columns = next(side for side in range(isqrt(each), 0, -1) if each % side == 0)
    return each // columns, columns


def on_lanes(machine: Machine, tile: TiledProduct) -> Program:
    """A product on the fp32 lanes: a thread holds a block of the result and takes a column of A and a row of B at each step of k.

    Values of the next step are loaded from shared memory while those of this one are multiplied; the next block of A and B is on
    its way from memory meanwhile, and goes through registers (Volkov and Demmel 2008; S. Gray 2014).
    """
    rows, columns = blocks(tile)
    a = Assembler(warp=machine.warp)
    place = a.register()
    for _ in range(SET_UP):
        a.arithmetic("IMAD", place, (place,), pipe=INT)
    loads = [max(1, ceil(side * tile.k * tile.operand / tile.threads / LANE)) for side in (tile.m, tile.n)]
    lane = [max(4, min(LANE, round(side * tile.k * tile.operand / tile.threads / count))) for side, count in
            zip((tile.m, tile.n), loads, strict=True)]  # fmt: skip
    staged = [a.register() for _ in range(sum(loads))]
    result = a.register(rows * columns)
    fragments = [(a.register(rows), a.register(columns)) for _ in range(2)]

    def fetch() -> None:
        for operand in (0, 1):
            for i in range(loads[operand]):
                a.load(staged[i if operand == 0 else loads[0] + i], place, lane[operand], stream=operand)

    def put() -> None:
        for operand in (0, 1):
            for i in range(loads[operand]):
                a.store_shared((staged[i if operand == 0 else loads[0] + i],), lane[operand], wavefronts(machine, lane[operand]))
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
    fetch()
    for step in range(tile.k):
        now, then = fragments[step % 2], (step + 1) % 2
        last = step == tile.k - 1
        if last:
            put()
        pieces = _interleaved(rows * columns, -(-rows // 4) + -(-columns // 4))
        pending = _pieces(fragments[then], (rows, columns))
        done = 0
        for count in pieces:
            if pending and done:
                one(pending.pop(0))
            for i in range(done, done + count):
                row, column = i % rows, i // rows  # neighbours share a value of B, which the scheduler keeps
                a.arithmetic("FFMA", result + i, (result + i, now[0] + row // 4 * 4, now[1] + column // 4 * 4), pipe=FP32,
                             reads=3 - (1 if machine.register_reuse else 0))  # fmt: skip
            done += count
        for piece in pending:
            one(piece)
    a.arithmetic("IADD3", place, (place,), pipe=INT)
    a.back(top)
    for _ in range(SET_UP // 2):
        a.arithmetic("IMAD", place, (place,), pipe=INT)
    for i in range(0, rows * columns, 4):
        a.store((result + i, place), 16, stream=2)
    a.end()
    return a.program(threads=tile.threads, registers=tile.registers, shared=tile.shared,
                     trips=max(1, ceil(tile.depth / tile.k)), streams=(tile.a, tile.b, Source()))  # fmt: skip


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


def on_tensor_cores(machine: Machine, tile: TiledProduct, architecture: str, rate: float) -> Program:
    """A product on tensor cores: copies fill a ring of stages past the registers, warps load fragments and multiply them.

    rate: multiply-accumulates per clock and SM of the tensor cores [FMA/clk]
    """
    shape = SHAPES.get(architecture, SHAPES["ampere"])
    warps = max(1, tile.threads // machine.warp)
    a = Assembler(warp=machine.warp)
    place = a.register()
    for _ in range(SET_UP):
        a.arithmetic("IMAD", place, (place,), pipe=INT)
    share = tile.m * tile.n / warps  # of the result, of one warp
    wide = min(tile.n, 2 ** ceil(log2(max(1.0, share)) / 2))
    tall = max(1.0, share / wide)
    multiplications = max(1, round(tile.m * tile.n * tile.k / warps / (shape[0] * shape[1] * shape[2])))
    clocks = shape[0] * shape[1] * shape[2] / (rate / machine.schedulers)
    if multiplications * shape[0] * shape[1] * shape[2] > tile.m * tile.n * tile.k / warps * 1.5:  # a tile below one shape
        clocks *= tile.m * tile.n * tile.k / warps / (multiplications * shape[0] * shape[1] * shape[2])
    depth = max(1, round(tile.k / shape[2]))
    fragments = max(1, ceil((tall + wide) * tile.k * tile.operand / (machine.warp * LANE)))
    copied = (tile.m + tile.n) * tile.k * tile.operand / tile.threads
    copies = max(1, ceil(copied / LANE))
    size = copied / copies * machine.warp
    accumulators = [a.register() for _ in range(max(1, multiplications // depth))]
    loaded = [a.register() for _ in range(fragments)]
    asynchronous = architecture not in ("volta", "turing")
    staged = [a.register() for _ in range(copies)]

    def fetch() -> None:
        for i in range(copies):
            stream = 0 if i < copies * tile.m / (tile.m + tile.n) else 1
            if asynchronous:
                a.copy(LANE, stream, size)
            else:
                a.load(staged[i], place, LANE, stream, size)
        if asynchronous:
            a.commit()

    def land() -> None:
        if asynchronous:
            a.await_copies(tile.stages - 2)
        else:
            for register in staged:
                a.store_shared((register,), LANE, size / machine.shared_bandwidth)
        a.barrier()

    for _ in range(max(1, tile.stages - 1) if asynchronous else 1):
        fetch()
    if not asynchronous:
        land()
    top = a.here
    if asynchronous:
        land()
    fetch()
    direct = architecture in ("hopper", "blackwell")  # both operands come from shared memory
    step = 0
    for d in range(depth):
        if not direct:
            for i in range(d * fragments // depth, (d + 1) * fragments // depth):
                a.load_shared(loaded[i], place, LANE, wavefronts(machine, LANE))
        for accumulator in accumulators:
            source = loaded[min(len(loaded) - 1, step * fragments // max(1, multiplications))]
            a.arithmetic("MMA", accumulator, (source,) if not direct else (), pipe=TENSOR, reads=0, clocks=clocks)
            step += 1
    if not asynchronous:
        land()
    a.arithmetic("IADD3", place, (place,), pipe=INT)
    a.back(top)
    for accumulator in accumulators:
        a.arithmetic("IMAD", accumulator, (accumulator,), pipe=INT)
    stored = tile.m * tile.n * 2.0 / tile.threads
    for i in range(max(1, ceil(stored / LANE))):
        a.store((accumulators[i % len(accumulators)], place), LANE, stream=2)
    a.end()
    return a.program(threads=tile.threads, registers=tile.registers, shared=tile.shared,
                     trips=max(1, ceil(tile.depth / tile.k)), streams=(tile.a, tile.b, Source()))  # fmt: skip

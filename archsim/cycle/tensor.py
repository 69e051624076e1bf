"""Programs of tiled products on tensor cores, with the structure of the kernels of each generation.

- A warp issues, copies go through registers (Volta, Turing): two buffers; the next one is loaded while this one is multiplied.
- A warp issues, each thread copies past the registers (Ampere, Ada): a ring of stages, with one barrier for each.
- A group of four warps issues, operands stay in shared memory (Hopper): one warp starts bulk copies into a ring of stages.
- A thread issues, results are in tensor memory (Blackwell): one warp copies, one multiplies, four take the results out.

The last two follow the kernels of CUTLASS 3 that are specialised by warp (collectives of sm90 and sm100): a stage is full when
its bytes have arrived, and empty when the products that read it are done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil, log2

from archsim.cycle.machine import Machine, Matrix
from archsim.cycle.product import LANE, SET_UP, TiledProduct, wavefronts
from archsim.cycle.program import TENSOR, Assembler, Program

FULL, EMPTY, DONE = range(3)  # channels of a CTA: stages with data, stages without, results
MOST_STAGES = 32  # of a ring; more hide no latency that these do not
BOX = 128  # B of a row that a bulk copy writes at once: the widest swizzle of shared memory
GROUP = 4  # warps that issue one instruction together
RESULT = 2.0  # B of a value of the result in memory
COLUMNS = 32  # of the results that a thread takes out of tensor memory at once


def on_tensor_cores(machine: Machine, tile: TiledProduct) -> Program:
    """A product on tensor cores, as their instruction and the copies of the machine want it.

    Raises Unsupported for a machine without a matrix instruction.
    """
    mma = machine.needed()
    return PROGRAMS[mma.issue](machine, mma, tile)


def matrix_clocks(machine: Machine, mma: Matrix, tile: TiledProduct, m: int, n: int) -> float:
    """Clocks that one instruction takes all tensor cores of the SM where its operands come from shared memory [clk].

    max(M n d / (s R), (m + n) d / B)

    m, n: its rows and columns; M: rows of the full instruction, of which a part takes as long
    d: depth [B]; s: size of an operand [B]; R: rate of the SM [FMA/clk]; B: bandwidth of shared memory [B/clk]
    """
    pipe = mma.m * n * mma.depth / tile.operand / machine.tensor_rate
    return max(pipe, (m + n) * mma.depth / machine.shared_bandwidth)


def pieces(total: int, most: int) -> list[int]:
    """`total` in parts of at most `most`.

    >>> pieces(192, 128)
    [128, 64]
    """
    return [min(most, total - begin) for begin in range(0, total, most)]


def by_threads(machine: Machine, mma: Matrix, tile: TiledProduct) -> Program:
    """One thread copies, one multiplies; results gather in tensor memory, and four warps take them out (tcgen05)."""
    a = Assembler(warp=machine.warp)
    copier = _copier(a, tile, givers=1)
    multiplier = a.here
    a.set_up(SET_UP)
    top = a.here
    a.take(FULL)
    for _ in range(_steps(mma, tile)):
        for m in pieces(tile.m, mma.m):
            for n in pieces(tile.n, mma.n):
                a.deferred("UTCMMA", matrix_clocks(machine, mma, tile, m, n))
    a.give(EMPTY)
    a.back(top)
    a.give(DONE)
    a.end()
    last = a.here
    place = a.set_up(SET_UP)
    a.take(DONE)
    values = a.register(COLUMNS)
    rows = GROUP * machine.warp
    for count in pieces(ceil(tile.m / rows) * tile.n, COLUMNS):
        a.load_shared(values, place, 4 * count, 1.0)
        _convert(a, values, count)
        _store(a, (values, place), count * RESULT)
    return a.program(**tile.cta | {"threads": (2 + GROUP) * machine.warp}, roles=((0, copier), (1, multiplier), (2, last)),
                     period=_stages(tile))  # fmt: skip


def by_groups(machine: Machine, mma: Matrix, tile: TiledProduct) -> Program:
    """A warp copies, groups of four warps multiply what is in shared memory and hold the results (WGMMA)."""
    groups = max(1, tile.threads // (GROUP * machine.warp) - (1 if tile.threads > 2 * GROUP * machine.warp else 0))
    tall, wide = (tile.m, tile.n) if tile.m >= mma.m else (tile.n, tile.m)  # a short side is the columns of the instruction
    if tall >= mma.m * groups:
        tall = ceil(tall / groups)
    else:
        wide = ceil(wide / groups)
    a = Assembler(warp=machine.warp)
    place = a.set_up(SET_UP)
    top = a.here
    a.take(FULL)
    parts = [(m, n) for m in pieces(tall, mma.m) for n in pieces(wide, mma.n)]
    for _ in range(_steps(mma, tile)):
        for m, n in parts:
            a.deferred("WGMMA", matrix_clocks(machine, mma, tile, m, n))
    a.give(EMPTY)
    a.back(top)
    a.commit()
    a.await_copies(0)
    held = max(1, ceil(tall * wide / (GROUP * machine.warp)))
    values = a.register(min(held, COLUMNS))
    for count in pieces(held, COLUMNS):
        _convert(a, values, count)
        _store(a, (values, place), count * RESULT)
    a.end()
    copier = _copier(a, tile, givers=groups * GROUP)
    return a.program(**tile.cta | {"threads": (groups * GROUP + 1) * machine.warp}, launched=tile.threads,
                     roles=((0, 0), (groups * GROUP, copier)), period=_stages(tile))  # fmt: skip


def _copier(a: Assembler, tile: TiledProduct, givers: int) -> int:
    """The warp whose one thread fills the ring; returns where it begins. `givers` warps empty a stage together."""
    begin = a.here
    a.set_up(SET_UP)
    top = a.here
    a.take(EMPTY, givers, ready=_stages(tile))
    for stream, side in enumerate((tile.m, tile.n)):
        boxes = pieces(max(1, round(tile.k * tile.operand)), BOX)
        for width in boxes:
            a.bulk(side * width * tile.asked[stream], side, stream)
    a.give(FULL)
    a.back(top)
    a.end()
    return begin


def by_warps(machine: Machine, mma: Matrix, tile: TiledProduct) -> Program:
    """Warps load fragments from shared memory and multiply them (HMMA); the next fragments come while these are multiplied."""
    warps = max(1, tile.threads // machine.warp)
    tall, wide = _share(tile, warps)
    steps = _steps(mma, tile)
    clocks = mma.m * mma.n * mma.depth / tile.operand / (machine.tensor_rate / machine.schedulers)
    a = Assembler(warp=machine.warp)
    place = a.set_up(SET_UP)
    results = [a.registers(ceil(wide / mma.n)) for _ in range(ceil(tall / mma.m))]
    # fragments of a step: loads of 16 bytes a thread, for rows of A and columns of B
    per_load = machine.warp * LANE / mma.depth
    counts = [ceil(tall / per_load), ceil(wide / per_load)]
    fragments = [[a.registers(count) for count in counts] for _ in range(2)]
    copied = (tile.m + tile.n) * tile.k * tile.operand / tile.threads
    copies = max(2, ceil(copied / LANE))
    of_a = min(copies - 1, max(1, round(copies * tile.m / (tile.m + tile.n))))  # the first ones
    size = copied / copies * machine.warp
    staged = a.registers(copies)
    asynchronous = machine.copies != "none"
    ahead = min(max(1, _stages(tile) - 1), tile.trips) if asynchronous else 1

    def fetch(before: int = 0) -> None:
        for i in range(copies):
            stream = 0 if i < of_a else 1
            asked = size * tile.asked[stream]
            if asynchronous:
                a.copy(LANE, stream, asked, before)
            else:
                a.load(staged[i], place, LANE, stream, asked, before)
        if asynchronous:
            a.commit()

    def land(open_groups: int) -> None:
        if asynchronous:
            a.await_copies(open_groups)
        else:
            for register in staged:
                a.store_shared((register,), LANE, size / machine.shared_bandwidth)
        a.barrier()

    def take(buffer: int) -> None:
        for side in fragments[buffer]:
            for register in side:
                a.load_shared(register, place, LANE, wavefronts(machine, LANE))

    for _ in range(ahead):
        fetch()
    land(ahead - 1)
    take(0)
    top = a.here
    fetch(ahead)
    for step in range(steps):
        if step == steps - 1:
            land(ahead - 1)
        take((step + 1) % 2)
        now = fragments[step % 2]
        for i, row in enumerate(results):
            for j, result in enumerate(row):
                sources = (result, now[0][int(i * mma.m / per_load)], now[1][int(j * mma.n / per_load)])
                a.arithmetic("HMMA", result, sources, pipe=TENSOR, reads=0, clocks=clocks)
    a.turn(place, top)
    for row in results:
        for result in row:
            a.arithmetic("F2F", result, (result,))
    flat = [result for row in results for result in row]
    for i, part in enumerate(pieces(ceil(tile.m * tile.n * RESULT / tile.threads), LANE)):
        a.store((flat[i % len(flat)], place), part, stream=2)
    return a.program(**tile.cta, period=ahead + 1 if asynchronous else 1)


def _share(tile: TiledProduct, warps: int) -> tuple[int, int]:
    """Rows and columns of the result of one warp, as square as powers of two allow."""
    columns = min(warps, 2 ** max(0, round(log2(max(1.0, warps * tile.n / tile.m)) / 2)))
    return ceil(tile.m * columns / warps), ceil(tile.n / columns)


def _stages(tile: TiledProduct) -> int:
    return min(max(2, tile.stages), MOST_STAGES)


def _steps(mma: Matrix, tile: TiledProduct) -> int:
    """Instructions along the depth of a stage."""
    return max(1, ceil(tile.k * tile.operand / mma.depth))


def _convert(a: Assembler, first: int, values: int) -> None:
    for i in range(0, values, 2):
        a.arithmetic("F2FP", first + i, (first + i,))


def _store(a: Assembler, source: tuple[int, int], lane_bytes: float) -> None:
    for part in pieces(ceil(lane_bytes), LANE):
        a.store(source, part, stream=2)


PROGRAMS: Mapping[str, Callable[[Machine, Matrix, TiledProduct], Program]] = {
    "warp": by_warps, "group": by_groups, "thread": by_threads,
}  # fmt: skip

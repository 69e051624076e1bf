"""Programs of fused attention: a CTA holds a tile of queries, blocks of keys and values pass by, scores stay in registers."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2
from typing import Any

from archsim.cycle.machine import Machine
from archsim.cycle.product import LANE, broadcast, wavefronts
from archsim.cycle.program import FP32, SPECIAL, TENSOR, Assembler, Program, Source

SET_UP = 40  # instructions that find sample, head, tile, the lengths of its sequence and four addresses
ROWS, COLUMNS, DEPTH = 16, 8, 32  # of a warp's matrix instruction: rows and columns of the result, bytes of k (PTX, mma.m16n8k16)
HELD = 4  # results of such an instruction that each thread holds, in two rows
QUAD = 4  # threads that hold a row of them together
COPIERS = 128  # threads of an overlapped CTA that only copy (Shah et al. 2024, FlashAttention-3, section 3.1)
CONVERT = 2  # instructions for each 4 B of two narrow values that a lane multiplies in fp32
TOGETHER = 16  # exponentials of a thread under way at once; the pipe takes longer than its latency for so many
BEFORE = "FMNMX"  # of a score, before the argument of its exponential is known: the largest of its row
AROUND = "FFMA", "FADD", "F2F"  # and beside the exponential: scaled less the largest, added up, converted
UNROLLED = 4  # blocks of keys that a single query has under way (TensorRT-LLM, decoderMaskedMultiheadAttention: K_LOOP_UNROLL)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionTile:
    """A tile of queries of one head.

    m, n, k: queries, features, keys of a block; blocks: that pass by
    operand: size of a value [B]; keys: where keys and values are
    overlapped: groups of warps take turns, one multiplies while another takes exponentials
    direct: the tensor cores read keys and values from shared memory; copies: go there past the registers
    """

    m: int
    n: int
    k: int
    threads: int
    registers: int
    shared: float
    blocks: int
    operand: float = 2.0
    keys: Source = Source()
    results: Source = Source()
    overlapped: bool = False
    direct: bool = False
    copies: bool = True

    @property
    def cta(self) -> dict[str, Any]:
        """What a CTA takes of an SM, how often it loops and where its data are, as a program has them."""
        return {"threads": self.threads, "registers": self.registers, "shared": self.shared, "trips": max(1, self.blocks),
                "streams": (self.keys, Source(), self.results)}  # fmt: skip


def attend(machine: Machine, tile: AttentionTile, rate: float) -> Program:
    """The program of a tile on tensor cores, on fp32 lanes (rate 0), or of a single query.

    rate: multiply-accumulates per clock of the tensor cores of an SM [FMA/clk]
    """
    if tile.m == 1:
        return single_query(machine, tile)
    return on_matrix_pipes(machine, tile, rate) if rate else on_fp32_pipes(machine, tile)


def _begin(machine: Machine) -> tuple[Assembler, int]:
    a = Assembler(warp=machine.warp)
    place = a.set_up(SET_UP)
    return a, place


def _copy(a: Assembler, tile: AttentionTile, machine: Machine, place: int, values: float, threads: int, stream: int) -> None:
    """The share of a warp in `values` that go from memory to shared memory."""
    own = values * tile.operand / threads
    count = max(1, ceil(own / LANE))
    size = own / count * machine.warp
    landed = a.registers(0 if tile.copies else count)
    for i in range(count):
        if tile.copies:
            a.copy(LANE, stream, size)
        else:
            a.load(landed[i], place, LANE, stream, size)
    for register in landed:
        a.store_shared((register,), LANE, size / machine.shared_bandwidth)
    if tile.copies:
        a.commit()


def on_matrix_pipes(machine: Machine, tile: AttentionTile, rate: float) -> Program:
    """Two products on tensor cores around a softmax (Dao 2023, FlashAttention-2, algorithm 1).

    Keys of a block are awaited, its values copied meanwhile, and the keys of the next one while the values are multiplied. Groups
    of warps that overlap have two blocks in shared memory and do not wait for each other.
    """
    threads = tile.threads - COPIERS if tile.overlapped else tile.threads
    warps = threads // machine.warp
    a, place = _begin(machine)
    step = DEPTH / tile.operand
    tall = max(1, round(tile.m / warps / ROWS))  # instructions that cover the rows of a warp
    part = tile.m / warps / ROWS / tall  # of their rows, what is a query
    shared = machine.mma is not None and machine.mma.issue == "thread"  # the tensor cores of all partitions are one pipe
    clocks = ROWS * COLUMNS * step * part / (rate if shared else rate / machine.schedulers)
    scores = a.registers(tall * ceil(tile.k / COLUMNS))
    result = a.registers(tall * ceil(tile.n / COLUMNS))
    largest = a.registers(2 * tall)
    fragment = a.registers(2)

    def multiply(into: list[int], depth: int, wide: int, operand: list[int] | None = None) -> None:
        loads = max(1, ceil(wide * step * tile.operand / (LANE * machine.warp)))
        for d in range(ceil(depth / step)):
            if not tile.direct:
                for _ in range(loads):
                    a.load_shared(fragment[d % 2], place, LANE, wavefronts(machine, LANE))
            of = () if operand is None else (operand[min(len(operand) - 1, d * len(operand) // ceil(depth / step))],)
            for register in into:
                a.arithmetic("MMA", register, of if tile.direct else (fragment[d % 2], *of), pipe=TENSOR, reads=0, clocks=clocks)

    def fetch() -> None:
        _copy(a, tile, machine, place, tile.n * tile.k, threads, 0)

    def land(under_way: int) -> None:
        if tile.copies:
            a.await_copies(under_way)
        if not tile.overlapped:
            a.barrier()

    _copy(a, tile, machine, place, tile.m * tile.n, threads, 1)
    fetch()
    if tile.overlapped:
        fetch()
    top = a.here
    if tile.overlapped:
        fetch()
        fetch()
        land(2)
    else:
        land(0)
        fetch()
    multiply(scores, tile.n, tile.k)
    exponentials = _softmax(a, scores, result, largest, tall)
    if not tile.overlapped:
        land(0)
        fetch()
    multiply(result, tile.k, tile.n, exponentials)
    a.turn(place, top)
    _finish(a, result, largest, place, HELD, tile.m * tile.n / threads)
    return a.program(**tile.cta | {"threads": threads, "registers": min(255, tile.registers * tile.threads // threads)})


def _softmax(a: Assembler, scores: list[int], result: list[int], largest: list[int], tall: int) -> list[int]:
    """Running maximum and sum of the rows (Milakov and Gimelshein 2018): results so far are scaled by what the maximum grew.

    Returns the registers of the exponentials, a few for each of `scores`.
    """
    other, scale = a.register(), a.register()
    held = [a.register(HELD) for _ in scores]
    for i, score in enumerate(scores):
        for half in (0, 1, 0, 1):  # a thread holds values of two rows, whose chains alternate
            row = largest[2 * (i % tall) + half]
            a.arithmetic(BEFORE, row, (row, score), pipe=FP32)
    for row in largest:
        a.across("FMNMX", row, other, QUAD)
        a.arithmetic("MUFU", scale, (row,), pipe=SPECIAL)
    for register in result:
        for _ in range(HELD):
            a.arithmetic("FMUL", register, (scale,), pipe=FP32, reads=2)
    every = [first + i for first in held for i in range(HELD)]
    _exponentials(a, every, [scores[i // HELD] for i in range(len(every))], largest)
    return held


def _exponentials(a: Assembler, into: list[int], scores: list[int], largest: list[int]) -> None:
    """Exponentials of scores, some at once, since each goes through pipes of long latency."""
    scaled, added, converted = AROUND
    sums = a.registers(4)
    for first in range(0, len(into), TOGETHER):
        group = list(zip(into, scores, strict=True))[first : first + TOGETHER]
        for register, score in group:
            a.arithmetic(scaled, register, (score, largest[0]), pipe=FP32)
        for register, _ in group:
            a.arithmetic("MUFU", register, (register,), pipe=SPECIAL)
        for i, (register, _) in enumerate(group):
            a.arithmetic(added, sums[i % 4], (sums[i % 4], register), pipe=FP32)
        for register, _ in group:
            a.arithmetic(converted, register, (register,), pipe=FP32)


def _finish(a: Assembler, result: list[int], largest: list[int], place: int, held: int, values: float) -> None:
    """The results over the sums of their rows, as halves."""
    for row in largest:
        a.arithmetic("MUFU", row, (row,), pipe=SPECIAL)
    for register in result:
        for _ in range(held):
            a.arithmetic("FMUL", register, (register, largest[0]), pipe=FP32)
    for i in range(max(1, ceil(values * 2.0 / LANE))):
        a.store((result[i % len(result)], place), LANE, stream=2)
    a.end()


def on_fp32_pipes(machine: Machine, tile: AttentionTile) -> Program:
    """Two products on the fp32 lanes: a thread holds a part of the scores, which go to the second product by shared memory."""
    a, place = _begin(machine)
    scores = a.registers(max(1, round(tile.m * tile.k / tile.threads)))
    result = a.registers(max(1, round(tile.m * tile.n / tile.threads)))
    operands = a.registers(4)
    largest = a.register()
    other = a.register()

    def multiply(into: list[int], depth: int) -> None:
        loads = max(1, ceil(2.0 * len(into) ** 0.5 / 4))  # a column and a row of its part, four values each
        for _ in range(depth):
            for i in range(loads):
                a.load_shared(operands[i % len(operands)], place, LANE, broadcast(machine, LANE))
            for i, register in enumerate(into):
                a.arithmetic("FFMA", register, (register, operands[i % min(loads, len(operands))]), pipe=FP32,
                             reads=3 - (1 if machine.register_reuse else 0))  # fmt: skip

    def block(values: int, stream: int = 0) -> None:
        _copy(a, tile, machine, place, values, tile.threads, stream)
        if tile.copies:
            a.await_copies(0)
        a.barrier()

    block(tile.m * tile.n, 1)
    top = a.here
    block(tile.k * tile.n)
    multiply(scores, tile.n)
    for score in scores:
        a.arithmetic(BEFORE, largest, (largest, score), pipe=FP32)
    a.across("FMNMX", largest, other, QUAD)
    _exponentials(a, scores, scores, [largest])
    for i in range(0, len(scores), 4):
        a.store_shared((scores[i],), LANE, wavefronts(machine, LANE))
    for register in result:
        a.arithmetic("FMUL", register, (register, largest), pipe=FP32)
    block(tile.k * tile.n)
    multiply(result, tile.k)
    a.turn(place, top)
    _finish(a, result, [largest], place, 1, tile.m * tile.n / tile.threads)
    return a.program(**tile.cta)


def single_query(machine: Machine, tile: AttentionTile) -> Program:
    """One query on the fp32 lanes: threads load keys and values straight to registers; those of one key add up by shuffles."""
    a, place = _begin(machine)
    blocks = min(UNROLLED, tile.blocks)
    own = tile.k * tile.n * blocks / tile.threads  # values of the keys of these blocks, of each thread
    loads = max(1, ceil(own * tile.operand / LANE))
    size = own * tile.operand / loads * machine.warp
    each = max(1, round(own / loads))
    of_a_key = max(1, round(tile.n * tile.operand / LANE))  # threads that share one
    keys, values, scores = (a.registers(loads) for _ in range(3))
    sums = a.registers(4)
    other = a.register()

    def take(register: int, into: int) -> None:
        for _ in range(each // 2 * CONVERT if tile.operand < 4 else 0):
            a.arithmetic("F2F", register, (register,), pipe=FP32)
        for _ in range(each):
            a.arithmetic("FFMA", into, (into, register), pipe=FP32, reads=2)

    top = a.here
    for register in (*keys, *values):
        a.load(register, place, LANE, 0, size)
    for key, score in zip(keys, scores, strict=True):
        take(key, score)
    for _ in range(ceil(log2(of_a_key))):
        for score in scores:
            a.shuffle(other, score)
            a.arithmetic("FADD", score, (score, other), pipe=FP32)
    _exponentials(a, scores, scores, [other])
    for i, value in enumerate(values):
        take(value, sums[i % len(sums)])
    a.turn(place, top)
    a.across("FADD", sums[0], other, machine.warp)  # results of all keys of the warp, then of all warps
    a.store_shared((sums[0],), LANE, wavefronts(machine, LANE))
    a.barrier()
    for _ in range(max(1, tile.threads // machine.warp)):
        a.load_shared(other, place, 4, 1.0)
        a.arithmetic("FADD", sums[0], (sums[0], other), pipe=FP32)
    a.store((sums[0], place), LANE, stream=2)
    return a.program(**tile.cta | {"trips": ceil(tile.blocks / blocks)})

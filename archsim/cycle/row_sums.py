"""Programs of kernels that need the sum of a row before they write it: normalisation of channels and rows, softmax."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2

from archsim.cost.row_visits import UNROLLED
from archsim.cycle.machine import Machine
from archsim.cycle.program import FP32, SPECIAL, Assembler, Program, Source

SET_UP = 6  # instructions that find the row and the thread's first place in it
LOOPED = 16  # loads of a thread that stay in its registers; a longer row is read in loops
MOST_THREADS = 512  # of a CTA for one row (cuDNN, bn_fw_tr_1C11; PyTorch, SoftMax_getBlockSize for rows of up to 4,096 values)
SMALL = 128  # threads of a CTA whose warps have a row each (PyTorch, PersistentSoftmax.cuh)
PIECES = 4  # instructions of an address where a row lies in pieces: divide by the piece (multiply high, shift), multiply, add
MOMENTS = 2  # of a row: sum and sum of squares, or maximum and sum of exponentials
SECTOR = 32  # B


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows that are read, and where they lie.

    row: values; piece: of these side by side; value, lane: size of one, and what a thread loads at once [B]
    arrays: that are read beside each other; passes: how often
    arithmetic, special: fp32 instructions and special functions of a value in all passes
    first, again: where the values are at the first pass and at the others
    """

    row: int
    piece: int
    value: float = 4.0
    lane: int = 4
    arrays: int = 1
    passes: int = 2
    arithmetic: int = 4
    special: int = 0
    warp: int = 32
    first: Source = Source()
    again: Source = Source()

    @property
    def threads(self) -> int:
        """Threads of a row: a power of two of which each has a load, at least a warp's."""
        loads = self.row * self.value / self.lane
        return int(min(MOST_THREADS, max(self.warp, 2 ** ceil(log2(max(1.0, loads / UNROLLED))))))

    @property
    def loads(self) -> int:
        """Loads of a thread from one array in one pass."""
        return max(1, ceil(self.row * self.value / (self.lane * self.threads)))

    @property
    def kept(self) -> bool:
        """Whether a thread keeps its values in registers, so that it reads once."""
        return self.passes < 2 and self.loads * self.arrays <= LOOPED


def rows_of_cta(rows: Rows) -> int:
    """Rows of one CTA: several where a warp has one to itself."""
    return max(1, SMALL // rows.threads) if rows.threads == rows.warp else 1


def row_sums(machine: Machine, rows: Rows, registers: int = 32) -> Program:
    """A kernel that reads its row, adds up in the warp and across the CTA, and reads it again to write; or keeps it meanwhile."""
    a = Assembler(warp=machine.warp)
    place = a.set_up(SET_UP)
    moments = [a.register() for _ in range(MOMENTS)]
    count = rows.loads if rows.kept else min(UNROLLED, rows.loads)
    trips = 1 if rows.kept else max(1, ceil(rows.loads / count))
    values = [a.register() for _ in range(count * rows.arrays)]
    looped = max(2, rows.passes)  # what is not kept is read twice at least
    if rows.kept:
        _load(a, rows, machine, values, place, stream=0)
        _add_up(a, rows, values, moments, 2)
        _reduce(a, rows, machine, moments)
        _write(a, rows, values, moments, place, 2)
    for turn in range(0 if rows.kept else looped):
        top = a.here
        _load(a, rows, machine, values, place, stream=0 if turn == 0 else 1)
        if turn < looped - 1:
            _add_up(a, rows, values, moments, looped)
        else:
            _write(a, rows, values, moments, place, looped)
        a.arithmetic("IADD3", place, (place,))
        if trips > 1:
            a.back(top)
        if turn < looped - 1:
            _reduce(a, rows, machine, moments)
    a.end()
    threads = rows.threads * rows_of_cta(rows)
    return a.program(threads=threads, registers=registers, shared=256.0 if rows.threads > rows.warp else 0.0, trips=trips,
                     streams=(rows.first, rows.again, Source(past_l2=rows.first.past_l2)))  # fmt: skip


def _load(a: Assembler, rows: Rows, machine: Machine, values: list[int], place: int, stream: int) -> None:
    address = a.register()
    size = rows.lane * machine.warp * spread(rows)
    each = len(values) // rows.arrays
    for i, value in enumerate(values):
        if i < each:  # the arrays have the same offsets
            for _ in range(PIECES if rows.piece < rows.row else 1):
                a.arithmetic("IMAD", address, (place,))
        a.load(value, address, rows.lane, stream=stream, size=size)


def spread(rows: Rows) -> float:
    """Bytes of the sectors that a piece touches over its own; a piece of whole sectors begins with one.

    >>> round(spread(Rows(row=49 * 64, piece=49)), 2), spread(Rows(row=1024, piece=1024))
    (1.14, 1.0)
    """
    own = rows.piece * rows.value
    if rows.piece >= rows.row or own % SECTOR == 0:
        return 1.0
    return (1.0 + (own - rows.value) / SECTOR) * SECTOR / own


def _per_load(rows: Rows) -> int:
    return max(1, round(rows.lane / rows.value))


def _add_up(a: Assembler, rows: Rows, values: list[int], moments: list[int], passes: int) -> None:
    for i in range(len(values) // rows.arrays):
        inputs = values[i :: len(values) // rows.arrays]
        for _ in range(_per_load(rows)):
            for k in range(max(MOMENTS, rows.arithmetic // passes)):
                moment = moments[k % MOMENTS]
                a.arithmetic("FFMA", moment, (moment, *inputs), pipe=FP32, reads=2)
            for _ in range(rows.special):
                a.arithmetic("MUFU", moments[-1], (moments[-1],), pipe=SPECIAL)


def _reduce(a: Assembler, rows: Rows, machine: Machine, moments: list[int]) -> None:
    """Sums of a warp by shuffles; of several warps through shared memory, where the first one adds up what the others put."""
    other = a.register()

    for moment in moments:
        a.across("FADD", moment, other, machine.warp)
    if rows.threads <= rows.warp:
        return
    for moment in moments:
        a.store_shared((moment,), 4, 1.0)
    a.barrier()
    for moment in moments:
        a.load_shared(moment, moment, 4, 1.0)
        a.across("FADD", moment, other, machine.warp)
        a.store_shared((moment,), 4, 1.0)
    a.barrier()
    for moment in moments:
        a.load_shared(moment, moment, 4, 1.0)


def _write(a: Assembler, rows: Rows, values: list[int], moments: list[int], place: int, passes: int) -> None:
    each = len(values) // rows.arrays
    for i in range(each):
        inputs = values[i::each]
        for _ in range(_per_load(rows)):
            for _ in range(max(1, rows.arithmetic // passes)):
                a.arithmetic("FFMA", values[i], (*inputs, *moments), pipe=FP32, reads=2)
            for _ in range(rows.special):
                a.arithmetic("MUFU", values[i], (values[i],), pipe=SPECIAL)
        a.store((values[i], place), rows.lane, stream=2)

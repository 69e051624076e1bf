"""Programs of kernels that are no products: element-wise, with a window for each result, with sums of rows before they write."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2

from archsim.cost.retention import UNROLLED
from archsim.cycle.machine import Machine
from archsim.cycle.program import FP32, SPECIAL, Assembler, Program, Source

SET_UP = 4  # instructions that find a thread's place, each after the one before: ids, multiply, compare


def element_wise(
    machine: Machine, *, reads: int = 1, writes: int = 1, lane_bytes: int = 4, per_thread: int = 1, arithmetic: int = 0,
    special: int = 0, threads: int = 256, registers: int = 32, sources: tuple[Source, ...] = (Source(),),
    fresh: int | None = None, trips: int = 1,
) -> Program:  # fmt: skip
    """A kernel whose threads load `reads` tensors, compute, and store `writes`; and go on to their next place, `trips` in all.

    lane_bytes: of one load of a thread; per_thread: independent loads of each tensor before the first use
    arithmetic, special: fp32 instructions and special functions for each load of the first tensor
    sources: of what is loaded, and of what is stored where that goes elsewhere
    fresh: of the loads, those that fetch new bytes; the others find theirs in the L1 (stencils). All, if not given
    """
    a = Assembler(warp=machine.warp)
    place = a.set_up(SET_UP)
    addresses = a.registers(reads + writes)
    for address in addresses:
        a.arithmetic("IMAD.WIDE", address, (place,))
    values = a.registers(reads * per_thread)
    size = float(lane_bytes * min(machine.warp, threads))
    streams = [*sources, Source(past_l1=0.0, past_l2=0.0)]
    top = a.here
    for i, value in enumerate(values):
        new = fresh is None or i // per_thread < fresh
        a.load(value, addresses[i // per_thread], lane_bytes, stream=0 if new else len(streams) - 1, size=size)
    result = a.register()
    for i in range(per_thread):
        inputs = [values[tensor * per_thread + i] for tensor in range(reads)] or [place]
        for value in inputs[1:] or inputs:
            a.arithmetic("FFMA", result, (result, value, inputs[0]), pipe=FP32)
        for _ in range(arithmetic):
            a.arithmetic("FFMA", result, (result,), pipe=FP32, reads=3)
        for _ in range(special):
            a.arithmetic("MUFU", result, (result,), pipe=SPECIAL)
        for tensor in range(writes):
            a.store((result, addresses[reads + tensor]), lane_bytes, stream=len(sources) - 1, size=size)
    if trips > 1:
        a.turn(place, top)
    return a.program(threads=threads, registers=registers, trips=trips, streams=streams)


# -------------------------------------------------------------------------------------------------------------- windows

PLACED = 20  # instructions that find image, channel, row and column of a result: three divisions of five, bounds of the window
BOUNDS = 6  # of a value: row and column against either edge, and the two conditions joined
ADDRESS = 4  # of a value, at strides that the kernel does not know: two multiplications, a 64-bit sum of two instructions


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A window for each result of a thread.

    values: that it covers; lane: bytes of a value [B]
    step: between neighbouring threads' windows, in values; it spreads the loads of a warp
    checked: whether the bounds of every value are checked, at strides that the kernel does not know
    combine: instructions that take a value in; weights: whether each is multiplied by a weight from the L1
    special: functions of each result, as the power of a local normalisation
    inputs: where the values are; results: where those go that it stores
    """

    values: int
    lane: int = 4
    step: float = 1.0
    checked: bool = True
    combine: int = 1
    weights: bool = False
    special: int = 0
    threads: int = 256
    registers: int = 32
    inputs: Source = Source()
    results: Source = Source()


def windows(machine: Machine, window: Window) -> Program:
    """A thread finds its window, takes in value after value and stores one result.

    A checked loop has one value under way, since a branch stands before each load; an unrolled one has all of them.
    """
    a = Assembler(warp=machine.warp)
    place = a.set_up(PLACED)
    address, total, weight = a.register(), a.register(), a.register()
    size = window.lane * machine.warp * min(float(machine.warp), max(1.0, window.step))
    values = a.registers(1 if window.checked else window.values)
    top = a.here

    def take_in(value: int) -> None:
        if window.weights:
            a.load(weight, address, window.lane, stream=1, size=machine.sector)
        for _ in range(window.combine):
            a.arithmetic("FFMA", total, (total, value, weight if window.weights else value), pipe=FP32, reads=2)

    if window.checked:
        condition = a.register()
        for _ in range(BOUNDS - 2):
            a.arithmetic("ISETP", condition, (place,))
        for _ in range(2):
            a.arithmetic("PLOP3", condition, (condition,))
        a.arithmetic("SSY", condition, (condition,))
        a.arithmetic("BRA", condition, (condition,))
        for _ in range(ADDRESS):
            a.arithmetic("IMAD", address, (address,))
        a.load(values[0], address, window.lane, size=size)
        take_in(values[0])
        a.turn(place, top)
    else:
        for value in values:
            a.arithmetic("IADD3", address, (place,))
            a.load(value, address, window.lane, size=size)
        for value in values:
            take_in(value)
    for _ in range(window.special):
        a.arithmetic("MUFU", total, (total,), pipe=SPECIAL)
    a.store((total, place), window.lane, stream=2)
    a.end()
    return a.program(threads=window.threads, registers=window.registers, trips=window.values if window.checked else 1,
                     streams=(window.inputs, Source(past_l1=0.0), window.results))  # fmt: skip


# --------------------------------------------------------------------------------------------------------- sums of rows

ROW_SET_UP = 6  # instructions that find the row and the thread's first place in it
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
    first, again: where the values are at the first pass and at the others; stored: where the results go
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
    stored: Source = Source()

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
    place = a.set_up(ROW_SET_UP)
    moments = a.registers(MOMENTS)
    count = rows.loads if rows.kept else min(UNROLLED, rows.loads)
    trips = 1 if rows.kept else max(1, ceil(rows.loads / count))
    values = a.registers(count * rows.arrays)
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
                     streams=(rows.first, rows.again, rows.stored))


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

"""Programs of kernels whose threads go through a window for each result: pooling, local normalisation, depthwise convolution."""

from __future__ import annotations

from dataclasses import dataclass

from archsim.cycle.machine import Machine
from archsim.cycle.program import FP32, SPECIAL, Assembler, Program, Source

SET_UP = 20  # instructions that find image, channel, row and column of a result: three divisions of five, bounds of the window
BOUNDS = 6  # of a value: row and column against either edge, and the two conditions joined
ADDRESS = 4  # of a value, at strides that the kernel does not know: two multiplications, a 64-bit sum of two instructions
SKIPPED = 2  # branch around a value that lies outside, and where the threads meet again
LOOP = 2  # next column, end of the row
UNROLLED = 1  # address of a value whose place in the window is known: one sum


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A window for each result of a thread.

    values: that it covers; lane: bytes of a value [B]
    step: between neighbouring threads' windows, in values; it spreads the loads of a warp
    checked: whether the bounds of every value are checked, at strides that the kernel does not know
    combine: instructions that take a value in; weights: whether each is multiplied by a weight from the L1
    special: functions of each result, as the power of a local normalisation
    inputs: where the values are
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


def per_value(window: Window) -> int:
    """Instructions of a value, the load and what takes it in among them.

    >>> per_value(Window(values=9)), per_value(Window(values=9, checked=False))
    (16, 3)
    """
    around = BOUNDS + ADDRESS + SKIPPED + LOOP if window.checked else UNROLLED
    return around + 1 + window.weights + window.combine


def windows(machine: Machine, window: Window) -> Program:
    """A thread finds its window, takes in value after value and stores one result.

    A checked loop has one value under way, since a branch stands before each load; an unrolled one has all of them.
    """
    a = Assembler(warp=machine.warp)
    place = a.set_up(SET_UP)
    address, total, weight = a.register(), a.register(), a.register()
    size = window.lane * machine.warp * min(float(machine.warp), max(1.0, window.step))
    values = [a.register() for _ in range(1 if window.checked else window.values)]
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
    return a.program(threads=window.threads, registers=window.registers, shared=0.0, trips=window.values if window.checked else 1,
                     streams=(window.inputs, Source(past_l1=0.0), Source(past_l2=window.inputs.past_l2)))  # fmt: skip

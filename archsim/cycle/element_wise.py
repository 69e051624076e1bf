"""Programs of kernels that go through tensors once: a thread loads, computes and stores."""

from __future__ import annotations

from archsim.cycle.machine import Machine
from archsim.cycle.program import FP32, SPECIAL, Assembler, Program, Source

SET_UP = 4  # instructions that find a thread's place, each after the one before: ids, multiply, compare


def element_wise(
    machine: Machine, *, reads: int = 1, writes: int = 1, lane_bytes: int = 4, per_thread: int = 1, arithmetic: int = 0,
    special: int = 0, threads: int = 256, registers: int = 32, sources: tuple[Source, ...] = (Source(),),
    fresh: int | None = None,
) -> Program:  # fmt: skip
    """A kernel whose threads load `reads` tensors, compute, and store `writes`.

    lane_bytes: of one load of a thread; per_thread: independent loads of each tensor before the first use
    arithmetic, special: fp32 instructions and special functions for each load of the first tensor
    fresh: of the loads, those that fetch new bytes; the others find theirs in the L1 (stencils). All, if not given
    """
    a = Assembler(warp=machine.warp)
    place = a.set_up(SET_UP)
    addresses = [a.register() for _ in range(reads + writes)]
    for address in addresses:
        a.arithmetic("IMAD.WIDE", address, (place,))
    values = [a.register() for _ in range(reads * per_thread)]
    size = float(lane_bytes * min(machine.warp, threads))
    streams = [*sources, Source(past_l1=0.0, past_l2=0.0)]
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
            a.store((result, addresses[reads + tensor]), lane_bytes, size=size)
    a.end()
    return a.program(threads=threads, registers=registers, shared=0.0, trips=1, streams=streams)

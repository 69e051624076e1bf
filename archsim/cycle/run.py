"""Running CTAs of a program on one SM, and the counts that result."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from archsim.cycle import loop
from archsim.cycle.compile import compiled
from archsim.cycle.machine import Machine, assembled, pools, ticks
from archsim.cycle.program import Program

GROUPS = 8  # groups of copies that a warp may have under way
BUFFER_BYTES = 128  # of a miss buffer
REASON_NAMES = ("selected", "not selected", "long scoreboard", "short scoreboard", "wait", "barrier", "math pipe throttle",
                "MIO throttle", "LG throttle", "no instruction")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SmRun:
    """What one SM did.

    clocks: until the last CTA ended and what it stored had left [clk]; issued: warp instructions
    resident: CTAs at once
    waiting: for each instruction of the program the warp clocks by reason, as `REASON_NAMES` has them: what warps did before it
    issued, and `selected` while it did; the sum of all is the life of all warps [clk]
    shared, l1, l2, dram, stored: bytes by level [B]
    record: the first instructions, as (clock, scheduler, warp, instruction)
    """

    clocks: float
    issued: int
    paired: int
    ctas: int
    resident: int
    waiting: tuple[tuple[float, ...], ...]
    shared: int
    l1: int
    l2: int
    dram: int
    stored: int
    record: tuple[tuple[float, int, int, int], ...] = ()

    @property
    def stalls(self) -> Mapping[str, float]:
        """Warp clocks by reason."""
        return dict(zip(REASON_NAMES, map(sum, zip(*self.waiting, strict=True)), strict=True))

    @property
    def ipc(self) -> float:
        """Warp instructions per clock."""
        return self.issued / self.clocks


@dataclass(frozen=True, eq=False, slots=True)
class Prepared:
    """A program assembled for a machine. `key` stands for both: equal keys give equal counts."""

    machine: Machine
    program: Program
    rows: tuple[int, ...]
    registers: int
    held: int
    key: bytes


@lru_cache(maxsize=4096)
def prepared(machine: Machine, program: Program) -> Prepared:
    """A program as the loop takes it on this machine."""
    rows = tuple(assembled(machine, program.instructions))
    registers = 1 + max((r for i in program.instructions for r in (i.dst, *i.src)), default=0)
    words = (machine, program.threads, program.registers, program.shared, program.streams, program.roles)
    key = hashlib.sha256(np.array(rows, dtype=np.int64).tobytes() + repr(words).encode()).digest()
    return Prepared(machine, program, rows, registers, resident(machine, program), key)


def resident(machine: Machine, program: Program) -> int:
    """CTAs of a program that the SM holds at once; 0 if it holds none."""
    return min(room(machine, program).values())


def room(machine: Machine, program: Program) -> dict[str, int]:
    """CTAs of a program that the SM has place for, by the key of its spec that limits them."""
    warps = -(-program.threads // machine.warp)
    found = {
        "sm.registers": machine.registers // (4 * max(1, program.registers) * warps * machine.warp), "sm.ctas": machine.ctas,
        "sm.warps": machine.warps // warps,
        "sm.shared_memory": machine.shared_memory // program.shared if program.shared else machine.ctas,
    }  # fmt: skip
    return {key: int(ctas) for key, ctas in found.items()}


def run(on: Prepared, ctas: int, trips: int | None = None, slots: int | None = None, greedy: bool = True, record: int = 0,
        fast: bool | None = None) -> SmRun:  # fmt: skip
    """Run `ctas` CTAs of a program, each loop `trips` times, at most `slots` CTAs at once.

    greedy: greedy, then the oldest CTA; else loose round robin. record: how many instructions to keep
    fast: compiled (True), plain (False), or compiled if numba is installed (None); all give the same counts

    Raises MissingExtra for `fast=True` without numba.
    """
    fast = find_spec("numba") is not None if fast is None else fast
    machine, program = on.machine, on.program
    held = min(max(1, on.held), ctas, slots or ctas)
    warps_of_cta = -(-program.threads // machine.warp)
    padded = -(-held * warps_of_cta // machine.schedulers) * machine.schedulers  # every scheduler has as many places
    place, servers = pools(machine)
    m = _fields(machine, on, ctas, padded, warps_of_cta, program.trips if trips is None else trips, greedy, record)
    streams = [part for source in program.streams for part in (ticks(source.past_l1), ticks(source.past_l2), 0, 0)]
    state = ([0] * loop.EARLIEST + [loop.NEVER] + [0] * (loop.STATE - loop.EARLIEST - 1)) * padded
    s = machine.schedulers
    columns: list[Any] = [
        on.rows, m, state, [0] * (padded * on.registers), [0] * (padded * on.registers), [0] * (padded * GROUPS),
        [0] * (-(-padded // warps_of_cta) * loop.CHANNELS * loop.RING * loop.TOKEN),
        [0] * (2 * held), [0] * servers, place, [0] * loop.SHARED_STATE, [0] * (s * (machine.memory_queue + 1)), [0] * s,
        [0] * machine.buffers, streams, [loop.NEVER] * s, list(range(s)), [0] * (loop.REASONS * len(program.instructions)),
        [0] * loop.COUNTERS, [0] * (4 * max(1, record)),
    ]  # fmt: skip
    found: list[Any] = [np.array(column, dtype=np.int64) for column in columns] if fast else columns
    (compiled() if fast else vars(loop))["simulate"](*found)
    return _counts(held, *(list(map(int, column)) for column in found[-3:]))


def _fields(machine: Machine, on: Prepared, ctas: int, warps: int, warps_of_cta: int, trips: int, greedy: bool,
            record: int) -> list[int]:  # fmt: skip
    m = [0] * loop.FIELDS
    for name, value in (
        (loop.SCHEDULERS, machine.schedulers), (loop.WARPS, warps), (loop.WARPS_OF_CTA, warps_of_cta), (loop.CTAS, ctas),
        (loop.REGISTERS, on.registers), (loop.TRIPS, trips), (loop.GREEDY, int(greedy)),
        (loop.WIDTH, 2 if machine.pairing == "memory" else 1), (loop.CTA_START, ticks(machine.cta_start)),
        (loop.CTA_GAP, ticks(machine.cta_interval)), (loop.BARRIER_TIME, ticks(machine.barrier)),
        (loop.QUEUE, machine.memory_queue), (loop.ISSUE_PART, ticks(machine.memory_interval)),
        (loop.ISSUE_SM, ticks(machine.memory_interval / 2)), (loop.L1_TIME, ticks(machine.l1)), (loop.L2_TIME, ticks(machine.l2)),
        (loop.DRAM_TIME, ticks(machine.dram)), (loop.L2_TICKS, max(1, ticks(1 / machine.l2_rate))),
        (loop.DRAM_TICKS, max(1, ticks(1 / machine.dram_rate))), (loop.BUFFERS, machine.buffers),
        (loop.BUFFER_BYTES, BUFFER_BYTES), (loop.SHARED_TIME, ticks(machine.shared)), (loop.TRACE, record), (loop.GROUPS, GROUPS),
        (loop.BULK_TIME, ticks(machine.copy)), (loop.BULK_GAP, loop.TICKS), (loop.LINE_BYTES, round(machine.line)),
        (loop.FETCH, ticks(machine.fetch)),
    ):  # fmt: skip
        m[name] = value
    return [*m, *starts(on.program, warps_of_cta)]


def starts(program: Program, warps: int) -> list[int]:
    """The first instruction of each warp of a CTA."""
    return [max((first for begin, first in program.roles if begin <= w), default=0) for w in range(warps)]


def _counts(held: int, reasons: list[int], counters: list[int], recorded: list[int]) -> SmRun:
    return SmRun(
        clocks=counters[loop.CLOCKS] / loop.TICKS, issued=counters[loop.ISSUED], paired=counters[loop.PAIRED],
        ctas=counters[loop.FINISHED], resident=held,
        waiting=tuple(tuple(time / loop.TICKS for time in reasons[at:at + loop.REASONS])
                      for at in range(0, len(reasons), loop.REASONS)),
        shared=counters[loop.SHARED_BYTES], l1=counters[loop.L1_BYTES], l2=counters[loop.L2_BYTES],
        dram=counters[loop.DRAM_BYTES], stored=counters[loop.STORED_BYTES],
        record=tuple((recorded[4 * i] / loop.TICKS, recorded[4 * i + 1], recorded[4 * i + 2], recorded[4 * i + 3])
                     for i in range(counters[loop.TRACED])),
    )  # fmt: skip

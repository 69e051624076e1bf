"""Running CTAs of a program on one SM, and the counts that result; numba, an optional extra, compiles the loop on first use."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archsim.base.machine_code import available, compiled_modules, digest
from archsim.cost.occupancy import in_registers, in_shared
from archsim.cycle import layout, loop, memory_path
from archsim.cycle.machine import Machine, assembled, pools, ticks
from archsim.cycle.program import Program

CALLEES_FIRST = {
    memory_path: ("access", "bulk"),
    loop: ("dependency", "structural", "occupy", "wake", "give", "enter", "meet", "leave", "issue", "account", "straight",
           "choose", "simulate"),
}  # fmt: skip
CALLED = ("bulk", "give", "enter", "meet", "leave", "simulate")  # seldom, so that one copy of each is enough


@lru_cache(maxsize=1)
def version() -> str:
    """Equal for equal code of the loop and of all that it calls."""
    return digest(layout, *CALLEES_FIRST)


@lru_cache(maxsize=1)
def compiled() -> dict[str, Callable[..., Any]]:
    """The compiled functions by name. Raises MissingExtra."""
    return compiled_modules(CALLEES_FIRST, CALLED, version(), "a compiled simulation of the SM")


# ---------------------------------------------------------------------------------------------------------------- a run

GROUPS = 8  # groups of copies that a warp may have under way
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
    rows: NDArray[np.int64]
    registers: int
    held: int
    key: bytes


@lru_cache(maxsize=4096)
def prepared(machine: Machine, program: Program) -> Prepared:
    """A program as the loop takes it on this machine."""
    rows = np.array(assembled(machine, program.instructions), dtype=np.int64)
    registers = 1 + max((r for i in program.instructions for r in (i.dst, *i.src)), default=0)
    words = (machine, program.threads, program.launched, program.registers, program.shared, program.streams, program.roles)
    key = hashlib.sha256(rows.tobytes() + repr(words).encode()).digest()
    return Prepared(machine, program, rows, registers, resident(machine, program), key)


def resident(machine: Machine, program: Program) -> int:
    """CTAs of a program that the SM holds at once; 0 if it holds none."""
    return min(room(machine, program).values())


def room(machine: Machine, program: Program) -> dict[str, int]:
    """CTAs of a program that the SM has place for, by the key of its spec that limits them."""
    warps, shared = -(-(program.launched or program.threads) // machine.warp), program.shared
    found: dict[str, Any] = {
        "sm.registers": in_registers(machine.registers, machine.schedulers, machine.warp, warps, max(1, program.registers),
                                     machine.register_unit),
        "sm.ctas": machine.ctas, "sm.warps": machine.warps // warps,
        "sm.shared_memory": min(machine.ctas, in_shared(machine.shared_memory, shared, machine.shared_reserved,
                                                        machine.shared_unit)),
    }  # fmt: skip
    return {key: int(ctas) for key, ctas in found.items()}


def run(on: Prepared, ctas: int, trips: int | None = None, slots: int | None = None, greedy: bool = True, record: int = 0,
        fast: bool | None = None) -> SmRun:  # fmt: skip
    """Run `ctas` CTAs of a program, each loop `trips` times, at most `slots` CTAs at once.

    greedy: greedy, then the warp that issued longest ago; else loose round robin. record: how many instructions to keep
    fast: compiled (True), plain (False), or compiled if numba is installed (None); all give the same counts

    Raises MissingExtra for `fast=True` without numba.
    """
    fast = available() if fast is None else fast
    machine, program = on.machine, on.program
    held = min(max(1, on.held), ctas, slots or ctas)
    warps_of_cta = -(-program.threads // machine.warp)
    padded = -(-held * warps_of_cta // machine.schedulers) * machine.schedulers  # every scheduler has as many places
    place, servers = pools(machine)
    m = _fields(machine, on, ctas, padded, warps_of_cta, program.trips if trips is None else trips, greedy, record)
    streams = [part for source in program.streams for part in (ticks(source.past_l1), ticks(source.past_l2), 0, 0)]
    state = ([0] * layout.EARLIEST + [layout.NEVER] + [0] * (layout.STATE - layout.EARLIEST - 1)) * padded
    s = machine.schedulers
    turns = [value for latest in range(s) for value in (layout.NEVER, 0, layout.NEVER, latest, 0)]  # in the order of their names
    columns: list[Any] = [
        on.rows if fast else on.rows.tolist(), m, state, [0] * (padded * on.registers), [0] * (padded * on.registers),
        [0] * (padded * GROUPS),
        [0] * ((-(-padded // warps_of_cta) * layout.CHANNELS * layout.RING * layout.TOKEN) if m[layout.RINGS] else 1),
        [0] * (2 * held), [0] * servers, place, [0] * layout.SHARED_STATE, [0] * (s * (machine.memory_queue + 1)),
        [0] * machine.buffers, streams, turns, [0] * (layout.REASONS * len(program.instructions)),
        [0] * layout.COUNTERS, [0] * (4 * max(1, record)),
    ]  # fmt: skip
    found: list[Any] = [np.asarray(column, dtype=np.int64) for column in columns] if fast else columns
    (compiled() if fast else vars(loop))["simulate"](*found)
    return _counts(held, *(list(map(int, column)) for column in found[-3:]))


def _fields(machine: Machine, on: Prepared, ctas: int, warps: int, warps_of_cta: int, trips: int, greedy: bool,
            record: int) -> list[int]:  # fmt: skip
    m = [0] * layout.FIELDS
    for name, value in {
        layout.SCHEDULERS: machine.schedulers, layout.WARPS: warps, layout.WARPS_OF_CTA: warps_of_cta, layout.CTAS: ctas,
        layout.REGISTERS: on.registers, layout.TRIPS: trips, layout.GREEDY: int(greedy),
        layout.WIDTH: machine.width, layout.CTA_START: ticks(machine.cta_start),
        layout.CTA_GAP: ticks(machine.cta_interval), layout.BARRIER_TIME: ticks(machine.barrier),
        layout.QUEUE: machine.memory_queue, layout.ISSUE_PART: ticks(machine.memory_interval),
        layout.ACCESS: ticks(machine.access), layout.L1_TIME: ticks(machine.l1),
        layout.L2_TIME: ticks(machine.l2),
        layout.DRAM_TIME: ticks(machine.dram), layout.L2_TICKS: max(1, ticks(1 / machine.l2_rate)),
        layout.DRAM_TICKS: max(1, ticks(1 / machine.dram_rate)), layout.TURN_TICKS: ticks(machine.turn),
        layout.TIES: (1 << machine.schedulers.bit_length() - 1) - 1 if machine.pooled else 0,
        layout.BUFFERS: machine.buffers,
        layout.SHARED_TIME: ticks(machine.shared), layout.TRACE: record, layout.GROUPS: GROUPS,
        layout.BULK_TIME: ticks(machine.copy), layout.BULK_GAP: layout.TICKS, layout.LINE_BYTES: round(machine.l2_line),
        layout.FETCH: ticks(machine.fetch), layout.WARP_GAP: ticks(machine.warp_interval),
        layout.FETCHED: ticks(machine.cta_start) + len(on.program.instructions) * ticks(machine.fetch),
        layout.RINGS: 1 + max((i.channel for i in on.program.instructions if i.kind in (layout.GIVE, layout.TAKE)), default=-1),
    }.items():  # fmt: skip
        m[name] = value
    return [*m, *starts(on.program, warps_of_cta)]


def starts(program: Program, warps: int) -> list[int]:
    """The first instruction of each warp of a CTA."""
    return [max((first for begin, first in program.roles if begin <= w), default=0) for w in range(warps)]


def _counts(held: int, reasons: list[int], counters: list[int], recorded: list[int]) -> SmRun:
    return SmRun(
        clocks=counters[layout.CLOCKS] / layout.TICKS, issued=counters[layout.ISSUED], paired=counters[layout.PAIRED],
        ctas=counters[layout.FINISHED], resident=held,
        waiting=tuple(tuple(time / layout.TICKS for time in reasons[at:at + layout.REASONS])
                      for at in range(0, len(reasons), layout.REASONS)),
        shared=counters[layout.SHARED_BYTES], l1=counters[layout.L1_BYTES], l2=counters[layout.L2_BYTES],
        dram=counters[layout.DRAM_BYTES], stored=counters[layout.STORED_BYTES],
        record=tuple((recorded[4 * i] / layout.TICKS, recorded[4 * i + 1], recorded[4 * i + 2], recorded[4 * i + 3])
                     for i in range(counters[layout.TRACED])),
    )  # fmt: skip

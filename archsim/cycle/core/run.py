"""Running a loop on a core: cycles of an iteration in its steady state, the use of ports, and why rename waited."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Any

import numpy as np

from archsim.base.machine_code import available, compiled_modules, digest
from archsim.cycle.core import layout, timeline
from archsim.cycle.core.assemble import MicroOperation, assembled, streams_of, table
from archsim.cycle.core.machine import CoreMachine, delivered
from archsim.cycle.core.operation import CoreLoop

CALLEES_FIRST = {
    timeline: ("advance", "release", "carried", "slot_of", "ask_far", "write_back", "touch", "free_port", "take", "fetched",
               "branched", "mispredicted", "room", "retire", "operands", "simulate"),
}  # fmt: skip
SEPARATE = ("ask_far", "write_back", "touch", "advance", "simulate")  # one copy of each is enough


@lru_cache(maxsize=1)
def version() -> str:
    """Equal for equal code of the pipeline."""
    return digest(layout, timeline)


@lru_cache(maxsize=1)
def compiled() -> dict[str, Callable[..., Any]]:
    """The compiled functions by name. Raises MissingExtra."""
    return compiled_modules(CALLEES_FIRST, SEPARATE, version(), "a compiled simulation of a core")


WARM, MEASURED = 24, 48  # iterations before the steady state, and those from which it is read, at least
LINES_WARM = 512  # lines that a stream beyond the L1 has passed before
MISSES, LONGEST = 4, 1 << 13  # mispredictions from which a steady state is read, at least, and iterations for them at most
MOST = 1 << 20  # entries of what a spec does not limit
NAMED = 16  # integer registers that a program names: those of x86-64, half of AArch64's, which seldom run out


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreRun:
    """What a core did with a loop.

    cycles: of an iteration in the steady state [clk]; first: of the first one, until its last operation retired
    operations: micro-operations of an iteration; ports: clocks of each port in an iteration
    waits: clocks in which rename waited for the front end and for each pool, per iteration
    lines: that came from the L2, the L3 and memory, and dirty ones that went back there, per iteration
    trace: the first micro-operations as (row, iteration, renamed, started, ended, retired, port)
    """

    cycles: float
    first: float
    operations: float
    ports: Mapping[str, float]
    waits: Mapping[str, float]
    lines: tuple[float, float, float]
    rows: tuple[MicroOperation, ...]
    trace: tuple[tuple[int, ...], ...] = ()


def run_loop(machine: CoreMachine, loop: CoreLoop, trips: int | None = None, trace: int = 0, fast: bool | None = None) -> CoreRun:
    """Run a loop on a core until it is steady.

    trips: iterations in all; as many as the steady state takes where not given
    trace: micro-operations to record
    fast: compiled (True), plain (False), or compiled if numba is installed (None); all give the same

    Raises MissingExtra for `fast=True` without numba, Unsupported for an operation that the core has no port for.
    """
    fast = available() if fast is None else fast
    rows = assembled(machine, loop)
    streams = streams_of(machine, loop)
    warm, whole = steady(loop, streams, machine, rows) if trips is None else (0, trips)
    program = table(rows, shared=one_scheduler(machine))
    keep = 1 << (1 + max((back for row in rows for _, back, _ in row.sources), default=0)).bit_length()
    ports, held = len(machine.ports), len(loop.streams) or 1
    m = _fields(machine, sum(row.slots for row in rows))
    m[layout.TLB_TIME] = round(machine.translation_clocks(max((stream.footprint for stream in loop.streams), default=0.0)))
    given: list[Any] = [_numbers(column, fast) for column in (program, m, pools(machine), streams or layout.STREAM_COLUMNS)]
    given += [_numbers(size, fast) for size in (
        whole, keep * len(rows), layout.STATES, layout.POOLS, layout.FREED * layout.RING, layout.RING, ports,
        (ports + 1) * layout.RING, ports, ports, layout.CARRIED * layout.RING, m[layout.BUFFERS], m[layout.BUFFERS2],
        [-1] * (layout.STREAM_STATE * held), layout.LINES * held, layout.LINES * held, layout.COUNTS,
        layout.TRACE_COLUMNS * max(1, trace),
    )]  # fmt: skip
    (compiled() if fast else vars(timeline))["simulate"](*given[:4], whole, keep, *given[4:], trace)
    ends, taken, counts, recorded = given[4], given[13], given[-2], given[-1]
    cycles = (int(ends[whole - 1]) - int(ends[warm])) / (whole - 1 - warm) if whole > warm + 1 else float(ends[-1])
    names = ["front end", *layout.POOL_NAMES]
    if machine.pipeline.scheduler is not None:
        names[1 + layout.INT_QUEUE] = "scheduler"
    return CoreRun(
        cycles=cycles, first=float(ends[0]), operations=float(counts[layout.OPERATIONS]) / whole, rows=rows,
        ports={name: float(taken[at]) / whole for at, name in enumerate(machine.ports)},
        waits={name: float(counts[layout.FRONT_END + at]) / whole for at, name in enumerate(names)},
        lines=(float(counts[layout.LINES2]) / whole, float(counts[layout.LINES3]) / whole, float(counts[layout.LINES4]) / whole),
        trace=tuple(tuple(int(value) for value in recorded[i * layout.TRACE_COLUMNS:(i + 1) * layout.TRACE_COLUMNS])
                    for i in range(int(counts[layout.TRACED]))),
    )  # fmt: skip


def steady(loop: CoreLoop, streams: list[int], machine: CoreMachine, rows: Sequence[MicroOperation] = ()) -> tuple[int, int]:
    """The iteration from which on a loop is steady, and how many are run in all.

    The window is full and chains are as long as they get after some iterations; a stream from beyond the L1 has to fill what is
    on its way. The iterations that count have a whole number of mispredictions of the branch that is mispredicted least often.
    """
    window = machine.pipeline.window or 0
    warm = max(WARM, ceil(6 * window / max(1, len(loop.operations))))
    beyond = [abs(stream.stride) for stream, row in zip(loop.streams, range(0, len(streams), layout.STREAM_COLUMNS), strict=True)
              if streams[row + layout.LEVEL] > 1 and stream.stride]  # fmt: skip
    if beyond:
        warm = max(warm, ceil(LINES_WARM * machine.line / max(beyond)))
    measured = max(MEASURED, 2 * warm)
    rarest = min((row.missed for row in rows if row.missed), default=0.0)
    if rarest:
        measured = round(ceil(max(measured * rarest, MISSES)) / rarest)
    return warm, warm + 1 + min(measured, max(LONGEST, 2 * warm))


def one_scheduler(machine: CoreMachine) -> tuple[int, ...]:
    """The queues that one scheduler holds together: all, or those of arithmetic where addresses have their own."""
    if machine.pipeline.scheduler is None:
        return ()
    if machine.pipeline.scheduler_memory is not None:
        return (layout.INT_QUEUE, layout.VECTOR_QUEUE)
    return (layout.INT_QUEUE, layout.VECTOR_QUEUE, layout.MEMORY_QUEUE)


def pools(machine: CoreMachine) -> list[int]:
    """Entries of each pool; registers less those that the program names."""
    p = machine.pipeline
    one = p.scheduler
    size = [MOST] * layout.POOLS
    for pool, entries in {
        layout.INT_QUEUE: one or p.scheduler_int, layout.VECTOR_QUEUE: one or p.scheduler_vector,
        layout.MEMORY_QUEUE: p.scheduler_memory or one, layout.LOAD_QUEUE: p.load_queue, layout.STORE_QUEUE: p.store_queue,
        layout.REORDER: p.window,
        layout.INT_REGISTERS: None if p.int_registers is None else p.int_registers - NAMED,
        layout.VECTOR_REGISTERS: None if p.vector_registers is None else p.vector_registers - machine.registers,
    }.items():  # fmt: skip
        if entries is not None:
            size[pool] = max(1, int(entries))
    return size


def _fields(machine: CoreMachine, slots: int) -> list[int]:
    """The machine for a loop of some slots: one that the loop buffer holds comes at the width of rename, past its branch."""
    p = machine.pipeline
    replayed = p.loop_buffer is not None and slots <= p.loop_buffer
    m = [0] * layout.MACHINE_FIELDS
    for at, level in enumerate((0, len(machine.near) - 2 or 1, -1)):
        (bandwidth, latency), own = machine.near[level], machine.back[level]
        m[layout.LATENCY2 + at], m[layout.TIME2 + at] = round(latency), round(machine.line * layout.TICKS / bandwidth)
        m[layout.BACK_TO2 + at] = (layout.TO_L2 if own else layout.FROM_L2) + at
        m[layout.BACK_TIME2 + at] = round(machine.line * layout.TICKS / (own or bandwidth))
    for name, value in {
        layout.FETCH: MOST if replayed else int(delivered(p, slots)),
        layout.BRANCHES: MOST if replayed else max(1, int(p.branches or 1)), layout.RENAME: int(p.rename),
        layout.RETIRE: int(p.retire or p.rename), layout.DELAY: round(float(p.issue_delay or 1)),
        layout.IN_ORDER: int(p.order == "in"), layout.AT_RENAME: int(p.binding == "rename"),
        layout.PORT_COUNT: len(machine.ports), layout.LINE: machine.line, layout.PAGE_LINES: machine.page_lines,
        layout.BUFFERS: machine.buffers, layout.BUFFERS2: machine.far_buffers, layout.AHEAD: machine.ahead,
        layout.AHEAD2: machine.far_ahead, layout.READ_TIME: round(layout.TICKS / machine.read),
        layout.WRITE_TIME: round(layout.TICKS / machine.write),
        layout.SPLIT: round(float(p.split or 1)), layout.TLB_LINES: max(1, int(machine.tlb[1] // machine.line)),
        layout.MISPREDICT: round(float(p.mispredict or 0)),
    }.items():  # fmt: skip
        m[name] = value
    return m


def _numbers(given: list[int] | int, fast: bool) -> Any:
    """Some integers, or as many zeros, as an array or a list."""
    if isinstance(given, int):
        return np.zeros(given, dtype=np.int64) if fast else [0] * given
    return np.asarray(given, dtype=np.int64) if fast else given

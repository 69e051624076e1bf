"""The time of lowered kernels on a GPU: a few CTAs of one SM are simulated, the grid follows by waves."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np

from archsim.cost.cost import family_efficiency
from archsim.cost.gpu import GpuTerms
from archsim.cycle.lowered import KernelVariant, grid_program
from archsim.cycle.machine import Machine
from archsim.cycle.program import Program
from archsim.cycle.run import Prepared, SmRun, prepared, run
from archsim.device.device import Gpu
from archsim.lower.columns import Role

TRIPS = 6, 14  # of a loop: time grows by the same for every further trip
Known = MutableMapping[bytes, float]  # clocks by program, machine, CTAs and trips


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """How many CTAs run a program, and on how many SMs."""

    ctas: int
    sms: int

    @property
    def busiest(self) -> int:
        """CTAs of the SM that has most."""
        return ceil(self.ctas / self.sms)


def kernel_clocks(on: Prepared, grid: Grid, known: Known) -> float:
    """Clocks of a launch: those of the busiest SM.

    first wave + (waves - 1) further wave + tail [clk]

    Further waves and the tail find their code there; they are differences between simulations of one wave, of two, and of one
    with the tail behind it.
    """
    return sum(weight * simulated(of, ctas, trips, known) for weight, of, ctas, trips in parts(on, grid, known))


def launch_clocks(device: Gpu, machine: Machine, program: Program, ctas: int) -> float:
    """Clocks of a launch of so many CTAs on all SMs of a device."""
    return kernel_clocks(prepared(machine, program), Grid(ctas=ctas, sms=int(float(device.sm.count))), {})


def parts(on: Prepared, grid: Grid, known: Known) -> list[tuple[float, Prepared, int, int]]:
    """The simulations whose weighted sum is a launch: weight, what runs, CTAs, and how often each loop runs."""
    held = max(1, min(on.held, grid.busiest))
    waves, tail = divmod(grid.busiest, held)
    found = _looped(on, held, 1.0, known)
    if grid.busiest == held:
        return found
    warm = prepared(replace(on.machine, fetch=0.0), on.program)  # its code is there from the start
    ctas = {held: 0.0}
    if waves > 1:
        ctas[held] -= waves - 1.0
        ctas[2 * held] = waves - 1.0
    if tail:
        ctas[held] -= 1.0
        ctas[held + tail] = 1.0
    return found + [part for count, weight in ctas.items() if weight for part in _looped(warm, count, weight, known)]


def _looped(on: Prepared, ctas: int, weight: float, known: Known) -> list[tuple[float, Prepared, int, int]]:
    """All trips of a loop; of a long one those until its code is there, then what a few more take, as often as there are more.

    These few have their code and store nothing: what is stored behind a loop goes out beside the loops of others.
    """
    program = on.program
    few, more = _few(program)
    if program.trips <= more:
        return [(weight, on, ctas, program.trips)]
    pure = _at_its_pace(on)
    each = trip_clocks(on, ctas, known)
    code = max(end - begin for begin, end in program.parts) * on.machine.fetch
    until = min(program.trips, more + ceil(code / each / program.period) * program.period)
    beyond = weight * (program.trips - until) / (more - few)
    return [(weight, on, ctas, until), (beyond, pure, ctas, more), (-beyond, pure, ctas, few)]


def trip_clocks(on: Prepared, ctas: int, known: Known) -> float:
    """What one more trip of a loop takes some CTAs on one SM, once their code is there [clk]."""
    few, more = _few(on.program)
    pure = _at_its_pace(on)
    return (simulated(pure, ctas, more, known) - simulated(pure, ctas, few, known)) / (more - few)


def _at_its_pace(on: Prepared) -> Prepared:
    return prepared(replace(on.machine, fetch=0.0), on.program.unstored)


def _few(program: Program) -> tuple[int, int]:
    """Trips of a loop between which time has come to grow by the same for each.

    A ring of stages is filled first, and then does the same each time around.
    """
    few = TRIPS[0] if program.period == 1 else 2 * program.period
    return few, few + -(-(TRIPS[1] - TRIPS[0]) // program.period) * program.period


def kernel_run(on: Prepared, grid: Grid, known: Known) -> SmRun:
    """What the busiest SM does in a launch: the counts of its parts, put together as the clocks are."""
    runs = [(weight, run(of, ctas, trips=trips)) for weight, of, ctas, trips in parts(on, grid, known)]

    def total(name: str) -> float:
        return max(0.0, sum(weight * float(getattr(one, name)) for weight, one in runs))

    counts: dict[str, Any] = {name: round(total(name)) for name in ("issued", "paired", "shared", "l1", "l2", "dram", "stored")}
    waiting = np.maximum(0.0, sum(weight * np.array(one.waiting) for weight, one in runs))
    return SmRun(
        clocks=total("clocks"), ctas=grid.busiest, resident=max(1, min(on.held, grid.busiest)),
        waiting=tuple(map(tuple, waiting.tolist())), **counts,
    )  # fmt: skip


def simulated(on: Prepared, ctas: int, trips: int, known: Known) -> float:
    """Clocks of some CTAs on one SM, each loop `trips` times; what is simulated is added to what is `known`."""
    key = on.key + bytes(f"{ctas},{trips}", "ascii")
    if key not in known:
        known[key] = run(on, ctas, trips=trips).clocks
    return known[key]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedLaunch:
    """A launch of a kernel that has a program.

    clock: core clock [Hz]; efficiency: what the library reaches of what the program allows, where that is fitted [1]
    memory_s: its memory traffic at full bandwidth, below which no launch can be [s]
    """

    on: Prepared
    grid: Grid
    clock: float
    efficiency: float
    memory_s: float

    def busy_s(self, known: Known) -> float:
        """Time without the gap before it [s]: what is stored drains after a kernel."""
        return max(kernel_clocks(self.on, self.grid, known) / self.clock / self.efficiency, self.memory_s)


def launch_of(terms: GpuTerms, column: int, row: int = 0) -> SimulatedLaunch | None:
    """A launch of a variant; None for a kernel that has no program yet. column: of the V variants; row: of the D devices"""
    found = grid_program(terms, column, row)
    if found is None:
        return None
    v, memory = KernelVariant(terms=terms, column=column, row=row), terms.device.memory
    derived = v.role is Role.WINOGRAD  # whose transforms are written out
    return SimulatedLaunch(
        on=prepared(found.machine, found.program), grid=Grid(ctas=max(1, found.ctas), sms=v.sms), clock=v.clock,
        efficiency=1.0 if derived else float(family_efficiency(terms.kernels, terms.constants)[column]),
        memory_s=found.memory / (v.at(memory.bandwidth) * v.at(memory.achievable)),
    )  # fmt: skip


def simulated_busy(terms: GpuTerms, known: Known, column: int, row: int = 0) -> float | None:
    """Time of one launch of a variant [s], launch gaps left out; None for a kernel that has no program yet.

    known: clocks of what was simulated before, to which new ones are added
    column: of the V variants; row: of the D devices
    """
    launch = launch_of(terms, column, row)
    return None if launch is None else launch.busy_s(known)

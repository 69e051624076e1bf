"""The time of lowered kernels on a GPU: a few CTAs of one SM are simulated, the grid follows by waves."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from math import ceil

import numpy as np

from archsim.cost.cost import family_efficiency
from archsim.cost.gpu import GpuTerms
from archsim.cycle.lowered import KernelVariant, grid_program
from archsim.cycle.program import Program
from archsim.cycle.run import Prepared, SmRun, prepared, run
from archsim.lower.role import Role

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

    Each is a difference between simulations of one wave, of two, and of one with the tail behind it, of which loops run 6 and 14
    times; further trips take what these eight took each.
    """
    return sum(weight * simulated(on, ctas, trips, known) for weight, ctas, trips in parts(on, grid))


def parts(on: Prepared, grid: Grid) -> list[tuple[float, int, int]]:
    """The simulations whose weighted sum is a launch: weight, CTAs, and how often each loop runs."""
    held = max(1, min(on.held, grid.busiest))
    waves, tail = divmod(grid.busiest, held)
    ctas = {held: 1.0}
    if waves > 1:
        ctas[held] -= waves - 1.0
        ctas[2 * held] = waves - 1.0
    if tail:
        ctas[held] -= 1.0
        ctas[held + tail] = 1.0
    return [(part * weight, count, trips) for count, part in ctas.items() if part for weight, trips in _trips(on.program)]


def _trips(program: Program) -> list[tuple[float, int]]:
    trips, period = program.trips, program.period
    few = TRIPS[0] if period == 1 else 2 * period  # a ring of stages is filled first, and then does the same each time around
    more = few + -(-(TRIPS[1] - TRIPS[0]) // period) * period
    if trips <= more:
        return [(1.0, trips)]
    beyond = (trips - more) / (more - few)
    return [(1.0 + beyond, more), (-beyond, few)]


def kernel_run(on: Prepared, grid: Grid) -> SmRun:
    """What the busiest SM does in a launch: the counts of its parts, put together as the clocks are."""
    runs = [(weight, run(on, ctas, trips=trips)) for weight, ctas, trips in parts(on, grid)]

    def total(name: str) -> float:
        return max(0.0, sum(weight * float(getattr(one, name)) for weight, one in runs))

    waiting = np.maximum(0.0, sum(weight * np.array(one.waiting) for weight, one in runs))
    return SmRun(
        clocks=total("clocks"), ctas=grid.busiest, resident=max(1, min(on.held, grid.busiest)), issued=round(total("issued")),
        paired=round(total("paired")), waiting=tuple(map(tuple, waiting.tolist())), shared=round(total("shared")),
        l1=round(total("l1")), l2=round(total("l2")), dram=round(total("dram")), stored=round(total("stored")),
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
    derived = v.of("matrix") == 0 or v.role is Role.WINOGRAD  # whose transforms are written out
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

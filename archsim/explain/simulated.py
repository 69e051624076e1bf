"""A kernel on an SM or a core, clock by clock: where its instructions wait, and how long a recorded program takes.

On a GPU what an SM does in each of its kernels and what would relieve it, on a CPU the loops of its cores and what binds them, on
a TPU the tiles of its arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from archsim.base.errors import ArgumentError
from archsim.cache.access import CHUNK, Accesses, Index, Requests
from archsim.cache.kernel import READ, WRITE
from archsim.cost.cpu import CpuTerms
from archsim.cost.gpu import GpuTerms
from archsim.cycle.core.bounds import bounds, what_binds
from archsim.cycle.core.kernels import loops_clocks, simulated_on
from archsim.cycle.core.machine import CoreMachine, core_machine
from archsim.cycle.core.misses import AccessCounts, MissWindow, ProgramTime, level_names, program_time
from archsim.cycle.core.run import run_loop
from archsim.cycle.core.variant import CpuVariant, LoopUse
from archsim.cycle.kernels import SimulatedLaunch, kernel_run, launch_of
from archsim.cycle.run import room
from archsim.cycle.stalls import Improvement, SmUse, improvements, use_of
from archsim.device.device import Cpu, Tpu
from archsim.device.spec import Spec
from archsim.device.variant import first_of
from archsim.estimation.fidelity import SIMULATED
from archsim.estimation.memo import memo
from archsim.estimation.pipeline import Run, run
from archsim.estimation.request import Request
from archsim.explain.kernel import of_one
from archsim.explain.layer import ExplainedOp, asked, chosen, position

if TYPE_CHECKING:
    from archsim.cost.tpu import TpuTerms


class ProgramClock:
    """Counts the instructions between the accesses of a trace, and hands their misses to the core in the order of the program.

    Raises ArgumentError for a GPU, Unsupported for a core without the keys of its pipeline.
    """

    def __init__(self, spec: Spec) -> None:
        if not isinstance(spec.device, Cpu):
            raise ArgumentError(f"hw {spec.identity.id}: --time is of a program on a CPU")
        self.clock = first_of(spec.device.clock.all_core)  # nobody knows how wide its instructions are
        self.machine = core_machine(spec.device, self.clock)
        self.counts = AccessCounts(hits=[0] * len(level_names(self.machine)), written=[0] * len(self.machine.near))
        self.window = MissWindow(self.machine)
        self._fetched, self._accesses, self._stores = 0, 0, 0
        self._of: tuple[Index, Index, Index] | None = None  # of the accesses that were handed on last

    def data(self, parts: Iterable[Accesses], fetches: bool) -> Iterator[Accesses]:
        """The accesses of a trace with its instructions, in pieces that a simulation takes at once.

        fetches: whether to hand instructions on, too, as those of core 1
        """
        for whole in parts:
            for begin in range(0, len(whole), CHUNK):
                part = whole.part(begin, begin + CHUNK)
                fetched = np.broadcast_to(np.asarray(part.core), len(part)) == 1
                stored = (np.broadcast_to(np.asarray(part.store), len(part)) == 1) & ~fetched
                size = np.broadcast_to(np.asarray(part.size), len(part))
                instruction = self._fetched + np.cumsum(fetched)
                access, store = self._accesses + np.cumsum(~fetched), self._stores + np.cumsum(stored)
                self._fetched, self._accesses, self._stores = int(instruction[-1]), int(access[-1]), int(store[-1])
                self.counts.loaded += int(size[~fetched & ~stored].sum())
                self.counts.stored += int(size[stored].sum())
                position = instruction if self._fetched else access
                if fetches:
                    self._of = position, store, stored.astype(np.int64)
                    yield part
                    continue
                kept = ~fetched
                self._of = position[kept], store[kept], stored[kept].astype(np.int64)
                yield Accesses(address=part.address[kept], size=size[kept], store=stored[kept].astype(np.int64))

    def take(self, steps: Sequence[Requests]) -> None:
        """The requests to each level that the accesses of the last piece caused."""
        assert self._of is not None
        position, store, stored = self._of
        level, written = levels_of(steps)
        of_data = np.asarray(steps[0].core) == 0
        missed = np.flatnonzero(of_data & (level > 0))
        self.counts.hits[0] += int(steps[0].count[of_data].sum()) - len(missed)
        for at, lines in enumerate(np.bincount(level[missed], minlength=len(self.counts.hits)).tolist()):
            self.counts.hits[at] += lines
        for at, lines in enumerate(written.sum(axis=1).tolist()):
            self.counts.written[at] += lines
        source = steps[0].source[missed]
        columns = (position[source], store[source], stored[source], level[missed], steps[0].line[missed], written[:, missed].T)
        for row in zip(*(column.tolist() for column in columns), strict=True):
            self.window.miss(row[0], row[1], bool(row[2]), *row[3:])

    def time(self) -> ProgramTime:
        """The time of what was taken so far."""
        self.counts.instructions = self._fetched or self._accesses
        return program_time(self.machine, self.counts, self.window, self.clock, counted=self._fetched > 0)


def levels_of(steps: Sequence[Requests]) -> tuple[Index, Index]:
    """For each request to the first level, which level has its line: 0 for the first, the number of levels for memory; and how
    many lines go back because of it, [levels behind the first and memory, requests].

    A request that misses asks the next level to read; what levels write back is nobody's to wait for.
    """
    level = np.zeros(len(steps[0]), dtype=np.int64)
    root = np.arange(len(steps[0]))
    wanted = (steps[0].kind == READ) | (steps[0].kind == WRITE)
    written = np.zeros((len(steps) - 1, len(level)), dtype=np.int64)
    for depth, step in enumerate(steps[1:], start=1):
        asks = (step.kind == READ) & wanted[step.source]
        root = root[step.source]
        level[root[asks]] = depth
        written[depth - 1] = np.bincount(root[(step.kind != READ) & (step.kind != WRITE)], minlength=len(level))
        wanted = asks
    return level, written


# --------------------------------------------------------------------------------------------------- kernels of a layer

SCHEMA = "archsim-simulated-layer/1"
STALLED = 3  # instructions that are named


@dataclass(frozen=True, slots=True, kw_only=True)
class SmOfKernel(SmUse):
    """What the busiest SM does in one launch of a kernel.

    ctas: of the launch; sms: of the device; sm_ctas: CTAs of the busiest SM; waves: of the launch
    limited_by: the keys of the spec that let no further CTA in; none where the SM has no more CTAs to run
    efficiency: what the library reaches of what its program allows, where that is fitted [1]
    memory_s: the memory traffic of the launch at full bandwidth, below which no launch can be [s]
    improvements: what each respect in which the device could be twice as good would save
    """

    ctas: int
    sms: int
    sm_ctas: int
    waves: float
    limited_by: tuple[str, ...]
    efficiency: float
    memory_s: float
    busy_s: float
    improvements: tuple[Improvement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopOfKernel:
    """A loop that the cores of a CPU run in one launch of a kernel.

    times: iterations of all cores; cycles: of one [clk]; share: of the clocks of the launch's loops
    instructions, operations: of an iteration; flop_per_cycle: of its core
    binds, explained: what the loop waits for, and the share of the clocks of the largest bound
    bounds: what an iteration takes at least, by name [clk]
    """

    name: str
    times: float
    cycles: float
    share: float
    instructions: int
    operations: float
    flop_per_cycle: float
    binds: str
    explained: float
    bounds: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayOfKernel:
    """What the busiest array of a TPU does in one launch of a kernel.

    rows, columns: of its cells; tiles: that it loads; streamed: rows that pass through each [1]
    clocks: in all; active: of them, while rows enter; stalled: while the array waits for a tile from memory [clk]
    tile_clocks: in which memory delivers a tile [clk]
    """

    rows: int
    columns: int
    tiles: float
    streamed: float
    clocks: float
    active: float
    stalled: float
    tile_clocks: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedKernel:
    """A kernel that runs, and its time in all launches. tile: of a product on a GPU

    sm, loops, array: what an SM does, or the loops of the cores of a CPU, or an array of a TPU; None and none for a kernel that
        keeps its closed form
    """

    name: str
    tile: tuple[int, int, int] | None
    launches: float
    time_s: float
    sm: SmOfKernel | None
    loops: tuple[LoopOfKernel, ...] = ()
    array: ArrayOfKernel | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedLayer(ExplainedOp):
    """Why one op takes its time, by the instructions of its kernels."""

    algorithm: str
    kernels: tuple[SimulatedKernel, ...]


def simulate_layer(request: Request, layer: str, phase: str | None = None) -> SimulatedLayer:
    """What an SM does in the kernels of `layer` in `phase` (the forward pass, or the only one that it has).

    Raises UnknownName for a layer that is not there, ArgumentError for a phase that it does not have or a request of another
    fidelity than the cycle model.
    """
    if request.fidelity.name != SIMULATED:
        raise ArgumentError(f"fidelity {request.fidelity.name}: only the {SIMULATED} model simulates an SM")
    index = position(request, layer, phase)
    result = run(request)
    plan = int(result.lowered.plan_of[index])
    kernels = tuple([_kernel(result, one) for one in chosen(result, plan)]) if plan >= 0 else ()
    algorithm = result.lowered.kernels.options[int(result.cost.option[0, plan])].algorithm if plan >= 0 else ""
    return SimulatedLayer(**asked(request, result, index), algorithm=algorithm, kernels=kernels)


def _kernel(result: Run, at: int) -> SimulatedKernel:
    """The kernel at a place in the columns."""
    cost, choice, kernels = result.cost.variants, result.cost.choice, result.lowered.kernels
    assert cost is not None
    assert choice is not None
    variant = int(choice.variant[0, at])
    kernel = kernels.kernels[at]
    found = SimulatedKernel(name=kernel.name, tile=None, launches=kernel.repeat, sm=None,
                            time_s=float(result.cost.kernel_time_s[0, at]))  # fmt: skip
    if isinstance(cost.terms, CpuTerms):
        return replace(found, loops=_loops(cost.terms, variant))
    if isinstance(cost.terms.device, Tpu):
        return replace(found, array=_array(cost.terms, variant))
    terms, launch = gpu_launch(result, at)
    m, n, k = (int(getattr(terms.kernels, f"tile_{side}")[0]) for side in "mnk")
    return replace(found, tile=(m, n, k) if kernel.menu else None, sm=None if launch is None else _sm(launch, terms))


def gpu_launch(result: Run, at: int) -> tuple[GpuTerms, SimulatedLaunch | None]:
    """The terms of the kernel at a place in the columns of a GPU, and a launch of it; None for one that has no program yet."""
    cost, choice = result.cost.variants, result.cost.choice
    assert cost is not None
    assert choice is not None
    assert isinstance(cost.terms, GpuTerms)
    clock = np.broadcast_to(np.atleast_2d(cost.clock), cost.busy_s.shape)
    terms = of_one(replace(cost.terms, clock=clock), int(choice.variant[0, at]))
    return terms, launch_of(terms, 0)


def _array(terms: TpuTerms, column: int) -> ArrayOfKernel | None:
    from archsim.cycle.systolic import array_machine, at_column, simulated_array

    found = simulated_array(terms, column)
    if found is None:
        return None
    machine = array_machine(terms, column)
    return ArrayOfKernel(rows=machine.rows, columns=machine.columns, tiles=at_column(terms.loads, column), clocks=found.clocks,
                         streamed=at_column(terms.streamed, column), active=found.active, stalled=found.stalled,
                         tile_clocks=machine.tile_clk)  # fmt: skip


def _loops(terms: CpuTerms, column: int) -> tuple[LoopOfKernel, ...]:
    v = CpuVariant(terms=terms, column=column)
    on = simulated_on(v, memo())
    if loops_clocks(v, on) is None:
        return ()
    together: dict[tuple[object, ...], LoopUse] = {}
    for use in on.uses:
        known = together.get((use.program, *use.words))
        together[use.program, *use.words] = use if known is None else replace(use, times=use.times + known.times)
    whole = sum(use.times * use.clocks for use in on.uses)
    return tuple([_loop(on.machine, use, whole) for use in together.values() if use.times * use.clocks > 0])


def _loop(machine: CoreMachine, use: LoopUse, whole: float) -> LoopOfKernel:
    loop = use.program(*use.words)
    found = run_loop(machine, loop)
    least = bounds(machine, loop, found.rows)
    binds, explained = what_binds(least, found.cycles, found.waits)
    return LoopOfKernel(
        name=loop.name, times=use.times, cycles=use.clocks, share=use.times * use.clocks / whole, binds=binds,
        explained=explained,
        instructions=len(loop.operations), operations=found.operations, flop_per_cycle=loop.flop / use.clocks, bounds=least,
    )  # fmt: skip


def _sm(launch: SimulatedLaunch, terms: GpuTerms) -> SmOfKernel:
    on, grid = launch.on, launch.grid
    found = kernel_run(on, grid, {})
    places = room(on.machine, on.program)
    return SmOfKernel(
        **use_of(on, found, max(found.clocks / launch.clock, launch.memory_s), STALLED), ctas=grid.ctas, sms=grid.sms,
        sm_ctas=grid.busiest, waves=grid.ctas / (grid.sms * max(1, on.held)),
        limited_by=tuple([key for key, ctas in places.items() if ctas == on.held]) if grid.busiest > on.held else (),
        efficiency=launch.efficiency, memory_s=launch.memory_s, busy_s=launch.busy_s(memo()),
        improvements=improvements(terms, 0, memo()),
    )  # fmt: skip

"""The explanation of one op by the cycle model.

On a GPU what an SM does in each of its kernels and what would relieve it, on a CPU the loops of its cores and what binds them, on
a TPU the tiles of its arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from archsim.base.errors import ArgumentError
from archsim.cost.cpu import CpuTerms
from archsim.cost.gpu import GpuTerms
from archsim.cycle.core.bounds import bounds, what_binds
from archsim.cycle.core.kernels import loops_clocks, simulated_on
from archsim.cycle.core.machine import CoreMachine
from archsim.cycle.core.run import run_loop
from archsim.cycle.core.variant import CpuVariant, LoopUse
from archsim.cycle.kernels import SimulatedLaunch, kernel_run, launch_of
from archsim.cycle.run import SmRun, room
from archsim.cycle.stalls import (
    Relief,
    StalledInstruction,
    achieved_occupancy,
    issue_use,
    occupancy,
    pipe_use,
    reliefs,
    shares,
    stalled,
)
from archsim.device.device import Tpu
from archsim.estimation.fidelity import SIMULATED
from archsim.estimation.memo import memo
from archsim.estimation.pipeline import Run, run
from archsim.estimation.request import Request
from archsim.explain.kernel import of_one
from archsim.explain.layer import ExplainedOp, asked, chosen, position

if TYPE_CHECKING:
    from archsim.cost.tpu import TpuTerms

SCHEMA = "archsim-simulated-layer/1"
STALLED = 3  # instructions that are named


@dataclass(frozen=True, slots=True, kw_only=True)
class SmOfKernel:
    """What the busiest SM does in one launch of a kernel.

    ctas: of the launch; sms: of the device; sm_ctas: CTAs of the busiest SM; resident: of these at once; waves: of the launch
    limited_by: the keys of the spec that let no further CTA in; none where the SM has no more CTAs to run
    occupancy: warps at once over those that the SM can hold; achieved_occupancy: on average; issue_use: issue slots that issued
    pipe_use: of each pipe, the share of its clocks that were taken; bandwidth_bps: of one SM by level [B/s]
    efficiency: what the library reaches of what its program allows, where that is fitted [1]
    memory_s: the memory traffic of the launch at full bandwidth, below which no launch can be [s]
    stalls: shares of the clocks of all warps by reason; stalled: the instructions at which warps wait most
    relief: what each respect in which the device could be twice as good would save
    """

    ctas: int
    sms: int
    sm_ctas: int
    resident: int
    waves: float
    limited_by: tuple[str, ...]
    occupancy: float
    achieved_occupancy: float
    clocks: float
    instructions: int
    instructions_per_clock: float
    issue_use: float
    pipe_use: Mapping[str, float]
    bandwidth_bps: Mapping[str, float]
    efficiency: float
    memory_s: float
    busy_s: float
    stalls: Mapping[str, float]
    stalled: tuple[StalledInstruction, ...]
    relief: tuple[Relief, ...]


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
    if isinstance(cost.terms, CpuTerms):
        kernel = kernels.kernels[at]
        return SimulatedKernel(name=kernel.name, tile=None, launches=kernel.repeat, sm=None,
                               time_s=float(result.cost.kernel_time_s[0, at]), loops=_loops(cost.terms, variant))  # fmt: skip
    if isinstance(cost.terms.device, Tpu):
        kernel = kernels.kernels[at]
        return SimulatedKernel(name=kernel.name, tile=None, launches=kernel.repeat, sm=None,
                               time_s=float(result.cost.kernel_time_s[0, at]), array=_array(cost.terms, variant))  # fmt: skip
    terms, launch = gpu_launch(result, at)
    kernel = kernels.kernels[at]
    tile = tuple(int(getattr(terms.kernels, f"tile_{side}")[0]) for side in "mnk")
    return SimulatedKernel(
        name=kernel.name, tile=(tile[0], tile[1], tile[2]) if kernel.menu else None, launches=kernel.repeat,
        time_s=float(result.cost.kernel_time_s[0, at]), sm=None if launch is None else _sm(launch, terms),
    )  # fmt: skip


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
        ctas=grid.ctas, sms=grid.sms, sm_ctas=grid.busiest, resident=found.resident,
        waves=grid.ctas / (grid.sms * max(1, on.held)),
        limited_by=tuple([key for key, ctas in places.items() if ctas == on.held]) if grid.busiest > on.held else (),
        occupancy=occupancy(on, found), achieved_occupancy=achieved_occupancy(on, found), clocks=found.clocks,
        instructions=found.issued, instructions_per_clock=found.ipc,
        issue_use=issue_use(on, found), pipe_use=pipe_use(on, found), bandwidth_bps=_bandwidth(found, launch),
        efficiency=launch.efficiency, memory_s=launch.memory_s, busy_s=launch.busy_s(memo()), stalls=shares(found),
        stalled=stalled(on.program, found, STALLED), relief=reliefs(terms, 0, memo()),
    )  # fmt: skip


def _bandwidth(found: SmRun, launch: SimulatedLaunch) -> dict[str, float]:
    """Bytes per second of the SM by level [B/s]."""
    levels = {"shared memory": found.shared, "L1": found.l1, "L2": found.l2, "memory": found.dram}
    seconds = max(found.clocks / launch.clock, launch.memory_s)
    return {level: size / seconds for level, size in levels.items() if size}

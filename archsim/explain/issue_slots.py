"""The issue slots of one layer by the cycle model: which were taken in some clocks in the middle of its longest kernel, by what.

On a GPU a scheduler of an SM has a slot each clock, on a CPU a port of a core.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from archsim.base.errors import Unsupported
from archsim.cost.cpu import CpuTerms
from archsim.cycle.core.bounds import bounds, what_binds
from archsim.cycle.core.kernels import loops_clocks, simulated_on
from archsim.cycle.core.run import run_loop
from archsim.cycle.core.variant import CpuVariant
from archsim.cycle.kernels import kernel_run, trips_alike
from archsim.cycle.program import PIPES
from archsim.cycle.run import run as run_sm
from archsim.cycle.stalls import issue_use, occupancy, shares
from archsim.device.device import Tpu
from archsim.estimation.memo import memo
from archsim.estimation.pipeline import Run, run
from archsim.estimation.request import Request
from archsim.explain.layer import chosen, position, slowest
from archsim.explain.simulated import gpu_launch

RECORDED = 1 << 15  # instructions of the run, of whose middle the slots are
SM_CLOCKS, CORE_CLOCKS = 200, 60  # of the picture


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueSlot:
    """A slot that was taken: lane and clock, the warp (of a GPU), what kind of instruction took it, and its name."""

    lane: int
    clock: float
    thread: int | None
    kind: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueSlots:
    """The slots of `lanes` (schedulers or ports) from clock `begin` to `end`.

    time_s, launches: of the kernel in the layer; use: the share of all slots of the kernel that were taken
    occupancy: warps at once over those that the SM can hold; None on a CPU
    waits: on a GPU what the clocks of the warps go to, on a CPU what an iteration takes at least by bound, over its clocks
    limit: what the loop of a core waits for; empty on a GPU
    """

    layer: str
    kernel: str
    time_s: float
    launches: float
    lanes: tuple[str, ...]
    begin: float
    end: float
    slots: tuple[IssueSlot, ...]
    use: float
    occupancy: float | None
    waits: Mapping[str, float]
    limit: str = ""


def issue_slots(request: Request, layer: str | None = None) -> IssueSlots:
    """The slots of the longest simulated kernel of a layer; of the slowest layer that has one if none is named.

    Raises UnknownName for a layer that is not there, Unsupported where no kernel of it is simulated, or on a TPU.
    """
    if isinstance(request.device, Tpu):
        raise Unsupported(f"{request.spec.identity.id}: an array has no issue slots; `archsim explain` tells its tiles")
    result = run(request)
    names = [layer] if layer else [one.layer for one in slowest(request).ops]
    for name in names:
        plan = int(result.lowered.plan_of[position(request, name, None)])
        kernels = chosen(result, plan) if plan >= 0 else ()
        for at in sorted(kernels, key=lambda one: -float(result.cost.kernel_time_s[0, one])):
            found = _of_core(result, at, name) if request.spec.kind == "cpu" else _of_sm(result, at, name)
            if found is not None:
                return found
    raise Unsupported(f"{names[0]}: no kernel of it has a program, so that none is simulated")


def _of_sm(result: Run, at: int, layer: str) -> IssueSlots | None:
    _, launch = gpu_launch(result, at)
    if launch is None:
        return None
    on, kernel = launch.on, result.lowered.kernels.kernels[at]
    ctas = max(1, min(on.held, launch.grid.busiest))
    record = run_sm(on, ctas, trips=trips_alike(on.program), record=RECORDED).record
    begin = record[len(record) // 2][0] if record else 0.0
    whole = kernel_run(on, launch.grid, {})
    slots = [IssueSlot(lane=lane, clock=clock, thread=warp, kind=PIPES[on.program.instructions[i].pipe],
                       name=on.program.instructions[i].name)
             for clock, lane, warp, i in record if begin <= clock < begin + SM_CLOCKS]  # fmt: skip
    return IssueSlots(
        layer=layer, kernel=kernel.name, time_s=float(result.cost.kernel_time_s[0, at]), launches=kernel.repeat,
        lanes=tuple([f"scheduler {i}" for i in range(on.machine.schedulers)]), begin=begin, end=begin + SM_CLOCKS,
        slots=tuple(slots), use=issue_use(on, whole), occupancy=occupancy(on, whole), waits=shares(whole),
    )  # fmt: skip


def _of_core(result: Run, at: int, layer: str) -> IssueSlots | None:
    cost, choice = result.cost.variants, result.cost.choice
    assert cost is not None
    assert choice is not None
    assert isinstance(cost.terms, CpuTerms)
    v = CpuVariant(terms=cost.terms, column=int(choice.variant[0, at]))
    on = simulated_on(v, memo())
    if loops_clocks(v, on) is None or not on.uses:
        return None
    use = max(on.uses, key=lambda one: one.times * one.clocks)
    loop, kernel = use.program(*use.words), result.lowered.kernels.kernels[at]
    found = run_loop(on.machine, loop, trace=RECORDED)
    issued = sorted((one[3], one[6], found.rows[one[0]].operation) for one in found.trace if one[6] >= 0)
    begin = issued[len(issued) // 2][0] if issued else 0
    least = bounds(on.machine, loop, found.rows)
    slots = [IssueSlot(lane=port, clock=clock, thread=None, kind=loop.operations[i].kind, name=loop.operations[i].text)
             for clock, port, i in issued if begin <= clock < begin + CORE_CLOCKS]  # fmt: skip
    return IssueSlots(
        layer=layer, kernel=f"{kernel.name}, {loop.name}", time_s=float(result.cost.kernel_time_s[0, at]), launches=kernel.repeat,
        lanes=on.machine.ports, begin=begin, end=begin + CORE_CLOCKS, slots=tuple(slots), occupancy=None,
        use=sum(found.ports.values()) / (found.cycles * len(on.machine.ports)),
        waits={name: clocks / found.cycles for name, clocks in least.items()},
        limit=what_binds(least, found.cycles, found.waits)[0],
    )  # fmt: skip

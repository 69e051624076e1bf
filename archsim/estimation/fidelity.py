"""How closely a run can be modelled: one row for each fidelity, which commands, pages, JSON and validation read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from archsim.base.arguments import ARGUMENTS
from archsim.base.errors import ArgumentError, Unsupported
from archsim.base.naming import resolve
from archsim.calibration.constants import Calibration
from archsim.cost.cost import Array, Cost
from archsim.cost.cpu import CpuTerms
from archsim.cost.energy import spent
from archsim.cost.evaluate import cpu_cost, faster_costs, gpu_cost, roofline_cost, tpu_cost
from archsim.cost.plan import PlanCost, plan_cost
from archsim.cost.power import slowed, sustained_share
from archsim.device.device import Cpu, Device, Gpu, Tpu
from archsim.device.variant import at_row, rows_of
from archsim.lower.kernel import CpuKernels, GpuKernels, Kernels, TpuKernels
from archsim.stack import catalog as stacks
from archsim.stack.stack import Stack

if TYPE_CHECKING:
    from archsim.cost.moved import MovedBytes

SIMULATED = "cycle"  # the fidelity that runs kernels on an SM or a core
FITTED = "analytical"  # the fidelity that is used where none is named, and whose constants are fitted

NEAR = 1.3  # x the fastest: closed form and cycle model differ by less for nine kernels of ten. A choice
NEVER = 1e12  # s; later than any kernel ends
CLOSED = "closed"  # the way to find traffic that simulates nothing
TRAFFIC = {
    CLOSED: "closed forms of the bytes between the levels of caches",
    "simulated": "simulated caches: tiled products CTA by CTA, other kernels by the stack distances of their loops",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSetting:
    """How kernels run: what a request says of it.

    clock: the highest core clock that kernels may take [Hz], a float or [D, 1]
    turbo: whether few cores of a CPU run above `clock`, up to its turbo; a clock that somebody named is that of every core
    limit: power that each kernel keeps to by a lower clock [W], a float or [D, 1]; None where nothing lowers it
    threads: threads on a CPU, a number or [D, 1]; None on a GPU
    traffic: how the bytes that kernels move between the levels of caches are found, a row of `TRAFFIC`
    without: parts of the model that are left out, to see what each contributes
    """

    clock: float | Array
    turbo: bool = True
    limit: float | Array | None = None
    threads: int | Array | None
    traffic: str = CLOSED
    calibration: Calibration
    without: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionSetting:
    """What kernels run on and how: D variants of a device, and how a request has them run.

    precision: how operands are multiplied, a pipe of the device
    """

    device: Device
    precision: str
    request: RunSetting


CostModel = Callable[[Kernels, ExecutionSetting], PlanCost]  # what each plan costs


@dataclass(frozen=True, slots=True, kw_only=True)
class Fidelity:
    """How closely a run is modelled.

    meaning: one line for `archsim list fidelities`
    cost: the cost function of its kernels
    calibrated: whether it is the model whose constants are fitted, so that errors on held-out rows say how far it may be off:
        launches and the host CPU's time for calls count, and the bytes that kernels move depend on caches
    events: whether ops are put in time by simulation, so that they may overlap, queue and contend; else one follows the other
    warning: what is said with each of its estimates
    """

    name: str
    meaning: str
    cost: CostModel
    calibrated: bool = True
    events: bool = False
    warning: str = ""


def _analytical(kernels: Kernels, at: ExecutionSetting) -> PlanCost:
    """The closed forms choose the kernels; `traffic` may then replace the bytes that these move."""
    closed = _within_limit(kernels, at)
    if at.request.traffic == CLOSED:
        return closed
    from archsim.estimation.traffic import moved_by

    if isinstance(at.device, Tpu):
        name = at.device.identity.id
        raise ArgumentError(f"traffic {at.request.traffic}: {name} has no caches; its buffer holds what programs put there")
    assert closed.variants is not None
    assert closed.choice is not None
    found = moved_by(closed.variants, closed.choice, kernels, at.device, at.precision)
    columns, runs = closed.choice.ran
    late = np.full((len(runs), kernels.m.size), NEVER)  # what does not run stays that way
    late[:, columns] = np.where(runs, 0.0, NEVER)
    return _within_limit(kernels, at, found, late)


def _within_limit(
    kernels: Kernels, at: ExecutionSetting, moved: MovedBytes | None = None, late: Array | float = 0.0
) -> PlanCost:  # fmt: skip
    """The closed forms at the highest clocks that the power limit leaves; `late` is added to the time of each variant [s]."""

    def cost_at(share: Array | float) -> Cost:
        cost = _cost_at(share, kernels, at, moved)
        return cost if moved is None else replace(cost, busy_s=cost.busy_s + late)

    cost, limit = cost_at(1.0), at.request.limit
    if limit is not None:
        share = sustained_share(cost, at.device, at.precision, cost.clock, limit, at.request.calibration)
        cost = cost if (share == 1.0).all() else replace(cost_at(share), share=share)
    return _planned(cost, kernels, at)


def _cycle(kernels: Kernels, at: ExecutionSetting) -> PlanCost:
    """The algorithms that the closed form has within `NEAR` of its fastest compete by what an SM, a core or an array takes.

    Each of their kernels is simulated where its kind has a program, in the tile that the closed form chooses for it.
    """
    closed = _analytical(kernels, at)
    cost, choice = closed.variants, closed.choice
    assert cost is not None
    assert choice is not None
    near = choice.near(NEAR)
    closed_s = np.atleast_2d(cost.busy_s)
    count = max(rows_of(at.device), len(near), len(closed_s), len(np.atleast_2d(cost.clock)))  # some keys move no closed form
    factor = np.ones((count, closed_s.shape[-1]))
    for row in range(count):
        terms = _terms_at(cost, at.device, row, factor.shape)
        for column in np.flatnonzero(near[min(row, len(near) - 1)]).tolist():
            busy = _simulated_s(terms, cost, row, column)
            if busy is not None:
                factor[row, column] = busy / closed_s[min(row, len(closed_s) - 1), column]
    bounds = {name: bound * factor for name, bound in cost.bounds.items()}
    simulated, limit = replace(cost, bounds=bounds, busy_s=np.where(near, closed_s * factor, np.inf)), at.request.limit
    if limit is not None:  # what is simulated faster than its closed form draws more power at the same clock
        share = sustained_share(simulated, at.device, at.precision, simulated.clock, limit, at.request.calibration)
        simulated = simulated if (share == 1.0).all() else slowed(simulated, share)
    return _planned(simulated, kernels, at)


def _simulated_s(terms: Any, cost: Cost, row: int, column: int) -> float | None:
    """Simulated time of one launch of a variant [s]; None where its kind of kernel has no program."""
    from archsim.estimation.memo import memo

    if isinstance(terms, CpuTerms):
        from archsim.cycle.core.kernels import simulated_core

        tables = {name: np.atleast_2d(bound) for name, bound in cost.bounds.items()}  # [D, V], or [1, V] for all devices
        bounds = {name: float(table[min(row, len(table) - 1), column]) for name, table in tables.items()}
        return simulated_core(terms, bounds, memo(), column)
    if isinstance(terms.device, Tpu):
        from archsim.cycle.systolic import simulated_tpu

        return simulated_tpu(terms, column)
    from archsim.cycle.kernels import simulated_busy

    return simulated_busy(terms, memo(), column)


def _planned(cost: Cost, kernels: Kernels, at: ExecutionSetting) -> PlanCost:
    """What plans cost, with the energy of their kernels within a power limit, or without one within the TDP."""
    limit, constants = at.request.limit, at.request.calibration
    cap = at.device.power.tdp if limit is None else limit
    return plan_cost(cost, kernels, lambda some: spent(some, at.device, at.precision, some.clock, cap, constants),
                     lambda some: faster_costs(some, at.device, at.precision, limit, constants))  # fmt: skip


def _roofline(kernels: Kernels, at: ExecutionSetting) -> PlanCost:
    """Every tensor is moved once, whatever the caches."""
    asked = at.request
    return roofline_cost(kernels, at.device, at.precision, asked.clock, 1 if asked.threads is None else asked.threads,
                         asked.calibration, asked.without, asked.limit)  # fmt: skip


def _terms_at(cost: Cost, device: Device, row: int, shape: tuple[int, ...]) -> Any:
    """The terms of one of the devices."""
    if isinstance(cost.terms, CpuTerms):  # whose device has the clocks of this run
        return replace(cost.terms, device=at_row(cost.terms.device, row), clock=at_row(cost.terms.clock, row),
                       threads=at_row(cost.terms.threads, row))  # fmt: skip
    return replace(cost.terms, device=at_row(device, row), clock=np.broadcast_to(np.atleast_2d(cost.clock), shape)[row : row + 1])


def _cost_at(share: Array | float, kernels: Kernels, at: ExecutionSetting, moved: MovedBytes | None) -> Cost:
    """The cost with all core clocks at a share of theirs."""
    device, asked = at.device, at.request
    clock, constants = asked.clock * share, on_device(asked.calibration, device)
    if isinstance(device, Gpu):
        assert isinstance(kernels, GpuKernels)
        return gpu_cost(kernels, device, at.precision, clock, constants, asked.without, moved)
    if isinstance(device, Tpu):
        assert isinstance(kernels, TpuKernels)
        return tpu_cost(kernels, device, at.precision, clock, constants, asked.without)
    assert isinstance(kernels, CpuKernels)
    assert asked.threads is not None
    slower = replace(device, clock=replace(device.clock, boost=(device.clock.boost if asked.turbo else asked.clock) * share))
    return cpu_cost(kernels, slower, at.precision, clock, asked.threads, constants, asked.without, moved)


def on_device(constants: Calibration, device: Device) -> Calibration:
    """The constants with the values that are derived for the core of a CPU."""
    return constants.on(device.identity.architecture) if isinstance(device, Cpu) else constants


FIDELITIES = {row.name: row for row in (
    Fidelity(name="roofline", cost=_roofline, calibrated=False, warning="roofline is a lower bound of the time, not a prediction",
             meaning="the lower bound: peak arithmetic or peak bandwidth, whichever takes longer"),
    Fidelity(name=FITTED, cost=_analytical,
             meaning="tiles, waves, traffic and latency of each kernel, launches and the host CPU's time"),
    Fidelity(name="event", cost=_analytical, events=True,
             meaning="the same kernels in simulated time: streams, the launch queue, and what kernels share"),
    Fidelity(name=SIMULATED, cost=_cycle,
             meaning="each kernel's instructions on an SM or a core, clock by clock: schedulers, pipes, caches, queues"),
)}  # fmt: skip


def find(name: str) -> Fidelity:
    """The fidelity called `name`; UnknownName otherwise."""
    return FIDELITIES[resolve("fidelity", name, tuple(FIDELITIES), dict, f"one of {', '.join(FIDELITIES)}")]


def asked_traffic(name: str, fidelity: Fidelity) -> tuple[str, list[str]]:
    """The way in which traffic is found, and what is said of it.

    Raises UnknownName; ArgumentError for a fidelity in which caches do not matter.
    """
    found = resolve("traffic", name, tuple(TRAFFIC), dict, f"one of {', '.join(TRAFFIC)}")
    if found == CLOSED:
        return found, []
    if not fidelity.calibrated:
        raise ArgumentError(f"traffic {found}: the {fidelity.name} model moves every tensor once, whatever the caches")
    return found, ["traffic simulated: the constants of the model were fitted with the closed forms of the traffic"]


def check_graph(device: Device, stack: Stack, fidelity: Fidelity) -> None:
    """Refuse a graph that device, stack or fidelity cannot replay: ArgumentError, Unsupported."""
    if not isinstance(device, Gpu):
        raise ArgumentError(f"graph: graphs are launched on a GPU; a {device.kind.upper()} has none")
    if not stack.records:
        able = ", ".join(name for name in stacks.names() if stacks.find(name).records)
        raise Unsupported(f"graph: stack {stack.id} does not replay CUDA graphs; these do: {able}")
    if not fidelity.calibrated:
        raise ArgumentError(f"graph: the {fidelity.name} model has no launches that a graph would save")


def check_streams(device: Device, stack: Stack, fidelity: Fidelity, streams: int) -> None:
    """Refuse streams that device, stack or fidelity do not have: ArgumentError, Unsupported."""
    ARGUMENTS["streams"].check(streams)
    if not isinstance(device, Gpu):
        raise ArgumentError(f"streams belong to a GPU; a {device.kind.upper()} works on one op at a time")
    if not fidelity.events:
        raise ArgumentError(f"streams {streams}: the {fidelity.name} model runs one op after the other; add --fidelity event")
    if stack.waits:
        raise Unsupported(f"streams {streams}: stack {stack.id} waits for each op, so that none overlap")

"""The fidelities: one table row each, a cost function with a scheduler."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from archsim.base.errors import UnknownName
from archsim.calibration.constants import Calibration
from archsim.cost.cost import Array, Cost
from archsim.cost.evaluate import cpu_cost, gpu_cost, roofline_cost
from archsim.cost.plan import PlanCost, plan_cost
from archsim.cost.power import spent, sustained_share
from archsim.device.device import Device, Gpu
from archsim.lower.kernel import CpuKernels, GpuKernels, Kernels


class CostModel(Protocol):
    """A cost function of a fidelity."""

    def __call__(
        self, kernels: Kernels, device: Device, precision: str, clock: Array | float, threads: Array | float,
        constants: Calibration, without: frozenset[str] = frozenset(), limit: Array | float | None = None,
    ) -> PlanCost:  # fmt: skip
        """What each plan costs; under a `limit` [W] each kernel runs at the highest clock up to `clock` that stays below it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Fidelity:
    """How closely the machine is modelled. `overheads`: whether launches and the host's time count. `events`: whether ops are
    put in time by simulation, so that they may overlap, queue and contend; otherwise one follows the other.
    """

    name: str
    cost: CostModel
    overheads: bool
    meaning: str
    events: bool = False


def _analytical(
    kernels: Kernels, device: Device, precision: str, clock: Array | float, threads: Array | float, constants: Calibration,
    without: frozenset[str] = frozenset(), limit: Array | float | None = None,
) -> PlanCost:  # fmt: skip
    def at(share: Array | float) -> Cost:
        return _cost_at(share, kernels, device, precision, clock, threads, constants, without)

    cost = at(1.0)
    if limit is not None:
        share = sustained_share(cost, device, precision, cost.clock, limit, constants)
        cost = cost if (share == 1.0).all() else at(share)
    cap = device.power.tdp if limit is None else limit
    return plan_cost(cost, kernels, lambda some: spent(some, device, precision, some.clock, cap, constants))


def _cost_at(
    share: Array | float, kernels: Kernels, device: Device, precision: str, clock: Array | float, threads: Array | float,
    constants: Calibration, without: frozenset[str],
) -> Cost:  # fmt: skip
    """The cost with all core clocks at a share of theirs."""
    if isinstance(device, Gpu):
        assert isinstance(kernels, GpuKernels)
        return gpu_cost(kernels, device, precision, clock * share, constants, without)
    assert isinstance(kernels, CpuKernels)
    slower = replace(device, clock=replace(device.clock, boost=device.clock.boost * share))
    return cpu_cost(kernels, slower, precision, clock * share, threads, constants, without)


FIDELITIES = {
    row.name: row
    for row in (
        Fidelity(
            name="roofline", cost=roofline_cost, overheads=False,
            meaning="the lower bound: peak arithmetic or peak bandwidth, whichever takes longer",
        ),
        Fidelity(
            name="analytical", cost=_analytical, overheads=True,
            meaning="tiles, waves, traffic and latency of each kernel, launches and the host's time",
        ),
        Fidelity(
            name="event", cost=_analytical, overheads=True, events=True,
            meaning="the same kernels in simulated time: streams, the launch queue, and what kernels share",
        ),
    )
}  # fmt: skip


def find(name: str) -> Fidelity:
    """The fidelity called `name`; UnknownName otherwise."""
    if name not in FIDELITIES:
        raise UnknownName("fidelity", name, list(FIDELITIES), hint=f"one of {', '.join(FIDELITIES)}")
    return FIDELITIES[name]

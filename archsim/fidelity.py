"""The fidelities: one table row each, a cost function with a scheduler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from archsim.cost.constants import Calibration
from archsim.cost.cost import Array
from archsim.cost.cpu import cpu_cost
from archsim.cost.gpu import gpu_cost
from archsim.cost.plan import PlanCost, plan_cost
from archsim.cost.roofline import roofline_cost
from archsim.device.device import Device, Gpu
from archsim.errors import UnknownName
from archsim.lower.kernel import Kernels

CostModel = Callable[[Kernels, Device, str, "Array | float", "Array | float", Calibration, frozenset[str]], PlanCost]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fidelity:
    """How closely the machine is modelled. `overheads`: whether launches and the host's time count."""

    name: str
    cost: CostModel
    overheads: bool
    meaning: str


def _analytical(
    kernels: Kernels, device: Device, precision: str, clock: Array | float, threads: Array | float, constants: Calibration,
    without: frozenset[str],
) -> PlanCost:  # fmt: skip
    if isinstance(device, Gpu):
        return plan_cost(gpu_cost(kernels, device, precision, clock, constants, without), kernels)
    return plan_cost(cpu_cost(kernels, device, precision, clock, threads, constants, without), kernels)


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
    )
}  # fmt: skip


def find(name: str) -> Fidelity:
    """The fidelity called `name`; UnknownName otherwise."""
    if name not in FIDELITIES:
        raise UnknownName("fidelity", name, list(FIDELITIES), hint=f"one of {', '.join(FIDELITIES)}")
    return FIDELITIES[name]

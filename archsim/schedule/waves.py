"""Kernels as jobs of the event engine: full waves and the tail of their CTAs, with the demand of each on SMs, L2 and memory.

All quantities come from the cost layer. A wave lasts its share of the kernel's own time. Its demand on a resource is that
resource's bound over the kernel's time. So a kernel alone takes exactly the time of the closed form.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from archsim.cost.bounds import PIPES, contended
from archsim.cost.cost import Array, Cost
from archsim.cost.energy import IDLE
from archsim.cost.occupancy import issue_slots
from archsim.cost.plan import PlanCost
from archsim.device.device import Device, Gpu
from archsim.lower.kernel import Index, Kernels
from archsim.schedule.events import Phase

POWER = "power"


def capacity() -> dict[str, float]:
    """Capacity of every resource that concurrent kernels share, as a share of what the device has.

    >>> set(capacity().values())
    {1.0}
    """
    return dict.fromkeys(contended().values(), 1.0)


def phases_of(
    kernels: Kernels, cost: PlanCost, device: Device, power: bool = False, device_index: int = 0
) -> list[tuple[Phase, ...]]:
    """The phases of each plan on one of the D devices; with `power` they carry power beyond idle [W].

    A kernel has up to three phases: its launch gap, its full waves, its tail. With u issue slots in all waves (`issue_slots`),
    of which u_full in the full ones, and a busy time t of one launch: t_full = t u_full / u and t_tail = t - t_full [s]. The
    demand of a phase on a resource is the resource's bound / t; for the SM pipes, that of the CTAs of the phase. A plan on a
    CPU, or of a fidelity without waves, is one phase without demands.
    """
    if cost.variants is None or cost.choice is None or not isinstance(device, Gpu):
        return [(Phase(float(time)),) if time > 0 else () for time in device_row(cost.time_s, device_index)]
    variant = device_row(cost.choice.variant, device_index)
    columns = _columns(kernels, cost.variants, variant, device, device_index)
    drawn = _drawn(kernels, cost, variant, device_index) if power else None
    return [
        tuple([phase for i in kernels.places(option)
               for phase in _kernel(columns[i], kernels.kernels[i].name, None if drawn is None else drawn[i])])
        for option in device_row(cost.option, device_index).tolist()
    ]  # fmt: skip


def device_row(values: NDArray[Any] | float, device_index: int) -> NDArray[Any]:
    """The row of one of D devices, [V] from [D, V]; values that all devices share have one row or none.

    >>> device_row(np.array([[1.0, 2.0], [3.0, 4.0]]), 1).tolist()
    [3.0, 4.0]
    """
    rows = np.atleast_2d(values)
    return np.asarray(rows[device_index if len(rows) > 1 else 0])


def _at(values: Array | float, variant: Index, device_index: int, width: int) -> Array:
    """Values of the chosen variant of each of `width` kernels on one device."""
    return np.asarray(np.broadcast_to(device_row(values, device_index), (width,))[variant])


def _columns(kernels: Kernels, cost: Cost, variant: Index, device: Gpu, device_index: int) -> list[list[float]]:
    """For each kernel: launch gap, time of full waves and tail [s], slots of both, SM pipes of both, shares of the rest."""

    def chosen(values: Array | float) -> Array:
        return _at(values, variant, device_index, kernels.repeat.size)

    launches = kernels.launches
    ctas, resident, fill, share = (chosen(getattr(cost.terms, name)) for name in ("ctas", "resident", "fill", "share"))
    busy, count = chosen(cost.busy_s), float(device_row(device.sm.count, device_index)[0])
    full_ctas = np.minimum(ctas, np.floor(np.ceil(ctas / count) / resident) * resident * count)
    full = issue_slots(full_ctas, resident, count, fill, share)
    units = issue_slots(ctas, resident, count, fill, share)
    tail, tail_ctas = units - full, ctas - full_ctas
    tail = np.where(tail_ctas > 0, tail, 0.0)
    time = launches * busy / (full + tail)
    shares = {resource: np.zeros_like(busy) for resource in capacity()}
    for name, resource in contended().items():
        if name in cost.bounds:
            shares[resource] = shares[resource] + chosen(cost.bounds[name]) / busy
    pipes = shares.pop(PIPES)
    rounds = np.maximum(1.0, full_ctas / (resident * count))
    rows = [
        launches * chosen(cost.overhead_s), full * time, tail * time,
        np.minimum(1.0, full_ctas / (rounds * resident * count)), np.minimum(1.0, tail_ctas / (resident * count)),
        pipes * full_ctas / (count * np.maximum(full, 1e-300)), pipes * tail_ctas / (count * np.maximum(tail, 1e-300)),
        *shares.values(),
    ]  # fmt: skip
    return np.asarray(rows).T.tolist()  # type: ignore[no-any-return]


def _kernel(row: list[float], name: str, power: float | None) -> list[Phase]:
    gap, full, tail, full_slots, tail_slots, full_pipes, tail_pipes, *shares = row
    resources = [resource for resource in capacity() if resource != PIPES]
    drawn = () if power is None else ((POWER, power),)
    shared = tuple([(resource, min(1.0, share)) for resource, share in zip(resources, shares, strict=True) if share > 0]) + drawn
    phases = [Phase(gap, drawn, name="launch")] if gap > 0 else []
    for time, slots, pipes, which in ((full, full_slots, full_pipes, "full waves"), (tail, tail_slots, tail_pipes, "tail")):
        if time > 0:
            demand = ((PIPES, min(1.0, pipes)), *shared) if pipes > 0 else shared
            phases.append(Phase(time, demand, slots=slots, name=f"{name}, {which}"))
    return phases


def _drawn(kernels: Kernels, cost: PlanCost, variant: Index, device_index: int) -> list[float]:
    """Power of each kernel beyond what the device draws at its clock when nothing runs [W]."""
    assert cost.variants is not None
    width = kernels.repeat.size
    time = _at(cost.variants.busy_s + cost.variants.overhead_s, variant, device_index, width)
    energy = [_at(part, variant, device_index, width) for name, part in cost.variant_energy_j.items() if name not in IDLE]
    return (np.sum(energy, axis=0) / time).tolist()  # type: ignore[no-any-return]

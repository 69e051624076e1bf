"""`PlanCost`: what each op (more exactly, each distinct plan) costs once its kernels are chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from archsim.cost.cost import Array, Choice, Cost, choose
from archsim.lower.kernel import Index, Kernels


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCost:
    """Costs per plan, [D, O], and of the kernels that run, [D, K] (0 where the kernel's option was not chosen).

    `bound_s` splits `time_s` by what limits: each kernel counts for its largest bound, launches for `launch`. `energy_j` has
    the components of `cost.power`. `choice` is what was chosen among the `variants`; a fidelity without variants has neither.
    """

    time_s: Array
    bound_s: Mapping[str, Array]
    flop: Array
    dram_bytes: Array
    energy_j: Mapping[str, Array]
    clocks: Array  # core clocks that pass meanwhile
    launches: Array
    workspace: Array
    option: Index
    kernel_time_s: Array
    kernel_bound: Index  # [D, K], position in `bound_names`
    bound_names: tuple[str, ...]
    kernel_clock: Array  # [D, K], of the chosen variants [Hz]
    variants: Cost | None = None
    choice: Choice | None = None


def plan_cost(cost: Cost, kernels: Kernels) -> PlanCost:
    """Choose variants and options, then add up."""
    choice = choose(cost, kernels)
    names = (*cost.bounds, "launch")
    shape = choice.kernel_time_s.shape
    running = _running(kernels, choice.option, shape)

    def at_variant(values: Array) -> Array:
        rows = max(shape[0], np.atleast_2d(values).shape[0])  # energy may differ between devices whose times do not
        full = np.broadcast_to(values, (rows, kernels.repeat.size))
        index = np.broadcast_to(choice.variant, (rows, shape[1]))
        return np.take_along_axis(full, index, axis=-1) * kernels.launches

    limits = np.stack([at_variant(bound) for bound in cost.bounds.values()])
    largest = limits.argmax(axis=0)
    launch_s = at_variant(cost.overhead_s) * running
    busy_s = at_variant(cost.busy_s) * running
    clock = at_variant(np.asarray(cost.clock)) / kernels.launches
    split = {name: _per_plan(np.where(largest == i, busy_s, 0.0), kernels) for i, name in enumerate(cost.bounds)}
    split["launch"] = _per_plan(launch_s, kernels)
    flop = np.array([kernel.flop * kernel.repeat for kernel in kernels.kernels])
    workspace = np.array([option.workspace for option in kernels.options])
    return PlanCost(
        time_s=_per_plan(busy_s + launch_s, kernels),
        bound_s=split,
        flop=_per_plan(flop * running, kernels),
        dram_bytes=_per_plan(at_variant(cost.dram_bytes) * running, kernels),
        energy_j={name: _per_plan(at_variant(part) * running, kernels) for name, part in cost.energy.items()},
        clocks=_per_plan((busy_s + launch_s) * clock, kernels),
        launches=_per_plan(kernels.launches * running, kernels),
        workspace=workspace[choice.option],
        option=choice.option,
        kernel_time_s=busy_s + launch_s,
        kernel_bound=largest,
        bound_names=names,
        kernel_clock=clock,
        variants=cost,
        choice=choice,
    )


def _running(kernels: Kernels, option: Index, shape: tuple[int, ...]) -> Array:
    """1 for the kernels of the chosen options, 0 for the others, [D, K]."""
    chosen = np.zeros((shape[0], len(kernels.options)))
    np.put_along_axis(chosen, option, 1.0, axis=-1)
    lengths = np.diff([*kernels.option_start, len(kernels.kernels)])
    return np.repeat(chosen, lengths, axis=-1)


def _per_plan(values: Array, kernels: Kernels) -> Array:
    """Sums of [D, K] over the kernels of each plan, [D, O]."""
    return np.add.reduceat(np.atleast_2d(values), kernels.option_start[kernels.plan_start], axis=-1)

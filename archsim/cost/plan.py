"""`PlanCost`: what each op (more exactly, each distinct plan) costs once its kernels are chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from archsim.base.record import LazyField
from archsim.cost.cost import LAUNCH, TURNS, Array, Choice, Cost, choose, first_of_each, overlapping
from archsim.lower.kernel import Index, Kernels


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PlanCost:
    """Costs per plan, [D, O], and of the kernels that run, [D, K] (0 where the kernel's option was not chosen).

    `bound_s` splits `time_s` by what limits [s]: a kernel counts for its largest bound or its two phases.
    `energy_j` has the components of `cost.energy` [J], `total_energy_j` is their sum; `clocks` are the core clocks that pass.
    `kernel_bound` is the position in `bound_names`, `kernel_clock` and `kernel_power_w` are those of the chosen variants [Hz, W].
    `choice` is what was chosen among the `variants`, and `variant_energy_j` what one launch of each takes [J]; a fidelity without
    variants has none of the three. What may be given as a function is computed when somebody asks for it.
    """

    time_s: Array
    option: Index
    bound_names: tuple[str, ...]
    bound_s: LazyField[Mapping[str, Array]] = LazyField()
    if_faster_s: LazyField[Mapping[str, Array]] = LazyField()
    flop: LazyField[Array] = LazyField()
    dram_bytes: LazyField[Array] = LazyField()
    energy_j: LazyField[Mapping[str, Array]] = LazyField()
    total_energy_j: LazyField[Array] = LazyField()
    clocks: LazyField[Array] = LazyField()
    launches: LazyField[Array] = LazyField()
    workspace: LazyField[Array] = LazyField()
    kernel_time_s: LazyField[Array] = LazyField()
    kernel_bound: LazyField[Index] = LazyField()
    kernel_clock: LazyField[Array] = LazyField()
    kernel_power_w: LazyField[Array] = LazyField()
    variants: Cost | None = None
    choice: Choice | None = None
    variant_energy_j: LazyField[Mapping[str, Array]] = LazyField()


def plan_cost(
    cost: Cost, kernels: Kernels, spend: Callable[[Cost], Mapping[str, Array]],
    ease: Callable[[Cost], Mapping[str, Cost]] = lambda ran: {},
) -> PlanCost:  # fmt: skip
    """Choose the fastest variants and options; sums over all launches of each plan are formed when they are asked for.

    t = sum of repeat (t_busy + t_overhead) over the kernels of the fastest option [s], [D, O]; energy [J], traffic [B] and clocks
    [clk] likewise

    cost: of one launch of every variant; kernels: how variants, options and plans belong together
    spend: the energy of one launch of some variants by component [J]
    ease: their costs if one bound were served faster, by its name

    >>> import numpy as np
    >>> from types import SimpleNamespace as some
    >>> times, nest = np.array([[3.0, 2.0]]), some(options=np.array([2]))
    >>> kernels = some(repeat=np.array([1.0, 2.0]), kernel_start=np.array([0, 1]), option_start=np.array([0, 1]),
    ...                plan_start=np.array([0]), nest=nest)
    >>> cost = some(bounds={"dram": times}, busy_s=times, overhead_s=0 * times)
    >>> plan_cost(cost, kernels, lambda ran: {}).time_s.item()  # one kernel of 3 s, or another launched twice
    3.0
    """
    of = _Sums(variants=cost, kernels=kernels, choice=choose(cost, kernels), spend=spend)
    return PlanCost(
        variants=cost, choice=of.choice, time_s=of.choice.plan_time_s, option=of.choice.option,
        bound_names=(*cost.bounds, LAUNCH), bound_s=of.bound_s,
        if_faster_s=lambda: {name: of.summed(one.busy_s + one.overhead_s) for name, one in ease(of.ran).items()},
        flop=lambda: of.summed(kernels.flop[of.choice.ran[0]]),
        dram_bytes=lambda: of.summed(of.ran.dram_bytes),
        energy_j=lambda: {name: of.summed(part) for name, part in spend(of.ran).items()},
        total_energy_j=lambda: of.summed(reduce(np.add, spend(of.ran).values())),
        clocks=lambda: of.summed((of.ran.busy_s + of.ran.overhead_s) * of.ran.clock),
        launches=lambda: of.summed(np.array(1.0)), workspace=lambda: kernels.nest.workspace[of.choice.option],
        kernel_time_s=of.kernel_time_s, kernel_bound=of.kernel_bound,
        kernel_power_w=of.kernel_power_w,
        kernel_clock=lambda: of.at_variant(np.asarray(cost.clock)), variant_energy_j=lambda: spend(cost),
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class _Sums:
    """Sums over the kernels that run."""

    variants: Cost
    kernels: Kernels
    choice: Choice
    spend: Callable[[Cost], Mapping[str, Array]]

    @cached_property
    def ran(self) -> Cost:
        """The costs of the variants that run on any device."""
        return self.variants.at(self.choice.ran[0])

    @cached_property
    def _repeat(self) -> Array:
        """Launches of the variants that run, [D, U]."""
        columns, runs = self.choice.ran
        return np.broadcast_to(self.kernels.repeat[columns], runs.shape)

    @cached_property
    def _runs(self) -> NDArray[np.bool_] | bool:
        """On which devices each of them runs, [D, U]; True where all run on all."""
        runs = self.choice.ran[1]
        return True if runs.all() else runs

    @cached_property
    def _first(self) -> Index:
        """Where each plan begins among the variants that run."""
        return first_of_each(self.kernels.nest.plan_of[self.choice.ran[0]])

    def summed(self, each: Array, where: NDArray[np.bool_] | bool = True) -> Array:
        """Values of one launch of the variants that run, [D, U], summed over all launches of each plan."""
        runs = self._runs & where
        all_launches = each * self._repeat
        return np.add.reduceat(all_launches if runs is True else np.where(runs, all_launches, 0.0), self._first, axis=-1)

    def bound_s(self) -> Mapping[str, Array]:
        """Time of each plan by what limits it."""
        ran = self.ran
        bounds = overlapping(ran.bounds, ran.in_turn)
        largest = np.stack(np.broadcast_arrays(*bounds.values(), ran.busy_s)[:-1]).argmax(axis=0)
        split = {name: self.summed(ran.busy_s, largest == i) for i, name in enumerate(bounds)}
        if bounds is not ran.bounds:
            first, then = TURNS
            share = ran.in_turn * ran.bounds[then] / np.maximum(bounds[first], np.finfo(float).tiny)
            later = self.summed(ran.busy_s * share, largest == [*bounds].index(first))
            split |= {first: split[first] - later, then: split[then] + later}
        return {**split, LAUNCH: self.summed(ran.overhead_s)}

    def at_variant(self, values: Array) -> Array:
        """Values of the variant of each kernel, [D, K]."""
        rows = max(self.choice.variant.shape[0], np.atleast_2d(values).shape[0])
        full = np.broadcast_to(values, (rows, self.kernels.repeat.size))
        return np.take_along_axis(full, np.broadcast_to(self.choice.variant, (rows, self.choice.variant.shape[1])), axis=-1)

    def kernel_time_s(self) -> Array:
        """Time of the kernels that run; 0 for those of options that were not chosen."""
        option = self.choice.option
        chosen = np.zeros((option.shape[0], len(self.kernels.options)))
        np.put_along_axis(chosen, option, 1.0, axis=-1)
        lengths = np.diff([*self.kernels.option_start, len(self.kernels.kernels)])
        with np.errstate(invalid="ignore"):
            return np.where(np.repeat(chosen, lengths, axis=-1) > 0, self.choice.kernel_time_s, 0.0)

    def kernel_power_w(self) -> Array:
        """Mean power of the kernels that run, launch gaps included [W]; 0 for those that do not."""
        columns, runs = self.choice.ran
        power = reduce(np.add, self.spend(self.ran).values()) / (self.ran.busy_s + self.ran.overhead_s)
        power, runs = np.broadcast_arrays(power, runs)
        drawn = np.zeros((len(power), len(self.kernels.kernels)))
        rows, places = np.nonzero(runs)
        drawn[rows, self.kernels.kernel_of[columns[places]]] = power[rows, places]
        return drawn

    def kernel_bound(self) -> Index:
        """What limits each kernel."""
        limits = np.stack([self.at_variant(bound) for bound in self.variants.bounds.values()])
        return np.asarray(limits.argmax(axis=0))

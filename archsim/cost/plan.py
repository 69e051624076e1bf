"""`PlanCost`: what each op (more exactly, each distinct plan) costs once its kernels are chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from archsim.cost.cost import Array, Choice, Cost, choose, first_of_each
from archsim.lower.kernel import Index, Kernels


class PlanCost(Protocol):
    """Costs per plan, [D, O], and of the kernels that run, [D, K] (0 where the kernel's option was not chosen).

    `bound_s` splits `time_s` by what limits: each kernel counts for its largest bound, launches for `launch`. `energy_j` has
    the components of `cost.power`; `clocks` are the core clocks that pass meanwhile. `kernel_bound` is the position in
    `bound_names`, `kernel_clock` that of the chosen variants [Hz]. `choice` is what was chosen among the `variants`, and
    `variant_energy_j` what one launch of each takes; a fidelity without variants has none of the three.
    """

    @property
    def time_s(self) -> Array: ...  # noqa: D102
    @property
    def bound_s(self) -> Mapping[str, Array]: ...  # noqa: D102
    @property
    def flop(self) -> Array: ...  # noqa: D102
    @property
    def dram_bytes(self) -> Array: ...  # noqa: D102
    @property
    def energy_j(self) -> Mapping[str, Array]: ...  # noqa: D102
    @property
    def total_energy_j(self) -> Array: ...  # noqa: D102
    @property
    def clocks(self) -> Array: ...  # noqa: D102
    @property
    def launches(self) -> Array: ...  # noqa: D102
    @property
    def workspace(self) -> Array: ...  # noqa: D102
    @property
    def option(self) -> Index: ...  # noqa: D102
    @property
    def kernel_time_s(self) -> Array: ...  # noqa: D102
    @property
    def kernel_bound(self) -> Index: ...  # noqa: D102
    @property
    def bound_names(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def kernel_clock(self) -> Array: ...  # noqa: D102
    @property
    def variants(self) -> Cost | None: ...  # noqa: D102
    @property
    def choice(self) -> Choice | None: ...  # noqa: D102
    @property
    def variant_energy_j(self) -> Mapping[str, Array]: ...  # noqa: D102


@dataclass(frozen=True, kw_only=True)
class ChosenCost:
    """A `PlanCost` of the fastest variants and options. What nobody asks for is not computed.

    `spend` gives the energy of one launch of some variants by component [J].
    """

    variants: Cost
    kernels: Kernels
    choice: Choice
    spend: Callable[[Cost], Mapping[str, Array]]

    @property
    def time_s(self) -> Array:
        """Time of each plan."""
        return self.choice.plan_time_s

    @property
    def option(self) -> Index:
        """The option of each plan."""
        return self.choice.option

    @property
    def bound_names(self) -> tuple[str, ...]:
        """What can limit a kernel."""
        return (*self.variants.bounds, "launch")

    @cached_property
    def _ran(self) -> Cost:
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

    def _summed(self, each: Array, where: NDArray[np.bool_] | bool = True) -> Array:
        """Values of one launch of the variants that run, [D, U], summed over all launches of each plan."""
        runs = self._runs & where
        all_launches = each * self._repeat
        return np.add.reduceat(all_launches if runs is True else np.where(runs, all_launches, 0.0), self._first, axis=-1)

    @cached_property
    def bound_s(self) -> Mapping[str, Array]:
        """Time of each plan by what limits it."""
        ran = self._ran
        limits = np.stack(np.broadcast_arrays(*ran.bounds.values(), ran.busy_s)[:-1])
        largest = limits.argmax(axis=0)
        split = {name: self._summed(ran.busy_s, largest == i) for i, name in enumerate(ran.bounds)}
        return {**split, "launch": self._summed(ran.overhead_s)}

    @cached_property
    def flop(self) -> Array:
        """Arithmetic of each plan."""
        return self._summed(self.kernels.flop[self.choice.ran[0]])

    @cached_property
    def dram_bytes(self) -> Array:
        """Memory traffic of each plan."""
        return self._summed(self._ran.dram_bytes)

    @cached_property
    def energy_j(self) -> Mapping[str, Array]:
        """Energy of each plan by component."""
        return {name: self._summed(part) for name, part in self.spend(self._ran).items()}

    @property
    def total_energy_j(self) -> Array:
        """Energy of each plan, all components together."""
        return self._summed(reduce(np.add, self.spend(self._ran).values()))

    @cached_property
    def variant_energy_j(self) -> Mapping[str, Array]:
        """Energy of one launch of every variant by component."""
        return self.spend(self.variants)

    @cached_property
    def clocks(self) -> Array:
        """Core clocks that pass while a plan runs."""
        return self._summed((self._ran.busy_s + self._ran.overhead_s) * self._ran.clock)

    @cached_property
    def launches(self) -> Array:
        """Kernel launches of each plan."""
        return self._summed(np.array(1.0))

    @property
    def workspace(self) -> Array:
        """Workspace of the option of each plan."""
        return self.kernels.nest.workspace[self.option]

    @cached_property
    def _running(self) -> Array:
        """1 for the kernels of the chosen options, 0 for the others, [D, K]."""
        chosen = np.zeros((self.option.shape[0], len(self.kernels.options)))
        np.put_along_axis(chosen, self.option, 1.0, axis=-1)
        lengths = np.diff([*self.kernels.option_start, len(self.kernels.kernels)])
        return np.repeat(chosen, lengths, axis=-1)

    def _at_variant(self, values: Array) -> Array:
        """Values of the variant of each kernel, [D, K]."""
        rows = max(self.choice.variant.shape[0], np.atleast_2d(values).shape[0])
        full = np.broadcast_to(values, (rows, self.kernels.repeat.size))
        return np.take_along_axis(full, np.broadcast_to(self.choice.variant, (rows, self.choice.variant.shape[1])), axis=-1)

    @cached_property
    def kernel_time_s(self) -> Array:
        """Time of the kernels that run."""
        with np.errstate(invalid="ignore"):
            return np.where(self._running > 0, self.choice.kernel_time_s, 0.0)

    @cached_property
    def kernel_bound(self) -> Index:
        """What limits each kernel."""
        limits = np.stack([self._at_variant(bound) for bound in self.variants.bounds.values()])
        return np.asarray(limits.argmax(axis=0))

    @cached_property
    def kernel_clock(self) -> Array:
        """The core clock of each kernel."""
        return self._at_variant(np.asarray(self.variants.clock))


def plan_cost(cost: Cost, kernels: Kernels, spend: Callable[[Cost], Mapping[str, Array]]) -> PlanCost:
    """Choose variants and options; sums over them are formed when they are asked for."""
    return ChosenCost(variants=cost, kernels=kernels, choice=choose(cost, kernels), spend=spend)

"""`Cost`: what the equations say about every variant, and which variant and option the library takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archsim.calibration.constants import Calibration
from archsim.lower.kernel import Index, Kernels

Array = NDArray[np.float64]

SMOOTH = 2.0  # exponent of the smooth maximum; two equal bounds give 41 % more than one. A choice, not a fit.
ASYNCHRONOUS = 3.0  # where data moves without the warps that compute, and in element-wise kernels; 26 % more. A choice.
TURNS = ("compute", "dram")  # the bounds that are phases of one kernel where it reads memory before, not while, it computes
LAUNCH = "launch"  # the bound that counts what comes on top of every launch


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Costs of the variants of some kernels, each array [D, V]: D devices, V variants.

    `bounds` are times of one launch [s], each the time that one resource needs on its own; `busy_s` is their smooth maximum, in
    which `TURNS` add up where they run `in_turn`. `overhead_s` comes on top of every launch. Traffic is per launch [B]. `work`
    is what takes energy besides it: `macs` of products, `issues` of other instructions, and the mean number of `units` (SMs,
    cores) at work. `terms` is the record from which the bounds were computed (`GpuTerms`, `CpuTerms`), with all that lies on the
    way.
    """

    bounds: Mapping[str, Array]
    busy_s: Array
    overhead_s: Array
    dram_bytes: Array
    cache_bytes: Array
    work: Mapping[str, Array] = field(default_factory=dict)
    clock: Array | float = 0.0  # at which it was computed [Hz]; of a CPU, that of the cores at work
    share: Array | float = 1.0  # of the highest clock, which a power limit may lower
    smooth: Array | float = SMOOTH  # exponent of the smooth maximum, [V]
    in_turn: Array | float = 0.0  # 1: the `TURNS` of the kernel run one after the other, [V] or [D, V]
    terms: Any = None

    def at(self, columns: Index) -> Cost:
        """The costs of some of the V variants, without `terms`."""
        width = self.busy_s.shape[-1]

        def some(values: Array) -> Array:
            return values[..., columns] if values.ndim and values.shape[-1] == width else values

        return Cost(
            bounds={name: some(values) for name, values in self.bounds.items()},
            work={name: some(values) for name, values in self.work.items()},
            busy_s=some(self.busy_s), overhead_s=some(self.overhead_s), dram_bytes=some(self.dram_bytes),
            cache_bytes=some(self.cache_bytes), clock=some(np.asarray(self.clock)), share=some(np.asarray(self.share)),
            smooth=some(np.asarray(self.smooth)), in_turn=some(np.asarray(self.in_turn)),
        )  # fmt: skip

    def served(self, bounds: Mapping[str, Array]) -> Cost:
        """The same kernels where resources take other times."""
        return replace(self, bounds=bounds, busy_s=smooth_maximum(overlapping(bounds, self.in_turn), self.smooth))


def overlapping(bounds: Mapping[str, Array], in_turn: Array | float) -> Mapping[str, Array]:
    """The times of what serves a kernel at once [s]: of `TURNS` that run one after the other, the first has the time of both.

    bounds: by name [s], each [D, V]; in_turn: 1 where they do, [V] or [D, V]

    >>> import numpy as np
    >>> found = overlapping({"compute": np.array([[3.0, 3.0]]), "dram": np.array([[1.0, 1.0]])}, np.array([1.0, 0.0]))
    >>> {name: bound.tolist() for name, bound in found.items()}
    {'compute': [[4.0, 3.0]], 'dram': [[0.0, 1.0]]}
    """
    if not np.any(in_turn):
        return bounds
    first, then = TURNS
    after = in_turn * bounds[then]
    return {**bounds, first: bounds[first] + after, then: bounds[then] - after}


def smooth_maximum(bounds: Mapping[str, Array], exponent: Array | float = SMOOTH) -> Array:
    """Time of a kernel that all resources serve at once: never less than the largest bound, and more where several are close [s].

    (sum of b^q)^(1/q), [D, V]

    bounds: b, by name [s], each [D, V] or [V]
    exponent: q, 2 where a kernel moves and computes in turns, 3 where data move without the warps that compute, infinite where
        all that moves is known and asked for ahead; or [V] of these

    A choice of form: the sum (q = 1) would say that nothing overlaps, the maximum (q = infinite) that everything does.

    >>> import numpy as np
    >>> smooth_maximum({"compute": np.array([[3.0]]), "dram": np.array([[4.0]])}).item()
    5.0
    """
    peak = np.maximum(reduce(np.maximum, bounds.values()), np.finfo(float).tiny)
    cubic = np.broadcast_to(np.asarray(exponent) == ASYNCHRONOUS, peak.shape[-1:])
    least = np.where(cubic, 0.0, 1.0)  # shares are at most 1, so that the larger of the two is the share where it counts thrice
    total = np.zeros_like(peak)
    for bound in bounds.values():
        share = bound / peak
        power = np.maximum(share, least)
        power *= share
        power *= share
        total += power
    root = np.sqrt(total)
    columns = np.flatnonzero(cubic)
    root[..., columns] = np.cbrt(total[..., columns])
    root[..., np.flatnonzero(np.broadcast_to(np.isinf(exponent), peak.shape[-1:]))] = 1.0
    root *= peak
    return root


def family_efficiency(kernels: Kernels, constants: Calibration) -> Array:
    """Efficiency of the kernel's family, the constant that lowering names for it [1], [V].

    >>> import numpy as np
    >>> from types import SimpleNamespace as some
    >>> of = some(gather=lambda names: np.array([{"one": 1.0, "gemm": 0.75}[name] for name in names]))
    >>> family_efficiency(some(constants=("one", "gemm"), efficiency=np.array([1, 0, 1])), of).tolist()
    [0.75, 1.0, 0.75]
    """
    return constants.gather(kernels.constants)[kernels.efficiency]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What runs: for each kernel its fastest variant, for each plan its fastest option. `time_s` is of all launches, [D, V].

    Times of kernels [D, K] include their repeats; those of options [D, P] are sums over their kernels.
    """

    kernels: Kernels
    time_s: Array
    kernel_time_s: Array
    option_time_s: Array
    plan_time_s: Array

    @cached_property
    def option(self) -> Index:
        """The option of each plan, [D, O]; the first one on a tie."""
        return _first(self.option_time_s, self.plan_time_s, self.kernels.plan_start, self.kernels.nest.options)

    @cached_property
    def variant(self) -> Index:
        """The variant of each kernel, [D, K]; the first one on a tie."""
        return _first(self.time_s, self.kernel_time_s, self.kernels.kernel_start, self.kernels.nest.variants)

    def near(self, factor: float) -> NDArray[np.bool_]:
        """The fastest variants of the kernels of all options that take at most `factor` times as long as the fastest, [D, V]."""
        nest = self.kernels.nest
        fastest = np.zeros(self.time_s.shape, dtype=bool)
        np.put_along_axis(fastest, self.variant, True, axis=-1)
        near = self.option_time_s <= factor * np.repeat(self.plan_time_s, nest.options, axis=-1)
        return np.asarray(fastest & near[:, nest.option_of])

    @cached_property
    def ran(self) -> tuple[Index, NDArray[np.bool_]]:
        """The variants that run on any of the devices, [U], in their order, and on which of them each does, [D, U]."""
        nest = self.kernels.nest
        taken = np.zeros(len(self.kernels.options), dtype=bool)
        taken[self.option] = True
        among = np.flatnonzero(taken[nest.option_of])
        kernel = self.kernels.kernel_of[among]
        start = first_of_each(kernel)
        lengths = nest.variants[kernel[start]]
        fastest = _first(self.time_s[:, among], self.kernel_time_s[:, kernel[start]], start, lengths)
        runs = np.arange(among.size) == np.repeat(fastest, lengths, axis=-1)
        runs &= self.option[:, nest.plan_of[among]] == nest.option_of[among]
        ever = runs.any(axis=0)
        return among[ever], runs[:, ever]


def first_of_each(groups: Index) -> Index:
    """Where each of `groups`, runs of equal neighbours, begins, [G].

    >>> import numpy as np
    >>> first_of_each(np.array([3, 3, 5, 6, 6])).tolist()
    [0, 2, 3]
    """
    begins = np.ones(groups.size, dtype=bool)
    np.not_equal(groups[1:], groups[:-1], out=begins[1:])
    return begins.nonzero()[0]


def choose(cost: Cost, kernels: Kernels) -> Choice:
    """The fastest variant of every kernel and the fastest option of every plan.

    t = repeat (t_busy + t_overhead) of each variant [s], [D, V]; of a kernel the least of its variants, [D, K], of an option the
    sum of its kernels, [D, P], of a plan the least of its options, [D, O]

    cost: has `busy_s` and `overhead_s` of one launch of every variant [s], [D, V]

    A library is taken to choose by time, as one that measures its candidates does.

    >>> import numpy as np
    >>> from types import SimpleNamespace as some
    >>> times = np.array([[3.0, 2.0, 4.0]])
    >>> kernels = some(repeat=np.ones(3), kernel_start=np.array([0, 2]), option_start=np.array([0, 1]), plan_start=np.array([0]))
    >>> choose(some(busy_s=times, overhead_s=np.array([[0.5, 0.5, 0.0]])), kernels).plan_time_s.item()  # two variants
    2.5
    """
    time = np.atleast_2d(kernels.repeat * (cost.busy_s + cost.overhead_s))
    kernel_time = np.minimum.reduceat(time, kernels.kernel_start, axis=-1)
    option_time = np.add.reduceat(kernel_time, kernels.option_start, axis=-1)
    plan_time = np.minimum.reduceat(option_time, kernels.plan_start, axis=-1)
    return Choice(kernels=kernels, time_s=time, kernel_time_s=kernel_time, option_time_s=option_time, plan_time_s=plan_time)


def _first(time: Array, best: Array, start: Index, lengths: Index) -> Index:
    """Position of the minimum inside each group of columns, whose values are `best`; the first one on a tie."""
    at_best = time == np.repeat(best, lengths, axis=-1)
    positions = np.where(at_best, np.arange(time.shape[-1]), time.shape[-1])
    return np.minimum.reduceat(positions, start, axis=-1)

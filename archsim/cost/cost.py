"""`Cost`: what the equations say about every variant, and which variant and option the library takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from archsim.lower.kernel import Index, Kernels

Array = NDArray[np.float64]

SMOOTH = 2.0  # exponent of the smooth maximum; two equal bounds give 41 % more than one. A choice, not a fit.
ASYNCHRONOUS = 3.0  # the same where data moves without the warps that compute, and in streams; 26 % more. A choice, not a fit.


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Costs of the variants of some kernels, each array [D, V]: D devices, V variants.

    `bounds` are times of one launch [s], each the time that one resource needs on its own; `busy_s` is their smooth
    maximum. `overhead_s` comes on top of every launch. Traffic is per launch [B]. `work` is what takes energy besides it:
    `macs` of products, `issues` of other instructions, and the mean number of `units` (SMs, cores) at work. `energy` is what
    one launch takes, by component [J]. `terms` are the quantities on the way to the bounds, for whoever wants to see them.
    """

    bounds: Mapping[str, Array]
    busy_s: Array
    overhead_s: Array
    dram_bytes: Array
    cache_bytes: Array
    work: Mapping[str, Array] = field(default_factory=dict)
    energy: Mapping[str, Array] = field(default_factory=dict)
    clock: Array | float = 0.0  # at which it was computed [Hz]; of a CPU, that of the cores at work
    terms: Mapping[str, Array] = field(default_factory=dict)


def smooth_maximum(bounds: Mapping[str, Array], exponent: Array | float = SMOOTH) -> Array:
    """(sum of b^q)^(1/q): never less than the largest bound, and more where several are close.

    >>> import numpy as np
    >>> smooth_maximum({"a": np.array([[3.0]]), "b": np.array([[0.0]])}).item()
    3.0
    """
    stacked = np.stack(np.broadcast_arrays(*bounds.values()))
    peak = np.maximum(stacked.max(axis=0), np.finfo(float).tiny)
    return np.asarray(peak * np.sum((stacked / peak) ** exponent, axis=0) ** (1 / exponent))


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What runs: for each plan the option [D, O], for each kernel the variant [D, K], and the resulting times.

    Times and traffic of kernels [D, K] include their repeats; those of plans [D, O] are sums over the chosen option.
    """

    option: Index
    variant: Index
    kernel_time_s: Array
    option_time_s: Array
    plan_time_s: Array


def choose(cost: Cost, kernels: Kernels) -> Choice:
    """The fastest variant of every kernel and the fastest option of every plan."""
    one_launch = cost.busy_s + cost.overhead_s
    time = np.atleast_2d(kernels.repeat * one_launch)
    variant, kernel_time = _fastest(time, kernels.kernel_start)
    option_time = np.add.reduceat(kernel_time, kernels.option_start, axis=-1)
    option, plan_time = _fastest(option_time, kernels.plan_start)
    return Choice(
        option=option, variant=variant, kernel_time_s=kernel_time, option_time_s=option_time, plan_time_s=plan_time
    )


def _fastest(time: Array, start: Index) -> tuple[Index, Array]:
    """Position and value of the minimum inside each group of columns; the first one on a tie."""
    best = np.minimum.reduceat(time, start, axis=-1)
    lengths = np.diff([*start, time.shape[-1]])
    at_best = time == np.repeat(best, lengths, axis=-1)
    positions = np.where(at_best, np.arange(time.shape[-1]), time.shape[-1])
    return np.minimum.reduceat(positions, start, axis=-1), best

"""The roofline: what no implementation of these kernels on this device can beat (Williams et al. 2009)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from archsim.calibration.constants import Calibration
from archsim.cost.cost import Array, Choice, Cost
from archsim.cost.cpu import active_clock, last_level
from archsim.cost.plan import PlanCost
from archsim.cost.power import spent
from archsim.device.device import Cpu, Device, Gpu
from archsim.lower.kernel import Index, Kernels


@dataclass(frozen=True, slots=True, kw_only=True)
class Roof:
    """A `PlanCost` of bounds alone, without variants."""

    time_s: Array
    bound_s: Mapping[str, Array]
    flop: Array
    dram_bytes: Array
    energy_j: Mapping[str, Array]
    clocks: Array
    launches: Array
    workspace: Array
    option: Index
    kernel_time_s: Array
    kernel_bound: Index
    bound_names: tuple[str, ...]
    kernel_clock: Array
    variants: Cost | None = None
    choice: Choice | None = None
    variant_energy_j: Mapping[str, Array] = field(default_factory=dict)


    @property
    def total_energy_j(self) -> Array:
        """Energy of each plan, all components together."""
        return np.asarray(reduce(np.add, self.energy_j.values()))


def units(device: Device, threads: Array | float) -> Array | float:
    """Multiprocessors, or the cores that the threads can occupy."""
    return device.sm.count if isinstance(device, Gpu) else np.minimum(device.core.count, threads)


def roofline_cost(
    kernels: Kernels, device: Device, precision: str, clock: Array | float, threads: Array | float, constants: Calibration,
    without: frozenset[str] = frozenset(), limit: Array | float | None = None,
) -> PlanCost:  # fmt: skip
    """max(FLOP / peak, bytes / peak bandwidth) for each plan, by its algorithm of the fewest multiplications.

    A cache-full of inputs may be there already and a cache-full of results may stay, so that much of either is free. No power
    limit slows it: it is the lower bound.
    """
    option, least, compute, dram, moved = roofline_parts(kernels, device, precision, clock, threads)
    time = np.maximum(compute, dram)
    full = np.broadcast_to(option, time.shape)
    wide = np.zeros((time.shape[0], len(kernels.kernels)))
    first = kernels.option_start[option]
    wide[:, first] = time
    bound = np.zeros(wide.shape, dtype=np.intp)
    bound[:, first] = dram > compute
    nothing = np.zeros_like(time)
    speed = clock if isinstance(device, Gpu) else active_clock(device, units(device, threads), clock)
    cap = device.power.tdp if limit is None else limit
    cost = Cost(bounds={"compute": compute, "dram": dram}, busy_s=time, overhead_s=nothing,
                dram_bytes=np.broadcast_to(np.atleast_2d(moved), time.shape), cache_bytes=nothing,
                work={"macs": 0.5 * least, "issues": nothing, "units": np.asarray(units(device, threads))})  # fmt: skip
    return Roof(
        time_s=time,
        bound_s={"compute": np.where(compute >= dram, time, 0.0), "dram": np.where(dram > compute, time, 0.0)},
        flop=np.broadcast_to(least, time.shape),
        dram_bytes=cost.dram_bytes,
        energy_j=spent(cost, device, precision, speed, cap, constants),
        clocks=time * speed,
        launches=nothing,
        workspace=nothing,
        option=full,
        kernel_time_s=wide,
        kernel_bound=bound,
        bound_names=("compute", "dram"),
        kernel_clock=np.broadcast_to(np.asarray(speed, dtype=float), wide.shape),
    )


def roofline_parts(
    kernels: Kernels, device: Device, precision: str, clock: Array | float, threads: Array | float
) -> tuple[Index, Array, Array, Array, Array]:
    """For each plan: option of the fewest FLOP, these FLOP, FLOP / peak [s], bytes / peak bandwidth [s], bytes."""
    if isinstance(device, Cpu):
        clock = active_clock(device, units(device, threads), clock)
    peak = 2.0 * units(device, threads) * device.pipe(precision) * clock
    flop = np.array([kernel.flop * kernel.repeat for kernel in kernels.kernels])
    per_option = np.add.reduceat(flop, kernels.option_start)
    least = np.minimum.reduceat(per_option, kernels.plan_start)
    option = np.array(_first_best(per_option, least, kernels), dtype=np.intp)
    cache = device.l2.size if isinstance(device, Gpu) else last_level(device)
    moved = np.maximum(0.0, kernels.read_bytes - cache) + np.maximum(0.0, kernels.write_bytes - cache)
    compute, dram = np.atleast_2d(least / peak), np.atleast_2d(moved / device.memory.bandwidth)
    compute, dram = np.broadcast_arrays(compute, dram)
    return option, least, compute, dram, moved


def _first_best(per_option: Array, least: Array, kernels: Kernels) -> list[int]:
    ends = [*kernels.plan_start[1:], len(per_option)]
    pairs = zip(kernels.plan_start, ends, least, strict=True)
    return [int(start + np.flatnonzero(per_option[start:end] == best)[0]) for start, end, best in pairs]

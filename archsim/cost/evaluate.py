"""Costs of kernels on a device: every bound, and what each is worth.

The kernels stay the ones that were chosen. Under a power limit their clock settles anew, because faster kernels draw more power.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial, reduce
from typing import TYPE_CHECKING

import numpy as np

from archsim.calibration.constants import Calibration
from archsim.cost.bounds import CPU, GPU, POWER, ROOFLINE, TPU, bounds_of, overhead_of
from archsim.cost.cost import LAUNCH, TURNS, Array, Cost, overlapping, smooth_maximum
from archsim.cost.cpu import CpuTerms
from archsim.cost.energy import TINY, spent
from archsim.cost.gpu import GpuTerms
from archsim.cost.occupancy import runnable
from archsim.cost.plan import PlanCost
from archsim.cost.power import slowed, sustained_share
from archsim.cost.roofline import RooflineTerms
from archsim.device.device import Cpu, Device, Gpu, Tpu
from archsim.lower.kernel import CpuKernels, GpuKernels, Kernels, TpuKernels

if TYPE_CHECKING:
    from archsim.cost.moved import MovedBytes

SPEEDUP = 1.2  # how much faster the resource serves. A choice: less would not show what steps hide, more is another machine.


def faster_costs(
    cost: Cost, device: Device, precision: str, limit: Array | float | None, constants: Calibration, factor: float = SPEEDUP
) -> Mapping[str, Cost]:
    """The costs with each bound in turn served `factor` times as fast, by the name of the bound; each [D, V].

    cost: of one launch of every variant; `cost.share` says at which share of the highest clock
    limit: of power [W], a float or [D, 1]; with one, `power` is the limit raised by the factor. None: nothing lowers the clock
    factor: how many times as fast [1]

    >>> import numpy as np
    >>> from archsim.calibration.constants import default
    >>> from archsim.device.catalog import find
    >>> one = np.ones((1, 1))
    >>> cost = Cost(bounds={"compute": 3 * one, "dram": 4 * one}, busy_s=5 * one, overhead_s=one, dram_bytes=one, cache_bytes=one)
    >>> times = faster_costs(cost, find("gtx_1080").device, "fp32", None, default(), 2.0)
    >>> {name: round((after.busy_s + after.overhead_s).item(), 2) for name, after in times.items()}
    {'compute': 5.27, 'dram': 4.61, 'launch': 5.5}
    """
    names = (*cost.bounds, LAUNCH)
    if limit is None:
        return {name: faster(cost, name, factor) for name in names}
    full = slowed(cost, 1.0 / cost.share)

    def settled(one: Cost, limit: Array | float) -> Cost:
        return slowed(one, sustained_share(one, device, precision, one.clock, limit, constants))

    return {**{name: settled(faster(full, name, factor), limit) for name in names}, POWER: settled(full, limit * factor)}


def faster(cost: Cost, name: str, factor: float) -> Cost:
    """The costs with one bound served `factor` times as fast, or with launches that take 1/factor of their time.

    t = (b_1^q + ... + (b_name / factor)^q + ...)^(1/q) + t_overhead [s], [D, V]

    cost: of one launch of every variant; name: of the bound; factor: how many times as fast [1]

    >>> import numpy as np
    >>> one = np.ones((1, 1))
    >>> cost = Cost(bounds={"compute": 3 * one, "dram": 8 * one}, busy_s=73**0.5 * one, overhead_s=one, dram_bytes=one,
    ...             cache_bytes=one)
    >>> faster(cost, "dram", 2.0).busy_s.item(), faster(cost, "launch", 2.0).overhead_s.item()
    (5.0, 0.5)
    """
    if name == LAUNCH:
        return replace(cost, overhead_s=cost.overhead_s / factor)
    return cost.served({**cost.bounds, name: cost.bounds[name] / factor})


# ---------------------------------------------------------------------------------------------------- costs on a device


def gpu_cost(
    kernels: GpuKernels, device: Gpu, precision: str, clock: Array | float, constants: Calibration,
    without: frozenset[str] = frozenset(), moved: MovedBytes | None = None,
) -> Cost:  # fmt: skip
    """The costs of kernels on a GPU: their bounds, what comes on top, traffic and work; times [s], traffic [B], each [D, V].

    precision: of the operands, as they are multiplied (`Gpu.pipe`)
    clock: core clock [Hz], a float, [D, 1] or [D, V]
    moved: the traffic, in place of its closed forms
    without: parts to leave out, to see what each is worth: waves, or rows of the table of bounds

    >>> from archsim.calibration.constants import default
    >>> from archsim.device.catalog import find
    >>> from archsim.lower.kernel import Kernel, Option, Plan, pack_gpu
    >>> from archsim.lower.columns import Role
    >>> copy = Kernel(name="copy", role=Role.PASS, efficiency="full", b_bytes=160e6, c_bytes=80e6, items=2e7)
    >>> plan = Plan(options=(Option(algorithm="copy", kernels=(copy,)),), read_bytes=160e6, write_bytes=80e6)
    >>> cost = gpu_cost(pack_gpu([plan], {}), find("gtx_1080").device, "fp32", 1.6e9, default())
    >>> cost.bounds["dram"].item() * 1e3  # 240 MB at 0.75 of 320 GB/s
    1.0
    """
    record: Callable[..., GpuTerms] = GpuTerms
    if moved is not None:
        from archsim.cost.moved import MovedGpuTerms

        record = partial(MovedGpuTerms, moved=moved)
    terms = record(kernels=kernels, device=device, precision=precision, clock=clock, constants=constants,
                   whole_waves="waves" not in without)  # fmt: skip
    bounds = bounds_of(terms, GPU, without)
    return Cost(
        bounds=bounds,
        busy_s=np.where(runnable(kernels, device), smooth_maximum(bounds, terms.smooth), np.inf),
        overhead_s=overhead_of(terms, GPU, without) + np.zeros_like(terms.dram_bytes),
        dram_bytes=terms.dram_bytes, cache_bytes=terms.l2_bytes, work=terms.work, clock=clock, smooth=terms.smooth, terms=terms,
    )  # fmt: skip


def cpu_cost(
    kernels: CpuKernels, device: Cpu, precision: str, clock: Array | float, threads: Array | float, constants: Calibration,
    without: frozenset[str] = frozenset(), moved: MovedBytes | None = None,
) -> Cost:  # fmt: skip
    """The costs of kernels on a CPU: their bounds, what comes on top, traffic and work; times [s], traffic [B], each [D, V].

    precision: of the operands (`Cpu.pipe`)
    clock: of SIMD code on all cores [Hz], a float or [D, 1]
    threads: that were asked for, a float or [D, 1]
    moved: the traffic, in place of its closed forms
    without: rows of the table of bounds to leave out

    >>> from archsim.calibration.constants import default
    >>> from archsim.device.catalog import find
    >>> from archsim.lower.columns import CpuColumns, CpuRuntime
    >>> from archsim.lower.kernel import Kernel, Option, Plan, pack_cpu
    >>> from archsim.lower.columns import Role
    >>> copy = Kernel(name="copy", role=Role.PASS, efficiency="full", b_bytes=1e8, c_bytes=1e8, items=2e7, cpu=CpuColumns())
    >>> plan = Plan(options=(Option(algorithm="copy", kernels=(copy,)),), read_bytes=1e8, write_bytes=1e8)
    >>> cost = cpu_cost(pack_cpu([plan], CpuRuntime()), find("i7_6700k").device, "fp32", 4e9, 4, default())
    >>> cost.dram_bytes.item() / 1e6  # the result is read before it is written
    300.0
    """
    record: Callable[..., CpuTerms] = CpuTerms
    if moved is not None:
        from archsim.cost.moved import MovedCpuTerms

        record = partial(MovedCpuTerms, moved=moved)
    terms = record(kernels=kernels, device=device, precision=precision, clock=clock, threads=threads, constants=constants)
    bounds = bounds_of(terms, CPU, without)
    in_turn = terms.in_turn if bounds.keys() >= {*TURNS} else 0.0
    return Cost(
        bounds=bounds, busy_s=smooth_maximum(overlapping(bounds, in_turn)), in_turn=in_turn,
        overhead_s=overhead_of(terms, CPU, without) + np.zeros_like(terms.dram_bytes),
        dram_bytes=terms.dram_bytes, cache_bytes=terms.llc_bytes + np.zeros_like(terms.dram_bytes), work=terms.work,
        clock=terms.core_clock, terms=terms,
    )  # fmt: skip


def tpu_cost(
    kernels: TpuKernels, device: Tpu, precision: str, clock: Array | float, constants: Calibration,
    without: frozenset[str] = frozenset(),
) -> Cost:  # fmt: skip
    """The costs of kernels on a TPU: their bounds, what comes on top, traffic and work; times [s], traffic [B], each [D, V].

    precision: of the operands; clock: [Hz], a float or [D, 1]; without: rows of the table of bounds to leave out

    >>> from archsim.calibration.constants import default
    >>> from archsim.device.catalog import find
    >>> from archsim.lower.kernel import Kernel, Option, Plan, pack_tpu
    >>> from archsim.lower.columns import Role
    >>> layer = Kernel(name="gemm", role=Role.PRODUCT, efficiency="full", menu="gemm", m=256, n=1, k=256, operand_a=1)
    >>> plan = Plan(options=(Option(algorithm="gemm", kernels=(layer,)),), read_bytes=65536, write_bytes=256)
    >>> cost = tpu_cost(pack_tpu([plan]), find("tpu_v1").device, "int8", 7e8, default())
    >>> round(cost.bounds["compute"].item() * 7e8)  # a tile loaded, a row through it
    1022
    """
    from archsim.cost.tpu import TpuTerms

    terms = TpuTerms(kernels=kernels, device=device, precision=precision, clock=clock, constants=constants)
    found = bounds_of(terms, TPU, without)
    bounds = dict(zip(found, np.broadcast_arrays(*map(np.atleast_2d, found.values())), strict=True))
    nothing = np.zeros_like(next(iter(bounds.values())))
    return Cost(
        bounds=bounds, busy_s=smooth_maximum(bounds, terms.smooth), overhead_s=overhead_of(terms, TPU, without) + nothing,
        dram_bytes=terms.dram_bytes + nothing, cache_bytes=terms.buffer_bytes + nothing,
        work={name: value + nothing for name, value in terms.work.items()}, clock=clock, smooth=terms.smooth, terms=terms,
    )  # fmt: skip


def roofline_cost(
    kernels: Kernels, device: Device, precision: str, clock: Array | float, threads: Array | float, constants: Calibration,
    without: frozenset[str] = frozenset(), limit: Array | float | None = None,
) -> PlanCost:  # fmt: skip
    """The largest bound of each plan, by its algorithm of the fewest multiplications; times [s], traffic [B], energy [J], [D, O].

    precision: of the operands; clock: [Hz], a float or [D, 1]; threads: of a CPU, a float or [D, 1]
    without: rows of the table of bounds to leave out; limit: of power [W], a float or [D, 1]

    No power limit slows it: it is the lower bound (Williams et al. 2009).

    >>> from archsim.calibration.constants import default
    >>> from archsim.device.catalog import find
    >>> from archsim.lower.kernel import Kernel, Option, Plan, pack_gpu
    >>> from archsim.lower.columns import Role
    >>> copy = Kernel(name="copy", role=Role.PASS, efficiency="full", flop=1e9)
    >>> plan = Plan(options=(Option(algorithm="copy", kernels=(copy,)),), read_bytes=0, write_bytes=0)
    >>> gpu = find("gtx_1080").device
    >>> found = roofline_cost(pack_gpu([plan], {}), gpu, "fp32", 1.25e9, 1, default())
    >>> round(found.time_s.item() * gpu.peak_flops("fp32", 1.25e9) / 1e9, 12)
    1.0
    """
    t = RooflineTerms(kernels=kernels, device=device, precision=precision, clock=clock, threads=threads)
    found = bounds_of(t, ROOFLINE, without)
    bounds = dict(zip(found, np.broadcast_arrays(*found.values()), strict=True))
    largest = np.stack(list(bounds.values())).argmax(axis=0)
    time = reduce(np.maximum, bounds.values())
    first = kernels.option_start[t.option]
    wide, bound = np.zeros((time.shape[0], len(kernels.kernels))), np.zeros((time.shape[0], len(kernels.kernels)), dtype=np.intp)
    wide[:, first], bound[:, first] = time, largest
    nothing = np.zeros_like(time)
    cost = Cost(bounds=bounds, busy_s=time, overhead_s=nothing, terms=t,
                dram_bytes=np.broadcast_to(np.atleast_2d(t.dram_bytes), time.shape), cache_bytes=nothing,
                work={"macs": 0.5 * t.flop, "issues": nothing, "units": np.asarray(t.units)})  # fmt: skip
    energy = spent(cost, device, precision, t.speed, device.power.tdp if limit is None else limit, constants)

    def drawn() -> Array:
        power = np.zeros_like(wide)
        power[:, first] = reduce(np.add, energy.values()) / np.maximum(time, TINY)
        return power

    return PlanCost(
        time_s=time, option=np.broadcast_to(t.option, time.shape), bound_names=tuple(bounds),
        bound_s={name: np.where(largest == i, time, 0.0) for i, name in enumerate(bounds)},
        if_faster_s=lambda: {name: reduce(np.maximum, {**bounds, name: bound / SPEEDUP}.values())
                             for name, bound in bounds.items()},
        flop=np.broadcast_to(t.flop, time.shape), dram_bytes=cost.dram_bytes, energy_j=energy,
        total_energy_j=lambda: np.asarray(reduce(np.add, energy.values())), clocks=time * t.speed, launches=nothing,
        workspace=nothing, kernel_time_s=wide, kernel_bound=bound,
        kernel_clock=np.broadcast_to(np.asarray(t.speed, dtype=float), wide.shape), variant_energy_j={},
        kernel_power_w=lambda: np.where(wide > 0, drawn(), 0.0),
    )  # fmt: skip

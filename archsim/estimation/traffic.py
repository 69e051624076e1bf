"""Traffic of the kernels that run, from simulated caches in place of the closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np

from archsim.cache.launch import LevelBytes, Tiling, of_cpu, of_gpu
from archsim.cache.roles import KernelShape
from archsim.cost.cost import Array, Choice, Cost
from archsim.cost.moved import MovedBytes
from archsim.device.cpu_core import FORMS
from archsim.device.device import PRECISION_BYTES, WIDENED, Cpu, Device, Gpu
from archsim.device.variant import at_row, rows_of
from archsim.estimation.memo import memo
from archsim.lower.kernel import GpuKernels, Kernels

# Bytes of a value by the names of pipes that are no precision.
PIPE_BYTES = {"half": 2, WIDENED: 2, **{form: PRECISION_BYTES[of.precision] for form, of in FORMS.items()}}


def moved_by(cost: Cost, choice: Choice, kernels: Kernels, device: Device, precision: str) -> MovedBytes:
    """The traffic of the variants that run, on each of D devices; that of the others by the closed form, [D, V].

    precision: how operands are multiplied
    """
    columns, runs = choice.ran
    rows = max(rows_of(device), len(runs), len(np.atleast_2d(cost.busy_s)))
    found = closed_bytes(cost, kernels, device, rows)
    element = PRECISION_BYTES.get(precision) or PIPE_BYTES[precision]
    for row in range(rows):
        one = at_row(device, row) if rows_of(device) > 1 else device
        live = runs[min(row, len(runs) - 1)]
        for column in columns[live].tolist():
            seen = launch_bytes(cost.terms, kernels, one, column, row, element)
            for name in ("core", "shared", "dram_read", "dram_written"):
                getattr(found, name)[row, column] = getattr(seen, name)
    return found


def closed_bytes(cost: Cost, kernels: Kernels, device: Device, rows: int) -> MovedBytes:
    """The traffic of all variants by the closed forms, [rows, V]; of a CPU, reads of memory and writes together."""
    terms, width = cost.terms, kernels.m.size

    def whole(values: Array | float) -> Array:
        return np.array(np.broadcast_to(np.atleast_2d(values), (rows, width)))

    nothing = np.zeros((rows, width))
    if isinstance(device, Gpu):
        reads = whole(terms.reads)
        return MovedBytes(core=nothing, shared=whole(terms.l2_bytes), dram_read=reads,
                          dram_written=whole(terms.dram_bytes) - reads)  # fmt: skip
    return MovedBytes(core=whole(terms.refill_bytes), shared=whole(terms.llc_bytes), dram_read=whole(terms.dram_bytes),
                      dram_written=nothing)  # fmt: skip


def launch_bytes(terms: Any, kernels: Kernels, device: Device, column: int, row: int, element: int) -> LevelBytes:
    """The traffic of one launch of a variant on one device; element: size of a value [B]."""
    kernel = kernels.kernels[int(kernels.kernel_of[column])]
    op = kernels.ops[int(kernels.nest.plan_of[column])]
    shape = KernelShape(op=op, kernel=kernel, element=element, gpu=isinstance(device, Gpu))

    def at(values: object) -> float:
        wide = np.atleast_2d(np.asarray(values, dtype=float))
        return float(wide[min(row, len(wide) - 1), min(column, wide.shape[1] - 1)])

    if not isinstance(device, Gpu):
        assert isinstance(device, Cpu)  # a TPU has no caches
        return of_cpu(shape, device, at(terms.workers))
    assert isinstance(kernels, GpuKernels)
    tiling = Tiling(m=int(kernels.tile_m[column]), n=int(kernels.tile_n[column]), split=int(kernels.split[column]),
                    resident=max(1, int(at(terms.resident))))  # fmt: skip
    return of_gpu(shape, device, tiling, memo())

"""How many CTAs share an SM, and in how many waves they run."""

from __future__ import annotations

import numpy as np

from archsim.cost.cost import Array
from archsim.device.device import Gpu
from archsim.lower.kernel import GpuKernels

WARP = 32  # threads; the unit in which every NVIDIA GPU schedules
REGISTER = 4  # B


def warps_per_cta(kernels: GpuKernels) -> Array:
    """Warps of one CTA, [V]."""
    return np.ceil(kernels.threads / WARP)


def resident_ctas(kernels: GpuKernels, device: Gpu) -> Array:
    """CTAs that fit on one SM at once, [D, V]: the least of the four limits (CUDA occupancy calculator).

    A kernel that would not fit at all counts as one.
    """
    by_registers = device.sm.registers / (kernels.registers * kernels.threads * REGISTER)
    by_shared = device.sm.shared_memory / np.maximum(kernels.shared, 1.0)
    by_warps = device.sm.warps / warps_per_cta(kernels)
    fitting = np.minimum(np.minimum(by_registers, by_shared), np.minimum(by_warps, device.sm.ctas))
    return np.asarray(np.maximum(1.0, np.floor(fitting)))


def runnable(kernels: GpuKernels, device: Gpu) -> Array:
    """Which variants fit into the shared memory of a CTA, [D, V]; all of a kernel of which none fits."""
    fits = np.atleast_2d(kernels.shared <= device.sm.shared_memory_cta)
    none = ~np.logical_or.reduceat(fits, kernels.kernel_start, axis=-1)
    return np.asarray(fits | none[..., kernels.kernel_of])


def issue_slots(ctas: Array, resident: Array, sm_count: Array | float, fill: Array) -> Array:
    """Time of all CTAs in units of one CTA alone on a saturated SM, [D, V].

    The busiest SM runs n = ceil(ctas / SMs) CTAs, `resident` of them at a time. `fill` is how many CTAs saturate the
    SM's pipes; fewer take as long as that many. So full waves cost max(resident, fill) each and the tail max(rest, fill).
    """
    busiest = np.ceil(ctas / sm_count)
    full = np.floor(busiest / resident)
    tail = busiest - full * resident
    return np.asarray(full * np.maximum(resident, fill) + np.where(tail > 0, np.maximum(tail, fill), 0.0))

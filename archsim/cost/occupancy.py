"""How many CTAs share an SM, and in how many waves they run."""

from __future__ import annotations

import numpy as np

from archsim.cost.cost import Array
from archsim.device.device import Gpu
from archsim.lower.kernel import GpuKernels

WARP = 32  # threads; the unit in which every NVIDIA GPU schedules, and in which constants of kernels count
REGISTER = 4  # B


def warps_of(kernels: GpuKernels) -> Array:
    """Warps of one CTA.

    ceil(threads / 32), [V]; threads: of a CTA [1], [V]

    >>> from types import SimpleNamespace as kernels
    >>> float(warps_of(kernels(threads=200.0)))
    7.0
    """
    return np.ceil(kernels.threads / WARP)


def resident_ctas(kernels: GpuKernels, device: Gpu) -> Array:
    """CTAs that fit on one SM at once: the least of the four limits, and at least one.

    max(1, floor(min(R / (r t 4), S / s, W / ceil(t / p), C))), [D, V]        (CUDA occupancy calculator)

    by_registers: CTAs that the register file holds: R bytes over r registers of 4 B for each of t threads
    by_shared: CTAs that the shared memory holds: S bytes over s of each CTA
    by_warps: CTAs that the warp slots hold: W over the warps of each CTA, of p threads (`sm.warp`)
    limits: the least of these and of C, the CTAs that an SM can hold

    Holds for one kernel alone on the device. One that does not fit at all counts as one, as if it ran at all.

    >>> from types import SimpleNamespace as some
    >>> kernel = some(threads=256.0, registers=120.0, shared=16384.0)
    >>> sm = some(registers=65536 * 4.0, shared_memory=98304.0, warps=64.0, ctas=32.0, warp=32.0)  # GTX 980
    >>> float(resident_ctas(kernel, some(sm=sm)))
    2.0
    """
    by_registers = device.sm.registers / (kernels.registers * kernels.threads * REGISTER)
    by_shared = device.sm.shared_memory / np.maximum(kernels.shared, 1.0)
    by_warps = device.sm.warps / np.ceil(kernels.threads / (WARP if device.sm.warp is None else device.sm.warp))
    limits = np.minimum(np.minimum(by_registers, by_shared), np.minimum(by_warps, device.sm.ctas))
    return np.asarray(np.maximum(1.0, np.floor(limits)))


def runnable(kernels: GpuKernels, device: Gpu) -> Array:
    """Whether a variant fits into the shared memory that a CTA may take, [D, V]; true for all of a kernel of which none fits.

    s <= S_cta, or no variant of this kernel has s <= S_cta; s: shared memory of a CTA [B], [V]; S_cta: `sm.shared_memory_cta` [B]

    >>> import numpy as np
    >>> from types import SimpleNamespace as some
    >>> kernels = some(shared=np.array([65536.0, 16384.0, 65536.0]), kernel_start=np.array([0, 2]), kernel_of=np.array([0, 0, 1]))
    >>> runnable(kernels, some(sm=some(shared_memory_cta=49152.0))).tolist()
    [[False, True, True]]
    """
    fits = np.atleast_2d(kernels.shared <= device.sm.shared_memory_cta)
    none = ~np.logical_or.reduceat(fits, kernels.kernel_start, axis=-1)
    return np.asarray(fits | none[..., kernels.kernel_of])


def issue_slots(ctas: Array, resident: Array, sm_count: Array | float, fill: Array) -> Array:
    """Time of all CTAs in units of one CTA alone on a saturated SM.

    w max(resident, fill) + max(tail, fill) where tail > 0, [D, V]; w = floor(busiest / resident)

    busiest: CTAs of the busiest SM
    full: its full waves, `resident` CTAs at a time
    tail: CTAs in its last, partial wave
    fill: CTAs that saturate the pipes of an SM; fewer take as long as that many, shape [D, V] or [V]
    ctas: of one launch, [V]; resident: CTAs that share an SM, [D, V]; sm_count: a float or [D, 1]

    Holds for CTAs of equal length, dealt out evenly.

    >>> import numpy as np
    >>> float(issue_slots(np.array(50.0), np.array(4.0), 10.0, np.array(4.0)))  # a wave of four, and one that takes as long
    8.0
    """
    busiest = np.ceil(ctas / sm_count)
    full = np.floor(busiest / resident)
    tail = busiest - full * resident
    return np.asarray(full * np.maximum(resident, fill) + np.where(tail > 0, np.maximum(tail, fill), 0.0))

"""How many CTAs share an SM, in how many waves they run, and what share of its issue slots they take."""

from __future__ import annotations

import numpy as np

from archsim.calibration.constants import Calibration
from archsim.cost.cost import Array
from archsim.device.device import Gpu
from archsim.lower.kernel import GpuKernels

WARP = 32  # threads; the unit in which every NVIDIA GPU schedules, for a spec that does not say
REGISTER = 4  # B


def warps_of(kernels: GpuKernels, device: Gpu) -> Array:
    """Warps of one CTA.

    ceil(threads / p), [V] or [D, V]; threads: of a CTA [1], [V]; p: of a warp, `sm.warp`, 32 where the spec does not say

    >>> from types import SimpleNamespace as some
    >>> [float(warps_of(some(threads=200.0), some(sm=some(warp=p)))) for p in (None, 64.0)]
    [7.0, 4.0]
    """
    return np.ceil(kernels.threads / (WARP if device.sm.warp is None else device.sm.warp))


def resident_ctas(kernels: GpuKernels, device: Gpu) -> Array:
    """CTAs that fit on one SM at once: the least of the four limits, and at least one.

    max(1, min(by_registers, by_shared, by_warps, C)), [D, V]        (CUDA occupancy calculator)

    by_registers, by_shared: CTAs that the register file and the shared memory hold, `in_registers` and `in_shared`
    by_warps: CTAs that the warp slots hold: W over the warps of each CTA, of p threads (`sm.warp`)
    limits: the least of these and of C, the CTAs that an SM can hold

    Holds for one kernel alone on the device. One that does not fit at all counts as one, as if it ran at all.

    >>> from types import SimpleNamespace as some
    >>> from archsim.device.catalog import find
    >>> float(resident_ctas(some(threads=256.0, registers=41.0, shared=16384.0), find("gtx_1080").device))
    5.0
    """
    sm, warps = device.sm, warps_of(kernels, device)
    warp = WARP if sm.warp is None else sm.warp
    by_registers = in_registers(sm.registers, sm.schedulers, warp, warps, kernels.registers, sm.register_unit)
    by_shared = in_shared(sm.shared_memory, kernels.shared, sm.shared_reserved, sm.shared_unit)
    limits = np.minimum(np.minimum(by_registers, by_shared), np.minimum(sm.warps / warps, sm.ctas))
    return np.asarray(np.maximum(1.0, np.floor(limits)))


def in_registers(
    file: Array | float, schedulers: Array | float, warp: Array | float, warps: Array | float, registers: Array | float,
    unit: Array | float | None,
) -> Array:  # fmt: skip
    """CTAs whose registers fit: the warps that each scheduler's part of the file holds, over those of a CTA.

    floor(n floor(R / n / (4 given p)) / w)

    file: R, registers of an SM [B]; schedulers: n, each with its part of them; warp: p, threads of a warp; warps: w, of a CTA
    given: `registers` of a thread, of 4 B, in whole units; unit: `sm.register_unit`, None where no unit is known

    >>> float(in_registers(65536 * 4, 4, 32, 8, 49, 8))
    4.0
    """
    given = registers if unit is None else np.ceil(registers / unit) * unit
    return np.floor(schedulers * np.floor(file / schedulers / (REGISTER * warp * given)) / warps)


def in_shared(memory: Array | float, shared: Array | float, reserved: Array | float | None, unit: Array | float | None) -> Array:
    """CTAs whose shared memory fits: floor(memory / taken), no limit to CTAs that use none.

    asked: what a CTA asks for, `shared`, and what the driver takes of each, `reserved` [B]
    taken: the same in whole units [B]; unit: `sm.shared_unit`, None where no unit is known

    >>> float(in_shared(164 * 1024, 32 * 1024, 1024, 128))
    4.0
    """
    asked = shared if reserved is None else shared + reserved
    taken = asked if unit is None else np.ceil(asked / unit) * unit
    return np.where(np.asarray(shared) > 0, np.floor(memory / np.maximum(taken, 1.0)), np.inf)


def runnable(kernels: GpuKernels, device: Gpu) -> Array:
    """Whether a variant fits a CTA's shared memory and a thread's registers, [D, V].

    s <= S_cta and r <= R_thread; of a kernel of which no variant fits, those that come nearest

    over: s / S_cta or r / R_thread, whichever is more, not below 1 [1]
    s: shared memory of a CTA [B], [V]; S_cta: `sm.shared_memory_cta` [B]
    r: registers of a thread [1], [V]; R_thread: those that its instructions can name, `sm.thread_registers` [1]

    >>> import numpy as np
    >>> from types import SimpleNamespace as some
    >>> kernels = some(shared=np.array([65536.0, 16384.0, 65536.0]), registers=np.array([32.0, 63.0, 32.0]),
    ...                kernel_start=np.array([0, 2]), kernel_of=np.array([0, 0, 1]))
    >>> runnable(kernels, some(sm=some(shared_memory_cta=49152.0, thread_registers=63.0))).tolist()
    [[False, True, True]]
    """
    most = np.inf if device.sm.thread_registers is None else device.sm.thread_registers
    over = np.maximum(np.atleast_2d(kernels.shared / device.sm.shared_memory_cta), kernels.registers / most)
    over = np.maximum(over, 1.0)
    return np.asarray(over <= np.minimum.reduceat(over, kernels.kernel_start, axis=-1)[..., kernels.kernel_of])


def warps_per_scheduler(kernels: GpuKernels, device: Gpu) -> Array:
    """Warps that one CTA gives to each scheduler of its SM, on average.

    ceil(threads / p) / schedulers, [D, V]

    threads: of a CTA [1], [V]; p: of a warp; schedulers: warp schedulers of an SM

    >>> from types import SimpleNamespace as some
    >>> float(warps_per_scheduler(some(threads=64.0), some(sm=some(schedulers=4.0, warp=32.0))))
    0.5
    """
    return np.asarray(warps_of(kernels, device) / device.sm.schedulers)


def whole_warps(ctas: Array, share: Array) -> Array:
    """CTAs that would take as long if every scheduler had as many warps as the one that has most.

    ceil(ctas share) / share, [D, V]

    ctas: on one SM; share: warps of one of them on each scheduler, `warps_per_scheduler`, [D, V]

    A scheduler issues for its own warps alone: the others cannot help it out. 1e-9 is what rounding may add to a whole number.

    >>> import numpy as np
    >>> float(whole_warps(np.array(3.0), np.array(0.5)))  # six warps on four schedulers: two of them have two
    4.0
    """
    return np.asarray(np.ceil(ctas * share - 1e-9) / share)


def issue_slots(ctas: Array, resident: Array, sm_count: Array | float, fill: Array, share: Array) -> Array:
    """Time of all CTAs in units of one CTA alone on a saturated SM.

    (w - 1) max(of_wave, fill) + max(of_last, fill), [D, V]; w = ceil(busiest / resident)

    busiest: CTAs of the busiest SM
    before: its waves, `resident` CTAs at a time, but for the last one
    last: CTAs in its last wave
    of_wave: those of a wave before; where an SM has one CTA at a time, in whole warps of a scheduler
    of_last: those of the last wave, in whole warps
    fill: CTAs that saturate the pipes of an SM; fewer take as long as that many, shape [D, V] or [V]
    share: warps of a CTA on each scheduler, [D, V]
    ctas: of one launch, [V]; resident: CTAs that share an SM, [D, V]; sm_count: a float or [D, 1]

    Holds for CTAs of equal length, dealt out evenly. As long as others follow, a CTA on schedulers with fewer warps ends sooner,
    and the next one takes its place; only in the last wave schedulers wait for the one that has most.

    >>> import numpy as np
    >>> one = np.array(1.0)
    >>> float(issue_slots(50.0 * one, 4.0 * one, 10.0, 4.0 * one, one))  # a wave of four, and one that takes as long
    8.0
    """
    busiest = np.ceil(ctas / sm_count)
    before = np.ceil(busiest / resident) - 1.0
    last = busiest - before * resident
    of_wave = np.where(resident > 1.0, resident, whole_warps(resident, share))
    of_last = whole_warps(last, share)
    return np.asarray(before * np.maximum(of_wave, fill) + np.maximum(of_last, fill))


# ---------------------------------------------------------------------------------------------------------- issue slots

WIDEST = 16.0  # bytes of the widest load of a lane


def narrow_loads(kernels: GpuKernels, device: Gpu, depth: Array, constants: Calibration) -> Array:
    """Clocks in which a CTA loads its tiles beyond what wide loads take, where rows begin at no multiple of 16 B [clk].

    c (tile_m + tile_n) depth (element / load - element / 16) / lanes, [D, V]

    singles: loads of one CTA beyond those of 16 B [1], [V]
    element: size of an operand's value [B]; load: what a lane loads at once [B], both [V]
    depth: inner steps of one CTA, in units of k, [V]
    lanes: issue slots of an SM in a clock, `issue_lanes` [OP/clk]
    c: issue slots of one load, with its address, its test and its store to shared memory, `gemm.narrow_slots` [1]

    Bulk copies (TMA) and asynchronous ones of 16 B need whole multiples; without them each lane moves its values by itself.

    >>> import numpy as np
    >>> from types import SimpleNamespace as some
    >>> kernel = some(tile_m=128.0, tile_n=128.0, operand_a=2.0, load=np.array([2.0, 4.0, 16.0]))
    >>> gpu = some(sm=some(schedulers=4.0, warp=32.0))
    >>> narrow_loads(kernel, gpu, 64.0, {"gemm.narrow_slots": 40.0}).tolist()
    [4480.0, 1920.0, 0.0]
    """
    singles = (kernels.tile_m + kernels.tile_n) * depth * (kernels.operand_a / kernels.load - kernels.operand_a / WIDEST)
    return np.asarray(constants["gemm.narrow_slots"] * singles / issue_lanes(device))


def window_slots(kernels: GpuKernels, constants: Calibration) -> Array:
    """Issue slots in which an element-wise kernel goes through its windows.

    checked c_checked + unrolled c_unrolled, [V]

    checked, unrolled: values of windows, by the loop of the library's kernel (`window_loop` of the stack) [1], [V]
    c: instructions for each, `window.checked_slots` and `window.unrolled_slots` [1]

    >>> from types import SimpleNamespace as kernels
    >>> window_slots(kernels(checked=9.0, unrolled=0.0), {"window.checked_slots": 44.0, "window.unrolled_slots": 12.0})
    396.0
    """
    return kernels.checked * constants["window.checked_slots"] + kernels.unrolled * constants["window.unrolled_slots"]


def mixed_work(kernels: GpuKernels, device: Gpu, rate: Array) -> Array:
    """What the instructions of an element-wise kernel keep an SM from multiplying, whatever pipes they go to [1].

    slots rate / lanes, [D, V]

    slots: those that the stack counts for values and rows, as of a softmax: loads, conversions, exponentials, divisions [1], [V]
    lanes: issue slots of an SM in a clock, `issue_lanes` [OP/clk]; rate: multiply-accumulates per clock and SM [FMA/clk], [D, V]

    >>> from types import SimpleNamespace as some
    >>> mixed_work(some(slots=1e6), some(sm=some(schedulers=4.0, warp=32.0)), 64.0).item()
    500000.0
    """
    return np.asarray(kernels.slots * rate / issue_lanes(device))


def issue_lanes(device: Gpu) -> Array | float:
    """Instructions of single threads that an SM issues in a clock: schedulers x threads of a warp [OP/clk], a float or [D, 1].

    >>> from types import SimpleNamespace as some
    >>> issue_lanes(some(sm=some(schedulers=2.0, warp=None)))  # a Tesla P100
    64.0
    """
    return device.sm.schedulers * (WARP if device.sm.warp is None else device.sm.warp)

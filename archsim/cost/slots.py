"""Issue slots of an SM that go to other things than arithmetic: narrow loads, indices, conversions, windows."""

from __future__ import annotations

import numpy as np

from archsim.calibration.constants import Calibration
from archsim.cost.cost import Array
from archsim.cost.occupancy import WARP
from archsim.device.device import Gpu
from archsim.lower.kernel import GpuKernels

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

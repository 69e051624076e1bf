"""Energy of a run of one SM, by what it counted: instructions of each pipe, bytes of the L2 and of memory, clocks."""

from __future__ import annotations

import numpy as np

from archsim.calibration.constants import Calibration
from archsim.cost.cost import Array, Cost
from archsim.cost.energy import COMPONENTS, spent
from archsim.cycle import layout
from archsim.cycle.program import FP32, INT, SPECIAL, TENSOR
from archsim.cycle.run import Prepared, SmRun
from archsim.cycle.stalls import executed
from archsim.device.device import Gpu


def sm_energy(device: Gpu, on: Prepared, result: SmRun, clock: float, precision: str, constants: Calibration) -> dict[str, float]:
    """Energy of one SM by component [J], with its share of the board's idle power and leakage while all SMs do the same.

    clock: core clock [Hz]; precision: of the operands of tensor cores

    Multiply-accumulates of tensor cores, and of lanes for fp32 whose operands come from shared memory, have the energy of their
    format, with registers and shared memory in it; other instructions, of the lanes for fp32, integers and special functions,
    that of a lane for each thread; bytes of the L2 and of memory their own. No power limit lowers the clock.
    """
    machine, sms = on.machine, float(np.ravel(device.sm.count)[0])
    threads = macs = 0.0
    products = FP32 if precision == "fp32" and any(i.kind == layout.SHARED for _, i in executed(on, result)) else TENSOR
    for count, i in executed(on, result):
        if i.pipe == TENSOR:
            whole = i.kind == layout.DEFERRED and machine.needed().issue == "thread"  # takes those of all partitions
            macs += count * i.clocks * (machine.tensor_rate if whole else machine.lanes[TENSOR])
        elif i.pipe == products:
            macs += count * machine.warp
        elif i.pipe in (FP32, INT, SPECIAL):
            threads += count * machine.warp
    cost = Cost(
        bounds={}, busy_s=_one(result.clocks / clock), overhead_s=_one(0.0), dram_bytes=_one(sms * result.dram),
        cache_bytes=_one(sms * result.l2),
        work={"macs": _one(sms * macs), "issues": _one(sms * threads), "units": _one(sms)},
    )  # fmt: skip
    parts = spent(cost, device, precision, clock, np.inf, constants)
    return {name: parts[name].item() / sms for name in COMPONENTS}


def _one(value: float) -> Array:
    return np.full((1, 1), value)

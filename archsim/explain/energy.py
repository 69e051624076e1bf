"""The equations of a kernel's energy, in the order in which `archsim.cost.power` computes them. All are of one launch."""

from __future__ import annotations

import numpy as np

from archsim.cost.cost import Array
from archsim.cost.power import TENSOR_WIDTH, highest_clock, memory_family, node_energy, voltage, voltage_line
from archsim.device.device import Gpu
from archsim.estimation.pipeline import arithmetic
from archsim.estimation.request import Request
from archsim.explain.equation import Equation, Quantities

SAVED = Equation(name="saved", unit="W",
                 text="power.idle * energy.idle_clock * max(0, 1 - speed / top * (volt / volt_top) ** 2)",
                 meaning="what a lower clock than the highest takes off the idle power")  # fmt: skip
MAC = {
    "gpu": Equation(name="mac", unit="J", text="node * (1 - energy.clock) * rate.fp32 / pipe * volt ** 2",
                    meaning="one multiply-accumulate of this format"),
    "tensor": Equation(name="mac", unit="J", text="node * (1 - energy.clock) * energy.tensor * width * volt ** 2",
                       meaning="one multiply-accumulate of this format on tensor cores"),
    "cpu": Equation(name="mac", unit="J", text="node * energy.core_mac * single / pipe * volt ** 2",
                    meaning="one multiply-accumulate of this format in a SIMD lane"),
}  # fmt: skip
UNIT = {
    "gpu": "node * energy.clock * rate.fp32 * volt ** 2 * units * speed * busy",
    "cpu": "node * energy.core_clock * volt ** 2 * units * speed * busy",
}
LEAKING = {"gpu": "sm.count * rate.fp32", "cpu": "core.count * energy.core_clock"}
ISSUE = {"gpu": "node * (1 - energy.clock) * volt ** 2", "cpu": "node * energy.core_mac * volt ** 2"}


def equations(query: Request, capped: bool) -> tuple[Equation, ...]:
    """All of a kernel on this device; `capped` where its power at this clock is above the limit."""
    kind = query.spec.kind
    device, precision = query.spec.device, arithmetic(query.stack, query.spec.device, query.precision)
    tensor = isinstance(device, Gpu) and device.has_tensor("fp16" if precision == "half" else precision)
    byte = f"energy.byte.{memory_family(device)}"
    kept = " * kept" if capped else ""
    slope, floor = voltage_line(device)
    volt = Equation(name="volt", unit="1", text=f"max({floor}, 1 - {slope} * (1 - speed / highest))",
                    meaning="voltage, as a share of that at the chip's highest clock")  # fmt: skip
    leak = f"energy.leakage * node * {LEAKING[kind]} * highest * (volt ** 3 - {floor} ** 3) * took"
    parts = {
        "leakage": (leak, "leakage beyond that in the idle power"),
        "clock": (UNIT[kind], "clock trees and front ends of the units at work"),
        "compute": (f"macs * mac + issues * {ISSUE[kind]}", "multiply-accumulates, and other instructions"),
        "cache": ("l2_bytes * node * energy.cache * volt ** 2", "bytes between the shared cache and the units"),
        "dram": (f"dram_bytes * {byte}", "bytes from and to memory"),
    }
    whole = " + ".join(f"e_{name}" for name in parts)
    made = [Equation(name=f"e_{name}", unit="J", text=text, meaning=meaning) for name, (text, meaning) in parts.items()]
    base = "power.idle * took - min(saved * took, dynamic)"
    return (
        volt, MAC["tensor" if tensor else kind], *made,
        Equation(name="dynamic", unit="J", text=whole, meaning="all that comes on top of the idle power"),
        SAVED,
        Equation(name="e_base", unit="J", text=base, meaning="the idle power of the board, module or package meanwhile"),
        *[Equation(name="kept", unit="1", text="max(limit * took - e_base, 0) / dynamic",
                   meaning="above the power limit: the chip lowers its clock, and this share remains")] * capped,
        Equation(name="energy", unit="J", text=f"launches * (e_base + dynamic{kept})", meaning="all launches of the kernel"),
    )  # fmt: skip


def quantities(query: Request, speed: float, busy: float, overhead: float, work: dict[str, float]) -> Quantities:
    """What the equations name that is no spec value, constant or equation of the time."""
    device, constants = query.spec.device, query.calibration
    top = max(float(device.clock.boost), float(device.clock.sustained)) if isinstance(device, Gpu) else float(device.clock.boost)
    limit = device.power.tdp if query.limit is None else query.limit
    return {
        "speed": (speed, "Hz"), "highest": (_one(highest_clock(device)), "Hz"), "top": (top, "Hz"),
        "volt_top": (_one(voltage(top, device, constants)), "1"), "node": (_one(node_energy(device, constants)), "J"),
        "width": (TENSOR_WIDTH.get(query.precision, 1.0), "1"),
        "pipe": (_one(device.pipe(arithmetic(query.stack, device, query.precision))), "FMA/clk"),
        "single": (_one(device.pipe("fp32")), "FMA/clk"), "limit": (_one(limit), "W"),
        "busy": (busy, "s"), "took": (busy + overhead, "s"),
        **{name: (value, "1") for name, value in work.items()},
    }  # fmt: skip


def _one(value: Array | float) -> float:
    return float(np.ravel(value)[0])

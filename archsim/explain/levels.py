"""The levels of memory above which an estimate's ops compute: what each delivers, and which one holds an op's data.

A cache-aware roofline has a slope for each level (Ilic, Pratas and Sousa 2014). An op whose data stay on the chip is limited by
the slope of the level that holds them; the others by that of the memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from archsim.device.device import Cpu, Tpu
from archsim.estimation.result import Estimate, OpEstimate


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineLevel:
    """A level on the chip: what it delivers to all units in use [B/s], and how much data it keeps from one op to the next [B]."""

    name: str
    bandwidth: float
    keeps: float


def levels(e: Estimate) -> list[RooflineLevel]:
    """The levels on the chip at the clock of the estimate, the nearest first.

    An L1 of a GPU keeps nothing: kernels begin with it empty. A TPU has one buffer, whose bandwidth may not be known.
    """
    device, clock = e.spec.device, e.clock_hz
    if isinstance(device, Tpu):
        known, size = device.buffer.bandwidth, float(device.buffer.size)
        return [] if known is None else [RooflineLevel(name="buffer", bandwidth=float(known) * clock, keeps=size)]
    if isinstance(device, Cpu):
        cores = float(device.core.count) * cores_used(e)
        named = [("L1", device.l1), ("L2", device.l2), *([] if device.l3 is None else [("L3", device.l3)])]
        return [RooflineLevel(name=name, bandwidth=cores * float(cache.bandwidth) * clock,
                           keeps=float(cache.size) * max(1.0, cores / float(cache.shared_by)))
                for name, cache in named]  # fmt: skip
    sms = float(device.sm.count)
    return [RooflineLevel(name="L1", bandwidth=sms * float(device.l1.bandwidth) * clock, keeps=0.0),
            RooflineLevel(name="L2", bandwidth=float(device.l2.bandwidth) * clock, keeps=float(device.l2.size))]  # fmt: skip


def cores_used(e: Estimate) -> float:
    """Share of the cores that the threads of a CPU occupy [1]; 1 on other devices."""
    device = e.spec.device
    return min(1.0, e.threads / float(device.core.count)) if isinstance(device, Cpu) and e.threads else 1.0


def level_of(op: OpEstimate, e: Estimate) -> RooflineLevel | None:
    """The nearest level that keeps all data of an op; the last one where none has room for all; None where none is known."""
    found = levels(e)
    moved = e.least_bytes.get(op.name, 0.0)
    return next((level for level in found if level.keeps >= moved), found[-1] if found else None)

"""Collectives as jobs on the links of a machine."""

from __future__ import annotations

from archsim.node.node import Machine
from archsim.node.rings import ring_demand
from archsim.schedule.events import Phase


def all_reduce(machine: Machine, devices: int, size: float) -> list[Phase]:
    """Sum `size` bytes over the first `devices` devices on rings, so that each has the sums.

    Each of 2 (n - 1) steps passes a part of size / n to the next device and takes a latency besides: 2 (n - 1) / n x size bytes
    pass every device (Patarasuk and Yuan 2009, section 4). All hops of a ring move at the pace of the slowest, so the whole
    is one flow over all of them, its work the bytes that pass a device.
    """
    if devices == 1:
        return []
    steps = 2 * (devices - 1)
    latency = machine.start_s + steps * machine.step_s
    moved = steps / devices * size
    demand = tuple(ring_demand(machine, devices).items())
    return [Phase(latency, name="latency"), Phase(moved, demand, cap=float("inf"), name="bytes")]


def alone_s(phases: list[Phase], machine: Machine) -> float:
    """How long a job takes on an idle machine [s]."""
    capacity = machine.capacity()
    return sum(phase.work / min([phase.cap, *(capacity[name] / weight for name, weight in phase.demand)]) for phase in phases)

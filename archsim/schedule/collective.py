"""All-reduce as a job on the links of a node."""

from __future__ import annotations

from archsim.node.node import Node
from archsim.node.rings import ring_demand
from archsim.schedule.events import Phase


def all_reduce(node: Node, devices: int, size: float) -> list[Phase]:
    """The phases of a ring all-reduce: sum `size` bytes over the first `devices` devices and give each of them the sums.

    t = start + 2 (n - 1) step + 2 (n - 1) / n x size / bandwidth      (Patarasuk and Yuan 2009, section 4)

    n: devices; size: bytes of the buffer [B]
    start, step: latency of the call and of each of its 2 (n - 1) steps, from the node's file [s]
    bandwidth: bytes per second that a ring passes through each device; all hops of a ring move at the pace of the slowest

    Returns a phase for the latency and one for the bytes; none for one device. Latencies do not contend, bytes do.

    >>> from archsim.node.spec import find
    >>> latency, moved = all_reduce(find("dgx_1_v100").node, 8, 1e9)
    >>> moved.work  # 2 x 7 / 8 of 1 GB pass each device
    1750000000.0
    """
    if devices == 1:
        return []
    steps = 2 * (devices - 1)
    latency = node.collective.start + steps * node.collective.step
    moved = steps / devices * size
    demand = tuple(ring_demand(node, devices).items())
    return [Phase(latency, name="latency"), Phase(moved, demand, cap=float("inf"), name="bytes")]


def unloaded_time_s(phases: list[Phase], node: Node) -> float:
    """Time of a job on an otherwise idle node [s]: the sum over its phases of work / min(cap, capacity / weight).

    work [unit], cap and capacity [unit/s], weight: units of a resource that one unit of work takes.

    >>> from archsim.node.spec import find
    >>> node = find("dgx_1_v100").node
    >>> round(1e3 * unloaded_time_s(all_reduce(node, 8, 1e9), node), 1)  # 1 GB on NVLink rings [ms]
    13.9
    """
    capacity = node.capacity()
    return sum(phase.work / min([phase.cap, *(capacity[name] / weight for name, weight in phase.demand)]) for phase in phases)

"""Die area and cost of a GPU from what it is made of. An estimate: good to some ten per cent of published dies, no better.

Logic and fixed parts shrink with the transistors that whole GPUs of a node hold per area, storage with the SRAM cell, interfaces
with the square root of the former, since their drivers hardly shrink. Package, memory chips, board, test and margins are not in
the cost.
"""

from __future__ import annotations

import numpy as np

from archsim.cost.cost import Array
from archsim.device.device import Gpu
from archsim.device.silicon import ProcessNode, Silicon

BITS = 8.0
UM2 = 1e-6  # mm2
LARGEST_DIE = 858.0  # mm2: 26 x 33, the field of one exposure; nothing larger is one die


def die_parts(device: Gpu, silicon: Silicon) -> dict[str, Array | float]:
    """Areas of SMs, L2, memory interface and the rest [mm2], floats or [D, 1].

    The interface has as many pins as the bandwidth takes at the rate of one pin, so that more bandwidth costs area unless
    pins become faster. Registers, shared memory and L1 are counted by size.
    """
    node = silicon.node(float(np.ravel(device.chip.node)[0]))
    reference = silicon.nodes[silicon.reference]
    shrink = reference.density / node.density
    cell = BITS * node.cell * UM2
    rate, sm = device.rate, device.sm
    tensor = 0.0 if rate.tensor_fp16 is None else rate.tensor_fp16
    fp64 = 0.0 if rate.fp64 is None else rate.fp64
    logic = shrink * (silicon.fp32 * rate.fp32 + silicon.fp64 * fp64 + silicon.tensor * tensor)
    storage = cell * silicon.sm_storage * (sm.registers + near_storage(device))
    pin = silicon.hbm if device.memory.type.startswith("HBM") else silicon.gddr
    return {
        "SMs": sm.count * (logic + storage),
        "L2": cell * silicon.l2_storage * device.l2.size,
        "memory interface": np.sqrt(shrink) * pin * pins(device),
        "rest": shrink * silicon.rest,
    }


def near_storage(device: Gpu) -> Array | float:
    """Bytes of L1 and shared memory of an SM: one array that both share, where the L1 is as large as both, else two."""
    shared, first = device.sm.shared_memory, device.l1.size
    return np.maximum(shared, first) if device.rate.tensor_fp16 is not None else shared + first


def pins(device: Gpu) -> Array | float:
    """Data pins of the memory interface: bandwidth over the rate of one pin; the bus of the spec where that is not known."""
    memory = device.memory
    if memory.data_rate is None:
        return memory.bus if memory.bus is not None else 0.0
    return BITS * memory.bandwidth / memory.data_rate


def die_area(device: Gpu, silicon: Silicon) -> Array | float:
    """The sum of the parts [mm2]."""
    parts = die_parts(device, silicon)
    return parts["SMs"] + parts["L2"] + parts["memory interface"] + parts["rest"]


def dies_per_wafer(area: Array | float, diameter: float) -> Array | float:
    """pi (d/2)^2 / A - pi d / sqrt(2 A): Hennessy and Patterson, Computer Architecture, section 1.6. At least one."""
    return np.maximum(1.0, np.pi * (diameter / 2.0) ** 2 / area - np.pi * diameter / np.sqrt(2.0 * area))


def die_yield(area: Array | float, node: ProcessNode, cluster: float) -> Array | float:
    """Share of dies without a defect: (1 + A D / alpha)^-alpha, the negative binomial; area [mm2], defects [1/cm2]."""
    return np.asarray((1.0 + area / 100.0 * node.defects / cluster) ** -cluster)


def die_cost(area: Array | float, node: ProcessNode, silicon: Silicon) -> Array | float:
    """Price of a wafer over its good dies [USD]. A die with a defect counts as lost, though chips are sold with units off."""
    return np.asarray(node.wafer / (dies_per_wafer(area, silicon.diameter) * die_yield(area, node, silicon.cluster)))

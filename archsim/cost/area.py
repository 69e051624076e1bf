"""Die area and cost of a GPU from what it is made of. An estimate: good to some ten per cent of published dies, no better.

Logic and fixed parts shrink with the transistors that whole GPUs of a node hold per area, storage with the SRAM cell, interfaces
with the square root of the former, since their drivers hardly shrink. Package, memory chips, board, test and margins are not in
the cost.
"""

from __future__ import annotations

import numpy as np

from archsim.cost.cost import Array
from archsim.cost.occupancy import WARP
from archsim.device.device import Gpu
from archsim.device.silicon import ProcessNode, Silicon
from archsim.device.variant import first_of

BITS = 8.0
UM2 = 1e-6  # mm2


def die_parts(device: Gpu, silicon: Silicon) -> dict[str, Array | float]:
    """Areas of SMs, L2, memory interface and the rest [mm2], floats or [D, 1].

    SMs (shrink (a_fp32 (fp32 (1 - control) + 32 schedulers control) + a_fp64 fp64 + a_tensor tensor) + cell s_sm storage);
    cell s_L2 size;  sqrt(shrink) a_pin pins;  shrink a_rest

    shrink: transistors per area of the reference node over those of this one [1]; cell: eight SRAM cells of this node [mm2]
    silicon: process nodes, areas of parts
    control: share of a lane's area that goes with warp schedulers, each with its buffers and decoders for 32 lanes [1]
    a: areas of one lane, pin and the rest at the reference node [mm2]; s: cells for each byte, tags and wires included [1]

    The interface has as many pins as the bandwidth takes at the rate of one pin, so that more bandwidth costs area unless
    pins become faster. Registers, shared memory and L1 are counted by size.

    >>> from archsim.device import catalog, silicon
    >>> parts = die_parts(catalog.find("gtx_1080").device, silicon.silicon())  # GP104: 314 mm2
    >>> [name for name, area in parts.items() if area > 60]
    ['SMs', 'memory interface']
    """
    node = silicon.node(first_of(device.chip.node))
    reference = silicon.nodes[silicon.reference]
    shrink = reference.density / node.density
    cell = BITS * node.cell * UM2
    rate, sm = device.rate, device.sm
    tensor = 0.0 if rate.tensor_fp16 is None else rate.tensor_fp16
    fp64 = 0.0 if rate.fp64 is None else rate.fp64
    lanes = rate.fp32 + silicon.control * (WARP * sm.schedulers - rate.fp32)
    logic = shrink * (silicon.fp32 * lanes + silicon.fp64 * fp64 + silicon.tensor * tensor)
    storage = cell * silicon.sm_storage * (sm.registers + near_storage(device))
    family = silicon.family(device.memory.type)
    pin = silicon.hbm if family is not None and family.stacked else silicon.gddr
    return {
        "SMs": sm.count * (logic + storage),
        "L2": cell * silicon.l2_storage * device.l2.size,
        "memory interface": np.sqrt(shrink) * pin * pins(device),
        "rest": shrink * silicon.rest,
    }


def near_storage(device: Gpu) -> Array | float:
    """L1 and shared memory of an SM [B]: one array that both share where there are tensor cores (since Volta), else two.

    max(shared, L1) or shared + L1, a float or [D, 1]

    >>> from types import SimpleNamespace as some
    >>> near_storage(some(sm=some(shared_memory=98304.0), l1=some(size=49152.0), rate=some(tensor_fp16=None)))
    147456.0
    """
    shared, first = device.sm.shared_memory, device.l1.size
    return np.maximum(shared, first) if device.rate.tensor_fp16 is not None else shared + first


def pins(device: Gpu) -> Array | float:
    """Data pins of the memory interface [1]: bandwidth over the rate of one pin; the bus of the spec where that is not known.

    8 B / rate, a float or [D, 1]; B: peak bandwidth [B/s]; rate: of one pin [bit/s]

    >>> from types import SimpleNamespace as some
    >>> pins(some(memory=some(bandwidth=320e9, data_rate=10e9)))
    256.0
    """
    memory = device.memory
    if memory.data_rate is None:
        return memory.bus if memory.bus is not None else 0.0
    return BITS * memory.bandwidth / memory.data_rate


def die_area(device: Gpu, silicon: Silicon) -> Array | float:
    """Area of the die: the sum of `die_parts` [mm2], a float or [D, 1].

    silicon: process nodes, areas of parts

    >>> from archsim.device import catalog, silicon
    >>> bool(250 < die_area(catalog.find("gtx_1080").device, silicon.silicon()) < 380)  # GP104 has 314 mm2
    True
    """
    parts = die_parts(device, silicon)
    return parts["SMs"] + parts["L2"] + parts["memory interface"] + parts["rest"]


def dies_per_wafer(area: Array | float, diameter: float) -> Array | float:
    """Whole dies of a wafer [1], at least one.

    pi (d/2)^2 / A - pi d / sqrt(2 A), a float or [D, 1]        (Hennessy and Patterson, Computer Architecture, section 1.6)

    area: A, of a die [mm2], a float or [D, 1]; diameter: d, of the wafer [mm]

    >>> round(float(dies_per_wafer(100.0, 300.0)))
    640
    """
    return np.maximum(1.0, np.pi * (diameter / 2.0) ** 2 / area - np.pi * diameter / np.sqrt(2.0 * area))


def die_yield(area: Array | float, node: ProcessNode, cluster: float) -> Array | float:
    """Share of dies without a defect [1].

    (1 + A D / alpha)^-alpha, a float or [D, 1]        (the negative binomial; Hennessy and Patterson, section 1.6)

    area: A, of a die [mm2], a float or [D, 1]
    node: has `defects`, D [1/cm2]; cluster: alpha, how much defects cluster [1]

    >>> from types import SimpleNamespace as node
    >>> round(float(die_yield(400.0, node(defects=0.1), 4.0)), 3)
    0.683
    """
    return np.asarray((1.0 + area / 100.0 * node.defects / cluster) ** -cluster)


def die_cost(area: Array | float, node: ProcessNode, silicon: Silicon) -> Array | float:
    """Price of a wafer over its good dies [USD].

    wafer / (dies_per_wafer yield), a float or [D, 1]

    area: of a die [mm2], a float or [D, 1]; node: has `wafer`, the price of one [USD]; silicon: wafer diameter and clustering

    A die with a defect counts as lost, though chips are sold with units off.

    >>> from types import SimpleNamespace as some
    >>> round(float(die_cost(100.0, some(wafer=10000.0, defects=0.0), some(diameter=300.0, cluster=4.0))), 2)
    15.62
    """
    return np.asarray(node.wafer / (dies_per_wafer(area, silicon.diameter) * die_yield(area, node, silicon.cluster)))

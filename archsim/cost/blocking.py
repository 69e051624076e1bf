"""How a library of BLAS cuts a product for the caches of a CPU: register blocks, and panels for each level.

Low, Igual, Smith and Quintana-Orti, Analytical Modeling Is Enough for High-Performance BLIS, ACM TOMS 43 (2016); the loops are
those of Goto and van de Geijn (2008). The paper rounds down to whole ways; here ways are divided as they come, since two
registers of sixteen lanes would leave it none.
"""

from __future__ import annotations

import numpy as np

from archsim.cost.cost import Array
from archsim.device.device import Cpu
from archsim.device.part import CpuCache

LANE_BITS = 32


def micro_tile(device: Cpu) -> tuple[Array, Array]:
    """Rows and columns of the register block of a product.

    The block keeps latency x ports x lanes results in flight (Low et al., equation 1); its columns are two SIMD registers
    wide.
    """
    lanes = device.core.simd / LANE_BITS
    columns = 2.0 * lanes
    rows = np.ceil(device.core.fma_latency * device.core.fma_ports * lanes / columns)
    return np.asarray(rows, dtype=float), np.asarray(columns, dtype=float)


def panel_depth(device: Cpu, element: Array | float) -> Array:
    """kc: steps of k for which a panel of either operand, as deep as that and a register block wide, fits the first level.

    One way of each set is left to the results (Low et al., section 4.2). `element` is the size of a value [B].
    """
    rows, columns = micro_tile(device)
    free = (device.l1.ways - 1.0) * way(device.l1)
    return np.asarray(np.maximum(np.floor(free / ((rows + columns) * element)), 1.0))


def block_rows(device: Cpu, element: Array | float) -> Array:
    """mc: rows of the block of A that stays in a core's second level beside one panel of B and one way for the results."""
    _, columns = micro_tile(device)
    depth = panel_depth(device, element)
    panel = np.ceil(depth * columns * element / way(device.l2))
    return np.asarray(np.maximum(np.floor((device.l2.ways - 1.0 - panel) * way(device.l2) / (depth * element)), 1.0))


def block_columns(device: Cpu, element: Array | float) -> Array:
    """nc: columns of the block of B that stays in the last level beside the block of A of every core that shares it.

    Without a third level nothing bounds them.
    """
    if device.l3 is None:
        return np.asarray(np.inf)
    depth, rows = panel_depth(device, element), block_rows(device, element)
    blocks = np.ceil(depth * rows * element * device.l3.shared_by / way(device.l3))
    free = np.maximum(device.l3.ways - 1.0 - blocks, 1.0)
    return np.asarray(np.maximum(np.floor(free * way(device.l3) / (depth * element)), 1.0))


def way(level: CpuCache) -> Array:
    """Bytes of one way of a cache [B]."""
    return np.asarray(level.size / level.ways)

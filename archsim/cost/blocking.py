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
from archsim.lower.kernel import CpuKernels

LANE_BITS = 32  # bit of an fp32 lane of a SIMD register


def micro_tile(device: Cpu) -> tuple[Array, Array]:
    """Rows and columns of the register block of a product [1].

    rows = ceil(latency ports lanes / columns), columns = 2 lanes, each [D, 1]        (Low et al. 2016, equation 1)

    simd_lanes: fp32 values of a SIMD register
    block_m: rows of the register block: latency x ports results are in flight
    block_n: its columns: two registers

    >>> from types import SimpleNamespace as some
    >>> [value.item() for value in micro_tile(some(core=some(simd=256.0, fma_latency=5.0, fma_ports=2.0)))]  # Haswell
    [5.0, 16.0]
    """
    simd_lanes = device.core.simd / LANE_BITS
    block_n = 2.0 * simd_lanes
    block_m = np.ceil(device.core.fma_latency * device.core.fma_ports * simd_lanes / block_n)
    return np.asarray(block_m, dtype=float), np.asarray(block_n, dtype=float)


def panel_depth(device: Cpu, element: Array | float) -> Array:
    """Steps of k for which a panel of either operand fits the first level.

    kc = floor((ways - 1) way / ((rows + columns) element)), [D, V]        (Low et al. 2016, section 4.2)

    element: size of a value [B], a float or [V]

    A panel is as wide as a register block. One way of each set is left to the results.

    >>> from archsim.device.catalog import find
    >>> panel_depth(find("i7_5930k").device, 4.0).item()
    341.0
    """
    block_m, block_n = micro_tile(device)
    l1_way = way(device.l1)
    return np.asarray(np.maximum(np.floor((device.l1.ways - 1.0) * l1_way / ((block_m + block_n) * element)), 1.0))


def block_rows(device: Cpu, element: Array | float) -> Array:
    """Rows of the block of A that stays in a core's second level beside one panel of B and one way for the results.

    mc = floor((ways - 1 - panel) way / (kc element)), [D, V]        (Low et al. 2016, section 4.3)

    panel_ways: ways that a panel of B takes
    element: size of a value [B], a float or [V]

    >>> from archsim.device.catalog import find
    >>> block_rows(find("i7_5930k").device, 4.0).item()
    144.0
    """
    _, block_n = micro_tile(device)
    kc = panel_depth(device, element)
    l2_way = way(device.l2)
    panel_ways = np.ceil(kc * block_n * element / l2_way)
    return np.asarray(np.maximum(np.floor((device.l2.ways - 1.0 - panel_ways) * l2_way / (kc * element)), 1.0))


def block_columns(device: Cpu, element: Array | float) -> Array:
    """Columns of the block of B that stays in the last level beside the block of A of every core that shares it.

    nc = floor((ways - 1 - blocks) way / (kc element)), [D, V]        (Low et al. 2016, section 4.4); inf without a third level

    block_ways: ways that the blocks of A of all cores take
    free_ways: ways that they leave
    element: size of a value [B], a float or [V]

    >>> from archsim.device.catalog import find
    >>> block_columns(find("tegra_x1_cpu").device, 4.0).item()
    inf
    """
    if device.l3 is None:
        return np.asarray(np.inf)
    kc, mc = panel_depth(device, element), block_rows(device, element)
    l3_way = way(device.l3)
    block_ways = np.ceil(kc * mc * element * device.l3.shared_by / l3_way)
    free_ways = np.maximum(device.l3.ways - 1.0 - block_ways, 1.0)
    return np.asarray(np.maximum(np.floor(free_ways * l3_way / (kc * element)), 1.0))


def way(level: CpuCache) -> Array:
    """One way of a cache [B].

    size / ways, a float or [D, 1]; level: has `size` [B] and `ways` [1]

    >>> from types import SimpleNamespace as some
    >>> way(some(size=32768.0, ways=8.0)).item()
    4096.0
    """
    return np.asarray(level.size / level.ways)


def panels_of(kernels: CpuKernels, device: Cpu) -> Array:
    """Panels into which a library of BLAS cuts the inner dimension of a product.

    ceil(k / kc), [D, V]; 1 for loops over blocked layouts, which finish one block of results before the next, and for
    element-wise kernels

    element: size of a value [B]

    >>> from archsim.device.catalog import find
    >>> from types import SimpleNamespace as kernels
    >>> panels_of(kernels(packed=1.0, k=359.0, operand_a=4.0), find("i7_6700k").device).item()  # 358 steps of k fit
    2.0
    """
    element = np.maximum(kernels.operand_a, 1.0)
    return np.asarray(np.where(kernels.packed > 0, np.ceil(kernels.k / panel_depth(device, element)), 1.0))

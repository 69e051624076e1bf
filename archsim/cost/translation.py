"""Time that a product of long rows waits for the addresses of their pages, on GPUs whose TLB serves one miss after the other."""

from __future__ import annotations

import numpy as np

from archsim.cost.cost import Array
from archsim.device.part import GpuL1
from archsim.lower.kernel import GpuKernels


def translated(kernels: GpuKernels, l1: GpuL1, depth: Array, resident: Array | float) -> Array | float:
    """Clocks in which the TLB of an SM serves the misses of one CTA, one by one [clk].

    busy depth / tile_k rows max(0, 1 - reach / (resident rows row_step)), [D, V]; 0 where the `l1` knows of no such time

    busy: how long a miss keeps the TLB from others, `l1.tlb_busy` [clk]; reach: memory that it translates, `l1.tlb_reach` [B]
    rows: rows of both operands from which a step takes a few values each, `row_step` apart [1]
    spread: memory over which the rows of all CTAs of an SM lie [B]
    depth: inner steps of one CTA, in units of k, [V]
    resident: CTAs that share an SM, [D, V]

    Each step comes back to all rows of the tile, in pages of their own where rows are long. Those of all CTAs of the SM compete
    for the entries, so that of what is beyond the reach a page is lost before the next step.

    >>> import numpy as np
    >>> from types import SimpleNamespace as some
    >>> one = some(tile_m=64.0, m=64.0, tile_n=64.0, n=64.0, tile_k=8.0, row_step=np.array([2**20]))
    >>> translated(one, some(tlb_busy=10.0, tlb_reach=2**28), 80.0, 4.0).tolist()  # 10 steps of 128 rows, half of them lost
    [6400.0]
    """
    if l1.tlb_busy is None or l1.tlb_reach is None:
        return 0.0
    rows = np.minimum(kernels.tile_m, kernels.m) + np.minimum(kernels.tile_n, kernels.n)
    spread = np.maximum(resident * rows * kernels.row_step, 1.0)
    return np.asarray(l1.tlb_busy * depth / kernels.tile_k * rows * np.maximum(0.0, 1.0 - l1.tlb_reach / spread))

"""Address streams of the products that a lowered network runs on a GPU, and their simulated cache traffic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, isqrt

import numpy as np

from archsim.base.errors import Unsupported
from archsim.cache.access import Accesses, chunks
from archsim.cache.hierarchy import Hierarchy
from archsim.cache.simulate import LevelCount, Simulation
from archsim.cache.tiles import (
    A,
    B,
    C,
    Product,
    by_columns,
    by_rows,
    gathered,
    image_result,
    matrix_result,
    patches,
    waves,
)
from archsim.lower.kernel import Kernel
from archsim.lower.layer import layer_of, untransposed
from archsim.lower.role import Role
from archsim.trace.trace import BoundOp

WAVES = 6  # simulated waves of a launch; the first one finds other data in the caches, the later ones are alike


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchTraffic:
    """Bytes of one launch between SMs and L2, and between L2 and memory [B]; `share` is the simulated share of its CTAs."""

    l2_bytes: float
    dram_read: float
    dram_written: float
    share: float
    accesses: int
    counts: tuple[LevelCount, ...]

    @property
    def dram_bytes(self) -> float:
        """Bytes to and from memory [B]."""
        return self.dram_read + self.dram_written


def product_of(op: BoundOp, kernel: Kernel, tile: tuple[int, int], element: int) -> Product:
    """The tiled product of a matrix kernel of an op: where its operands lie, and which parts a CTA loads.

    tile: (rows, columns) of a CTA's results; element: bytes of one value [B]. Transformed operands are one matrix for each
    point of the transform; images are [N, C, H, W]. Raises Unsupported for gradients, splits of k and attention, whose
    addresses are not modelled.
    """
    m, n, k, count = (int(size) for size in (kernel.m, kernel.n, kernel.k, kernel.count))
    layer = layer_of(op, element) if op.kind.op == "conv2d" else None
    tile_m, tile_n = tile
    sides = {"m": m, "n": n, "k": k, "count": count, "tile_m": tile_m, "tile_n": tile_n}
    if kernel.role is Role.ATTENTION or untransposed(op).phase != "forward":
        raise Unsupported(f"{op.name}: the addresses of {kernel.name} ({op.phase}) are not modelled; forward products are")
    if layer is not None and kernel.role is Role.WINOGRAD:
        side = isqrt(int(kernel.work)) - 2  # (side + 2)^2 multiplications for side x side results
        return Product(
            **sides, a=by_columns(A, m, k, tile_m, element, points=(side + 2) ** 2),
            b=patches(B, layer, _pad(op), side, tile_n, n), result=image_result(C, layer, tile_m, tile_n, tiles=n),
        )  # fmt: skip
    if layer is not None and kernel.role is Role.CONVOLUTION:
        return Product(
            **sides, a=by_rows(A, m, k, tile_m, element), b=gathered(B, layer, _pad(op), tile_n),
            result=image_result(C, layer, tile_m, tile_n),
        )  # fmt: skip
    each = int(kernel.operand_b)
    return Product(**sides, a=by_rows(A, m, k, tile_m, each), b=by_columns(B, n, k, tile_n, each),
                   result=matrix_result(C, m, n, tile_m, tile_n, each))  # fmt: skip


def _pad(op: BoundOp) -> tuple[int, int]:
    pad = op.kind.pad  # type: ignore[attr-defined]
    return int(pad[0]), int(pad[1])


def warm_up_reads(size: float, cache: int, cores: int) -> Accesses:
    """Reads of the end of B, twice the cache's capacity at most [B]: what the op before has just written.

    >>> len(warm_up_reads(size=4096, cache=1024, cores=1))  # lines of 128 B
    16
    """
    begin = max(0, int(size) - 2 * cache) // 128 * 128
    address = B + np.arange(begin, int(size), 128)
    return Accesses(address=address, size=128, core=np.arange(len(address)) % cores)


def launch_traffic(
    product: Product, slots: int, hierarchy: Hierarchy, b_bytes: float, fast: bool | None = None,
    most_waves: int = WAVES, tell: Callable[[float], None] | None = None,
) -> LaunchTraffic:  # fmt: skip
    """Simulate the CTAs of one launch in the caches of a GPU, which hold the end of B at the start.

    slots: CTAs that are resident at the same time, one wave
    b_bytes: size of operand B [B]
    most_waves: simulated waves; tell: receives the finished share

    A longer launch is extrapolated: bytes = first wave + other waves x (CTAs - slots) / (simulated CTAs - slots), because the
    first wave finds other data in the caches. Dirty data at the end count as written.
    """
    state = Simulation(hierarchy, fast)
    for part in chunks([warm_up_reads(b_bytes, hierarchy.levels[-1].size, hierarchy.cores)]):
        state.feed(part)
    total = ceil(product.ctas / slots)
    totals = [_bytes_so_far(state)]
    before = state.accesses
    for done, wave in enumerate(waves(product, slots, hierarchy.cores), 1):
        for part in chunks(wave):
            state.feed(part)
        totals.append(_bytes_so_far(state))
        if tell is not None:
            tell(done / min(total, most_waves))
        if done == most_waves:
            break
    steps = np.diff(np.array(totals), axis=0)
    run = len(steps)
    ctas = min(product.ctas, run * slots)
    whole = steps.sum(axis=0)
    if ctas < product.ctas:
        whole = steps[0] + steps[1:].sum(axis=0) * (product.ctas - slots) / (ctas - slots)
    l2_bytes, read, written = (float(value) for value in whole)
    return LaunchTraffic(l2_bytes=l2_bytes, dram_read=read, dram_written=written, share=ctas / product.ctas,
                 accesses=state.accesses - before, counts=state.counts)  # fmt: skip


def _bytes_so_far(state: Simulation) -> tuple[int, int, int]:
    """Bytes through the L2, from memory, and to memory or still dirty [B]."""
    first, last = state.counts[0], state.counts[-1]
    return first.bytes_read + first.bytes_written, last.bytes_read, last.bytes_written + state.dirty_bytes[-1]

"""Address streams of the products that a lowered network runs on a GPU, and their simulated cache traffic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, inf, isqrt
from typing import Any

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
    Runs,
    by_columns,
    by_rows,
    filters_across,
    gathered,
    gathered_along,
    image_result,
    images_by_rows,
    matrix_result,
    patches,
    patches_along,
    spread,
    waves,
)
from archsim.lower.columns import Role
from archsim.lower.kernel import Kernel
from archsim.lower.layer import Layer, layer_of, untransposed
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


def product_of(op: BoundOp, kernel: Kernel, tile: tuple[int, int], element: int, split: int = 1) -> Product:
    """The tiled product of a matrix kernel of an op: where its operands lie, and which parts a CTA loads.

    tile: (rows, columns) of a CTA's results; element: bytes of one value [B]; split: parts into which k is cut. Transformed
    operands are one matrix for each point of the transform; images are [N, C, H, W]. Attention is no product of two matrices in
    memory (`archsim.cache.roles.attention`): Unsupported.
    """
    if kernel.role is Role.ATTENTION:
        raise Unsupported(f"{op.name}: {kernel.name} is no product of two matrices in memory")
    plain = untransposed(op)
    m, n, k, count = (int(size) for size in (kernel.m, kernel.n, kernel.k, kernel.count))
    sides: dict[str, Any] = {"m": m, "n": n, "k": k, "count": count, "tile_m": tile[0], "tile_n": tile[1], "split": split}
    layer = layer_of(plain, element) if plain.kind.op == "conv2d" else None
    if layer is not None and kernel.role in CONVOLVED:
        return Product(**sides, **CONVOLVED[kernel.role](layer, kernel, _pad(plain), tile))
    each = int(kernel.operand_b) or element
    by_row = _along_k(plain, kernel)
    a, b = (by_rows if along else by_columns for along in by_row)
    return Product(**sides, a=a(A, m, k, tile[0], each), b=b(B, n, k, tile[1], each),
                   result=matrix_result(C, m, n, tile[0], tile[1], each))  # fmt: skip


def _along_k(op: BoundOp, kernel: Kernel) -> tuple[bool, bool]:
    """Whether the rows of A and of B run along k in memory; of products around a convolution and of others."""
    if op.kind.op == "linear":  # weights [features, inner], activations [rows, inner], their gradient [rows, features]
        return {"backward_data": (False, True), "backward_filter": (False, False)}.get(op.phase, (True, True))
    if op.kind.op == "matmul":
        return {"backward_data": (True, True), "backward_filter": (False, False)}.get(op.phase, (False, True))
    if op.kind.op == "conv2d" and kernel.count == 1:  # with a matrix of unfolded images
        return {"backward_data": (False, False), "backward_filter": (True, True)}.get(op.phase, (True, False))
    return True, False


def _gathered_product(layer: Layer, kernel: Kernel, pad: tuple[int, int], tile: tuple[int, int]) -> dict[str, Any]:
    """A product whose operand is gathered from images as tiles load it, in each phase."""
    m, n, k = int(kernel.m), int(kernel.n), int(kernel.k)
    if layer.phase == "backward_data":
        skipped = max(1, round(layer.co * layer.taps / k))
        mirrored = replace(layer, co=layer.ci, ho=layer.h, wo=layer.w)
        return {"a": filters_across(A, layer, tile[0], skipped), "b": spread(B, layer, pad, tile[1], skipped),
                "result": image_result(C, mirrored, *tile)}  # fmt: skip
    if layer.phase == "backward_filter":
        apart = kernel.count >= layer.taps > 1 and n <= 2 * layer.ci
        return {"a": images_by_rows(A, layer, tile[0], apart), "b": gathered_along(B, layer, pad, tile[1], apart),
                "result": matrix_result(C, m, n, *tile, layer.element)}  # fmt: skip
    return {"a": by_rows(A, m, k, tile[0], layer.element), "b": gathered(B, layer, pad, tile[1]),
            "result": image_result(C, layer, *tile)}  # fmt: skip


def _winograd_product(layer: Layer, kernel: Kernel, pad: tuple[int, int], tile: tuple[int, int]) -> dict[str, Any]:
    """Winograd's products with the transforms in the same kernel: (side + 2)^2 multiplications for side x side results."""
    side, m, n, k = isqrt(int(kernel.work)) - 2, int(kernel.m), int(kernel.n), int(kernel.k)
    if layer.phase == "backward_filter":
        return {"a": patches_along(A, layer, pad, side, tile[0], k, results=True),
                "b": patches_along(B, layer, pad, side, tile[1], k), "result": matrix_result(
                    C, m, n * layer.taps, tile[0], tile[1] * layer.taps, layer.element)}  # fmt: skip
    if layer.phase == "backward_data":
        pad = layer.kh - 1 - pad[0], layer.kw - 1 - pad[1]
        layer = replace(layer, ci=layer.co, co=layer.ci, h=layer.ho, w=layer.wo, ho=layer.h, wo=layer.w)
    return {"a": by_columns(A, m, k, tile[0], layer.element, points=(side + 2) ** 2),
            "b": patches(B, layer, pad, side, tile[1], n), "result": image_result(C, layer, *tile, tiles=n)}  # fmt: skip


def _scattered_product(layer: Layer, kernel: Kernel, pad: tuple[int, int], tile: tuple[int, int]) -> dict[str, Any]:
    """The product of each pair (channel, tap) is added to the pixels that it was read from."""
    m, k, pixels = int(kernel.m), int(kernel.k), layer.batch * layer.ho * layer.wo
    flat = replace(layer, ci=layer.co, h=layer.ho, w=layer.wo, kh=1, kw=1, sh=1, sw=1)

    def result(i: int, j: int, z: int) -> Runs:
        return gathered_along(C, layer, pad, tile[0])(i, z, j * tile[1], min((j + 1) * tile[1], pixels))

    return {"a": by_columns(A, m, k, tile[0], layer.element), "b": gathered(B, flat, (0, 0), tile[1]), "result": result}


CONVOLVED: dict[Role, Callable[[Layer, Kernel, tuple[int, int], tuple[int, int]], dict[str, Any]]] = {
    Role.CONVOLUTION: _gathered_product, Role.WINOGRAD: _winograd_product, Role.SCATTER: _scattered_product,
}  # fmt: skip


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
    most_waves: int = WAVES, tell: Callable[[float], None] | None = None, enough: float = inf,
) -> LaunchTraffic:  # fmt: skip
    """Simulate the CTAs of one launch in the caches of a GPU, which hold the end of B at the start.

    slots: CTAs that are resident at the same time, one wave
    b_bytes: size of operand B [B]
    most_waves: simulated waves, of which two are enough after `enough` accesses; tell: receives the finished share

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
        if done == most_waves or (done > 1 and state.accesses - before >= enough):
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

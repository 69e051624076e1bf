"""Bytes that a tiled product moves: from L2 into the SMs, and from memory into L2."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from archsim.calibration.constants import Calibration
from archsim.cost.cost import Array
from archsim.lower.kernel import GpuKernels, Index

PAGE = 2 * 2**20  # B; the granule in which the CUDA driver maps device memory (recalled from its allocation granularity)
RESIDENT_SHARE = 0.5  # of a cache that a tensor may fill and still be there for its next reader. A choice, not a fit.
SHAPES = 128  # networks whose tiles are remembered: what no device changes is worked out once for all of them


@lru_cache(maxsize=SHAPES)
def tiles_along_m(kernels: GpuKernels) -> Array:
    """Tiles along m, [V]."""
    return np.ceil(kernels.m / kernels.tile_m)


@lru_cache(maxsize=SHAPES)
def tiles_along_n(kernels: GpuKernels) -> Array:
    """Tiles along n, [V]."""
    return np.ceil(kernels.n / kernels.tile_n)


@lru_cache(maxsize=SHAPES)
def ctas_of(kernels: GpuKernels) -> Array:
    """CTAs of one launch, [V]; an element-wise kernel has one for each `threads` items."""
    tiled = tiles_along_m(kernels) * tiles_along_n(kernels) * kernels.count * kernels.split
    return np.where(kernels.matrix > 0, tiled, np.ceil(kernels.items / kernels.threads))


@lru_cache(maxsize=SHAPES)
def depth(kernels: GpuKernels) -> Array:
    """Steps of the inner loop of one CTA, padded to whole steps of its tile, in units of k, [V]."""
    return np.asarray(np.ceil(kernels.k / kernels.split / kernels.tile_k) * kernels.tile_k)


def loaded_bytes(kernels: GpuKernels, depth_k: Array) -> Array:
    """Bytes that one CTA loads for its tile: (tile_m + tile_n) depth elements; rows beyond the matrix are not loaded.

    The CTAs of a cluster are neighbours along the shorter side of their tiles, so that one load of the longer side serves
    them all (NVIDIA H100 whitepaper, 2022: multicast of the tensor memory accelerator).
    """
    from_a = np.minimum(kernels.tile_m, kernels.m) * kernels.operand_a
    from_b = np.minimum(kernels.tile_n, kernels.n) * kernels.operand_b
    alone, together = np.minimum(from_a, from_b), np.maximum(from_a, from_b)
    return np.asarray((alone + together / kernels.cluster) * depth_k)


def l2_bytes(kernels: GpuKernels, ctas: Array, depth_k: Array) -> Array:
    """Bytes through the L2 in one launch [B]: what all CTAs load and store, or each tensor of an element-wise kernel once.

    Partial results of a split are written and read. Where a kernel has cache traffic of its own, beyond its tensors, the
    larger of the two counts.
    """
    stored = kernels.c_bytes + 2.0 * partial_bytes(kernels)
    tiled = ctas * loaded_bytes(kernels, depth_k) + np.maximum(stored, kernels.cache_bytes)
    tensors = np.maximum(kernels.a_bytes + kernels.b_bytes + kernels.c_bytes, kernels.cache_bytes)
    return np.where(kernels.matrix > 0, tiled, tensors)


def awaited_bytes(kernels: GpuKernels, constants: Calibration) -> Array:
    """Bytes that one CTA waits for at once [B]: the next steps of a product's tile, `stream.loads` values of each thread.

    Narrow values therefore put fewer bytes in flight.
    """
    step = (kernels.tile_m * kernels.operand_a + kernels.tile_n * kernels.operand_b) * kernels.tile_k * constants["gemm.stages"]
    return np.where(kernels.matrix > 0, step, kernels.threads * constants["stream.loads"] * kernels.operand_b)


def pages(kernels: GpuKernels, depth_k: Array) -> Array:
    """Memory pages that one CTA visits, each step anew, where a row of its tile is a row in memory, [V].

    A step takes a few values from each of tile_m + tile_n rows, which lie `row_bytes` apart.
    """
    rows = np.minimum(kernels.tile_m, kernels.m) + np.minimum(kernels.tile_n, kernels.n)
    return np.asarray(depth_k / kernels.tile_k * rows * kernels.row_bytes / PAGE)


@lru_cache(maxsize=SHAPES)
def partial_bytes(kernels: GpuKernels) -> Array:
    """Bytes of the partial results of a product whose inner dimension is split, [V]: written once, read once."""
    return np.where(kernels.split > 1, kernels.split, 0.0) * kernels.c_bytes


def memory_bytes(kernels: GpuKernels, slots: Array, cache_bytes: Array | float) -> tuple[Array, Array]:
    """Bytes read from and written to memory by one launch, [D, V].

    CTAs that run at the same time (`slots`) cover a patch of tiles as square as the tiles allow, so that A is read once
    for each column of patches and B once for each row (Lym et al. 2019, DeLTA, section 4.3), unless the operand stays in
    the cache, as the keys of one head do while its queries pass. Splitting k writes and reads one partial result per
    split, in memory where they do not fit the cache.
    """
    partial = partial_bytes(kernels)
    kept = RESIDENT_SHARE * cache_bytes
    partial = np.where(partial > kept, partial, 0.0)
    reads = kernels.a_bytes + np.where(kernels.b_bytes > kept, kernels.b_bytes, 0.0) + partial  # the op before has just written b
    # Streams and operands that stay are read once; the rest is worked out for the others alone.
    large = np.maximum(kernels.a_bytes, kernels.b_bytes) > np.min(kept)
    some = np.flatnonzero((kernels.matrix > 0) & (kernels.exps == 0) & large)
    if some.size:
        reads = np.array(np.broadcast_to(reads, np.broadcast_shapes(reads.shape, np.shape(slots))))
        reads[..., some] += read_again(kernels, some, slots, kept)
    return reads, np.asarray(kernels.c_bytes + partial)


def read_again(kernels: GpuKernels, some: Index, slots: Array, kept: Array | float) -> Array:
    """Bytes that `some` products read from memory a second time and more, [D, S]."""
    across_m, across_n = tiles_along_m(kernels)[some], tiles_along_n(kernels)[some]
    slots = slots[..., some] if slots.shape[-1] > 1 else slots
    side = np.sqrt(slots * kernels.tile_n[some] / kernels.tile_m[some])
    patch_m = np.maximum(np.minimum(np.floor(side), across_m), 1.0)
    patch_n = np.maximum(np.minimum(np.floor(slots / patch_m), across_n), 1.0)
    a_bytes, b_bytes = kernels.a_bytes[some], kernels.b_bytes[some]
    again_a = np.where(a_bytes > kept, a_bytes, 0.0) * (np.ceil(across_n / patch_n) - 1.0)
    again_b = np.where(b_bytes > kept, b_bytes, 0.0) * (np.ceil(across_m / patch_m) - 1.0)
    return np.asarray(again_a + again_b)

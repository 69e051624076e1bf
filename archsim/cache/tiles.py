"""Addresses that the CTAs of a tiled product touch, wave by wave, in the order in which a GPU's caches see them.

CTAs start in order: tiles along m first, then along n, then the products of a batch. The `slots` resident CTAs of a wave advance
along k together, `STEP` values at a time, and write their tiles at the end. A step is a whole line of fp32 values; a finer
interleaving changes the shared lines by less than one for each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from archsim.cache.access import Accesses
from archsim.lower.layer import Layer

Index = NDArray[np.int64]
Runs = tuple[Index, Index]  # begins and sizes of contiguous bytes
Operand = Callable[[int, int, int, int], Runs]  # (tile, product of the batch, first k, end of k) -> runs that a CTA loads
STEP = 32  # values of k that each CTA of a wave processes before the next CTA does
REGION = 1 << 36  # B between the tensors, which are smaller
A, B, C = 0, REGION, 2 * REGION


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """`count` products of [m, k] and [k, n] in tiles of `tile_m` x `tile_n`; `result(i, j, z)` gives the runs that a CTA writes.
    """

    m: int
    n: int
    k: int
    count: int
    tile_m: int
    tile_n: int
    a: Operand
    b: Operand
    result: Callable[[int, int, int], Runs]

    @property
    def ctas(self) -> int:
        """CTAs of one launch."""
        return ceil(self.m / self.tile_m) * ceil(self.n / self.tile_n) * self.count


def by_rows(base: int, rows: int, depth: int, tile: int, element: int) -> Operand:
    """A matrix [products, rows, depth] whose rows run along k; a tile has `tile` rows.

    address of (z, row, k) = base + ((z rows + row) depth + k) element; base and element in bytes [B]

    >>> begins, sizes = by_rows(base=0, rows=4, depth=8, tile=2, element=4)(1, 0, 0, 8)  # tile 1: rows 2 and 3
    >>> begins.tolist(), sizes.tolist()
    ([64, 96], [32, 32])
    """

    def runs(i: int, z: int, first: int, end: int) -> Runs:
        row = np.arange(i * tile, min((i + 1) * tile, rows))
        return base + ((z * rows + row) * depth + first) * element, np.full(len(row), (end - first) * element)

    return runs


def by_columns(base: int, columns: int, depth: int, tile: int, element: int, points: int = 1) -> Operand:
    """A matrix [products, depth x points, columns] whose rows run across k; a tile has `tile` columns and all points of its k.

    address of (z, row, column) = base + ((z depth points + row) columns + column) element; base and element in bytes [B]

    >>> begins, sizes = by_columns(base=0, columns=4, depth=8, tile=2, element=4)(1, 0, 0, 2)  # tile 1: columns 2 and 3
    >>> begins.tolist(), sizes.tolist()
    ([8, 24], [8, 8])
    """

    def runs(j: int, z: int, first: int, end: int) -> Runs:
        row = np.arange(first * points, end * points)
        begin, width = j * tile, min(tile, columns - j * tile)
        return base + ((z * depth * points + row) * columns + begin) * element, np.full(len(row), width * element)

    return runs


def stretches(begin: int, end: int, length: int) -> tuple[Index, Index, Index]:
    """A range of positions cut at multiples of `length`: (row, first column, end of columns) of each piece, each [pieces].

    >>> [column.tolist() for column in stretches(3, 9, 4)]  # positions 3 | 4 to 7 | 8
    [[0, 1, 2], [3, 0, 0], [4, 4, 1]]
    """
    row = np.arange(begin // length, ceil(end / length))
    return row, np.maximum(begin - row * length, 0), np.minimum(end - row * length, length)


def gathered(base: int, layer: Layer, pad: tuple[int, int], tile: int) -> Operand:
    """The unfolded input [C x taps, N x pixels] of a forward convolution (implicit GEMM): k is (channel, tap), a tile some
    pixels.

    Each tap reads its own part of the image for each row of pixels, so neighbouring taps reuse lines in the caches.
    """
    pixels = layer.ho * layer.wo

    def runs(j: int, z: int, first: int, end: int) -> Runs:
        last = min((j + 1) * tile, layer.batch * pixels)
        row, left, right = stretches(j * tile, last, layer.wo)  # rows of all images
        image, y = row // layer.ho, row % layer.ho
        k = np.arange(first, end)[:, None]
        channel, tap_y, tap_x = k // layer.taps + z * layer.ci, k % layer.taps // layer.kw, k % layer.kw
        from_y = y * layer.sh + tap_y - pad[0]
        low = np.maximum(left * layer.sw + tap_x - pad[1], 0)
        high = np.minimum((right - 1) * layer.sw + tap_x - pad[1], layer.w - 1)
        plane = image * layer.groups * layer.ci + channel
        begin = base + ((plane * layer.h + from_y) * layer.w + low) * layer.element
        inside = (from_y >= 0) & (from_y < layer.h) & (high >= low)
        return begin[inside], ((high - low + 1) * layer.element)[inside]

    return runs


def patches(base: int, layer: Layer, pad: tuple[int, int], side: int, tile: int, tiles: int) -> Operand:
    """The input of a fused Winograd kernel: k is a channel, a tile some patches of `side` x `side` results with their halo.

    A launch computes `tiles` patches, padded to whole CTAs; they are spread evenly over the patches of the image.
    """
    across, down = ceil(layer.wo / side), ceil(layer.ho / side)
    share = layer.batch * across * down / tiles

    def runs(j: int, z: int, first: int, end: int) -> Runs:
        begin, last = int(j * tile * share), int(min((j + 1) * tile, tiles) * share)
        row, left, right = stretches(begin, last, across)
        image, top = row // down, row % down * side - pad[0]
        k = np.arange(first, end)[:, None, None]
        y = top[:, None] + np.arange(side + layer.kh - 1)
        low = np.maximum(left * side - pad[1], 0)[:, None]
        high = np.minimum(right * side + layer.kw - 2 - pad[1], layer.w - 1)[:, None]
        plane = image[:, None] * layer.groups * layer.ci + k + z * layer.ci
        start = base + ((plane * layer.h + y) * layer.w + low) * layer.element
        inside = np.broadcast_to((y >= 0) & (y < layer.h) & (high >= low), start.shape)
        size = np.broadcast_to((high - low + 1) * layer.element, start.shape)
        return start[inside], size[inside]

    return runs


def image_result(base: int, layer: Layer, tile_m: int, tile_n: int, tiles: int = 0) -> Callable[[int, int, int], Runs]:
    """The tile of [N x groups, C, pixels] that a CTA writes: for each channel the pixels of each image.

    With `tiles`, `tile_n` counts that many patches of pixels, written here as the same number of pixels in a row.
    """
    pixels = layer.ho * layer.wo
    squares = tiles or layer.batch * pixels
    share = layer.batch * pixels / squares

    def runs(i: int, j: int, z: int) -> Runs:
        begin, end = int(j * tile_n * share), int(min((j + 1) * tile_n, squares) * share)
        image, left, right = stretches(begin, end, pixels)
        channel = np.arange(i * tile_m, min((i + 1) * tile_m, layer.co))[:, None] + z * layer.co
        start = base + ((image * layer.groups * layer.co + channel) * pixels + left) * layer.element
        size = np.broadcast_to((right - left) * layer.element, start.shape)
        return start.ravel(), size.ravel()

    return runs


def matrix_result(base: int, m: int, n: int, tile_m: int, tile_n: int, element: int) -> Callable[[int, int, int], Runs]:
    """The tile of a matrix [products, m, n] that a CTA writes; base and element in bytes [B].

    >>> begins, sizes = matrix_result(base=0, m=4, n=4, tile_m=2, tile_n=2, element=4)(1, 1, 0)
    >>> begins.tolist(), sizes.tolist()
    ([40, 56], [8, 8])
    """

    def runs(i: int, j: int, z: int) -> Runs:
        row = np.arange(i * tile_m, min((i + 1) * tile_m, m))
        width = min(tile_n, n - j * tile_n)
        return base + ((z * m + row) * n + j * tile_n) * element, np.full(len(row), width * element)

    return runs


def waves(product: Product, slots: int, processors: int) -> Iterator[list[Accesses]]:
    """The accesses of one launch, a list for each wave of `slots` CTAs, which are dealt to the SMs (`processors`) in turn."""
    down, across = ceil(product.m / product.tile_m), ceil(product.n / product.tile_n)
    for first in range(0, product.ctas, slots):
        ctas = [(c % down, c // down % across, c // (down * across), (c - first) % processors)
                for c in range(first, min(first + slots, product.ctas))]  # fmt: skip
        turns = [_turn(product, ctas, k, min(k + STEP, product.k)) for k in range(0, product.k, STEP)]
        yield [*turns, _gathered([(product.result(i, j, z), core) for i, j, z, core in ctas], store=1)]


def _turn(product: Product, ctas: list[tuple[int, int, int, int]], first: int, end: int) -> Accesses:
    """The loads of all CTAs of a wave for some values of k."""
    runs = []
    for i, j, z, core in ctas:
        runs += [(product.a(i, z, first, end), core), (product.b(j, z, first, end), core)]
    return _gathered(runs, store=0)


def _gathered(runs: list[tuple[Runs, int]], store: int) -> Accesses:
    return Accesses(
        address=np.concatenate([begin for (begin, _), _ in runs]), size=np.concatenate([size for (_, size), _ in runs]),
        core=np.repeat([core for _, core in runs], [len(begin) for (begin, _), _ in runs]), store=store,
    )  # fmt: skip

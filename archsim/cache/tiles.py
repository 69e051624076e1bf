"""Addresses that the CTAs of a tiled product touch, wave by wave, in the order in which a GPU's caches see them.

CTAs start in order: tiles along m first, then along n, then the products of a batch. The `slots` resident CTAs of a wave advance
along k together, `STEP` values at a time, and write their tiles at the end. A step is a whole line of fp32 values; a finer
interleaving changes the shared lines by less than one for each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
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

    split: parts into which k is cut, each of other CTAs, whose results lie apart
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
    split: int = 1

    @property
    def ctas(self) -> int:
        """CTAs of one launch."""
        return ceil(self.m / self.tile_m) * ceil(self.n / self.tile_n) * self.count * self.split

    @property
    def depth(self) -> int:
        """Values of k that one CTA multiplies."""
        return ceil(self.k / self.split)


def _within(i: int, tile: int, most: int) -> Index:
    """The rows, columns or channels of tile `i`, of `most` in all."""
    return np.arange(i * tile, min((i + 1) * tile, most))


def by_rows(base: int, rows: int, depth: int, tile: int, element: int) -> Operand:
    """A matrix [products, rows, depth] whose rows run along k; a tile has `tile` rows.

    address of (z, row, k) = base + ((z rows + row) depth + k) element; base and element in bytes [B]

    >>> begins, sizes = by_rows(base=0, rows=4, depth=8, tile=2, element=4)(1, 0, 0, 8)  # tile 1: rows 2 and 3
    >>> begins.tolist(), sizes.tolist()
    ([64, 96], [32, 32])
    """

    def runs(i: int, z: int, first: int, end: int) -> Runs:
        row = _within(i, tile, rows)
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
    pixels = layer.batch * layer.ho * layer.wo

    def runs(j: int, z: int, first: int, end: int) -> Runs:
        return _windows(base, layer, pad, np.arange(first, end), z, j * tile, min((j + 1) * tile, pixels))

    return runs


def gathered_along(base: int, layer: Layer, pad: tuple[int, int], tile: int, apart: bool = False) -> Operand:
    """The unfolded input [N x pixels, C x taps] of a filter gradient: k is a pixel, a tile some pairs (channel, tap).

    apart: one product for each tap, so that a tile is of channels
    """
    def runs(j: int, z: int, first: int, end: int) -> Runs:
        column = _within(j, tile, layer.ci * (1 if apart else layer.taps))
        group, tap = (z // layer.taps, z % layer.taps) if apart else (z, 0)
        k = column * layer.taps + tap if apart else column
        return _windows(base, layer, pad, k, group, first, end)

    return runs


def _windows(
    base: int, layer: Layer, pad: tuple[int, int], k: Index, z: int, first: int, last: int
) -> Runs:
    """What pairs (channel, tap) = `k` of group z read of the input for the pixels of results from `first` to `last`."""
    row, left, right = stretches(first, last, layer.wo)  # rows of all images
    image, y = row // layer.ho, row % layer.ho
    k = k[:, None]
    channel, tap_y, tap_x = k // layer.taps + z * layer.ci, k % layer.taps // layer.kw, k % layer.kw
    from_y = y * layer.sh + tap_y - pad[0]
    low = np.maximum(left * layer.sw + tap_x - pad[1], 0)
    high = np.minimum((right - 1) * layer.sw + tap_x - pad[1], layer.w - 1)
    plane = image * layer.groups * layer.ci + channel
    begin = base + ((plane * layer.h + from_y) * layer.w + low) * layer.element
    inside = (from_y >= 0) & (from_y < layer.h) & (high >= low) & (channel < (z + 1) * layer.ci)  # padded channels are not there
    return begin[inside], ((high - low + 1) * layer.element)[inside]


def spread(base: int, layer: Layer, pad: tuple[int, int], tile: int, skipped: int = 1) -> Operand:
    """The gradient of the output, unfolded for the data gradient [K x taps, N x pixels of the input]: k is (channel, tap).

    A result of the input takes from each tap the pixel of the output that used it, which a stride leaves out for most.
    skipped: pairs of k for each one that is multiplied, where a kernel leaves out those with zeros
    """
    pixels = layer.batch * layer.h * layer.w

    def runs(j: int, z: int, first: int, end: int) -> Runs:
        row, left, right = stretches(j * tile, min((j + 1) * tile, pixels), layer.w)
        image, y = row // layer.h, row % layer.h
        k = np.arange(first * skipped, min(end * skipped, layer.co * layer.taps))[:, None]
        channel, tap_y, tap_x = k // layer.taps + z * layer.co, k % layer.taps // layer.kw, k % layer.kw
        used = y + pad[0] - tap_y
        from_y = used // layer.sh
        low = np.maximum(-((tap_x - pad[1] - left) // layer.sw), 0)  # rounded up
        high = np.minimum((right - 1 + pad[1] - tap_x) // layer.sw, layer.wo - 1)
        plane = image * layer.groups * layer.co + channel
        begin = base + ((plane * layer.ho + from_y) * layer.wo + low) * layer.element
        inside = (used % layer.sh == 0) & (from_y >= 0) & (from_y < layer.ho) & (high >= low)
        return begin[inside], ((high - low + 1) * layer.element)[inside]

    return runs


def filters_across(base: int, layer: Layer, tile: int, skipped: int = 1) -> Operand:
    """The filters [K, C x taps] of a data gradient: k is (output channel, tap), a tile some input channels with all taps."""
    def runs(i: int, z: int, first: int, end: int) -> Runs:
        channel = np.arange(first * skipped // layer.taps, min(ceil(end * skipped / layer.taps), layer.co)) + z * layer.co
        wide = min((i + 1) * tile, layer.ci) - i * tile
        begin = base + (channel * layer.ci + i * tile) * layer.taps * layer.element
        return begin, np.full(len(channel), max(1, wide) * layer.taps * layer.element)

    return runs


def images_by_rows(base: int, layer: Layer, tile: int, apart: bool = False) -> Operand:
    """The gradient of the output [K, N x pixels] of a filter gradient: rows are channels, k is a pixel of any image."""
    def runs(i: int, z: int, first: int, end: int) -> Runs:
        group = z // layer.taps if apart else z
        return _pixels(base, layer, _within(i, tile, layer.co) + group * layer.co, first, end)

    return runs


def _pixels(base: int, layer: Layer, channel: Index, first: int, end: int) -> Runs:
    """Pixels `first` to `end` of results, counted through all images, in each of some channels."""
    pixels = layer.ho * layer.wo
    image, left, right = stretches(first, end, pixels)
    begin = base + ((image * layer.groups * layer.co + channel[:, None]) * pixels + left) * layer.element
    return begin.ravel(), np.broadcast_to((right - left) * layer.element, begin.shape).ravel()


def patches(base: int, layer: Layer, pad: tuple[int, int], side: int, tile: int, tiles: int) -> Operand:
    """The input of a fused Winograd kernel: k is a channel, a tile some patches of `side` x `side` results with their halo.

    A launch computes `tiles` patches, padded to whole CTAs; they are spread evenly over the patches of the image.
    """
    across, down = ceil(layer.wo / side), ceil(layer.ho / side)
    share = layer.batch * across * down / tiles

    def runs(j: int, z: int, first: int, end: int) -> Runs:
        begin, last = int(j * tile * share), int(min((j + 1) * tile, tiles) * share)
        return _squares(base, layer, pad, side, (begin, last), np.arange(first, end) + z * layer.ci)

    return runs


def patches_along(
    base: int, layer: Layer, pad: tuple[int, int], side: int, tile: int, tiles: int, results: bool = False
) -> Operand:
    """The same of a filter gradient, where k is a patch and a tile some channels; `results`: patches of the output, without halo.
    """
    across, down = ceil(layer.wo / side), ceil(layer.ho / side)
    share = layer.batch * across * down / tiles
    channels = layer.co if results else layer.ci

    def runs(i: int, z: int, first: int, end: int) -> Runs:
        patch = int(first * share), max(int(first * share) + 1, int(min(end, tiles) * share))
        channel = _within(i, tile, channels) + z * channels
        if not results:
            return _squares(base, layer, pad, side, patch, channel)
        flat = replace(layer, ci=layer.co, h=layer.ho, w=layer.wo, kh=1, kw=1)
        return _squares(base, flat, (0, 0), side, patch, channel)

    return runs


def _squares(
    base: int, layer: Layer, pad: tuple[int, int], side: int, patch: tuple[int, int], channel: Index
) -> Runs:
    """Rows of pixels that patches from `patch[0]` to `patch[1]` of some channels cover, with their halo."""
    across, down = ceil(layer.wo / side), ceil(layer.ho / side)
    row, left, right = stretches(*patch, across)
    image, top = row // down, row % down * side - pad[0]
    y = top[:, None] + np.arange(side + layer.kh - 1)
    low = np.maximum(left * side - pad[1], 0)[:, None]
    high = np.minimum(right * side + layer.kw - 2 - pad[1], layer.w - 1)[:, None]
    plane = image[:, None] * layer.groups * layer.ci + channel[:, None, None]
    start = base + ((plane * layer.h + y) * layer.w + low) * layer.element
    inside = np.broadcast_to((y >= 0) & (y < layer.h) & (high >= low), start.shape)
    size = np.broadcast_to((high - low + 1) * layer.element, start.shape)
    return start[inside], size[inside]


def image_result(base: int, layer: Layer, tile_m: int, tile_n: int, tiles: int = 0) -> Callable[[int, int, int], Runs]:
    """The tile of [N x groups, C, pixels] that a CTA writes: for each channel the pixels of each image.

    With `tiles`, `tile_n` counts that many patches of pixels, written here as the same number of pixels in a row.
    """
    pixels = layer.batch * layer.ho * layer.wo
    squares = tiles or pixels
    share = pixels / squares

    def runs(i: int, j: int, z: int) -> Runs:
        begin, end = int(j * tile_n * share), int(min((j + 1) * tile_n, squares) * share)
        return _pixels(base, layer, _within(i, tile_m, layer.co) + z * layer.co, begin, end)

    return runs


def matrix_result(base: int, m: int, n: int, tile_m: int, tile_n: int, element: int) -> Callable[[int, int, int], Runs]:
    """The tile of a matrix [products, m, n] that a CTA writes; base and element in bytes [B].

    >>> begins, sizes = matrix_result(base=0, m=4, n=4, tile_m=2, tile_n=2, element=4)(1, 1, 0)
    >>> begins.tolist(), sizes.tolist()
    ([40, 56], [8, 8])
    """

    def runs(i: int, j: int, z: int) -> Runs:
        row = _within(i, tile_m, m)
        width = min(tile_n, n - j * tile_n)
        return base + ((z * m + row) * n + j * tile_n) * element, np.full(len(row), width * element)

    return runs


def waves(product: Product, slots: int, processors: int) -> Iterator[list[Accesses]]:
    """The accesses of one launch, a list for each wave of `slots` CTAs, which are dealt to the SMs (`processors`) in turn."""
    down, across = ceil(product.m / product.tile_m), ceil(product.n / product.tile_n)
    each = down * across * product.count
    for first in range(0, product.ctas, slots):
        ctas = [Cta(row=c % down, column=c // down % across, product=c % each // (down * across), part=c // each,
                    core=(c - first) % processors) for c in range(first, min(first + slots, product.ctas))]  # fmt: skip
        turns = [_turn(product, ctas, k, min(k + STEP, product.depth)) for k in range(0, product.depth, STEP)]
        yield [*turns, _gathered([(_written(product, cta), cta.core) for cta in ctas], store=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cta:
    """A CTA: the tile of the result that it computes, of which product, over which part of k, and on which SM."""

    row: int
    column: int
    product: int
    part: int
    core: int


def _written(product: Product, cta: Cta) -> Runs:
    """The results of a CTA; those of a part of k lie in a region of their own."""
    begin, size = product.result(cta.row, cta.column, cta.product)
    return begin + (REGION * (1 + cta.part) if product.split > 1 else 0), size


def _turn(product: Product, ctas: list[Cta], first: int, end: int) -> Accesses:
    """The loads of all CTAs of a wave for some values of k of each."""
    a, b = cache(product.a), cache(product.b)  # CTAs of a row of tiles load the same of A, those of a column the same of B
    runs = []
    for cta in ctas:
        begin = cta.part * product.depth
        k = begin + first, min(begin + end, product.k)
        if k[1] > k[0]:
            runs += [(a(cta.row, cta.product, *k), cta.core), (b(cta.column, cta.product, *k), cta.core)]
    return _gathered(runs, store=0)


def _gathered(runs: list[tuple[Runs, int]], store: int) -> Accesses:
    if not runs:
        return Accesses(address=np.zeros(0, dtype=np.int64))
    return Accesses(
        address=np.concatenate([begin for (begin, _), _ in runs]), size=np.concatenate([size for (_, size), _ in runs]),
        core=np.repeat([core for _, core in runs], [len(begin) for (begin, _), _ in runs]), store=store,
    )  # fmt: skip

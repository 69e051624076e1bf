"""Bytes that a kernel moves on a GPU: from the L2 into the SMs, and from memory into the L2."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from archsim.cost.cost import Array
from archsim.cost.retention import UNROLLED, rows_fetched
from archsim.device.part import GpuL1
from archsim.lower.kernel import GpuKernels, Index

PAGE = 2 * 2**20  # B; the granule in which the CUDA driver maps device memory (recalled from its allocation granularity)
RESIDENT_SHARE = 0.5  # of a cache that a tensor may fill and still be there for its next reader. A choice, not a fit.
SHAPES = 128  # networks whose tiles are remembered: what no device changes is worked out once for all of them


@lru_cache(maxsize=SHAPES)
def tiles_m(kernels: GpuKernels) -> Array:
    """Tiles along the rows of the result.

    ceil(m / tile_m), [V]

    >>> from types import SimpleNamespace
    >>> class Some(SimpleNamespace):
    ...     __hash__ = object.__hash__
    >>> float(tiles_m(Some(m=729.0, tile_m=128.0)))
    6.0
    """
    return np.ceil(kernels.m / kernels.tile_m)


@lru_cache(maxsize=SHAPES)
def tiles_n(kernels: GpuKernels) -> Array:
    """Tiles along the columns of the result.

    ceil(n / tile_n), [V]

    >>> from types import SimpleNamespace
    >>> class Some(SimpleNamespace):
    ...     __hash__ = object.__hash__
    >>> float(tiles_n(Some(n=256.0, tile_n=64.0)))
    4.0
    """
    return np.ceil(kernels.n / kernels.tile_n)


@lru_cache(maxsize=SHAPES)
def ctas_of(kernels: GpuKernels) -> Array:
    """CTAs of one launch.

    tiles_m tiles_n count split, or ceil(items / threads) for an element-wise kernel, [V]

    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> class Some(SimpleNamespace):
    ...     __hash__ = object.__hash__
    >>> two = Some(matrix=np.array([1.0, 0.0]), m=729.0, n=256.0, tile_m=128.0, tile_n=64.0, count=2.0, split=1.0, items=1e4,
    ...            threads=256.0)
    >>> ctas_of(two).tolist()
    [48.0, 40.0]
    """
    return np.where(kernels.matrix > 0, tiles_m(kernels) * tiles_n(kernels) * kernels.count * kernels.split,
                    np.ceil(kernels.items / kernels.threads))  # fmt: skip


@lru_cache(maxsize=SHAPES)
def inner_steps(kernels: GpuKernels) -> Array:
    """Inner steps of one CTA, padded to whole steps of its tile, in units of k.

    ceil(k / split / tile_k) tile_k, [V]

    >>> from types import SimpleNamespace
    >>> class Some(SimpleNamespace):
    ...     __hash__ = object.__hash__
    >>> float(inner_steps(Some(k=363.0, split=1.0, tile_k=8.0)))
    368.0
    """
    return np.asarray(np.ceil(kernels.k / kernels.split / kernels.tile_k) * kernels.tile_k)


def loaded_bytes(kernels: GpuKernels, depth: Array) -> Array:
    """What one CTA loads for its tile [B]; rows beyond the matrix are not loaded.

    (min(from_a, from_b) + max(from_a, from_b) / cluster) depth, [V]

    from_a: bytes of A for one step of k [B]
    from_b: bytes of B for one step of k [B]
    depth: inner steps of one CTA, in units of k, [V]

    The CTAs of a cluster are neighbours along the shorter side of their tiles, so that one load of the longer side serves
    them all (NVIDIA H100 whitepaper, 2022: multicast of the tensor memory accelerator).

    >>> from types import SimpleNamespace as kernels
    >>> float(loaded_bytes(kernels(tile_m=128.0, tile_n=64.0, m=1e3, n=1e3, operand_a=4.0, operand_b=4.0, cluster=1.0), 100.0))
    76800.0
    """
    from_a = np.minimum(kernels.tile_m, kernels.m) * kernels.operand_a
    from_b = np.minimum(kernels.tile_n, kernels.n) * kernels.operand_b
    return np.asarray((np.minimum(from_a, from_b) + np.maximum(from_a, from_b) / kernels.cluster) * depth)


def l2_bytes(kernels: GpuKernels, ctas: Array, depth: Array) -> Array:
    """Traffic of one launch through the L2 [B].

    ctas loaded + max(stored, cache_bytes); for an element-wise kernel max(a + b + c, cache_bytes), [V]

    stored: the results, and the parts of a split, written and read [B]
    ctas: of one launch, [V]
    depth: inner steps of one CTA, in units of k, [V]

    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> class Some(SimpleNamespace):
    ...     __hash__ = object.__hash__
    >>> one = Some(matrix=np.zeros(1), a_bytes=0.0, b_bytes=4e6, c_bytes=4e6, cache_bytes=1e7, split=1.0, tile_m=1.0, m=1.0,
    ...            tile_n=1.0, n=1.0, operand_a=4.0, operand_b=4.0, cluster=1.0)
    >>> l2_bytes(one, 1.0, 1.0).item()  # windows that overlap are read more than once
    10000000.0
    """
    stored = kernels.c_bytes + 2.0 * partial_bytes(kernels)
    return np.where(kernels.matrix > 0, ctas * loaded_bytes(kernels, depth) + np.maximum(stored, kernels.cache_bytes),
                    np.maximum(kernels.a_bytes + kernels.b_bytes + kernels.c_bytes, kernels.cache_bytes))  # fmt: skip


def awaited_bytes(kernels: GpuKernels) -> Array:
    """Bytes that one CTA waits for at once [B].

    (tile_m a + tile_n b) tile_k of a product, threads b of an element-wise kernel, threads min(u b, rest) of one with rows, [V]

    a, b: what is loaded for one element of either operand, `operand_a`, `operand_b` [B]
    u: loads of a thread before the first use in a loop over a row, `UNROLLED`
    asked: what these are, at most what the thread has of the row [B], [V]
    rest: what a thread has of a row that its CTA reads several times, `row_in_flight` [B]

    Double buffers have one step of the tile in flight while the other is used; a thread of an element-wise kernel has one load.
    Narrow values therefore put fewer bytes in flight.

    >>> import numpy as np
    >>> from types import SimpleNamespace as kernels
    >>> one = kernels(matrix=np.ones(1), tile_m=128.0, tile_n=64.0, tile_k=8.0, operand_a=4.0, operand_b=4.0, threads=256.0,
    ...               row_in_flight=0.0)
    >>> awaited_bytes(one).item()
    6144.0
    """
    asked = np.minimum(UNROLLED * kernels.operand_b, kernels.row_in_flight)
    return np.where(
        kernels.matrix > 0,
        (kernels.tile_m * kernels.operand_a + kernels.tile_n * kernels.operand_b) * kernels.tile_k,
        kernels.threads * np.where(kernels.row_in_flight > 0, asked, kernels.operand_b),
    )


def pages(kernels: GpuKernels, depth: Array) -> Array:
    """Memory pages that one CTA visits, each step anew, where a row of its tile is a row in memory.

    depth / tile_k (min(tile_m, m) + min(tile_n, n)) row_bytes / 2 MiB, [V]

    rows: rows of both operands from which a step takes a few values each, `row_bytes` apart
    depth: inner steps of one CTA, in units of k, [V]

    >>> from types import SimpleNamespace as kernels
    >>> float(pages(kernels(tile_m=64.0, m=64.0, tile_n=64.0, n=64.0, tile_k=8.0, row_bytes=2**20), 80.0))
    640.0
    """
    rows = np.minimum(kernels.tile_m, kernels.m) + np.minimum(kernels.tile_n, kernels.n)
    return np.asarray(depth / kernels.tile_k * rows * kernels.row_bytes / PAGE)


@lru_cache(maxsize=SHAPES)
def partial_bytes(kernels: GpuKernels) -> Array:
    """Partial results of a product whose inner dimension is split [B].

    split c_bytes, 0 without a split, [V]

    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> class Some(SimpleNamespace):
    ...     __hash__ = object.__hash__
    >>> partial_bytes(Some(split=np.array([1.0, 4.0]), c_bytes=1e6)).tolist()
    [0.0, 4000000.0]
    """
    return np.where(kernels.split > 1, kernels.split, 0.0) * kernels.c_bytes


def spilled_bytes(kernels: GpuKernels, cache: Array | float) -> Array:
    """Partial results that do not fit the L2 beside other things, and go through memory [B].

    split c_bytes where this is more than half the `cache` [B], [D, V]; cache: size of the L2 [B], a float or [D, 1]

    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> class Some(SimpleNamespace):
    ...     __hash__ = object.__hash__
    >>> spilled_bytes(Some(split=np.array([4.0]), c_bytes=1e6), np.array([[2e6], [9e6]])).tolist()
    [[4000000.0], [0.0]]
    """
    partial = partial_bytes(kernels)
    return np.where(partial > RESIDENT_SHARE * cache, partial, 0.0)


def bytes_read(
    kernels: GpuKernels, slots: Array, cache: Array | float, stay: float = 1.0, retained: Array | float = 0.0,
    whole: Array | float | None = None,
) -> Array:  # fmt: skip
    """Bytes read from memory by one launch [B].

    a (1 - retained) + fetched + spilled + again, [D, V]

    retained: share of a that the L2 still has from the run before, `resident_share` of what a run touches [1], [D, V]
    fetched: b evicted; of a kernel that reads its rows several times `rows_fetched`
    evicted: share of b that the L2 has no more, min(beyond, 1); all of it for a kernel timed alone (`round_bytes` is finite), of
             which `resident_share` says what its last round left
    beyond: what b has more than half the L2, over that half. The op before has just written b: of a tensor of half the L2 it
            still has all, of one of its own size nothing. Between write and read of what lies at a part p of b come all of b and
            the part p of the results, as large as b: the line that was used longest ago goes where b (1 + p) is more than the L2
    kept: what a tensor may take of the L2 and still be there for its next reader [B]
    once: each operand that is not in the L2 still, once, and partial results [B]
    slots: CTAs that the chip holds at once, [D, V]
    cache: what the L2 holds of data that all SMs read [B], a float or [D, 1]; whole: its size, where that is more: the rows of a
           CTA are read by its SM alone [B]; stay: see `row_visits.rows_again`, for kernels that read rows again

    Each operand is read once, and again for each further patch of CTAs that run at the same time (`read_again`), unless it stays
    in the L2, as the keys of one head do while its queries pass.

    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> class Some(SimpleNamespace):
    ...     __hash__ = object.__hash__
    >>> one = Some(a_bytes=np.array([1e6]), b_bytes=np.array([8e6]), split=np.array([1.0]), c_bytes=1.0, matrix=np.zeros(1),
    ...            exps=np.zeros(1), row_in_flight=np.zeros(1), round_bytes=np.inf)
    >>> bytes_read(one, np.array([40.0]), np.array([[1e6], [8e6], [16e6]])).tolist()
    [[9000000.0], [9000000.0], [1000000.0]]
    """
    kept = RESIDENT_SHARE * cache
    beyond = np.maximum(kernels.b_bytes - kept, 0.0) / np.maximum(kept, 1.0)
    evicted = np.where(np.isinf(kernels.round_bytes), np.minimum(beyond, 1.0), 1.0)
    fetched = kernels.b_bytes * evicted
    if np.any(kernels.row_in_flight):
        fetched = np.where(kernels.row_in_flight > 0, rows_fetched(kernels, slots, cache if whole is None else whole, kept, stay),
                           fetched)  # fmt: skip
    once = kernels.a_bytes * (1.0 - retained) + fetched + spilled_bytes(kernels, cache)
    large = np.maximum(kernels.a_bytes, kernels.b_bytes) > np.min(kept)
    return once + on_columns((kernels.matrix > 0) & (kernels.exps == 0) & large, read_again, kernels, slots, kept)


def bytes_written(kernels: GpuKernels, cache: Array | float) -> Array:
    """Bytes written to memory by one launch [B]: the results that leave the L2, and partial ones that do not fit it.

    c displaced + spilled, [D, V]

    displaced: share of c that leaves the L2 before its reader is done, min(excess, 1), where its memory is then used for other
               results (`short_lived`), so that what the L2 has of it never goes to memory; all of it elsewhere
    excess: what c has more than `half`, over that
    half: what a result may take of the L2 and stay there until it was read, half of it [B]
    cache: size of the L2 [B], a float or [D, 1]

    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> class Some(SimpleNamespace):
    ...     __hash__ = object.__hash__
    >>> bytes_written(Some(split=np.array([4.0, 1.0]), c_bytes=1e6, short_lived=np.array([0.0, 1.0])), 2e6).tolist()
    [5000000.0, 0.0]
    """
    half = RESIDENT_SHARE * cache
    excess = np.maximum(kernels.c_bytes - half, 0.0) / np.maximum(half, 1.0)
    displaced = np.where(kernels.short_lived, np.minimum(excess, 1.0), 1.0)
    return np.asarray(kernels.c_bytes * displaced + spilled_bytes(kernels, cache))


def read_again(kernels: GpuKernels, some: Index, slots: Array, kept: Array | float) -> Array:
    """Bytes that `some` products read from memory a second time and more [B].

    a (ceil(tiles_n / patch_n) - 1) + b (ceil(tiles_m / patch_m) - 1), each where it does not stay in the L2, [D, S]

    patch: tiles along m of a square patch of all CTAs that the chip holds
    patch_m, patch_n: tiles along either side of the patch that runs at the same time
    again_a: bytes of A that further columns of patches read [B]
    again_b: bytes of B that further rows of patches read [B]
    some: columns of these products, [S]
    slots: CTAs that the chip holds at once, [D, V]
    kept: what a tensor may take of the L2 and still be there for its next reader [B], a float or [D, 1]

    CTAs that run at the same time cover a patch of tiles as square as the tiles allow, so that A is read once for each column of
    patches and B once for each row (Lym et al. 2019, DeLTA, section 4.3).

    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> class Some(SimpleNamespace):
    ...     __hash__ = object.__hash__
    >>> one = Some(m=np.array([512.0]), n=np.array([512.0]), tile_m=np.array([128.0]), tile_n=np.array([128.0]),
    ...            a_bytes=np.array([1e6]), b_bytes=np.array([1e6]))
    >>> read_again(one, np.array([0]), np.array([4.0]), 0.0).tolist()  # 4 x 4 tiles in patches of 2 x 2
    [2000000.0]
    """
    slots_of = slots[..., some] if slots.shape[-1] > 1 else slots
    across_m, across_n = tiles_m(kernels)[some], tiles_n(kernels)[some]
    patch = np.sqrt(slots_of * kernels.tile_n[some] / kernels.tile_m[some])
    patch_m = np.maximum(np.minimum(np.floor(patch), across_m), 1.0)
    patch_n = np.maximum(np.minimum(np.floor(slots_of / patch_m), across_n), 1.0)
    a_bytes, b_bytes = kernels.a_bytes[some], kernels.b_bytes[some]
    again_a = np.where(a_bytes > kept, a_bytes, 0.0) * (np.ceil(across_n / patch_n) - 1.0)
    again_b = np.where(b_bytes > kept, b_bytes, 0.0) * (np.ceil(across_m / patch_m) - 1.0)
    return np.asarray(again_a + again_b)


def on_columns(
    mask: NDArray[np.bool_], equation: Callable[..., Array], kernels: GpuKernels, slots: Array, kept: Array | float
) -> Array | float:
    """`equation(kernels, columns, slots, kept)` for the columns where the mask [V] holds; 0 for the others, which take no time.

    >>> import numpy as np
    >>> mask, slots = np.array([False, True]), np.array([3.0, 5.0])
    >>> on_columns(mask, lambda kernels, some, slots, kept: slots[some] - kept, None, slots, 1.0)
    array([0., 4.])
    """
    columns = np.flatnonzero(mask)
    if not columns.size:
        return 0.0
    found = equation(kernels, columns, slots, kept)
    full = np.zeros((*found.shape[:-1], mask.size))
    full[..., columns] = found
    return full


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

"""Addresses of a matrix product on one core of a CPU: blocked for its caches, with operands packed into panels.

The five loops around a micro-kernel of Goto and van de Geijn (2008), with the block sizes of `archsim.cost.blocking`. A, B and C
are row-major in memory; a packed panel is contiguous.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from archsim.cache.access import Accesses
from archsim.cost.blocking import block_columns, block_rows, micro_tile, panel_depth
from archsim.device.device import Cpu

REGION = 1 << 36  # B between the tensors and panels
A, B, C, PACKED_A, PACKED_B = (i * REGION for i in range(5))
UNBOUNDED = 1 << 30  # columns of a block where there is no third level to hold them


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """Block sizes [elements]: `rows` x `columns` in registers, `k` x `columns` in L1, `m` x `k` in L2, `k` x `n` in the last
    level.
    """

    rows: int
    columns: int
    m: int
    n: int
    k: int


def blocks_of(device: Cpu, element: int) -> Blocks:
    """The block sizes [elements] that fit the caches of a device, for elements of `element` bytes.

    >>> from archsim.device.catalog import find
    >>> blocks = blocks_of(find("i7_6700k").device, 4)
    >>> blocks.rows * blocks.columns  # results that a core keeps in registers: 6 x 16
    96
    """
    rows, columns = (int(side) for side in micro_tile(device))
    m, n = (float(side(device, element)) for side in (block_rows, block_columns))
    return Blocks(
        rows=rows, columns=columns, k=int(panel_depth(device, element)), m=max(rows, int(m) // rows * rows),
        n=max(columns, int(min(n, UNBOUNDED)) // columns * columns),
    )  # fmt: skip


def blocked_product(m: int, n: int, k: int, blocks: Blocks, element: int) -> Iterator[Accesses]:
    """The accesses of C[m, n] += A[m, k] B[k, n], panel by panel; each item is one block of A, packed or multiplied.

    element: bytes of one value [B]
    """
    for jc in range(0, n, blocks.n):
        nb = min(blocks.n, n - jc)
        for pc in range(0, k, blocks.k):
            kb = min(blocks.k, k - pc)
            row = np.arange(pc, pc + kb)
            yield _copied(B + (row * n + jc) * element, nb * element, PACKED_B)
            for ic in range(0, m, blocks.m):
                mb = min(blocks.m, m - ic)
                yield _copied(A + (np.arange(ic, ic + mb) * k + pc) * element, kb * element, PACKED_A)
                for jr in range(0, nb, blocks.columns):
                    yield _strip(ic, jc + jr, jr, mb, min(blocks.columns, nb - jr), kb, n, blocks, element)


def _copied(begin: np.ndarray, size: int, target: int) -> Accesses:
    """Rows read one after the other, each written behind the one before."""
    address = np.stack([begin, target + np.arange(len(begin)) * size], axis=1).ravel()
    return Accesses(address=address, size=np.full(len(address), size), store=np.tile([0, 1], len(begin)))


def _strip(
    ic: int, column: int, jr: int, mb: int, wide: int, kb: int, n: int, blocks: Blocks, element: int
) -> Accesses:
    """One panel of B times all panels of A of a block: each time both panels are read, then the tile of C is read and written."""
    address, size, store = [], [], []
    for ir in range(0, mb, blocks.rows):
        rows = np.arange(ic + ir, ic + min(ir + blocks.rows, mb))
        tile = C + (rows * n + column) * element
        address += [PACKED_A + ir * kb * element, PACKED_B + jr * kb * element, *np.tile(tile, 2).tolist()]
        size += [len(rows) * kb * element, wide * kb * element, *[wide * element] * (2 * len(rows))]
        store += [0, 0, *[0] * len(rows), *[1] * len(rows)]
    return Accesses(address=np.array(address), size=np.array(size), store=np.array(store))

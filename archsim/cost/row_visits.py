"""What CTAs bring in that read a row of their input several times, such as softmax and norms."""

from __future__ import annotations

import numpy as np

from archsim.cost.cost import Array
from archsim.lower.kernel import GpuKernels

UNROLLED = 4  # loads of an array by a thread before the first use: how often nvcc unrolls a loop whose trips it does not know


def rows_again(kernels: GpuKernels, slots: Array, cache: Array | float, stay: float) -> Array:
    """Share of what CTAs read of their rows a second time and more that comes from memory [1].

    1 - min(1, stay cache / between)^2, [D, V]; 1 for a kernel whose rows are not described

    between: what comes into the cache between two reads of a value, held 2 / reads [B]; reads: `row_reads`, two at least [1], [V]
    held: rows of all CTAs that the chip holds at once, slots threads row_in_flight, at most the tensors [B]
    slots: CTAs of `threads` that the chip holds at once, [D, V]
    cache: size of the L2 [B], a float or [D, 1]
    stay: share of it that the rows may fill and all be there when they are read again, `l2.rows_stay` [1]

    While a CTA lives, the others bring in and write rows and results as large as theirs; between two of its visits to a value,
    the part of it that one visit takes: half of twice their rows where it comes twice, a third where it comes three times. The
    more this is beyond what the cache keeps, the fewer of the values that it has brought in live until they are read again, and
    the fewer of those wait in it.

    >>> import numpy as np
    >>> from types import SimpleNamespace as some
    >>> one = some(row_in_flight=np.array([16.0, 0.0]), threads=256.0, b_bytes=np.array([3e9, 3e9]),
    ...            row_reads=np.array([3.0, 0.0]))
    >>> rows_again(one, np.array([640.0]), np.array([[4e6], [6e6], [40e6]]), 0.35).round(12).tolist()
    [[0.358260538429, 1.0], [0.0, 1.0], [0.0, 1.0]]
    """
    first = kernels.b_bytes / np.maximum(kernels.row_reads, 1.0)
    held = np.minimum(slots * kernels.threads * kernels.row_in_flight, first)
    between = held * 2.0 / np.maximum(kernels.row_reads, 2.0)
    kept = np.minimum(1.0, stay * cache / np.maximum(between, 1.0))
    return np.where(kernels.row_in_flight > 0, 1.0 - kept**2, 1.0)


def rows_fetched(kernels: GpuKernels, slots: Array, cache: Array | float, lasting: Array | float, stay: float) -> Array:
    """What CTAs that read their rows several times bring in from memory [B].

    b / n (1 + (n - 1) again), [D, V]; 0 where the rows, b / n, still lie in the L2

    one_pass: what the rows take once, b / n [B], [V]
    visits: what all reads of them bring in from memory [B], [D, V]
    again: share of the later reads that comes from memory, `rows_again` [1], [D, V]
    slots: CTAs that the chip holds at once, [D, V]; cache: size of the L2 [B], a float or [D, 1]; stay: see `rows_again`
    lasting: what a tensor may take of it and still be there for its next reader [B], a float or [D, 1]

    >>> import numpy as np
    >>> from types import SimpleNamespace as some
    >>> one = some(row_in_flight=np.array([16.0]), threads=256.0, b_bytes=np.array([3e9]), row_reads=np.array([3.0]))
    >>> rows_fetched(one, np.array([640.0]), np.array([[40e6], [4e9]]), np.array([[20e6], [2e9]]), 0.35).tolist()
    [[1000000000.0], [0.0]]
    """
    one_pass = kernels.b_bytes / np.maximum(kernels.row_reads, 1.0)
    visits = one_pass + (kernels.b_bytes - one_pass) * rows_again(kernels, slots, cache, stay)
    return np.where(one_pass > lasting, visits, 0.0)

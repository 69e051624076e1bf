"""What the L2 still has of data that come again: in the next call of a loop, the next run, the next op, at another pass."""

from __future__ import annotations

import numpy as np

from archsim.cost.cost import Array
from archsim.device.device import Gpu
from archsim.lower.kernel import GpuKernels

NOTICED = 1e-3  # share of a tensor that has to be lost before it counts: a cache that holds all but so much holds it. A choice.
STEPS, LARGE = 30, 1e3  # of the iteration in `resident_share`; a round of so many caches leaves nothing in one


def shared_size(device: Gpu) -> Array | float:
    """What the L2 holds of data that all SMs read [B]: its size, over the parts that each keep a copy, a float or [D, 1].

    On an H100 a ReLU reads 12.8 MB that the kernel before has written at 5.5 TB/s, and 25.7 MB at 3.9 (PyTorch 2.11, profiles).

    >>> from types import SimpleNamespace as some
    >>> shared_size(some(l2=some(size=50e6, partitions=2.0))) / 1e6
    25.0
    """
    return device.l2.size / (1.0 if device.l2.partitions is None else device.l2.partitions)


def resident_share(touched: Array | float, device: Gpu) -> Array:
    """Share of the bytes of a round that the L2 still has when they come again in the next, [D, V]:

    h = P(N <= ways), N of a Poisson distribution of mean ways x        x = touched partitions / size
    h = exp(-(1 - h) x), 1 where x <= 1, of an L2 whose ways are not known

    touched: what a round of calls touches [B], [V]; infinite for what does not come again
    size: of the L2 [B]; partitions: parts that each keep a copy of what the SMs beside them read, 1 where the spec has none
    ways: lines of a set, of which the one that was used longest ago is replaced [1]

    Where addresses are hashed over the sets, some get more of the round's lines than others: a set that holds all of its lines
    hits each time, a larger one, gone through in order, never (gpu-benches, gpu-l2-cache: on an A100 rounds of 0.8, 1.0 and 1.2
    times the L2 hit 0.5, 0.24 and 0.08, on an H100 those of 0.86, 1.0 and 1.13 hit 0.53, 0.3 and 0.11; on an L40S weights of 1.25
    times come from memory, AIConfigurator tables, split calibrate). Of a cache that replaces lines at random, a line outlives the
    (1 - h) x C misses of a round with that probability, each of which spares it with 1 - 1/C.

    >>> import numpy as np
    >>> from types import SimpleNamespace as some
    >>> of = np.array([0.5e6, 1.5e6, 2e6, 8e6])
    >>> [resident_share(of, some(l2=some(size=1e6, partitions=None, ways=n))).round(2).tolist() for n in (16.0, None)]
    [[1.0, 0.06, 0.0, 0.0], [1.0, 0.42, 0.2, 0.0]]
    """
    x = np.minimum(np.asarray(touched / shared_size(device), dtype=float), LARGE)
    if device.l2.ways is not None:
        return _within(device.l2.ways, device.l2.ways * x)
    h = np.zeros_like(x)
    for _ in range(STEPS):
        h = np.exp((h - 1.0) * x)
    return np.where(x <= 1.0, 1.0, h)


def _within(most: Array | float, mean: Array) -> Array:
    """Probability that a number of a Poisson distribution is at most `most`, 1 where all but `NOTICED` is, [D, V]."""
    term = np.exp(-np.minimum(mean, LARGE))
    total = np.zeros_like(mean) + term
    for i in range(1, int(np.max(most)) + 1):
        term = term * mean / i
        total = total + np.where(i <= most, term, 0.0)
    return np.where(total > 1.0 - NOTICED, 1.0, total)


# ------------------------------------------------------------------------------------------------------- visits of rows

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

"""Accesses as columns, and the line requests that a cache sees of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]
COLLAPSE_BELOW = 0.9  # equal neighbours are merged where at most this share of the requests remains; else it costs more time
CHUNK = 1 << 15  # accesses processed at once: columns of this length stay in the L2 of the computer that simulates


@dataclass(frozen=True, slots=True, kw_only=True)
class Accesses:
    """Memory accesses in program order, as columns.

    address: first byte, [N]
    size: bytes [B], a number or [N]
    store: 1 for a store, 0 for a load, a number or [N]
    core: index of the core, a number or [N]
    """

    address: Index
    size: Index | int = 8
    store: Index | int = 0
    core: Index | int = 0

    def __len__(self) -> int:
        return len(self.address)

    def part(self, begin: int, end: int) -> Accesses:
        """Accesses `begin` to `end`."""
        size, store, core = (column if isinstance(column, int) else column[begin:end]
                             for column in (self.size, self.store, self.core))  # fmt: skip
        return Accesses(address=self.address[begin:end], size=size, store=store, core=core)


Stream = Iterable[Accesses]


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Requests for lines, as columns [M].

    line: line number; mask: its requested sectors as bits; kind: as in `kernel`; count: consecutive repetitions; core: index of
    the core; source: position of the access or request that caused it
    """

    line: Index
    mask: Index
    kind: Index
    count: Index
    core: Index
    source: Index

    def __len__(self) -> int:
        return len(self.line)


def chunks(stream: Stream, most: int = CHUNK) -> Iterator[Accesses]:
    """The stream in pieces of at most `most` accesses."""
    for accesses in stream:
        for begin in range(0, len(accesses), most):
            yield accesses if len(accesses) <= most else accesses.part(begin, begin + most)


def requests(accesses: Accesses, line: int, sector: int) -> Requests:
    """The line requests of some accesses, in order.

    line, sector: their sizes [B], powers of two

    An access that straddles lines makes one request for each. Consecutive requests for the same sectors of the same line, of one
    kind and core, become one with a count. Raises ValueError for a size below 1 B.

    Two words of one line, then 8 B that straddle two lines:

    >>> found = requests(Accesses(address=np.array([0, 8, 60])), line=64, sector=64)
    >>> found.line.tolist(), found.count.tolist()
    ([0, 1], [3, 1])
    """
    begin, size, store, core = accesses.address, accesses.size, accesses.store, accesses.core
    if np.min(size, initial=1) < 1:
        raise ValueError("an access of less than one byte")
    shift = line.bit_length() - 1
    number, source = _line(begin, shift), _counted(len(begin))
    if not _aligned(begin, size, line):
        last = _line(begin + (size - 1), shift)
        if (number != last).any():
            times = last - number + 1
            first, source = number, np.repeat(source, times)
            number = first[source] + np.arange(len(source)) - np.repeat(np.cumsum(times) - times, times)
    mask: Index | int = 1
    if sector < line:
        mask = _sectors(begin[source], size if isinstance(size, int) else size[source], number, line, sector)
    kind = store if isinstance(store, int) else store[source] if len(source) > len(store) else store
    core = core if isinstance(core, int) else core[source] if len(source) > len(core) else core
    return _collapsed(number, mask, kind, core, source)


def _aligned(begin: Index, size: Index | int, line: int) -> bool:
    """Whether every access lies on a multiple of its size, a power of two, so that none straddles lines."""
    return isinstance(size, int) and size <= line and size & (size - 1) == 0 and not np.bitwise_or.reduce(begin) & (size - 1)


def _line(address: Index, shift: int) -> Index:
    """The line number of an address, which is unsigned 64 bits."""
    return (address.view(np.uint64) >> np.uint64(shift)).view(np.int64)


def _sectors(begin: Index, size: Index | int, number: Index, line: int, sector: int) -> Index:
    """The sectors of line `number` that bytes `begin` to `begin + size` touch, as bits."""
    start = number * line
    low = np.maximum(begin - start, 0) // sector
    high = np.minimum(begin + size - 1 - start, line - 1) // sector
    return np.asarray((np.int64(2) << high) - (np.int64(1) << low))


def _collapsed(line: Index, mask: Index | int, kind: Index | int, core: Index | int, source: Index) -> Requests:
    """Requests with equal neighbours merged into one with a count, where that shortens the columns enough."""
    new = line[1:] != line[:-1]
    count: Index | int = 1
    if np.count_nonzero(new) < COLLAPSE_BELOW * len(new):
        for column in (mask, kind, core):
            if not isinstance(column, int):
                new |= column[1:] != column[:-1]
        starts = np.concatenate([[0], np.flatnonzero(new) + 1])
        count = np.diff(starts, append=len(line))
        line, source = line[starts], source[starts]
        mask, kind, core = (column if isinstance(column, int) else column[starts] for column in (mask, kind, core))
    mask, kind, count, core = (_column(column, len(line)) for column in (mask, kind, count, core))
    return Requests(line=line, mask=mask, kind=kind, count=count, core=core, source=source)


def _column(value: Index | int, length: int) -> Index:
    """A column as it is, or one number as a column."""
    if not isinstance(value, int):
        return value
    return _constant(value)[:length] if length <= CHUNK else np.full(length, value)


def _counted(length: int) -> Index:
    """0, 1, 2, ..."""
    return _positions()[:length] if length <= CHUNK else np.arange(length)


@lru_cache(maxsize=1)
def _positions() -> Index:
    return np.arange(CHUNK)


@lru_cache(maxsize=64)
def _constant(value: int) -> Index:
    """A column of one number, shared by many chunks; nobody writes to it.

    It is not marked read-only: numba would compile every function again for each mix of read-only and writable columns.
    """
    return np.full(CHUNK, value)

"""Accesses as columns, and as requests for lines: what a program asks for, and what a cache sees of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]
WORTH = 0.9  # requests that must be left for fewer of them to be worth the copying
CHUNK = 1 << 15  # accesses that are worked on at once: the columns of so many stay in a processor's own cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Accesses:
    """Some accesses in program order. `size` [B], `store` (0 or 1) and `core` are one number for all or a column [N]."""

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
    """Requests for lines, as columns [M]; `source` is the position of what made each, `count` how often it is repeated."""

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
    """The lines [of `line` B] that the accesses touch, in order, with the sectors [of `sector` B] touched in each.

    An access that straddles lines makes a request for each. Requests for the same sectors of the same line that follow each
    other, of one kind and core, become one with a count. Raises ValueError for a size below one.
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
    """The number of the line of an address, which is 64 bits without a sign."""
    return (address.view(np.uint64) >> np.uint64(shift)).view(np.int64)


def _sectors(begin: Index, size: Index | int, number: Index, line: int, sector: int) -> Index:
    """The sectors of line `number` that bytes `begin` to `begin + size` touch, as bits."""
    start = number * line
    low = np.maximum(begin - start, 0) // sector
    high = np.minimum(begin + size - 1 - start, line - 1) // sector
    return np.asarray((np.int64(2) << high) - (np.int64(1) << low))


def _collapsed(line: Index, mask: Index | int, kind: Index | int, core: Index | int, source: Index) -> Requests:
    """Neighbours that ask for the same as one request with a count, where there are enough to be worth it."""
    new = line[1:] != line[:-1]
    count: Index | int = 1
    if np.count_nonzero(new) < WORTH * len(new):
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
    """A column of one number, which many chunks share and nobody writes to.

    It is not marked so: compiled functions would exist once for each mix of columns that are and are not.
    """
    return np.full(CHUNK, value)
